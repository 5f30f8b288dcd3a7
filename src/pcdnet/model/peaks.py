"""Peaks: where each prototype could be, read off the maps of every place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.geometry import Geometry

CACHE_BYTES = 1 << 20
"""Maps on a CPU are made and read in chunks of about this size: out of the cache, and in memory fresh from the
system, the same work takes 3 to 5 times as long."""
DEVICE_BYTES = 256 << 20
"""The same on an accelerator, where large launches are better."""

Maps = Callable[[slice, slice], Float[Tensor, "b p rows columns"]]
"""How well some of the prototypes fit some of the images at every place: higher is better."""

SPARE_PEAKS = 4
"""Factor on the number of peaks that are looked at when some of them may be too near to a higher one."""


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


def propose(
    maps: Maps, images: Float[Tensor, "B C H W"], prototypes: int, geometry: Geometry, peaks: int, reach: int = 1
) -> Candidates:
    """Find the `peaks` best places of every prototype in every image, as the maps score them.

    Maps are asked for a few at a time: all of them would fill the memory, and leave the cache. `reach` is that of
    `top_peaks`.
    """
    (B, C), P = images.shape[:2], prototypes
    budget = CACHE_BYTES if images.device.type == "cpu" else DEVICE_BYTES
    most = max(1, budget // (geometry.grid[0] * geometry.grid[1] * images.element_size()))
    at_once = max(1, 2 * most // C)
    b, p, step = max(1, at_once // P), min(P, at_once), max(1, most // P)
    found = []
    for start in range(0, B, step):
        made = images.new_empty(min(step, B - start), P, *geometry.positions)
        for i, j in product(range(0, len(made), b), range(0, P, p)):
            stop = min(i + b, len(made))
            made[i:stop, j : j + p] = maps(slice(start + i, start + stop), slice(j, j + p))
        found.append(top_peaks(made, peaks, reach))
    height, row, column = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Candidates(
        row=rearrange(row, "b p k -> b (p k)") - geometry.padding[0],
        column=rearrange(column, "b p k -> b (p k)") - geometry.padding[1],
        exists=rearrange(height, "b p k -> b (p k)") > -torch.inf,
        peaks=row.shape[-1],
    )


def top_peaks(
    maps: Float[Tensor, "*batch Y X"], count: int, reach: int = 1
) -> tuple[Float[Tensor, "*batch K"], Int[Tensor, "*batch K"], Int[Tensor, "*batch K"]]:
    """Height, row and column of the highest local maxima, best first; -inf where there are not so many.

    A local maximum exceeds its eight neighbours; of equal neighbours the first in reading order does. Of local maxima
    that are at most `reach` rows and columns apart the highest counts: shifts that differ by so little are one
    candidate.
    """
    Y, X = maps.shape[-2:]
    padded = pad(maps, (1, 1, 1, 1), value=-torch.inf)
    wide = torch.maximum(torch.maximum(padded[..., :-2], padded[..., 2:]), padded[..., 1:-1])
    before = torch.maximum(wide[..., :-2, :], padded[..., 1:-1, :-2])
    after = torch.maximum(wide[..., 2:, :], padded[..., 1:-1, 2:])
    heights = torch.where((maps > before) & (maps >= after), maps, -torch.inf).flatten(-2)
    height, index = heights.topk(min(count if reach == 1 else SPARE_PEAKS * count, Y * X), dim=-1)
    if reach > 1:
        row, column = index.div(X, rounding_mode="floor"), index.remainder(X)
        near = (row[..., None] - row[..., None, :]).abs() <= reach
        near &= (column[..., None] - column[..., None, :]).abs() <= reach
        hidden = near.tril(-1).any(dim=-1)  # sorted by height: what comes before is higher
        height, order = height.masked_fill(hidden, -torch.inf).topk(min(count, Y * X), dim=-1)
        index = index.gather(-1, order)
    return height, index.div(X, rounding_mode="floor"), index.remainder(X)
