"""Greedy selection, image by image: windows are measured where they lie, and only after what is in front changed.

Planes, kernels and coefficients are those of `evidence`, the planes one after the other: a row of a window in one plane
is one run of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array, Problem

TINY, TIE = 1e-12, 1e-3
"""As in `evidence` and in `colour`."""


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
            problem.place,
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
    place: Array,
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
    sides = np.zeros((4, T), np.int64)
    for b in range(ends[0], ends[1]):
        ground = behind[b % len(behind)] if behind.size else behind.reshape((0, 0, 0))
        available, stale = exists[b].copy(), exists[b].copy()
        worth[:], bound[:], last = -np.inf, 0, -1
        enclose(boxes, peaks, row[b], column[b], sides)
        for n in range(N):
            best, taken = script[b, n], 0.0
            forced = best >= 0
            first, end = (best, best + 1) if forced and not advantages else (0, T)
            for t in range(first, end):
                if not stale[t]:
                    continue
                p = t // peaks
                measure(planes[b], kernels[p], boxes[p], row[b, t], column[b, t], C, values[t])
                stale[t] = False
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
            if not forced:
                best = first_of_best(worth, place[b])
                if not (worth[best] >= least and worth[best] > 0):
                    break
            reductions[b, n] = reduction(values[best], C, colours, mine)
            candidate[b, n], colour[b, n], last = best, mine, best
            worth[best], available[best] = -np.inf, False
            p = best // peaks
            occlude(planes[b], ground, prototypes[p], masks[p], boxes[p], row[b, best], column[b, best], mine)
            touched(sides, best, available, stale)


@compiled
def first_of_best(worth: Array, place: Array) -> int:
    """The candidate of the largest error reduction; of several that are as good the first by place."""
    most, best = worth[0], -1
    for t in range(1, len(worth)):
        most = max(most, worth[t])
    least = most - TIE * abs(most)
    for t in range(len(worth)):
        if worth[t] >= least and (best < 0 or place[t] < place[best]):
            best = t
    return best


@compiled
def enclose(boxes: Array, peaks: int, row: Array, column: Array, sides: Array) -> None:
    """Top, left, bottom and right (4 T) of the boxes around the masks of candidates at their places."""
    for t in range(len(row)):
        top, left, height, width = boxes[t // peaks]
        sides[0, t], sides[1, t] = row[t] + top, column[t] + left
        sides[2, t], sides[3, t] = sides[0, t] + height, sides[1, t] + width


@compiled
def touched(sides: Array, which: int, allowed: Array, found: Array) -> None:
    """Add to those found the allowed candidates whose boxes share a pixel with that of one of them."""
    top, left, bottom, right = sides[0], sides[1], sides[2], sides[3]
    first, begin, last, end = top[which], left[which], bottom[which], right[which]
    for t in range(len(top)):
        found[t] |= allowed[t] & (top[t] < last) & (first < bottom[t]) & (left[t] < end) & (begin < right[t])


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
        at, begin, end = row + y, column + left, column + left + width
        M, T, Q = mask[y, left : left + width], prototype[y, left : left + width], planes[C, at, begin:end]
        for c in range(C):
            Y, tint = planes[c, at, begin:end], colour[c]
            for x in range(width):
                Y[x] = (1 - M[x]) * (Y[x] - Q[x] * M[x] * T[x] * tint)
        for x in range(width):
            Q[x] *= (1 - M[x]) * (1 - M[x])
        if behind.size:
            follow(planes, behind, at, begin, end)


@compiled
def follow(planes: Array, behind: Array, at: int, begin: int, end: int) -> None:
    """The planes that follow from the first ones and from what is behind, in a part of a row."""
    C, width = len(behind), end - begin
    Q, product, square = planes[C, at, begin:end], planes[2 * C + 1, at, begin:end], planes[2 * C + 2, at, begin:end]
    product[:], square[:] = 0, 0
    for c in range(C):
        B, Y, QB = behind[c, at, begin:end], planes[c, at, begin:end], planes[C + 1 + c, at, begin:end]
        for x in range(width):
            QB[x] = Q[x] * B[x]
            product[x] += Y[x] * B[x]
            square[x] += QB[x] * B[x]
