"""Localization: maps that score, for every prototype and every place, how well the one fits the other.

Phase correlation (equation 1 of the paper) gives every frequency the same weight. That makes peaks of crisp objects
sharp, but what is smooth has energy in few frequencies, and the phases of all others are noise. Error-reduction maps
instead hold, for every place, by how much an object there would reduce the error over the bare background in its best
colour: the coefficients of `evidence` before anything is chosen, for all places at once by correlation in the
Fourier domain. What depends on the bank alone is computed once, when a localizer is made.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour, error_reduction_of, kernel_stack
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Maps
from pcdnet.model.spectrum import correlate, delay, phases

REACH = 0.25
"""Error-reduction maps are smooth: around every place that fits, many others nearly do. Of those within this share of
a frame's shorter side, one is tried."""


class PhaseLocalizer:
    """Phase correlation channel by channel; the best channel counts.

    What the background explains already is no evidence for an object; what is painted is what is searched for.
    Channels are kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """

    reach = 1
    """Of peaks that are no further apart than this, one is tried."""

    def __init__(self, bank: PrototypeBank, geometry: Geometry) -> None:
        self._background, self._geometry = bank.background, geometry
        self._templates = _from_origin(phases(bank.prototypes * bank.masks, geometry.grid), geometry)

    def maps(self, images: Float[Tensor, "B C H W"]) -> Maps:
        """The maps of these images, made when they are asked for."""
        geometry, templates = self._geometry, self._templates
        seen = phases(images if self._background is None else images - self._background, geometry.grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            return correlate(seen[which], templates[prototypes], geometry.grid, geometry.positions).amax(dim=2)

        return maps


class ErrorReductionLocalizer:
    """By how much every prototype would reduce the error over the bare background, at every place, at its best."""

    def __init__(self, bank: PrototypeBank, geometry: Geometry, max_colour: float) -> None:
        self._background, self._geometry, self._max_colour = bank.background, geometry, max_colour
        self.reach = max(1, int(REACH * min(geometry.frame)))
        kernels = kernel_stack(bank.prototypes, bank.masks, over_black=bank.background is None)
        self._kernels = _from_origin(torch.fft.rfft2(kernels, s=geometry.grid), geometry)
        # What does not depend on the image: q everywhere, and the background's part of a and k.
        self._q = self._sums(torch.fft.rfft2(kernels.new_ones(1, 1, *geometry.image), s=geometry.grid), 1)[0, :, 0]
        if bank.background is not None:
            behind = torch.cat([bank.background, bank.background.square().sum(0, keepdim=True)])[None]
            spectra = torch.fft.rfft2(behind, s=geometry.grid)
            self._a, self._k = self._sums(spectra[:, :-1], 3), self._sums(spectra[:, -1:], 4)[:, :, 0]

    def maps(self, images: Float[Tensor, "B C H W"]) -> Maps:
        """The maps of these images, made when they are asked for."""
        planes, background = images, self._background
        if background is not None:
            planes = torch.cat([images, (images * background).sum(dim=1, keepdim=True)], dim=1)
        C, spectra = images.shape[1], torch.fft.rfft2(planes, s=self._geometry.grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            a = self._sums(spectra[which, :C], 0, prototypes)
            k = torch.zeros_like(a[:, :, 0])
            if background is not None:
                a -= self._a[:, prototypes]
                k = 2 * self._sums(spectra[which, C:], 2, prototypes)[:, :, 0] - self._k[:, prototypes]
            q = self._q[prototypes].expand_as(k)
            reductions: Tensor = error_reduction_of(a, q, k, best_colour(a, q, self._max_colour, dim=2), dim=2)
            return reductions

        return maps

    def _sums(
        self, spectra: Complex[Tensor, "b c Y X"], kernel: int, prototypes: slice = slice(None)
    ) -> Float[Tensor, "b p c rows columns"]:
        """The sums of planes under one of the kernels of `evidence`, at every place."""
        return correlate(spectra, self._kernels[prototypes, kernel], self._geometry.grid, self._geometry.positions)


def _from_origin(spectra: Tensor, geometry: Geometry) -> Tensor:
    """Move prototypes by the padding, which puts the first admissible position, -padding, at the maps' origin."""
    return delay(spectra, geometry.grid, (-geometry.padding[0], -geometry.padding[1]))
