"""Fidelity: how well objects explain the pixels that they are seen in.

Any prototype reduces the error somewhere: a bar laid over three specks explains half of them. What is really there
leaves little of the error that the bare background leaves in its pixels.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor


def unexplained_shares(
    images: Float[Tensor, "B C H W"],
    painted: Float[Tensor, "B C H W"],
    behind: Float[Tensor, "B C H W"],
    instances: Int[Tensor, "B H W"],
    count: int,
) -> Float[Tensor, "B N"]:
    """The share of the bare background's error that is left in the pixels in which each object is seen.

    `instances` are the objects that pixels belong to, from 1 to `count`. The share is 0 for an object that is not seen,
    and above 1 where an object makes the error larger.
    """
    sums = images.new_zeros(2, len(images), count + 1)
    for total, explained in zip(sums, (painted, behind), strict=True):
        total.scatter_add_(1, instances.flatten(1).long(), (images - explained).square().sum(dim=1).flatten(1))
    left, bare = sums[:, :, 1:]
    return torch.where(bare > 0, left / bare.clamp(min=torch.finfo(bare.dtype).tiny), 0)
