"""Peaks: where each prototype could be, read off the maps of every place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.geometry import Geometry

CACHE_BYTES = 1 << 20
"""Maps on a CPU are made and read in chunks of about this size: out of the cache, and in memory fresh from the
system, the same work takes 3 to 5 times as long."""
DEVICE_BYTES = 256 << 20
"""The same on an accelerator, where large launches are better."""

Some = slice | Int[Tensor, "p"]
"""Some of the prototypes."""
Maps = Callable[[slice, Some], Float[Tensor, "b p rows columns"]]
"""How well some of the prototypes fit some of the images at every place: higher is better."""
Peaks = tuple[Float[Tensor, "*batch K"], Int[Tensor, "*batch K"], Int[Tensor, "*batch K"]]
"""Height, row and column of the highest peaks, best first; a height of -inf where there are not so many."""
Portions = Callable[[slice, int], Iterable[tuple[Some, Peaks]]]
"""So many peaks of some of the images, some of the prototypes at a time, all of them in the end."""

SPARE_PEAKS = 4
"""Factor on the number of peaks that are looked at when some of them may be too near to a higher one."""
COMPARED = 1 << 24
"""Pairs of places that are compared with each other at once, in all maps together."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Places to try, prototype-major: candidate t belongs to prototype t // K."""

    row: Int[Tensor, "B T"]
    """Top row of the frame; negative where it hangs over the border."""
    column: Int[Tensor, "B T"]
    """Left column of the frame."""
    exists: Bool[Tensor, "B T"]
    """False where a map had fewer than K peaks."""
    peaks: int
    """K, the number of candidates per prototype."""

    def prototype(self, candidate: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The prototype that a candidate index belongs to."""
        return candidate.div(self.peaks, rounding_mode="floor")

    def subset(self, image: Int[Tensor, "n"]) -> Candidates:
        """The candidates of some of the images."""
        return Candidates(self.row[image], self.column[image], self.exists[image], self.peaks)


def in_portions(
    maps: Maps, images: Float[Tensor, "B C H W"], prototypes: int, geometry: Geometry, reach: int = 1
) -> Portions:
    """The peaks of the maps of all prototypes; `reach` is that of `top_peaks`."""
    everything = torch.arange(prototypes, device=images.device)

    def portions(which: slice, count: int) -> Iterator[tuple[Some, Peaks]]:
        made = made_everywhere(maps, images, which, everything, geometry)
        yield slice(0, prototypes), top_peaks(made, count, reach)

    return portions


def made_everywhere(
    maps: Maps, images: Float[Tensor, "B C H W"], which: slice, some: Int[Tensor, "p"], geometry: Geometry
) -> Float[Tensor, "b p rows columns"]:
    """The maps of some prototypes in some images, made a few at a time: all of them would leave the cache."""
    at_once = max(1, 2 * _most(images, geometry) // images.shape[1])
    b = max(1, at_once // len(some))
    made = images.new_empty(which.stop - which.start, len(some), *geometry.positions)
    for start in range(which.start, which.stop, b):
        part = slice(start, min(start + b, which.stop))
        for j in range(0, len(some), at_once):
            made[start - which.start :][: part.stop - start, j : j + at_once] = maps(part, some[j : j + at_once])
    return made


def gathered(
    portions: Portions, images: Float[Tensor, "B C H W"], prototypes: int, geometry: Geometry, peaks: int
) -> Peaks:
    """The `peaks` best places of every prototype in every image, found a few images at a time."""
    B, P, (Y, X) = len(images), prototypes, geometry.positions
    step, K = max(1, _most(images, geometry) // P), min(peaks, Y * X)
    height = images.new_empty(B, P, K)
    row, column = (torch.empty(B, P, K, dtype=torch.int64, device=images.device) for _ in range(2))
    for start in range(0, B, step):
        which = slice(start, min(start + step, B))
        for some, found in portions(which, K):
            height[which, some], row[which, some], column[which, some] = found
    return height, row, column


def propose(
    portions: Portions, images: Float[Tensor, "B C H W"], prototypes: int, geometry: Geometry, peaks: int
) -> Candidates:
    """The same as candidates."""
    return to_candidates(gathered(portions, images, prototypes, geometry, peaks), geometry)


def to_candidates(peaks: Peaks, geometry: Geometry) -> Candidates:
    """The peaks of every prototype in every image as candidates."""
    height, row, column = peaks
    return Candidates(
        row=rearrange(row, "b p k -> b (p k)") - geometry.padding[0],
        column=rearrange(column, "b p k -> b (p k)") - geometry.padding[1],
        exists=rearrange(height, "b p k -> b (p k)") > -torch.inf,
        peaks=height.shape[-1],
    )


def working_bytes(like: Tensor) -> int:
    """How much is worked on at once on the device of a tensor."""
    return CACHE_BYTES if like.device.type == "cpu" else DEVICE_BYTES


def _most(images: Float[Tensor, "B C H W"], geometry: Geometry) -> int:
    """How many maps are made and read at once."""
    return max(1, working_bytes(images) // (geometry.grid[0] * geometry.grid[1] * images.element_size()))


def top_peaks(maps: Float[Tensor, "*batch Y X"], count: int, reach: int = 1) -> Peaks:
    """The highest local maxima of maps; see `local_maxima` and `highest`."""
    X = maps.shape[-1]
    heights = local_maxima(pad(maps, (1, 1, 1, 1), value=-torch.inf)).flatten(-2)
    return highest(heights, count, reach, lambda index: (index.div(X, rounding_mode="floor"), index.remainder(X)))


def local_maxima(padded: Float[Tensor, "*batch Y2 X2"]) -> Float[Tensor, "*batch Y X"]:
    """The local maxima of maps that come with a ring of other values around them, and -inf in all other places.

    A local maximum exceeds its eight neighbours; of equal neighbours the first in reading order does.
    """
    maps = padded[..., 1:-1, 1:-1]
    wide = torch.maximum(torch.maximum(padded[..., :-2], padded[..., 2:]), padded[..., 1:-1])
    before = torch.maximum(wide[..., :-2, :], padded[..., 1:-1, :-2])
    after = torch.maximum(wide[..., 2:, :], padded[..., 1:-1, 2:])
    return torch.where((maps > before) & (maps >= after), maps, -torch.inf)


def highest(
    heights: Float[Tensor, "*batch n"], count: int, reach: int, place: Callable[[Tensor], tuple[Tensor, Tensor]]
) -> Peaks:
    """The highest of some places, each of which has a row and a column.

    Of local maxima that are at most `reach` rows and columns apart the highest counts: shifts that differ by so little
    are one candidate.
    """
    height, index = heights.topk(min(count if reach == 1 else SPARE_PEAKS * count, heights.shape[-1]), dim=-1)
    if reach > 1:
        hidden = _hidden(*place(index), reach)
        height, order = height.masked_fill(hidden, -torch.inf).topk(min(count, height.shape[-1]), dim=-1)
        index = index.gather(-1, order)
    return height, *place(index)


def _hidden(row: Int[Tensor, "*batch n"], column: Int[Tensor, "*batch n"], reach: int) -> Bool[Tensor, "*batch n"]:
    """Which of some places, the highest first, are near one that comes before; compared some at a time."""
    if usable(row):
        from pcdnet.model.compiled import peaks as loops

        rows, columns = (as_array(places.reshape(-1, row.shape[-1])) for places in (row, column))
        found = loops.hidden(rows, columns, reach)
        return torch.from_numpy(found).view(row.shape)
    count = row.shape[-1]
    step, parts = max(1, COMPARED // max(1, row.numel())), []
    for start in range(0, count, step):
        some = slice(start, start + step)
        near = (row[..., some, None] - row[..., None, :]).abs() <= reach
        near &= (column[..., some, None] - column[..., None, :]).abs() <= reach
        parts.append(near.tril(start - 1).any(dim=-1))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
