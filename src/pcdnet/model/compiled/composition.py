"""Painting and its gradient, image by image: frames are cut off at the border, so no canvas has a padding.

What each frame covered is painted anew for the gradient, in memory that stays in the cache, instead of being kept.
Whatever is summed over pixels is summed within one image: batches, threads and processes make no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array

FAINT = 0.2
"""As in `composition`."""


def paint(objects: tuple[Array, Array, Array], places: tuple[Array, Array, Array], background: Array) -> Array:
    """The pictures (B C H W) of objects over backgrounds (b C H W), of which one may stand for all.

    Objects are prototypes (B N h w), masks (B N h w) and colours (B N C); places are rows and columns of their frames
    in the image (B N), and which of them exist.
    """
    pictures = np.empty((len(objects[0]), *background.shape[1:]), background.dtype)
    share(lambda start, stop: _paint((start, stop), objects, places, background, pictures), len(pictures))
    return pictures


def gradients(
    objects: tuple[Array, Array, Array], places: tuple[Array, Array, Array], background: Array, flow: Array
) -> tuple[Array, Array, Array]:
    """From the gradient of the pictures those of prototypes, masks and colours.

    `flow` (B C H W) becomes the gradient of the background of every image.
    """
    found = np.zeros_like(objects[0]), np.zeros_like(objects[1]), np.zeros_like(objects[2])
    share(lambda start, stop: _gradients((start, stop), objects, places, background, flow, found), len(flow))
    return found


@compiled
def inside(row: int, column: int, frame: tuple[int, int], image: tuple[int, int]) -> tuple[int, int, int, int]:
    """First and last rows and columns of a frame that lie in the image, the last ones not included."""
    top, left = min(max(0, -row), frame[0]), min(max(0, -column), frame[1])
    return top, max(top, min(frame[0], image[0] - row)), left, max(left, min(frame[1], image[1] - column))


@compiled
def _paint(
    ends: tuple[int, int],
    objects: tuple[Array, Array, Array],
    places: tuple[Array, Array, Array],
    background: Array,
    pictures: Array,
) -> None:
    """Images from the first end to the second."""
    nothing = np.empty((0, 0, 0, 0), pictures.dtype)
    for b in range(ends[0], ends[1]):
        pictures[b] = background[b % len(background)]
        _paint_one(b, objects, places, pictures[b], nothing)


@compiled
def _paint_one(
    b: int, objects: tuple[Array, Array, Array], places: tuple[Array, Array, Array], picture: Array, covered: Array
) -> None:
    """Paint over a picture, the last object first, and note what each frame covered (N C h w) if there is room."""
    (prototypes, masks, colour), (row, column, exists), (C, H, W) = objects, places, picture.shape
    N, h, w = prototypes.shape[1:]
    for n in range(N - 1, -1, -1):
        if not exists[b, n]:
            continue
        top, bottom, left, right = inside(row[b, n], column[b, n], (h, w), (H, W))
        begin, end = column[b, n] + left, column[b, n] + right
        for y in range(top, bottom):
            T, M, at = prototypes[b, n, y, left:right], masks[b, n, y, left:right], row[b, n] + y
            for c in range(C):
                under, tint = picture[c, at, begin:end], colour[b, n, c]
                if covered.size:
                    _copy(under, covered[n, c, y, left:right])
                for x in range(len(T)):
                    under[x] += M[x] * (T[x] * tint - under[x])


@compiled
def _copy(values: Array, to: Array) -> None:
    for x in range(len(values)):
        to[x] = values[x]


@compiled
def _gradients(
    ends: tuple[int, int],
    objects: tuple[Array, Array, Array],
    places: tuple[Array, Array, Array],
    background: Array,
    flow: Array,
    found: tuple[Array, Array, Array],
) -> None:
    """Images from the first end to the second."""
    (prototypes, masks, colour), (row, column, exists) = objects, places
    (N, h, w), (C, H, W) = prototypes.shape[1:], flow.shape[1:]
    picture, covered = np.empty((C, H, W), flow.dtype), np.empty((N, C, h, w), flow.dtype)
    weight = np.empty(w, flow.dtype)
    for b in range(ends[0], ends[1]):
        picture[:] = background[b % len(background)]
        _paint_one(b, objects, places, picture, covered)
        for n in range(N):
            if not exists[b, n]:
                continue
            top, bottom, left, right = inside(row[b, n], column[b, n], (h, w), (H, W))
            begin, end = column[b, n] + left, column[b, n] + right
            for y in range(top, bottom):
                T, M, at = prototypes[b, n, y, left:right], masks[b, n, y, left:right], row[b, n] + y
                tints, under = colour[b, n], covered[n, :, y, left:right]
                d_T, d_M = found[0][b, n, y, left:right], found[1][b, n, y, left:right]
                _learning(T, M, tints, under, weight)
                for c in range(C):
                    found[2][b, n, c] += _row(T, M, weight, tints[c], under[c], flow[b, c, at, begin:end], d_T, d_M)


@compiled
def _learning(T: Array, M: Array, tints: Array, under: Array, weight: Array) -> None:
    """How much of the gradient paint gets: the mask, and a faint one where it is empty and paint looks like what it
    covers."""
    none, faint, kind = M.dtype.type(0), M.dtype.type(FAINT), M.dtype.type
    for x in range(len(M)):
        weight[x] = none
    for c in range(len(tints)):
        tint, below = tints[c], under[c]
        for x in range(len(M)):
            weight[x] = max(weight[x], kind(abs(T[x] * tint - below[x])))
    for x in range(len(M)):
        weight[x] = M[x] + (faint if (M[x] <= none) & (weight[x] < faint) else none)


@compiled
def _row(T: Array, M: Array, weight: Array, tint: float, under: Array, flow: Array, d_T: Array, d_M: Array) -> Any:
    """Pass the gradient of a row of one channel to an object and on to what is behind; the colour's is returned."""
    one, total = M.dtype.type(1), M.dtype.type(0)
    for x in range(len(T)):
        G = flow[x]
        d_T[x] += G * weight[x] * tint
        d_M[x] += G * (T[x] * tint - under[x])
        total += G * M[x] * T[x]
        flow[x] = G * (one - M[x])
    return total
