"""Cells: error-reduction maps of the parts of an image in which something is left to explain.

The places of a map are cut into cells as large as a frame. An object in a cell reaches no further than twice that, and
reduces the error by no more than there is. Where few cells hold an error that counts, only these are searched: the cost
goes with what is in the image, not with its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour, error_reduction_of, kernel_stack, plane_list
from pcdnet.model.geometry import Geometry, fast_size
from pcdnet.model.peaks import Maps
from pcdnet.model.spectrum import correlate
from pcdnet.model.windows import Windows, canvas, window_sums

FEW = 0.2
"""Share of the cells up to which they are searched one by one: around each, four times its size is transformed."""


class CellLocalizer:
    """Where to search some images for the prototypes of a bank, cell by cell."""

    def __init__(
        self,
        bank: PrototypeBank,
        geometry: Geometry,
        max_colour: float,
        least: float,
        seen: Float[Tensor, "1 1 H W"] | None = None,
    ) -> None:
        """An object must reduce the error by `least` to count; where `seen` is 0, so are images and backgrounds."""
        self._seen = seen
        self._geometry, self._max_colour, self._least = geometry, max_colour, least
        h, w = geometry.frame
        self._grid = fast_size(2 * h), fast_size(2 * w)
        self._kernels = torch.fft.rfft2(kernel_stack(bank.prototypes, bank.masks, over_black=False), s=self._grid)

    def few(
        self, images: Float[Tensor, "B C H W"], behind: Float[Tensor, "b C H W"] | None
    ) -> Bool[Tensor, "B cells_down cells_right"]:
        """The cells in which enough is left to explain; none at all of the images that have more than a few of them."""
        left = (images if behind is None else images - behind).square().sum(dim=1)
        (Y, X), (my, mx), (h, w) = self._geometry.positions, self._geometry.padding, self._geometry.frame
        down, right = -(-Y // h), -(-X // w)
        around = pad(left, (mx, (right + 1) * w - mx - left.shape[2], my, (down + 1) * h - my - left.shape[1]))
        active = window_sums(around, (2 * h, 2 * w))[:, ::h, ::w] >= self._least
        return active & (active.flatten(1).float().mean(dim=1) <= FEW)[:, None, None]

    def maps(
        self,
        images: Float[Tensor, "B C H W"],
        behind: Float[Tensor, "b C H W"] | None,
        active: Bool[Tensor, "B cells_down cells_right"],
        everywhere: Maps,
    ) -> Maps:
        """Maps that are made in active cells, and are minus infinity elsewhere; `everywhere` makes those of the images
        that have no active cell."""
        crops = self._crops(images, behind, active)

        def maps(which: slice, prototypes: slice) -> Float[Tensor, "b p rows columns"]:
            if not active[which].flatten(1).any(dim=1).all():
                if which.stop - which.start == 1:
                    return everywhere(which, prototypes)
                return torch.cat([maps(slice(n, n + 1), prototypes) for n in range(which.start, which.stop)])
            return self._filled(crops.of(which), active.shape[1:], prototypes)

        return maps

    def _crops(
        self,
        images: Float[Tensor, "B C H W"],
        behind: Float[Tensor, "b C H W"] | None,
        active: Bool[Tensor, "B cells_down cells_right"],
    ) -> Crops:
        """The planes of evidence around the active cells."""
        (h, w), (down, right) = self._geometry.frame, active.shape[1:]
        image, row, column = active.nonzero(as_tuple=True)
        whole = Geometry(((down + 1) * h, (right + 1) * w), (2 * h, 2 * w), (0, 0))
        windows = Windows(whole, image, row * h, column * w)

        def cut(planes: Float[Tensor, "b c H W"]) -> Float[Tensor, "n y x c"]:
            padded = canvas(planes, self._geometry)
            _, Y, X, _ = padded.shape
            larger = pad(padded, (0, 0, 0, max(0, whole.image[1] - X), 0, max(0, whole.image[0] - Y)))
            return windows.cut(
                larger[:, : whole.image[0], : whole.image[1]].contiguous().expand(len(images), -1, -1, -1)
            )

        planes = plane_list(
            cut(images),
            cut(torch.ones_like(images[:1, :1]) if self._seen is None else self._seen),
            None if behind is None else cut(behind),
        )
        spectra = torch.fft.rfft2(torch.cat(planes, dim=-1).permute(0, 3, 1, 2), s=self._grid)
        return Crops(image, row, column, spectra, len(images), images.shape[1])

    def _filled(self, crops: Crops, cells: tuple[int, ...], prototypes: slice) -> Float[Tensor, "b p rows columns"]:
        """The maps of some images, from the spectra around their active cells."""
        (h, w), (Y, X), C, F = self._geometry.frame, self._geometry.positions, crops.channels, crops.spectra
        kernels = self._kernels[prototypes]

        def sums(*terms: tuple[float, slice, int]) -> Float[Tensor, "n p c h w"]:
            return correlate(
                [(n * F[:, planes], kernels[:, kernel]) for n, planes, kernel in terms], self._grid, (h, w)
            )

        q = sums((1, slice(C, C + 1), 1))[:, :, 0]
        a_terms, k = [(1.0, slice(C), 0)], torch.zeros_like(q)
        if F.shape[1] > C + 1:
            a_terms.append((-1.0, slice(C + 1, 2 * C + 1), 3))
            k = sums((2, slice(2 * C + 1, 2 * C + 2), 2), (-1, slice(2 * C + 2, 2 * C + 3), 4))[:, :, 0]
        a = sums(*a_terms)
        found = error_reduction_of(a, q, k, best_colour(a, q, self._max_colour, dim=2), dim=2)
        maps = found.new_full((crops.count, len(kernels), cells[0], h, cells[1], w), -torch.inf)
        maps.permute(0, 2, 4, 1, 3, 5)[crops.image, crops.row, crops.column] = found
        made: Tensor = maps.flatten(4, 5).flatten(2, 3)[:, :, :Y, :X]
        return made


@dataclass(frozen=True, slots=True, eq=False)
class Crops:
    """The surroundings of active cells, as spectra of the planes of evidence."""

    image: Int[Tensor, "n"]
    row: Int[Tensor, "n"]
    column: Int[Tensor, "n"]
    """Which image, and which cell of it."""
    spectra: Complex[Tensor, "n planes y x"]
    count: int
    """How many images there are."""
    channels: int
    """How many channels they have."""

    def of(self, which: slice) -> Crops:
        """Those of some of the images, which are numbered from 0 again."""
        part = (self.image >= which.start) & (self.image < which.stop)
        image, row, column = self.image[part] - which.start, self.row[part], self.column[part]
        return Crops(image, row, column, self.spectra[part], which.stop - which.start, self.channels)
