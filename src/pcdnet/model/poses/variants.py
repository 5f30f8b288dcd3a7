"""Variants: a bank in which every prototype in every coarse pose is a prototype of its own.

Where nothing lies between the coarse poses, objects with poses are searched for as a bank of variants is, and nothing
else changes: variant p * R + r is prototype p in the r-th of R poses.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.pose import CoarsePoses, pose_frame
from pcdnet.model.poses.resampling import sprites
from pcdnet.model.selection import EMPTY

TRACE = 1e-5
"""Masks below this, beside objects that are turned by quarters, come of rounding; they would widen their frames."""


def variants_of(bank: PrototypeBank, config: ModelConfig) -> PrototypeBank:
    """The bank of all variants, in frames of posed objects."""
    coarse = CoarsePoses.of(config, bank.masks).values
    P, R = len(bank.masks), len(coarse)
    pictures = torch.stack([bank.prototypes, bank.masks], dim=1).repeat_interleave(R, dim=0)
    painted, masks = sprites(pictures, coarse.repeat(P, 1), pose_frame(bank.frame, config), config).unbind(1)
    return PrototypeBank(painted.contiguous(), torch.where(masks > TRACE, masks, 0), bank.background)


def upright(config: ModelConfig) -> ModelConfig:
    """The configuration of a model without poses whose prototypes are those of another one in its poses."""
    return dataclasses.replace(
        config,
        rotations=1,
        rotation_range=(0.0, FULL_TURN),
        scales=1,
        scale_range=(1.0, 1.0),
        mirror=False,
        subpixel=False,
    )


def in_coarse_poses(config: ModelConfig) -> ModelConfig:
    """The configuration of a model whose objects lie at whole pixels, in one of the poses that are tried."""
    return dataclasses.replace(config, fine_poses=False, subpixel=False) if config.posed else config


def in_images(bank: PrototypeBank, size: tuple[int, int]) -> tuple[PrototypeBank, tuple[int, int]]:
    """A bank whose frames are no larger than images, and where they lie in the old ones.

    Frames of what is turned are larger than what is in them.
    """
    top, left = (max(0, (side - whole + 1) // 2) for side, whole in zip(bank.frame, size, strict=True))
    cut = (slice(None), slice(top, top + size[0]), slice(left, left + size[1]))
    inner = PrototypeBank(bank.prototypes[cut].contiguous(), bank.masks[cut].contiguous(), bank.background)
    return inner, (top, left)


@dataclass(frozen=True, slots=True, eq=False)
class VariantSearch:
    """How images are searched for a bank of variants, and what its prototypes are."""

    plan: SearchPlan
    coarse: Float[Tensor, "R 5"]
    corner: tuple[int, int]
    """Where the frames of the plan's bank lie in those of posed objects."""

    @staticmethod
    @torch.no_grad()
    def derive(plan: SearchPlan) -> VariantSearch:
        """From the plan of the upright bank, for the same images."""
        size, config = plan.geometry.image, plan.config
        bank, corner = in_images(variants_of(plan.bank, config), size)
        coarse = CoarsePoses.of(config, bank.masks).values
        return VariantSearch(SearchPlan.derive(bank, size, upright(config), plan.seen), coarse, corner)

    def as_posed(self, found: Placement) -> Placement:
        """Placed variants as prototypes in poses."""
        exists, variant, R = found.exists, found.prototype.clamp(min=0), len(self.coarse)
        return dataclasses.replace(
            found,
            prototype=torch.where(exists, variant.div(R, rounding_mode="floor"), EMPTY),
            row=torch.where(exists, found.row - self.corner[0], 0),
            column=torch.where(exists, found.column - self.corner[1], 0),
            pose=self.coarse[variant.remainder(R)] * exists[..., None],
        )
