"""Peaks: where each prototype could be, read off the localization maps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.geometry import Geometry
from pcdnet.model.spectrum import delay, localize, phases

CACHE_BYTES = 1 << 20
"""Localization maps on a CPU are made and read in chunks of about this size: out of the cache, and in memory
fresh from the system, the same work takes 3 to 5 times as long."""
DEVICE_BYTES = 256 << 20
"""The same on an accelerator, where large launches are better."""


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

    def of(self, image: Int[Tensor, "n"]) -> Candidates:
        """The candidates of some of the images."""
        return Candidates(self.row[image], self.column[image], self.exists[image], self.peaks)


def propose(
    targets: Float[Tensor, "B C H W"], templates: Float[Tensor, "P h w"], geometry: Geometry, peaks: int
) -> Candidates:
    """Find the `peaks` best places of every prototype: phase correlation per channel, the best channel counts.

    Channels are kept apart because an object lives in some of them only, and elsewhere its phases are noise.
    """
    grid, P, C = geometry.grid, templates.shape[0], targets.shape[1]
    # Moving the prototypes by the margin puts the first admissible position, -margin, at the maps' origin.
    prototype_phases = delay(phases(templates, grid), grid, (-geometry.margin[0], -geometry.margin[1]))
    image_phases = phases(targets, grid)
    budget = CACHE_BYTES if targets.device.type == "cpu" else DEVICE_BYTES
    maps = max(1, budget // (grid[0] * grid[1] * targets.element_size()))
    found = [
        top_peaks(_best_channel(chunk, prototype_phases, geometry, max(1, 2 * maps // C)), peaks)
        for chunk in torch.split(image_phases, max(1, maps // P))
    ]
    height, row, column = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Candidates(
        row=rearrange(row, "b p k -> b (p k)") - geometry.margin[0],
        column=rearrange(column, "b p k -> b (p k)") - geometry.margin[1],
        exists=rearrange(height, "b p k -> b (p k)") > -torch.inf,
        peaks=row.shape[-1],
    )


def _best_channel(
    image_phases: Complex[Tensor, "B C Y X"],
    prototype_phases: Complex[Tensor, "P Y X"],
    geometry: Geometry,
    most: int,
) -> Float[Tensor, "B P rows columns"]:
    """The best channel's localization of every admissible position, at most about `most` maps at a time."""
    B, P = len(image_phases), len(prototype_phases)
    b, p = max(1, most // P), min(P, most)
    best = image_phases.real.new_empty(B, P, *geometry.positions)
    for i in range(0, B, b):
        for j in range(0, P, p):
            L = localize(image_phases[i : i + b], prototype_phases[j : j + p], geometry.grid, geometry.positions)
            best[i : i + b, j : j + p] = L.amax(dim=2)
    return best


def top_peaks(
    maps: Float[Tensor, "*batch Y X"], count: int
) -> tuple[Float[Tensor, "*batch K"], Int[Tensor, "*batch K"], Int[Tensor, "*batch K"]]:
    """Height, row and column of the highest local maxima, best first; -inf where there are not so many.

    A peak is a local maximum of its eight neighbours, so that two shifts that differ by a pixel are one
    candidate. Of equal neighbours the first in reading order is the peak.
    """
    Y, X = maps.shape[-2:]
    padded = pad(maps, (1, 1, 1, 1), value=-torch.inf)
    wide = torch.maximum(torch.maximum(padded[..., :-2], padded[..., 2:]), padded[..., 1:-1])
    before = torch.maximum(wide[..., :-2, :], padded[..., 1:-1, :-2])
    after = torch.maximum(wide[..., 2:, :], padded[..., 1:-1, 2:])
    heights = torch.where((maps > before) & (maps >= after), maps, -torch.inf).flatten(-2)
    height, index = heights.topk(min(count, Y * X), dim=-1)
    return height, index.div(X, rounding_mode="floor"), index.remainder(X)
