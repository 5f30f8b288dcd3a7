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

from pcdnet.config import Template
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

    What the background explains already is no evidence for an object; what is painted is what is searched for. Equation
    1 of the paper has it otherwise: with the template "prototype", masks and background make no difference.
    Channels are kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """

    reach = 1
    """Of peaks that are no further apart than this, one is tried."""

    def __init__(self, bank: PrototypeBank, geometry: Geometry, template: Template = "painted") -> None:
        self._background, self._geometry, self._template = bank.background, geometry, template
        sought = bank.prototypes * bank.masks if template == "painted" else bank.prototypes
        self._templates = _from_origin(phases(sought, geometry.grid), geometry)

    def maps(self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None = None) -> Maps:
        """The maps of these images, made when they are asked for; `own` are backgrounds other than the bank's."""
        geometry, templates = self._geometry, self._templates
        background = self._background if own is None else own
        if self._template == "prototype":
            background = None
        seen = phases(images if background is None else images - background, geometry.grid)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            return correlate([(seen[which], templates[prototypes])], geometry.grid, geometry.positions).amax(dim=2)

        return maps


class ErrorReductionLocalizer:
    """By how much every prototype would reduce the error over the bare background, at every place, at its best."""

    def __init__(
        self,
        bank: PrototypeBank,
        geometry: Geometry,
        max_colour: float,
        seen: Float[Tensor, "1 1 H W"] | None = None,
    ) -> None:
        """Where `seen` is 0, so are the images and the background."""
        self._background, self._geometry, self._max_colour = bank.background, geometry, max_colour
        self.reach = max(1, int(REACH * min(geometry.frame)))
        kernels = kernel_stack(bank.prototypes, bank.masks, over_black=False)
        self._kernels = _from_origin(torch.fft.rfft2(kernels, s=geometry.grid), geometry)
        # What does not depend on the image: q everywhere, and the background's part of a and k.
        ones = torch.fft.rfft2(kernels.new_ones(1, 1, *geometry.image) if seen is None else seen, s=geometry.grid)
        self._q = self._sums(slice(None), (ones, 1))[0, :, 0]
        if bank.background is not None:
            spectra = self._background_spectra(bank.background[None])
            self._a = self._sums(slice(None), (spectra[:, :-1], 3))
            self._k = self._sums(slice(None), (spectra[:, -1:], 4))[:, :, 0]

    def maps(self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None = None) -> Maps:
        """The maps of these images, made when they are asked for; `own` are backgrounds other than the bank's."""
        planes, background = images, self._background if own is None else own
        if background is not None:
            planes = torch.cat([images, 2 * (images * background).sum(dim=1, keepdim=True)], dim=1)
        C, spectra = images.shape[1], torch.fft.rfft2(planes, s=self._geometry.grid)
        behind = None if own is None else -self._background_spectra(own)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            a_terms, k_terms = [(spectra[which, :C], 0)], [(spectra[which, C:], 2)]
            if behind is not None:  # what backgrounds take away is one transform with the rest
                a_terms.append((behind[which, :C], 3))
                k_terms.append((behind[which, C:], 4))
            a = self._sums(prototypes, *a_terms)
            k = torch.zeros_like(a[:, :, 0]) if background is None else self._sums(prototypes, *k_terms)[:, :, 0]
            if background is not None and behind is None:
                a -= self._a[:, prototypes]
                k -= self._k[:, prototypes]
            q = self._q[prototypes].expand_as(k)
            reductions: Tensor = error_reduction_of(a, q, k, best_colour(a, q, self._max_colour, dim=2), dim=2)
            return reductions

        return maps

    def _background_spectra(self, behind: Float[Tensor, "b C H W"]) -> Complex[Tensor, "b planes Y X"]:
        planes = torch.cat([behind, behind.square().sum(dim=1, keepdim=True)], dim=1)
        spectra: Tensor = torch.fft.rfft2(planes, s=self._geometry.grid)
        return spectra

    def _sums(
        self, prototypes: slice, *terms: tuple[Complex[Tensor, "b c Y X"], int]
    ) -> Float[Tensor, "b p c rows columns"]:
        """The sums of planes, each under one of the kernels of `evidence`, at every place."""
        factors = [(spectra, self._kernels[prototypes, kernel]) for spectra, kernel in terms]
        return correlate(factors, self._geometry.grid, self._geometry.positions)


def _from_origin(spectra: Tensor, geometry: Geometry) -> Tensor:
    """Move prototypes by the padding, which puts the first admissible position, -padding, at the maps' origin."""
    return delay(spectra, geometry.grid, (-geometry.padding[0], -geometry.padding[1]))
