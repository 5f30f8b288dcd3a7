"""One sweep over the objects of every image, as `refinement` describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array, Problem
from pcdnet.model.compiled.selection import enclose, first_of_best, follow, measure, occlude, reduction, touched


def sweep(problem: Problem, images: Array, inside: Array, colour: Array, script: Array, least: float) -> Array:
    """The revised candidates; images and what is behind all objects are on canvases (B C Y X), `inside` (b Y X)."""
    revised = script.copy()

    def work(start: int, stop: int) -> None:
        _sweep(
            (start, stop),
            images,
            inside,
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
            colour,
            revised,
        )

    share(work, len(script))
    return revised


def explained(
    planes: tuple[Array, Array, Array],
    bank: tuple[Array, Array],
    places: tuple[Array, Array],
    peaks: int,
    chosen: tuple[Array, Array],
) -> tuple[Array, Array]:
    """The pictures (B C Y X) that objects make, and the squared error that is left in the frame of each (B N).

    Planes are images, what is behind them and what of them counts, as above; chosen are candidates and their colours.
    """
    pictures, left = np.empty_like(planes[0]), np.zeros(chosen[0].shape, planes[0].dtype)

    def work(start: int, stop: int) -> None:
        _explained((start, stop), planes, bank, places, peaks, chosen, pictures, left)

    share(work, len(left))
    return pictures, left


@compiled
def _explained(
    ends: tuple[int, int],
    planes: tuple[Array, Array, Array],
    bank: tuple[Array, Array],
    places: tuple[Array, Array],
    peaks: int,
    chosen: tuple[Array, Array],
    pictures: Array,
    left: Array,
) -> None:
    (images, behind, inside), (prototypes, masks), (row, column), (script, colour) = planes, bank, places, chosen
    h, w = masks.shape[1:]
    covered = np.empty((images.shape[1], h, w), images.dtype)
    for b in range(ends[0], ends[1]):
        pictures[b] = behind[b % len(behind)]
        for n in range(script.shape[1] - 1, -1, -1):
            t = script[b, n]
            if t >= 0:
                p = t // peaks
                _paint(pictures[b], covered, prototypes[p], masks[p], row[b, t], column[b, t], colour[b, n])
        for n in range(script.shape[1]):
            t = script[b, n]
            if t >= 0:
                left[b, n] = _error(images[b], pictures[b], inside[b % len(inside)], row[b, t], column[b, t], h, w)


@compiled
def _sweep(
    ends: tuple[int, int],
    images: Array,
    inside: Array,
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
    colour: Array,
    revised: Array,
) -> None:
    (prototypes, masks), (row, column, exists) = bank, places
    (_, C, Y, X), (h, w), (T, N) = images.shape, masks.shape[1:], (row.shape[1], revised.shape[1])
    kind = images.dtype
    planes, picture = np.zeros((2 * C + 3, Y, X), kind), np.zeros((C, Y, X), kind)
    covered, values, mine, its = (
        np.zeros((N, C, h, w), kind),
        np.zeros((T, C + 3), kind),
        np.zeros(C, kind),
        np.zeros(C, kind),
    )
    sides, near, worth = np.zeros((4, T), np.int64), np.zeros(T, np.bool_), np.zeros(T, kind)
    for b in range(ends[0], ends[1]):
        script, available = revised[b], exists[b].copy()
        enclose(boxes, peaks, row[b], column[b], sides)
        N = 0
        while len(script) > N and script[N] >= 0:
            available[script[N]] = False
            N += 1
        picture[:] = behind[b % len(behind)]
        for n in range(N - 1, -1, -1):
            t = script[n]
            _paint(
                picture, covered[n], prototypes[t // peaks], masks[t // peaks], row[b, t], column[b, t], colour[b, n]
            )
        for c in range(C):
            planes[c] = images[b, c]
        planes[C] = inside[b % len(inside)]
        _follow(planes, picture, 0, 0, Y, X)
        last = -1
        doubtful = np.zeros(N, np.bool_)
        for n in range(N):
            left = _error(images[b], picture, inside[b % len(inside)], row[b, script[n]], column[b, script[n]], h, w)
            doubtful[n] = left >= least
            last = n if doubtful[n] else last
        for n in range(last + 1):
            t = script[n]
            # Take the object out of what is behind: show again what its frame covered.
            picture[:, row[b, t] : row[b, t] + h, column[b, t] : column[b, t] + w] = covered[n]
            _follow(planes, picture, row[b, t], column[b, t], h, w)
            its[:] = colour[b, n]
            if doubtful[n]:
                available[t] = True
                near[:], worth[:] = False, -np.inf
                touched(sides, t, available, near)
                for other in range(T):
                    if not near[other]:
                        continue
                    p = other // peaks
                    measure(planes, kernels[p], boxes[p], row[b, other], column[b, other], C, values[other])
                    if area.size == 0 or values[other, C + 1] >= area[b, other]:
                        worth[other] = reduction(values[other], C, colours, mine)
                best = first_of_best(worth, place[b])
                then = max(worth[best], 0.0)
                if then - _given(values[t], C, its) >= least:
                    script[n] = best if then > 0 else -1
                    reduction(values[best], C, colours, its)
            t = script[n]
            if t >= 0:
                available[t] = False
                p = t // peaks
                occlude(planes, picture, prototypes[p], masks[p], boxes[p], row[b, t], column[b, t], its)


@compiled
def _paint(picture: Array, covered: Array, prototype: Array, mask: Array, row: int, column: int, colour: Array) -> None:
    """Paint one object, and keep what its frame covered."""
    h, w = mask.shape
    for c in range(len(colour)):
        under = picture[c, row : row + h, column : column + w]
        covered[c] = under
        for y in range(h):
            for x in range(w):
                under[y, x] += mask[y, x] * (colour[c] * prototype[y, x] - under[y, x])


@compiled
def _follow(planes: Array, picture: Array, row: int, column: int, h: int, w: int) -> None:
    """The planes that follow from the first ones and from what is behind, in a window."""
    for y in range(row, row + h):
        follow(planes, picture, y, column, column + w)


@compiled
def _error(image: Array, picture: Array, inside: Array, row: int, column: int, h: int, w: int) -> float:
    """The squared error in a window; what is painted outside the image is none."""
    total = 0.0
    for c in range(len(image)):
        for y in range(row, row + h):
            for x in range(column, column + w):
                if inside[y, x] > 0:
                    total += (image[c, y, x] - picture[c, y, x]) ** 2
    return total


@compiled
def _given(values: Array, C: int, colour: Array) -> Any:
    """The error reduction of a candidate in a given colour."""
    total = -values[C + 2]
    for c in range(C):
        total += colour[c] * (2 * values[c] - colour[c] * values[C])
    return total
