"""Solidity: whether a candidate is seen all over, and not only in a spot.

A large object laid over a small flaw of the background reduces the error, too: it fixes the spot, and elsewhere it is
painted in the background's own colour. What is really there explains the image better than the background does in
most of its pixels.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import WINDOWS_BYTES, best_colour, colour_coefficients
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import canvas, cut

LEAST_FALL = 1e-3
"""A pixel counts where the squared error falls by at least this much per channel: a contrast of three hundredths."""
LEAST_AREA = 1e-6
"""What has less of a mask than this has no pixels to be seen in."""


def solid(
    images: Float[Tensor, "B C H W"],
    bank: PrototypeBank,
    behind: Float[Tensor, "B C H W"] | None,
    geometry: Geometry,
    candidates: Candidates,
    least: float,
    max_colour: float,
) -> Bool[Tensor, "B T"]:
    """Which candidates, alone over the background, lower the error in at least this share of their pixels."""
    C = images.shape[1]
    if behind is None:
        behind = torch.zeros_like(images[:1]) if bank.background is None else bank.background[None]
    pictures = canvas(images, geometry)
    backgrounds = canvas(torch.cat([behind, torch.ones_like(behind[:, :1])], dim=1), geometry)
    found = torch.zeros_like(candidates.exists)
    candidate, image = candidates.exists.T.nonzero(as_tuple=True)
    prototype = candidates.prototype(candidate)
    most = max(1, WINDOWS_BYTES // (geometry.frame[0] * geometry.frame[1] * C * images.element_size()))
    for part in torch.split(torch.arange(len(candidate), device=candidate.device), most):
        b, t, p = image[part], candidate[part], prototype[part]
        row, column = candidates.row[b, t], candidates.column[b, t]
        pixels = cut(pictures, geometry, b, row, column)
        under = cut(backgrounds, geometry, b, row, column)
        T, M = bank.prototypes[p][..., None], bank.masks[p][..., None]
        found[b, t] = _share(pixels, under[..., :C], under[..., C:], T, M, max_colour) >= least
    return found


def _share(
    image: Float[Tensor, "n h w C"],
    B: Float[Tensor, "n h w C"],
    inside: Float[Tensor, "n h w 1"],
    T: Float[Tensor, "n h w 1"],
    M: Float[Tensor, "n h w 1"],
    max_colour: float,
) -> Float[Tensor, "n"]:
    """The share of every candidate's mask, as far as it lies in the image, in which it lowers the error."""
    M = M * inside
    colour = best_colour(*colour_coefficients(image, inside, B, T, M), max_colour)
    change = M * (T * colour[:, None, None] - B)
    fall = (change * (2 * (image - B) - change)).sum(dim=-1)
    better = M[..., 0] * (fall > LEAST_FALL * image.shape[-1])
    return better.sum(dim=(1, 2)) / M.sum(dim=(1, 2, 3)).clamp(min=LEAST_AREA)
