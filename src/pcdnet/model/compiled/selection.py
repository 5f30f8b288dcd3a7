"""Greedy selection, image by image: windows are measured where they lie, and only after what is in front changed.

Planes, kernels and coefficients are those of `evidence`, the planes one after the other: a row of a window in one plane
is one run of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array, Problem

TINY = 1e-12
"""As in `evidence`."""


def select(
    problem: Problem, planes: Array, script: Array, channels: int, least: float, *, advantages: bool
) -> tuple[Array, Array, Array, Array]:
    """Candidate, colour, error reduction and advantage of every choice; planes (B planes Y X) are changed in place."""
    B, N = script.shape
    candidate, colour = np.full((B, N), -1, np.int64), np.zeros((B, N, channels), planes.dtype)
    removed, advantage = np.zeros((B, N), planes.dtype), np.zeros((B, N), planes.dtype)

    def work(start: int, stop: int) -> None:
        _select(
            (start, stop),
            planes,
            problem.behind,
            problem.bank,
            problem.kernels,
            problem.boxes,
            problem.places,
            problem.peaks,
            problem.colours,
            problem.area,
            least,
            script,
            advantages,
            (candidate, colour, removed, advantage),
        )

    share(work, B)
    return candidate, colour, removed, advantage


@compiled
def _select(
    ends: tuple[int, int],
    planes: Array,
    behind: Array,
    bank: tuple[Array, Array],
    kernels: Array,
    boxes: Array,
    places: tuple[Array, Array, Array],
    peaks: int,
    colours: tuple[float, float],
    area: Array,
    least: float,
    script: Array,
    advantages: bool,
    results: tuple[Array, Array, Array, Array],
) -> None:
    """Images from the first end to the second."""
    (prototypes, masks), (row, column, exists) = bank, places
    candidate, colour, reductions, advantage = results
    (T, N), C = (row.shape[1], script.shape[1]), colour.shape[2]
    values, mine = np.zeros((T, C + 3), planes.dtype), np.zeros(C, planes.dtype)
    worth, bound = np.zeros(T, planes.dtype), np.zeros(T, planes.dtype)
    stale = np.zeros(T, np.int64)
    for b in range(ends[0], ends[1]):
        ground = behind[b % len(behind)] if behind.size else behind.reshape((0, 0, 0))
        available = exists[b].copy()
        many, last = 0, -1
        for t in range(T):
            worth[t], bound[t] = -np.inf, 0.0
            if available[t]:
                stale[many] = t
                many += 1
        for n in range(N):
            taken = 0.0
            for t in stale[:many]:
                p = t // peaks
                measure(planes[b], kernels[p], boxes[p], row[b, t], column[b, t], C, values[t])
                shown = area.size == 0 or values[t, C + 1] >= area[b, t]
                worth[t] = reduction(values[t], C, colours, mine) if shown else -np.inf
                if advantages:
                    # What a choice took away from a rival is what the rival would have removed in its place.
                    new = _bound(values[t], C)
                    if last >= 0 and p != last // peaks:
                        taken = max(taken, bound[t] - new)
                    bound[t] = new
            if advantages and last >= 0:
                advantage[b, n - 1] = reductions[b, n - 1] - taken
            best, forced = _largest(worth), script[b, n] >= 0
            if forced:
                best = script[b, n]
            elif not (worth[best] >= least and worth[best] > 0):
                break
            reductions[b, n] = reduction(values[best], C, colours, mine)
            candidate[b, n], colour[b, n], last = best, mine, best
            worth[best], available[best] = -np.inf, False
            p = best // peaks
            occlude(planes[b], ground, prototypes[p], masks[p], boxes[p], row[b, best], column[b, best], mine)
            many = 0
            for t in range(T):
                if available[t] and touch(
                    boxes[t // peaks], row[b, t], column[b, t], boxes[p], row[b, best], column[b, best]
                ):
                    stale[many] = t
                    many += 1


@compiled
def _largest(values: Array) -> int:
    best = 0
    for t in range(1, len(values)):
        if values[t] > values[best]:
            best = t
    return best


@compiled
def touch(one: Array, row: int, column: int, two: Array, other_row: int, other_column: int) -> bool:
    """Whether two boxes (top, left, height, width), each in a frame at its place, share a pixel."""
    top, left, other_top, other_left = row + one[0], column + one[1], other_row + two[0], other_column + two[1]
    return bool(
        top < other_top + two[2]
        and other_top < top + one[2]
        and left < other_left + two[3]
        and other_left < left + one[3]
    )


@compiled
def measure(planes: Array, kernels: Array, box: Array, row: int, column: int, C: int, values: Array) -> None:
    """The coefficients of one candidate, in the order of `Quadratics`."""
    over_black = planes.shape[0] == C + 1
    top, left, height, width = box
    values[:] = 0
    for y in range(height):
        at, begin = row + top + y, column + left
        MT = kernels[0, top + y, left : left + width]
        squares = kernels[1, top + y, left : left + width]
        M = kernels[2, top + y, left : left + width]
        for c in range(C):
            values[c] += _dot(planes[c, at, begin : begin + width], MT)
        Q = planes[C, at, begin : begin + width]
        values[C] += _dot(Q, squares)
        values[C + 1] += _dot(Q, M)
        if not over_black:
            rim = kernels[3, top + y, left : left + width]
            cover = kernels[4, top + y, left : left + width]
            for c in range(C):
                values[c] -= _dot(planes[C + 1 + c, at, begin : begin + width], rim)
            values[C + 2] += 2 * _dot(planes[2 * C + 1, at, begin : begin + width], M)
            values[C + 2] -= _dot(planes[2 * C + 2, at, begin : begin + width], cover)


@compiled
def _dot(one: Array, two: Array) -> Any:
    total = one[0] * two[0]
    for n in range(1, len(one)):
        total += one[n] * two[n]
    return total


@compiled
def reduction(values: Array, C: int, colours: tuple[float, float], colour: Array) -> Any:
    """The error reduction of a candidate in its best colour, which is written into `colour`."""
    q = values[C]
    total = -values[C + 2]
    for c in range(C):
        colour[c] = min(max(values[c] / max(q, TINY), colours[0]), colours[1])
        total += colour[c] * (2 * values[c] - colour[c] * q)
    return total


@compiled
def _bound(values: Array, C: int) -> Any:
    """The error reduction of a candidate in any colour, negative ones too."""
    q = max(values[C], TINY)
    total = -values[C + 2]
    for c in range(C):
        best = values[c] / q
        total += best * (2 * values[c] - best * values[C])
    return total


@compiled
def occlude(
    planes: Array, behind: Array, prototype: Array, mask: Array, box: Array, row: int, column: int, colour: Array
) -> None:
    """Update the planes behind one more object; see `evidence.occluded`."""
    C = len(colour)
    top, left, height, width = box
    for y in range(top, top + height):
        for x in range(left, left + width):
            M = mask[y, x]
            if M == 0:
                continue
            at, to = row + y, column + x
            Q, clear, product, square = planes[C, at, to], 1 - M, M * 0, M * 0
            for c in range(C):
                planes[c, at, to] = clear * (planes[c, at, to] - Q * M * prototype[y, x] * colour[c])
            Q *= clear * clear
            planes[C, at, to] = Q
            if behind.size:
                for c in range(C):
                    B = behind[c, at, to]
                    planes[C + 1 + c, at, to] = Q * B
                    product += planes[c, at, to] * B
                    square += Q * B * B
                planes[2 * C + 1, at, to] = product
                planes[2 * C + 2, at, to] = square
