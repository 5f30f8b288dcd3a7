"""Localization: maps that score, for every prototype and every place, how well the one fits the other.

Phase correlation (equation 1 of the paper) gives every frequency the same weight. That makes peaks of crisp objects
sharp, but what is smooth has energy in few frequencies, and the phases of all others are noise. Error-reduction maps
instead hold, for every place, by how much an object there would reduce the error over the bare background in its best
colour, as `change` has it. What depends on the bank alone is computed once, when a localizer is made.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from pcdnet.config import Template
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.change import ChangeKernels, change_planes, error_reductions, own_planes
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Maps, Peaks, Some
from pcdnet.model.spectrum import correlate, delay, phases

if TYPE_CHECKING:
    from pcdnet.model.compiled.correlation import PhasePeaks

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
        self._templates = delay(phases(sought, geometry.grid), geometry.grid, _origin(geometry))
        self._finder: PhasePeaks | None = None

    def maps(self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None = None) -> Maps:
        """The maps of these images, made when they are asked for; `own` are backgrounds other than the bank's."""
        seen, geometry, templates = self._seen(images, own), self._geometry, self._templates

        def maps(which: slice, prototypes: Some) -> Float[Tensor, "b p rows columns"]:
            return correlate(seen[which], templates[prototypes], geometry.grid, geometry.positions).amax(dim=2)

        return maps

    def peaks(self, images: Float[Tensor, "B C H W"], count: int, own: Float[Tensor, "B C H W"] | None = None) -> Peaks:
        """The peaks of these maps by compiled loops."""
        from pcdnet.model.compiled.correlation import PhasePeaks

        if self._finder is None:
            self._finder = PhasePeaks(self._templates, self._geometry.grid, self._geometry.positions)
        return self._finder.find(self._seen(images, own), count)

    def _seen(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None
    ) -> Complex[Tensor, "B C Y X"]:
        background = self._background if own is None else own
        if background is None or self._template == "prototype":
            return phases(images, self._geometry.grid)
        return phases(images - background, self._geometry.grid)


class ErrorReductionLocalizer:
    """By how much every prototype would reduce the error over the bare background, at every place, at its best."""

    def __init__(
        self,
        bank: PrototypeBank,
        geometry: Geometry,
        max_colour: float,
        seen: Float[Tensor, "1 1 H W"] | None = None,
        *,
        unhidden: bool = False,
    ) -> None:
        """Where `seen` is 0, so are the images and the background; `change` says what `unhidden` maps are."""
        self.geometry, self.max_colour, self.unhidden = geometry, max_colour, unhidden
        self._background = None if bank.background is None else bank.background[None]
        self.reach = max(1, int(REACH * min(geometry.frame)))
        self._kernels = ChangeKernels(bank, geometry.grid, _origin(geometry))
        # What does not depend on the image: q everywhere, and the background's part of a and k.
        ones = bank.masks.new_ones(1, 1, *geometry.image) if seen is None else seen
        self.q = self._kernels.squares(self._spectra(ones)[0, 0], geometry.positions)
        self.behind: Float[Tensor, "P planes rows columns"] | None = None
        if self._background is not None:
            own = self._spectra(own_planes(self._background))
            self.behind = self._kernels.sums(slice(None), None, own, own.shape[1] - 1, geometry.positions)[0]

    def maps_behind(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"], clear: Float[Tensor, "B 1 H W"]
    ) -> Maps:
        """The maps of what lies behind objects that are found already: only where it is `clear` anything is seen.

        `own` are backgrounds, one for each image.
        """
        C, positions = images.shape[1], self.geometry.positions
        changes = self._spectra(change_planes(images * clear, own * clear, unhidden=self.unhidden))
        backgrounds, inside = self._spectra(own_planes(own * clear)), self._spectra(clear)

        def maps(which: slice, prototypes: Some) -> Float[Tensor, "b p rows columns"]:
            sums = self._kernels.sums(prototypes, changes[which], backgrounds[which], C, positions)
            q = self._kernels.squares(inside[which], positions, prototypes)
            return error_reductions(sums, q, C, self.max_colour)

        return maps

    def maps(self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None = None) -> Maps:
        """The maps of these images, made when they are asked for; `own` are backgrounds other than the bank's."""
        C, positions = images.shape[1], self.geometry.positions

        @cache  # not before they are asked for: where cells are searched, that may be never
        def spectra() -> tuple[Tensor, Tensor | None]:
            behind = self._background if own is None else own
            changes = self._spectra(change_planes(images, behind, unhidden=self.unhidden))
            return changes, None if own is None else self._spectra(own_planes(own))

        def maps(which: slice, prototypes: Some) -> Float[Tensor, "b p rows columns"]:
            changes, backgrounds = spectra()
            behind = None if backgrounds is None else backgrounds[which]
            sums = self._kernels.sums(prototypes, changes[which], behind, C, positions)
            if behind is None and self.behind is not None:
                sums += self.behind[prototypes]
            return error_reductions(sums, self.q[prototypes], C, self.max_colour)

        return maps

    def _spectra(self, planes: Float[Tensor, "b planes H W"]) -> Complex[Tensor, "b planes Y X"]:
        spectra: Tensor = torch.fft.rfft2(planes, s=self.geometry.grid)
        return spectra


def _origin(geometry: Geometry) -> tuple[int, int]:
    """How prototypes are moved: it puts the first admissible position, -padding, at the maps' origin."""
    return -geometry.padding[0], -geometry.padding[1]
