"""Sprites: the prototypes of placed objects in their poses, ready to be painted, with gradients."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.placement import Placement
from pcdnet.model.posed import frame_corner
from pcdnet.model.poses.pose import DOWN, RIGHT, pose_frame
from pcdnet.model.poses.resampling import sprites


def posed_sprites(
    prototypes: Float[Tensor, "B N h w"], masks: Float[Tensor, "B N h w"], where: Placement, config: ModelConfig
) -> tuple[Float[Tensor, "B N y x"], Float[Tensor, "B N y x"]]:
    """The prototypes of placed objects and their masks, in frames of posed objects; nothing where there is none."""
    frame = pose_frame((prototypes.shape[-2], prototypes.shape[-1]), config)
    (B, N), pose = where.exists.shape, where.pose.detach()
    if in_lockstep(pose):
        made = sprites(torch.stack([prototypes, masks], dim=2).flatten(0, 1), pose.flatten(0, 1), frame, config)
        made = made.view(B, N, *made.shape[1:]) * where.exists[:, :, None, None, None]
        paint, alpha = made.unbind(2)
        return paint.contiguous(), alpha.contiguous()
    there = where.exists.nonzero(as_tuple=True)
    made = sprites(torch.stack([prototypes[there], masks[there]], dim=1), pose[there], frame, config)
    paint, alpha = (made.new_zeros(B, N, *frame).index_put(there, each) for each in made.unbind(1))
    return paint, alpha


def upright_positions(where: Placement, config: ModelConfig) -> Float[Tensor, "B N 2"] | Int[Tensor, "B N 2"]:
    """Top left of the upright frames of placed objects, about whose middle they are turned; whole without poses."""
    places = torch.stack([where.row, where.column], dim=-1).int()
    if not config.posed:
        return places
    corner = places.new_tensor(frame_corner(config.prototype_size, config))
    return (places + corner) + where.pose[..., [DOWN, RIGHT]].float()
