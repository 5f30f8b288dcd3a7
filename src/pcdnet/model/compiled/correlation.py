"""Phase correlation and its peaks in one pass: maps are made, compared over channels and read while in the cache.

Signals that are transformed side by side are those of all prototypes in a few images; see `fourier`. How many
images that are follows from how well prototypes fill vectors.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.fourier import factors, inverse, places, turns
from pcdnet.model.compiled.problem import Array

LANES = 16
"""Signals come in multiples of this: the widest vectors hold so many."""
MOST_LANES = 64
"""And at most so many at once."""
WORKING_BYTES = 1 << 20
"""The transformed columns of as many should not take more than this, unless it is the least number of them."""


class PhasePeaks:
    """The peaks of phase correlation with the prototypes of one bank; what depends on the bank alone is kept."""

    def __init__(self, prototypes: Complex[Tensor, "P Y X"], grid: tuple[int, int], positions: tuple[int, int]) -> None:
        """Half spectra of prototypes; maps are cropped to the first `positions`."""
        P, Y, X = prototypes.shape
        self._count, self._positions, M = P, positions, grid[1] // 2
        kind = self._kind = torch.empty(0, dtype=prototypes.real.dtype).numpy().dtype
        sought = torch.view_as_real((prototypes.conj() / (grid[0] * grid[1])).resolve_conj()).numpy()
        self._group, block = lanes(P, positions[0] * X * 2 * kind.itemsize)
        self._blocks = []
        for first in range(0, P, block):
            some = slice(first, min(first + block, P))
            repeated = np.tile(sought[some].transpose(2, 1, 3, 0), self._group)
            spare = -repeated.shape[-1] % LANES
            templates = np.pad(repeated, ((0, 0), (0, 0), (0, 0), (0, spare))).astype(kind)
            self._blocks.append((some, np.ascontiguousarray(templates)))
        self._down = (factors(Y), places(Y), *turns(Y, kind))
        self._across = (factors(M), places(M), *turns(M, kind), *turns(grid[1], kind))

    def find(
        self, images: Complex[Tensor, "B C Y X"], count: int
    ) -> tuple[Float[Tensor, "B P K"], Int[Tensor, "B P K"], Int[Tensor, "B P K"]]:
        """Height, row and column of the highest local maxima in half spectra; of a map's channels the best counts."""
        (B, *_), P, group = images.shape, self._count, self._group
        K = min(count, self._positions[0] * self._positions[1])
        height = np.full((B, P, K), -np.inf, self._kind)
        row, column = np.zeros((B, P, K), np.int64), np.zeros((B, P, K), np.int64)
        seen = torch.view_as_real(images.resolve_conj()).contiguous().numpy()

        def work(start: int, stop: int) -> None:
            ends = start * group, min(stop * group, B), group
            for some, templates in self._blocks:
                found = height[:, some], row[:, some], column[:, some]
                size = some.stop - some.start
                _correlate(seen, templates, size, ends, self._down, self._across, self._positions, found)

        share(work, -(-B // group))
        return torch.from_numpy(height), torch.from_numpy(row), torch.from_numpy(column)


def lanes(prototypes: int, size: int) -> tuple[int, int]:
    """How many images, and at most how many prototypes, are worked on at once, if each takes so many bytes."""
    most = min(MOST_LANES, max(LANES, WORKING_BYTES // size // LANES * LANES))
    block = min(prototypes, most)
    waste = {group: -(-group * block // LANES) * LANES / group for group in range(1, most // block + 1)}
    return min(waste, key=lambda group: (waste[group], group)), block


@compiled
def _correlate(
    seen: Array,
    templates: Array,
    P: int,
    ends: tuple[int, int, int],
    down: tuple[Array, Array, Array, Array],
    across: tuple[Array, Array, Array, Array, Array, Array],
    positions: tuple[int, int],
    found: tuple[Array, Array, Array],
) -> None:
    """The images from the first end to the second, so many at a time as the third says."""
    (X, Y, _, L), C, (rows, columns), (start, stop, group) = templates.shape, seen.shape[1], positions, ends
    kind, width = templates.dtype, 2 * X + 2
    pixel, one = np.zeros(2 * L, kind), np.zeros(Y * 2 * L, kind)
    half, line = np.zeros(rows * X * 2 * L, kind), np.zeros((X + 1) * 2 * L, kind)
    maps = np.empty((rows + 2) * width * L, kind)
    for begin in range(start, stop, group):
        images = min(group, stop - begin)
        maps[:] = -np.inf
        for c in range(C):
            for x in range(X):
                template = templates[x].reshape(Y * 2 * L)
                for y in range(Y):
                    for image in range(images):
                        real, imaginary = seen[begin + image, c, y, x]
                        _fill(pixel, image * P, L, real)
                        _fill(pixel, L + image * P, 2 * L, imaginary)
                    _product(one, y * 2 * L, template, pixel, L)
                inverse(one, Y, L, down[0], down[2], down[3])
                for p in range(Y):
                    if down[1][p] < rows:
                        _copy(half, (down[1][p] * X + x) * 2 * L, one, p * 2 * L, 2 * L)
            for y in range(rows):
                _real(half, y * X * 2 * L, line, X - 1, L, across)
                _highest(maps, ((y + 1) * width + 1) * L, line, X - 1, L, across[1], columns)
        _peaks(maps, width, positions, (L, P, begin, images), found)


@compiled
def _fill(x: Array, start: int, stop: int, value: float) -> None:
    """All that follows is written again by who comes next: a whole vector costs no more than a part of it."""
    for j in range(np.uint64(start), np.uint64(stop)):
        x[j] = value


@compiled
def _product(x: Array, at: int, template: Array, pixel: Array, L: int) -> None:
    a, n = np.uint64(at), np.uint64(L)
    for j in range(n):
        real, imaginary, r, i = pixel[j], pixel[n + j], template[a + j], template[a + n + j]
        x[a + j] = real * r - imaginary * i
        x[a + n + j] = real * i + imaginary * r


@compiled
def _copy(to: Array, at: int, x: Array, start: int, length: int) -> None:
    a, b, n = np.uint64(at), np.uint64(start), np.uint64(length)
    for j in range(n):
        to[a + j] = x[b + j]


@compiled
def _real(half: Array, at: int, line: Array, M: int, L: int, across: tuple[Array, ...]) -> None:
    """From a half spectrum of M + 1 points to 2 M real ones, as the parts of M complex points of `line`."""
    cos, sin = across[4], across[5]
    n = np.uint64(L)
    a, b = np.uint64(at), np.uint64(at + M * 2 * L)
    for j in range(n):
        line[j], line[n + j] = half[a + j] + half[b + j], half[a + j] - half[b + j]
    for k in range(1, M):
        c, s = cos[k], sin[k]
        a, b, o = np.uint64(at + k * 2 * L), np.uint64(at + (M - k) * 2 * L), np.uint64(k * 2 * L)
        for j in range(n):
            ar, ai, br, bi = half[a + j], half[a + n + j], half[b + j], half[b + n + j]
            dr, di = ar - br, ai + bi
            line[o + j] = ar + br - (s * dr + c * di)
            line[o + n + j] = ai - bi + (c * dr - s * di)
    inverse(line, M, L, across[0], across[2], across[3])


@compiled
def _highest(maps: Array, at: int, line: Array, M: int, L: int, point: Array, columns: int) -> None:
    """Raise a row of maps to what is in the line."""
    for p in range(M):
        if 2 * point[p] < columns:
            a, b, n = np.uint64(at + 2 * point[p] * L), np.uint64(p * 2 * L), np.uint64(2 * L)
            for j in range(n):
                maps[a + j] = max(maps[a + j], line[b + j])


@compiled
def _peaks(
    maps: Array,
    width: int,
    positions: tuple[int, int],
    which: tuple[int, int, int, int],
    found: tuple[Array, Array, Array],
) -> None:
    """Look through maps that have a ring of -inf around them; what is right of the last position is no place."""
    (rows, columns), (L, P, begin, images), (height, row, column) = positions, which, found
    K, used = height.shape[2], images * P
    least = np.full(L, -np.inf, maps.dtype)
    for y in range(1, rows + 1):
        _fill(maps, (y * width + columns + 1) * L, (y + 1) * width * L, -np.inf)
    for y in range(1, rows + 1):
        for x in range(1, columns + 1):
            at = (y * width + x) * L
            if not _any_above(maps, at, least, used):
                continue
            for lane in range(used):
                value = maps[at + lane]
                if not value > least[lane] or not _is_peak(maps, at + lane, width * L, L):
                    continue
                b, p = begin + lane // P, lane % P
                k = K - 1
                while k > 0 and height[b, p, k - 1] < value:
                    height[b, p, k] = height[b, p, k - 1]
                    row[b, p, k], column[b, p, k] = row[b, p, k - 1], column[b, p, k - 1]
                    k -= 1
                height[b, p, k], row[b, p, k], column[b, p, k] = value, y - 1, x - 1
                least[lane] = height[b, p, K - 1]


@compiled
def _any_above(maps: Array, at: int, least: Array, used: int) -> bool:
    a, n, above = np.uint64(at), np.uint64(used), np.int32(0)
    for j in range(n):
        above |= np.int32(maps[a + j] > least[j])
    return bool(above != 0)


@compiled
def _is_peak(maps: Array, at: int, line: int, L: int) -> bool:
    """Whether a value exceeds its eight neighbours; of equal neighbours the first in reading order does."""
    value = maps[at]
    return bool(
        value > maps[at - line - L]
        and value > maps[at - line]
        and value > maps[at - line + L]
        and value > maps[at - L]
        and value >= maps[at + L]
        and value >= maps[at + line - L]
        and value >= maps[at + line]
        and value >= maps[at + line + L]
    )
