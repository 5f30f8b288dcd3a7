"""Sprites: the prototypes of placed objects in their poses, ready to be painted, with gradients."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.placement import Placement
from pcdnet.model.posed import frame_corner
from pcdnet.model.poses.pose import DOWN, RIGHT, pose_frame
from pcdnet.model.poses.resampling import sprites


def posed_sprites(
    prototypes: Float[Tensor, "B N h w"], masks: Float[Tensor, "B N h w"], where: Placement, config: ModelConfig
) -> tuple[Float[Tensor, "B N y x"], Float[Tensor, "B N y x"]]:
    """The prototypes of placed objects and their masks, in frames of posed objects; nothing where there is none."""
    (B, N), frame = where.prototype.shape, (prototypes.shape[-2], prototypes.shape[-1])
    pictures = torch.stack([prototypes, masks], dim=2).flatten(0, 1)
    pose = where.pose.detach().flatten(0, 1)
    made = sprites(pictures, pose, pose_frame(frame, config), config)
    made = made.view(B, N, *made.shape[1:])
    made = made * where.exists[:, :, None, None, None]
    paint, alpha = made.unbind(2)
    return paint.contiguous(), alpha.contiguous()


def upright_positions(where: Placement, config: ModelConfig) -> Float[Tensor, "B N 2"] | Int[Tensor, "B N 2"]:
    """Top left of the upright frames of placed objects, about whose middle they are turned; whole without poses."""
    places = torch.stack([where.row, where.column], dim=-1).int()
    if not config.posed:
        return places
    corner = places.new_tensor(frame_corner(config.prototype_size, config))
    return (places + corner) + where.pose[..., [DOWN, RIGHT]].float()
