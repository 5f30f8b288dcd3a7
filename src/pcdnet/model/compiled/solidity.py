"""Solidity, candidate by candidate: first its colour, then the pixels in which it lowers the error."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array

TINY = 1e-12
"""As in `evidence`."""


def shares(
    planes: tuple[Array, Array, Array],
    bank: tuple[Array, Array],
    boxes: Array,
    places: tuple[Array, Array, Array],
    peaks: int,
    limits: tuple[float, float, float],
) -> Array:
    """Of every candidate (B T) the share of its mask in which it lowers the error; 0 where there is none.

    Planes are images (B C Y X), what is behind them (b C Y X) and what of them counts (b Y X); limits the largest
    colour, the least fall of the error that counts and the least area of a mask.
    """
    found = np.zeros(places[0].shape, planes[0].dtype)

    def work(start: int, stop: int) -> None:
        _shares((start, stop), planes, bank, boxes, places, peaks, limits, found)

    share(work, len(found))
    return found


@compiled
def _shares(
    ends: tuple[int, int],
    planes: tuple[Array, Array, Array],
    bank: tuple[Array, Array],
    boxes: Array,
    places: tuple[Array, Array, Array],
    peaks: int,
    limits: tuple[float, float, float],
    found: Array,
) -> None:
    (images, behind, inside), (prototypes, masks), (row, column, exists) = planes, bank, places
    C, T = images.shape[1], row.shape[1]
    a, fall = np.zeros(C, images.dtype), np.zeros(masks.shape[2], images.dtype)
    for b in range(ends[0], ends[1]):
        image, ground, seen = images[b], behind[b % len(behind)], inside[b % len(inside)]
        for t in range(T):
            if not exists[b, t]:
                continue
            p = t // peaks
            at, begin, box = row[b, t], column[b, t], boxes[p]
            q, area = _coefficients(image, ground, seen, prototypes[p], masks[p], box, at, begin, a)
            for c in range(C):
                a[c] = a[c] / max(q, TINY)
                if limits[0] < np.inf:
                    a[c] = min(max(a[c], 0.0), limits[0])
            lower = _lower(image, ground, seen, prototypes[p], masks[p], box, at, begin, a, fall, limits[1] * C)
            found[b, t] = lower / max(area, limits[2])


@compiled
def _coefficients(
    image: Array,
    ground: Array,
    seen: Array,
    prototype: Array,
    mask: Array,
    box: Array,
    row: int,
    column: int,
    a: Array,
) -> tuple[float, float]:
    """The coefficient q and the mask's area; a is written."""
    top, left, height, width = box
    a[:], q, area = 0, a[0] * 0, a[0] * 0
    for y in range(top, top + height):
        at, begin, end = row + y, column + left, column + left + width
        Q, T, whole = seen[at, begin:end], prototype[y, left : left + width], mask[y, left : left + width]
        for x in range(width):
            M = whole[x] * Q[x]
            area += M
            q += Q[x] * (M * T[x]) * (M * T[x])
        for c in range(len(a)):
            Y, B, total = image[c, at, begin:end], ground[c, at, begin:end], q * 0
            for x in range(width):
                M = whole[x] * Q[x]
                total += (Y[x] - Q[x] * (1 - M) * B[x]) * M * T[x]
            a[c] += total
    return q, area


@compiled
def _lower(
    image: Array,
    ground: Array,
    seen: Array,
    prototype: Array,
    mask: Array,
    box: Array,
    row: int,
    column: int,
    colour: Array,
    fall: Array,
    least: float,
) -> Any:
    """The area of the mask in which the error falls by more than the least; `fall` is room to work in."""
    top, left, height, width = box
    lower = colour[0] * 0
    for y in range(top, top + height):
        at, begin, end = row + y, column + left, column + left + width
        Q, T, whole = seen[at, begin:end], prototype[y, left : left + width], mask[y, left : left + width]
        fall[:width] = 0
        for c in range(len(colour)):
            Y, B, tint = image[c, at, begin:end], ground[c, at, begin:end], colour[c]
            for x in range(width):
                change = whole[x] * Q[x] * (T[x] * tint - B[x])
                fall[x] += change * (2 * (Y[x] - Q[x] * B[x]) - Q[x] * change)
        for x in range(width):
            if fall[x] > least:
                lower += whole[x] * Q[x]
    return lower
