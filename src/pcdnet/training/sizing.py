"""Sizing: prototypes made so large that the sizes of their objects lie in the middle of the range of sizes.

How large shapes are is read off blobs first, and a blob of several objects that cover each other is larger than any of
them. The search tells them apart: where objects are found at sizes that lie beside the middle, the prototype is made
larger or smaller. Otherwise the sizes at one end of the range would be lost.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from pcdnet.model.network import PCDNet
from pcdnet.model.poses.pose import SCALE, VALUES
from pcdnet.model.poses.resampling import resampled
from pcdnet.pixels import Pixels, spread
from pcdnet.training.gauge import TYPICAL

SAMPLE = 64
"""Images in which sizes are looked at."""
FEWEST = 8
"""Objects of a prototype that tell its size."""
ROUNDS = 3
"""How often: what lies beyond an end of the range is not seen the first time."""
CENTRED = 0.02
"""Logarithm of the ratio by which a size may be off."""


@torch.no_grad()
def centre_sizes(model: PCDNet, images: UInt8[Pixels, "N H W C"]) -> None:
    """Resize the prototypes and masks of a model whose objects come in sizes, in place."""
    config = model.config
    if not config.fine_poses or config.scales == 1:
        return
    some = spread(images, max(1, len(images) // SAMPLE), SAMPLE)
    middle = float(np.log(config.scale_range).mean())
    for _ in range(ROUNDS):
        found = model.decompose_all(some, refined=False)
        prototypes = np.concatenate([thing.prototype_ids for thing in found])
        sizes = np.log(np.concatenate([thing.scales for thing in found]))
        factors = torch.ones(config.num_prototypes)
        for p in range(config.num_prototypes):
            own = sizes[prototypes == p]
            if len(own) >= FEWEST:
                factors[p] = math.exp(float(np.quantile(own, TYPICAL).mean()) - middle)
        if (factors.log().abs() <= CENTRED).all():
            break
        _resize(model, factors.to(model.masks))


def _resize(model: PCDNet, factors: Float[Tensor, "P"]) -> None:
    """Make each prototype so many times as large as it is, unless its frame would not hold it."""
    frame = model.config.prototype_size
    empty = model.masks.amin(dim=(1, 2), keepdim=True)  # what is around a mask, below 0 where it is crisp
    poses = model.masks.new_zeros(len(factors), VALUES)
    poses[:, SCALE] = factors
    poses[:, SCALE] = torch.minimum(factors, _room(model.masks))
    made = resampled(torch.stack([model.prototypes, model.masks - empty], dim=1), poses, frame)
    changed = (factors != 1)[:, None, None]
    model.prototypes.copy_(torch.where(changed, made[:, 0], model.prototypes))
    model.masks.copy_(torch.where(changed, made[:, 1] + empty, model.masks))


def _room(masks: Float[Tensor, "P h w"]) -> Float[Tensor, "P"]:
    """How many times as large each mask may become about the middle of its frame."""
    opaque, room = masks > 0.5, masks.new_ones(len(masks))
    for side, seen in ((0, opaque.any(2)), (1, opaque.any(1))):
        length = masks.shape[1 + side]
        away = (torch.arange(length, device=masks.device) - (length - 1) / 2).abs() + 0.5
        reach = (seen * away).amax(1).clamp(min=0.5)
        most = length / 2 / reach
        room = most if side == 0 else torch.minimum(room, most)
    return room.clamp(min=1)
