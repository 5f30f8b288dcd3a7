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
    def maps(self, images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"] | None = None) -> Maps:
        """The maps of these images, made when they are asked for; `behind` are backgrounds other than the bank's."""


class PhaseLocalizer(Localizer):
    """Phase correlation channel by channel; the best channel counts.

    What the background explains already is no evidence for an object; what is painted is what is searched for.
    Channels are kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """

    def __init__(self, bank: PrototypeBank, geometry: Geometry) -> None:
        self._background, self._geometry = bank.background, geometry
        self._templates = _from_origin(phases(bank.prototypes * bank.masks, geometry.grid), geometry)

    def maps(self, images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"] | None = None) -> Maps:
        geometry, templates = self._geometry, self._templates
        background = self._background if behind is None else behind
        seen = phases(images if background is None else images - background, geometry.grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            return correlate(seen[which], templates[prototypes], geometry.grid, geometry.positions).amax(dim=2)

        return maps


class ErrorReductionLocalizer(Localizer):
    """By how much every prototype would reduce the error over the bare background, at every place, at its best."""

    def __init__(self, bank: PrototypeBank, geometry: Geometry, max_colour: float) -> None:
        T, M, self._background = bank.prototypes, bank.masks, bank.background
        self._geometry, self._max_colour = geometry, max_colour
        self._textures, self._masks = self._templates(M * T), self._templates(M)
        self._soft, self._cover = self._templates(M * (1 - M) * T), self._templates(M * (2 - M))
        # What does not depend on the image: q everywhere, and the bank's own background's part of a and k.
        inside = torch.fft.rfft2(T.new_ones(1, 1, *geometry.image), s=geometry.grid)
        self._q = self._sums(inside, self._templates((M * T).square()))[0, :, 0]
        if self._background is not None:
            own = self._background[None]
            self._a, self._k = (part(slice(0, 1), slice(0, len(T))) for part in self._background_parts(own))

    def maps(self, images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"] | None = None) -> Maps:
        grid, background = self._geometry.grid, self._background if behind is None else behind
        spectra = torch.fft.rfft2(images, s=grid)
        if background is not None:
            products = torch.fft.rfft2((images * background).sum(dim=1, keepdim=True), s=grid)
        if behind is not None:
            parts = self._background_parts(behind)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            a = self._sums(spectra[which], self._textures[prototypes])
            k = torch.zeros_like(a[:, :, 0])
            if background is not None:
                k = 2 * self._sums(products[which], self._masks[prototypes])[:, :, 0]
                if behind is None:
                    a -= self._a[:, prototypes]
                    k -= self._k[:, prototypes]
                else:
                    a -= parts[0](which, prototypes)
                    k -= parts[1](which, prototypes)
            a, q = a.movedim(2, -1), self._q[prototypes].expand_as(k)
            return error_reduction_of(a, q, k, best_colour(a, q, self._max_colour))

        return maps

    def _background_parts(self, behind: Float[Tensor, "b C H W"]) -> tuple[Maps, Maps]:
        """What backgrounds take away from a (channel by channel) and from k, at every place."""
        grid = self._geometry.grid
        spectra = torch.fft.rfft2(behind, s=grid)
        energies = torch.fft.rfft2(behind.square().sum(dim=1, keepdim=True), s=grid)
        return (
            lambda which, prototypes: self._sums(spectra[which], self._soft[prototypes]),
            lambda which, prototypes: self._sums(energies[which], self._cover[prototypes])[:, :, 0],
        )

    def _templates(self, weights: Float[Tensor, "P h w"]) -> Tensor:
        return _from_origin(torch.fft.rfft2(weights, s=self._geometry.grid), self._geometry)

    def _sums(self, spectra: Tensor, templates: Tensor) -> Float[Tensor, "b p c rows columns"]:
        """The sums of planes under the weights of templates, at every place."""
        return correlate(spectra, templates, self._geometry.grid, self._geometry.positions)


def _from_origin(spectra: Tensor, geometry: Geometry) -> Tensor:
    """Move prototypes by the padding, which puts the first admissible position, -padding, at the maps' origin."""
    return delay(spectra, geometry.grid, (-geometry.padding[0], -geometry.padding[1]))
