"""Localization: maps that tell, for every prototype and every place, how well the one fits the other.

Phase correlation (equation 1 of the paper) gives every frequency the same say. That makes peaks of crisp objects sharp,
but what is smooth has energy in few frequencies, and the phases of all others are noise. Gain maps instead hold,
for every place, what an object there would reduction over the bare background in its best colour: the coefficients of
`evidence` before anything is chosen, read for all places at once by correlation in the Fourier domain.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Maps
from pcdnet.model.spectrum import correlate, delay, phases


def phase_maps(images: Float[Tensor, "B C H W"], bank: PrototypeBank, geometry: Geometry) -> Maps:
    """Phase correlation channel by channel; the best channel counts.

    What the background explains already is no evidence for an object; what is painted is what is sought. Channels are
    kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """
    grid = geometry.grid
    sought = _from_origin(phases(bank.prototypes * bank.masks, grid), geometry)
    seen = phases(images if bank.background is None else images - bank.background, grid)

    def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
        found = correlate(seen[which], sought[prototypes], grid, geometry.positions)
        return found.amax(dim=2)

    return maps


def error_reduction_maps(
    images: Float[Tensor, "B C H W"], bank: PrototypeBank, geometry: Geometry, max_colour: float
) -> Maps:
    """What every prototype would reduction at every place, over the bare background and in its best colour."""
    grid, T, M = geometry.grid, bank.prototypes, bank.masks
    spectra = torch.fft.rfft2(images, s=grid)
    textures, masks = (_from_origin(torch.fft.rfft2(x, s=grid), geometry) for x in (M * T, M))
    # What does not depend on the image: q everywhere, and the background's part of a and k.
    q = _constant(torch.ones_like(images[:1, :1]), (M * T).square(), geometry)[0, :, 0]
    behind = bank.background
    if behind is not None:
        a_behind = _constant(behind[None], M * (1 - M) * T, geometry)
        k_behind = _constant(behind.square().sum(0)[None, None], M * (2 - M), geometry)[:, :, 0]
        products = torch.fft.rfft2((images * behind).sum(dim=1, keepdim=True), s=grid)

    def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
        a = correlate(spectra[which], textures[prototypes], grid, geometry.positions)
        k = torch.zeros_like(a[:, :, 0])
        if behind is not None:
            a -= a_behind[:, prototypes]
            k = 2 * correlate(products[which], masks[prototypes], grid, geometry.positions)[:, :, 0]
            k -= k_behind[:, prototypes]
        a, norm = a.movedim(2, -1), q[prototypes].expand_as(k)
        return error_reduction_of(a, norm, k, best_colour(a, norm, max_colour))

    return maps


def _from_origin(spectra: Tensor, geometry: Geometry) -> Tensor:
    """Move prototypes by the padding, which puts the first admissible position, -padding, at the maps' origin."""
    return delay(spectra, geometry.grid, (-geometry.padding[0], -geometry.padding[1]))


def _constant(
    plane: Float[Tensor, "b c H W"], weights: Float[Tensor, "P h w"], geometry: Geometry
) -> Float[Tensor, "b P c rows columns"]:
    grid = geometry.grid
    sought = _from_origin(torch.fft.rfft2(weights, s=grid), geometry)
    return correlate(torch.fft.rfft2(plane, s=grid), sought, grid, geometry.positions)
