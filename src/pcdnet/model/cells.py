"""Cells: error-reduction maps of the parts of an image in which something is left to explain.

The places of a map are cut into cells. An object reaches no further than its own frame, and reduces the error by no
more than there is where it lies. Where few cells hold an error that counts, only these are searched: the cost goes with
what is in the image, not with its size. Prototypes of like sizes are searched together, so that small ones have small
cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.change import ChangeKernels, change_planes, error_reductions, own_planes
from pcdnet.model.geometry import Geometry, fast_size
from pcdnet.model.localization import ErrorReductionLocalizer
from pcdnet.model.peaks import (
    Maps,
    Peaks,
    Portions,
    Some,
    highest,
    local_maxima,
    made_everywhere,
    top_peaks,
    working_bytes,
)
from pcdnet.model.sizes import Size
from pcdnet.model.windows import Windows, canvas, window_sums

FEW = 0.8
"""Cells are searched one by one while what is transformed for them is at most this share of the whole grid."""


class CellLocalizer:
    """Where to search some images for the prototypes of a bank, cell by cell."""

    def __init__(
        self, bank: PrototypeBank, sizes: Sequence[Size], everywhere: ErrorReductionLocalizer, least: float
    ) -> None:
        """An object must reduce the error by `least` to count; `sizes` are those of the masks of the bank."""
        self._geometry, self._reach, self._least = everywhere.geometry, everywhere.reach, least
        self._unhidden = everywhere.unhidden
        self._sizes = [_SizeLocalizer(bank, size, everywhere) for size in sizes]

    def portions(
        self,
        images: Float[Tensor, "B C H W"],
        behind: Float[Tensor, "b C H W"] | None,
        everywhere: Maps,
        *,
        own: bool,
    ) -> Portions:
        """The peaks of maps that are made in active cells, and are minus infinity elsewhere.

        What is `behind` objects is the bank's background or, if `own`, another one for each image. `everywhere` makes
        the maps of images in which more than a few cells are active.
        """
        C, changes = images.shape[1], change_planes(images, behind, unhidden=self._unhidden)
        left = canvas(changes[:, :C].square().sum(dim=1, keepdim=True), self._geometry)[..., 0]
        changes = torch.cat([changes, own_planes(behind)], dim=1) if own and behind is not None else changes
        planes = canvas(changes, self._geometry)
        found = [size.search(planes, size.active(left, self._least)) for size in self._sizes]

        def portions(which: slice, count: int) -> Iterator[tuple[Some, Peaks]]:
            for size, cells in zip(self._sizes, found, strict=True):
                height, row, column = size.peaks(cells, which, count, C)
                for n in range(which.start, which.stop):
                    if not cells.few[n]:
                        made = made_everywhere(everywhere, images, slice(n, n + 1), size.some, self._geometry)[0]
                        one = n - which.start
                        height[one], row[one], column[one] = top_peaks(made, count, self._reach)
                yield size.some, (height, row, column)

        return portions


@dataclass(frozen=True, slots=True, eq=False)
class _ActiveCells:
    """The cells of some images in which enough is left to explain."""

    few: list[bool]
    """Of every image, whether these are few; if not, none of them is here."""
    first: list[int]
    """Where the cells of every image begin, and in the end how many there are."""
    image: Int[Tensor, "n"]
    row: Int[Tensor, "n"]
    column: Int[Tensor, "n"]
    """Which image, and which cell of it."""
    spectra: Complex[Tensor, "n planes y x"]
    """The planes of evidence in and around each."""


class _SizeLocalizer:
    """Prototypes of like sizes, in one frame, and the cells of the places at which they may lie."""

    def __init__(self, bank: PrototypeBank, size: Size, everywhere: ErrorReductionLocalizer) -> None:
        self.some = torch.tensor(size.prototypes, device=bank.masks.device)
        self._everywhere, self._box, (_, _, h, w) = everywhere, size.box, size.box
        self._grid = fast_size(2 * h - 1), fast_size(2 * w - 1)
        self._cell = self._grid[0] - h + 1, self._grid[1] - w + 1
        (Y, X), (y, x) = everywhere.geometry.positions, self._cell
        self._cells = -(-Y // y), -(-X // x)
        T, M = (size.box.cut(values[self.some]) for values in (bank.prototypes, bank.masks))
        self._kernels = ChangeKernels(PrototypeBank(T, M), self._grid)

    def active(self, left: Float[Tensor, "B Y X"], least: float) -> Bool[Tensor, "B down right"]:
        """The cells with a place at which the error that is left in a frame is large enough."""
        (Y, X), (y, x), (top, start, h, w) = self._everywhere.geometry.positions, self._cell, self._box
        sums = window_sums(left[:, top : top + Y + h - 1, start : start + X + w - 1], (h, w))
        (down, right) = self._cells
        whole = pad(sums, (0, right * x - X, 0, down * y - Y))
        return reduce(whole, "b (down y) (right x) -> b down right", "max", y=y, x=x) >= least

    def search(self, planes: Float[Tensor, "B Y X planes"], active: Bool[Tensor, "B down right"]) -> _ActiveCells:
        """The active cells of the images that have few of them."""
        share = self._grid[0] * self._grid[1] / (self._everywhere.geometry.grid[0] * self._everywhere.geometry.grid[1])
        count = active.flatten(1).sum(dim=1)
        few = count * share <= FEW
        image, row, column = (active & few[:, None, None]).nonzero(as_tuple=True)
        (down, right), (y, x), (top, left, h, w) = self._cells, self._cell, self._box
        frame = y + h - 1, x + w - 1
        size = top + down * y + h - 1, left + right * x + w - 1
        larger = pad(planes, (0, 0, 0, max(0, size[1] - planes.shape[2]), 0, max(0, size[0] - planes.shape[1])))
        whole = Geometry((larger.shape[1], larger.shape[2]), frame, (0, 0))
        content = Windows(whole, image, row * y + top, column * x + left).cut(larger)
        content = content.permute(0, 3, 1, 2)
        spectra = torch.fft.rfft2(content, s=self._grid) if len(content) else content.to(torch.complex64)
        return _ActiveCells(few.tolist(), [0, *(count * few).cumsum(0).tolist()], image, row, column, spectra)

    def peaks(self, cells: _ActiveCells, which: slice, count: int, channels: int) -> Peaks:
        """So many peaks of the maps of some images in their active cells."""
        (Y, X), (y, x) = self._everywhere.geometry.positions, self._cell
        p, b = len(self.some), which.stop - which.start
        part = slice(cells.first[which.start], cells.first[which.stop])
        image, row, column = cells.image[part] - which.start, cells.row[part], cells.column[part]
        first = torch.tensor(cells.first[which.start : which.stop], device=image.device)
        nth = torch.arange(part.start, part.stop, device=image.device) - first[image]
        most = max(-(-count // (y * x)), *(n - m for m, n in pairwise(cells.first[which.start : which.stop + 1])))
        # Cell by cell, with what is next to each: all else is empty.
        heights = self._everywhere.q.new_full((b, most, p, y, x), -torch.inf)
        heights[image, nth] = self._local_maxima(cells, part, which, channels)
        corner = torch.zeros(2, b, most, dtype=torch.int64, device=image.device)
        corner[:, image, nth] = torch.stack([row * y, column * x])

        def place(index: Int[Tensor, "b p k"]) -> tuple[Tensor, Tensor]:
            cell, rest = index.div(y * x, rounding_mode="floor"), index.remainder(y * x)
            down, right = (starts[:, None].expand(-1, p, -1).gather(2, cell) for starts in corner)
            row, column = down + rest.div(x, rounding_mode="floor"), right + rest.remainder(x)
            return row.clamp(max=Y - 1), column.clamp(max=X - 1)  # the last cells are larger than what is left

        return highest(heights.transpose(1, 2).flatten(2), count, self._everywhere.reach, place)

    def _local_maxima(self, cells: _ActiveCells, part: slice, which: slice, channels: int) -> Float[Tensor, "n p h w"]:
        """The local maxima of maps that are minus infinity outside active cells, in these cells."""
        (Y, X), (y, x), (down, right) = self._everywhere.geometry.positions, self._cell, self._cells
        p, row, column = len(self.some), cells.row[part], cells.column[part]
        around = self._everywhere.q.new_full((which.stop - which.start, p, down * y + 2, right * x + 2), -torch.inf)
        inner = rearrange(around[:, :, 1:-1, 1:-1], "b p (down y) (right x) -> b down right p y x", y=y, x=x)
        half = self._grid[0] * (self._grid[1] // 2 + 1) * cells.spectra.shape[1]
        most = max(1, working_bytes(around) // (p * half * around.element_size()))
        for start in range(part.start, part.stop, most):
            some = slice(start, min(start + most, part.stop))
            where = cells.image[some] - which.start, cells.row[some], cells.column[some]
            inner[where] = self._reductions(cells.spectra[some], *where[1:], channels)
        around[:, :, Y + 1 :], around[:, :, :, X + 1 :] = -torch.inf, -torch.inf
        windows = around.unfold(2, y + 2, y).unfold(3, x + 2, x).permute(0, 2, 3, 1, 4, 5)
        return local_maxima(windows[cells.image[part] - which.start, row, column])

    def _reductions(
        self, spectra: Complex[Tensor, "n planes y x"], row: Int[Tensor, "n"], column: Int[Tensor, "n"], channels: int
    ) -> Float[Tensor, "n p h w"]:
        """The error reductions at the places of some cells."""
        own = spectra[:, channels + 1 :] if spectra.shape[1] > channels + 1 else None
        changes = spectra if own is None else spectra[:, : channels + 1]
        sums = self._kernels.sums(slice(None), changes, own, channels, self._cell)
        q, behind = self._still
        if own is None and behind is not None:
            sums += behind[row, column]
        return error_reductions(sums, q[row, column], channels, self._everywhere.max_colour)

    @cached_property
    def _still(self) -> tuple[Float[Tensor, "down right p h w"], Float[Tensor, "down right p planes h w"] | None]:
        """What does not depend on the image, cell by cell: q, and the background's part of a and k."""
        behind = self._everywhere.behind
        return self._by_cell(self._everywhere.q), None if behind is None else self._by_cell(behind)

    def _by_cell(self, maps: Float[Tensor, "P *planes rows columns"]) -> Float[Tensor, "down right p *planes h w"]:
        (down, right), (y, x), (Y, X) = self._cells, self._cell, maps.shape[-2:]
        whole = pad(maps[self.some], (0, right * x - X, 0, down * y - Y))
        return rearrange(whole, "p ... (down y) (right x) -> down right p ... y x", y=y, x=x).contiguous()
