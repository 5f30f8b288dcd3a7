"""Solidity: whether a candidate is seen all over, and not only in a spot.

A large object laid over a small flaw of the background reductions something, too: it mends the spot, and elsewhere it is
painted in the background's own colour. What is really there explains the image better than the background does in
most of its pixels.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import canvas, cut

LEAST_FALL = 1e-3
"""A pixel counts where the squared error falls by at least this much per channel: a contrast of three hundredths."""
WINDOWS_BYTES = 4 << 20
"""Windows are looked at in chunks of about this size, so that they stay in the cache."""


def solid(
    images: Float[Tensor, "B C H W"],
    bank: PrototypeBank,
    geometry: Geometry,
    candidates: Candidates,
    least: float,
    max_colour: float,
) -> Bool[Tensor, "B T"]:
    """Which candidates, alone over the background, lower the error in at least this share of their pixels."""
    C = images.shape[1]
    background = torch.zeros_like(images[0]) if bank.background is None else bank.background
    pictures = canvas(images, geometry)
    behind = canvas(torch.cat([background, torch.ones_like(background[:1])])[None], geometry)
    found = torch.zeros_like(candidates.exists)
    candidate, image = candidates.exists.T.nonzero(as_tuple=True)
    prototype = candidates.prototype(candidate)
    most = max(1, WINDOWS_BYTES // (geometry.frame[0] * geometry.frame[1] * C * images.element_size()))
    for part in torch.split(torch.arange(len(candidate), device=candidate.device), most):
        b, t, p = image[part], candidate[part], prototype[part]
        row, column = candidates.row[b, t], candidates.column[b, t]
        pixels = cut(pictures, geometry, b, row, column)
        under = cut(behind, geometry, torch.zeros_like(b), row, column)
        share = _share(pixels, under[..., :C], under[..., C], bank.prototypes[p], bank.masks[p], max_colour)
        found[b, t] = share >= least
    return found


def _share(
    image: Float[Tensor, "n h w C"],
    B: Float[Tensor, "n h w C"],
    inside: Float[Tensor, "n h w"],
    T: Float[Tensor, "n h w"],
    M: Float[Tensor, "n h w"],
    max_colour: float,
) -> Float[Tensor, "n"]:
    """The share of every candidate's mask, as far as it lies in the image, in which it lowers the error."""
    M = M * inside
    a = ((image - (1 - M[..., None]) * B) * (M * T)[..., None]).sum(dim=(1, 2))
    q = (M * T).square().sum(dim=(1, 2))
    change = M[..., None] * (T[..., None] * best_colour(a, q, max_colour)[:, None, None] - B)
    fall = (change * (2 * (image - B) - change)).sum(dim=-1)
    better = M * (fall > LEAST_FALL * image.shape[-1])
    return better.sum(dim=(1, 2)) / M.sum(dim=(1, 2)).clamp(min=1e-6)
