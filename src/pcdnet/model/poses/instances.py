"""Instances: posed candidates as the bank of a search, each a prototype of its own at one place of one image."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.proposals import FAINT
from pcdnet.model.poses.resampling import sprites
from pcdnet.model.poses.variants import in_images


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """A plan whose prototypes are posed candidates, and where each of them lies."""

    plan: SearchPlan
    things: PosedCandidates
    corner: tuple[int, int]
    """Where the frames of the plan's bank lie in those of posed objects."""

    @staticmethod
    def of(
        things: PosedCandidates,
        bank: PrototypeBank,
        frame: tuple[int, int],
        like: SearchPlan,
        core: tuple[int, int] | None = None,
    ) -> Instances:
        """Those of a bank in frames of posed objects, for images and backgrounds as in another plan.

        The middle part of the frames that holds all that is seen is enough, where it is known to be `core`.
        """
        things, core = things if len(things) else things.nothing(), core or frame
        pictures = torch.stack([bank.prototypes, bank.masks], dim=1)[things.prototype]
        paint, masks = sprites(pictures, things.pose, core, like.config).unbind(1)
        posed = PrototypeBank(paint, torch.where(masks > FAINT, masks, 0), bank.background)
        inner, corner = in_images(posed, like.geometry.image)
        plan = SearchPlan.derive(inner, like.geometry.image, like.config, like.seen, located=True)
        top, left = (into + (outer - own) // 2 for into, outer, own in zip(corner, frame, core, strict=True))
        return Instances(plan, things, (top, left))

    def candidates(self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None) -> Candidates:
        """Each at its place in its image; those that lie too far outside, or are not solid enough, do not exist."""
        B, geometry, things = len(images), self.plan.geometry, self.things
        row, column = self._in_tight_frames(things.row, things.column)
        (my, mx), (rows, columns) = geometry.padding, geometry.positions
        there = (row >= -my) & (row < rows - my) & (column >= -mx) & (column < columns - mx)
        mine = things.image == torch.arange(B, device=row.device)[:, None]
        row, column = row.clamp(-my, rows - my - 1), column.clamp(-mx, columns - mx - 1)
        found = Candidates(row.expand(B, -1).contiguous(), column.expand(B, -1).contiguous(), mine & there, 1)
        return dataclasses.replace(found, exists=self.plan.acceptable(images, found, own))

    def in_bank_frames(self, row: Int[Tensor, "*any"], column: Int[Tensor, "*any"]) -> tuple[Tensor, Tensor]:
        """Places of the frames of posed objects as those of the plan's bank."""
        return row + self.corner[0], column + self.corner[1]

    def _in_tight_frames(self, row: Int[Tensor, "n"], column: Int[Tensor, "n"]) -> tuple[Tensor, Tensor]:
        down, right = self.in_bank_frames(row, column)
        return down + self.plan.offset[:, 0], right + self.plan.offset[:, 1]
