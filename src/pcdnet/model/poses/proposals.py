"""Proposals: where every prototype could be, and in which of the coarse poses.

Each prototype in each coarse pose is located like a prototype of its own. Where poses are fitted afterwards, this is
done in pictures of half the size: what differs by a pixel or by a few degrees is told apart by fitting, not here. Of
places and poses that are next to each other the best is kept, and of every place a few poses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import avg_pool2d

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.peaks import Peaks
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.pose import CoarsePoses
from pcdnet.model.poses.variants import in_images, upright, variants_of

HALVED = 12
"""Prototypes of at least so many pixels a side, in their smallest size, can be told from each other at half of it."""
TRIED = 512
"""Places and poses of a prototype that are compared with each other in an image."""
MODES = 3
"""Poses of a prototype that are fitted at one place: those of a square look alike until they are."""
NEAR = 0.25
"""Places that differ by this share of the shorter side of a frame are one place."""
RIVAL = 0.6
"""Of all that is proposed at one place, what reduces the error by less than this share of the best is left out."""
CHOICES = 6
"""Candidates of an image that are fitted, for each object that it may hold."""
LEAST = 0.25
"""A coarse pose must reduce the error by this share of what an object must: fitted it does better."""
FAINT = 0.02
"""Where masks are below this, nothing is proposed or fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposer:
    """Finds posed candidates in images of one size."""

    config: ModelConfig
    coarse: CoarsePoses
    prototypes: int
    shrunk: int
    """The factor by which pictures are made smaller to be searched."""
    plan: SearchPlan
    """How they are searched then for all prototypes in all coarse poses."""
    corner: Int[Tensor, "variants 2"]
    """Where the plan's bank lies in the frames of posed objects, and its tight frames in it, made smaller."""

    @staticmethod
    @torch.no_grad()
    def derive(
        bank: PrototypeBank, size: tuple[int, int], config: ModelConfig, seen: Float[Tensor, "1 1 H W"] | None
    ) -> Proposer:
        """For a bank as it is painted, upright."""
        coarse = CoarsePoses.of(config, bank.masks)
        variants, P = variants_of(bank, config), len(bank.masks)
        painted, masks, background = variants.prototypes, variants.masks, bank.background
        shrunk = 2 if _smallest(masks) >= HALVED else 1
        if shrunk > 1:
            small = [_shrunk(values[:, None], shrunk)[:, 0] for values in (painted * masks, masks)]
            painted, masks = small[0] / small[1].clamp(min=1e-3), small[1]
            size = -(-size[0] // shrunk), -(-size[1] // shrunk)
            seen = None if seen is None else (_shrunk(seen, shrunk) > 0.5).to(seen)
            if background is not None and config.background == "still":
                background = _shrunk(background[None], shrunk)[0]
        faint = PrototypeBank(painted, torch.where(masks > FAINT, masks, 0), background)
        inner, corner = in_images(faint, size)
        least = LEAST * config.min_error_reduction / shrunk**2
        plan = SearchPlan.derive(inner, size, replace(upright(config), min_error_reduction=least), seen)
        return Proposer(config, coarse, P, shrunk, plan, plan.offset + plan.offset.new_tensor(corner))

    def propose(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, peaks: int
    ) -> PosedCandidates:
        """At most `peaks` places of every prototype in every image, each in a few poses."""
        images, own = self.looked_at(images, own)
        return self._thinned(self.plan.peaks(images, peaks, own), peaks)

    def looked_at(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B C h w"] | None]:
        """Images and their own backgrounds in the size in which they are searched."""
        if self.shrunk == 1:
            return images, own
        return _shrunk(images, self.shrunk), None if own is None else _shrunk(own, self.shrunk)

    def propose_behind(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"],
        clear: Float[Tensor, "B 1 H W"],
        peaks: int,
    ) -> PosedCandidates:
        """The same behind objects that are found already: only where it is `clear` anything is seen."""
        if self.shrunk > 1:
            # What is seen of a pixel in part is known no better than what is not seen.
            clear = (_shrunk(clear, self.shrunk) > 0.99).to(clear)
            images, own = _shrunk(images, self.shrunk), _shrunk(own, self.shrunk)
        return self._thinned(self.plan.peaks_behind(images, peaks, own, clear), peaks)

    def _thinned(self, found: Peaks, peaks: int) -> PosedCandidates:
        """The best of places and poses that are next to each other."""
        P, R = self.prototypes, len(self.coarse)
        height, row, column = (values.reshape(len(values), P, -1) for values in found)
        pose = torch.arange(R, device=row.device).repeat_interleave(found[0].shape[-1]).expand_as(row)
        height, order = height.topk(min(TRIED, height.shape[-1]), dim=-1)
        row, column, pose = (values.gather(-1, order) for values in (row, column, pose))
        variant = pose + R * torch.arange(P, device=row.device)[None, :, None]
        # The middle of the whole frame, so that what is turned about it counts as being at one place.
        (my, mx), corner = self.plan.geometry.padding, self.corner[variant]
        row, column = row - my - corner[..., 0], column - mx - corner[..., 1]
        kept = (height > self._least) & ~self._hidden(row, column, pose)
        kept &= self._rival(height.where(kept, -torch.inf), row, column)
        kept &= self._best(height.where(kept, -torch.inf))
        kept &= kept.cumsum(-1) <= MODES * peaks
        image, prototype, n = kept.nonzero(as_tuple=True)
        row, column, pose = (values[image, prototype, n] for values in (row, column, pose))
        return PosedCandidates(image, prototype, self.shrunk * row, self.shrunk * column, self.coarse.values[pose])

    def _best(self, height: Float[Tensor, "B P n"]) -> Bool[Tensor, "B P n"]:
        """Which are among the best of an image: so many that all objects can be among them."""
        flat = height.flatten(1)
        most = min(CHOICES * self.config.max_objects, flat.shape[1])
        least = flat.topk(most, dim=1).values[:, -1]
        return height >= least[:, None, None]

    def _rival(
        self, height: Float[Tensor, "B P n"], row: Int[Tensor, "B P n"], column: Int[Tensor, "B P n"]
    ) -> Bool[Tensor, "B P n"]:
        """Which are not far worse than the best of any prototype at their place."""
        if self.config.localization == "phase":
            return torch.ones_like(height, dtype=torch.bool)
        kept = torch.zeros_like(height, dtype=torch.bool)
        for heights, rows, columns, mine in zip(height, row, column, kept, strict=True):
            index = (heights > -torch.inf).nonzero(as_tuple=True)
            h, y, x = heights[index], rows[index], columns[index]
            near = ((y[:, None] - y).abs() <= self._reach) & ((x[:, None] - x).abs() <= self._reach)
            mine[index] = h >= RIVAL * torch.where(near, h[None], -torch.inf).amax(1) if len(h) else h > 0
        return kept

    @property
    def _reach(self) -> int:
        return max(1, round(NEAR * int(self.plan.boxes[:, 2:].min())))

    @property
    def _least(self) -> float:
        if self.config.localization == "phase":
            return -torch.inf
        return self.plan.config.min_error_reduction

    def _hidden(
        self, row: Int[Tensor, "B P n"], column: Int[Tensor, "B P n"], pose: Int[Tensor, "B P n"]
    ) -> Bool[Tensor, "B P n"]:
        """Which are next to a better one in place and pose, or at a place at which enough better ones are."""
        reach, hidden = self._reach, []
        for rows, columns, poses in zip(row.flatten(0, 1), column.flatten(0, 1), pose.flatten(0, 1), strict=True):
            near = ((rows[:, None] - rows).abs() <= reach) & ((columns[:, None] - columns).abs() <= reach)
            earlier = near.tril(-1)
            same = (earlier & self.coarse.near(poses[:, None], poses)).any(-1)
            modes = (earlier & ~same[None]).sum(-1)
            hidden.append(same | (modes >= MODES))
        return torch.stack(hidden).view_as(row)


def _smallest(masks: Float[Tensor, "V h w"]) -> int:
    """The shortest side of what is opaque of any of the masks that have something."""
    opaque = masks > 0.5
    sides = torch.stack([opaque.any(2).sum(1), opaque.any(1).sum(1)]).amin(0)
    sides = sides[sides > 0]
    return int(sides.min()) if len(sides) else 0


def _shrunk(pictures: Float[Tensor, "n C h w"], factor: int) -> Float[Tensor, "n C y x"]:
    """Pictures in a smaller size, each pixel the mean of those that it stands for."""
    small: Tensor = avg_pool2d(pictures, factor, ceil_mode=True, count_include_pad=False)
    return small
