"""Localization: maps that score, for every prototype and every place, how well the one fits the other.

Phase correlation (equation 1 of the paper) gives every frequency the same weight. That makes peaks of crisp objects
sharp, but what is smooth has energy in few frequencies, and the phases of all others are noise. Error-reduction maps
instead hold, for every place, by how much an object there would reduce the error over the bare background in its best
colour: the coefficients of `evidence` before anything is chosen, for all places at once by correlation in the
Fourier domain. What depends on the bank alone is computed once, when a localizer is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Maps
from pcdnet.model.spectrum import correlate, delay, phases


class Localizer(ABC):
    """A way to find places for a bank's prototypes in images of one size."""

    @abstractmethod
    def maps(self, images: Float[Tensor, "B C H W"]) -> Maps:
        """The maps of these images, made when they are asked for."""


class PhaseLocalizer(Localizer):
    """Phase correlation channel by channel; the best channel counts.

    What the background explains already is no evidence for an object; what is painted is what is searched for.
    Channels are kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """

    def __init__(self, bank: PrototypeBank, geometry: Geometry) -> None:
        self._background, self._geometry = bank.background, geometry
        self._templates = _from_origin(phases(bank.prototypes * bank.masks, geometry.grid), geometry)

    def maps(self, images: Float[Tensor, "B C H W"]) -> Maps:
        geometry, templates = self._geometry, self._templates
        seen = phases(images if self._background is None else images - self._background, geometry.grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            return correlate(seen[which], templates[prototypes], geometry.grid, geometry.positions).amax(dim=2)

        return maps


class ErrorReductionLocalizer(Localizer):
    """By how much every prototype would reduce the error over the bare background, at every place, at its best."""

    def __init__(self, bank: PrototypeBank, geometry: Geometry, max_colour: float) -> None:
        T, M, self._background = bank.prototypes, bank.masks, bank.background
        self._geometry, self._max_colour = geometry, max_colour
        self._textures, self._masks = (_from_origin(torch.fft.rfft2(x, s=geometry.grid), geometry) for x in (M * T, M))
        # What does not depend on the image: q everywhere, and the background's part of a and k.
        self._q = self._constant(T.new_ones(1, 1, *geometry.image), (M * T).square())[0, :, 0]
        if self._background is not None:
            energy = self._background.square().sum(0)[None, None]
            self._a = self._constant(self._background[None], M * (1 - M) * T)
            self._k = self._constant(energy, M * (2 - M))[:, :, 0]

    def maps(self, images: Float[Tensor, "B C H W"]) -> Maps:
        grid, positions, background = self._geometry.grid, self._geometry.positions, self._background
        spectra = torch.fft.rfft2(images, s=grid)
        if background is not None:
            products = torch.fft.rfft2((images * background).sum(dim=1, keepdim=True), s=grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            a = correlate(spectra[which], self._textures[prototypes], grid, positions)
            k = torch.zeros_like(a[:, :, 0])
            if background is not None:
                a -= self._a[:, prototypes]
                k = 2 * correlate(products[which], self._masks[prototypes], grid, positions)[:, :, 0]
                k -= self._k[:, prototypes]
            a, q = a.movedim(2, -1), self._q[prototypes].expand_as(k)
            return error_reduction_of(a, q, k, best_colour(a, q, self._max_colour))

        return maps

    def _constant(
        self, plane: Float[Tensor, "b c H W"], weights: Float[Tensor, "P h w"]
    ) -> Float[Tensor, "b P c rows columns"]:
        grid = self._geometry.grid
        templates = _from_origin(torch.fft.rfft2(weights, s=grid), self._geometry)
        return correlate(torch.fft.rfft2(plane, s=grid), templates, grid, self._geometry.positions)


def _from_origin(spectra: Tensor, geometry: Geometry) -> Tensor:
    """Move prototypes by the padding, which puts the first admissible position, -padding, at the maps' origin."""
    return delay(spectra, geometry.grid, (-geometry.padding[0], -geometry.padding[1]))
