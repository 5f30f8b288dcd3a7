"""Closed-form colours of placed objects and their gradient, image by image; coefficients are those of `evidence`.

What is left to explain behind the objects in front is found anew for the gradient, in memory that stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.composition import inside
from pcdnet.model.compiled.problem import Array

TINY = 1e-12
"""As in `evidence`."""


def colours(
    planes: tuple[Array, Array, Array],
    objects: tuple[Array, Array],
    places: tuple[Array, Array, Array],
    limits: tuple[float, float],
) -> Array:
    """The colours (B N C) of objects, between the limits.

    Planes are images (B C H W), what is behind their objects (b C H W, empty for black) and where they are seen
    (b H W, empty for everywhere). Objects are prototypes and masks (B N h w); places are rows and columns of their
    frames in the image (B N), and which of them exist.
    """
    found = np.zeros((*objects[0].shape[:2], planes[0].shape[1]), objects[0].dtype)
    none = np.empty((0, 0, 0), found.dtype), np.empty((0, 0, 0, 0), found.dtype), np.empty((0, 0, 0, 0), found.dtype)
    share(lambda start, stop: _colours((start, stop), planes, objects, places, limits, found, none), len(found))
    return found


def gradients(
    planes: tuple[Array, Array, Array],
    objects: tuple[Array, Array],
    places: tuple[Array, Array, Array],
    limits: tuple[float, float],
    gradient: Array,
) -> tuple[Array, Array]:
    """From the gradient of the colours (B N C) those of prototypes and masks."""
    again, results = np.zeros_like(gradient), (gradient, np.zeros_like(objects[0]), np.zeros_like(objects[1]))
    share(lambda start, stop: _colours((start, stop), planes, objects, places, limits, again, results), len(again))
    return results[1:]


@compiled
def _colours(
    ends: tuple[int, int],
    planes: tuple[Array, Array, Array],
    objects: tuple[Array, Array],
    places: tuple[Array, Array, Array],
    limits: tuple[float, float],
    colour: Array,
    gradient: tuple[Array, Array, Array],
) -> None:
    """Images from the first end to the second; with a gradient of the colours also those that follow from it."""
    (images, behind, seen), (prototypes, masks), (row, column, exists) = planes, objects, places
    (C, H, W), (N, h, w) = images.shape[1:], prototypes.shape[1:]
    Y, Q = np.empty((C, H, W), images.dtype), np.empty((H, W), images.dtype)
    sums, slopes = np.empty(C + 1, images.dtype), np.empty(C + 1, images.dtype)
    for b in range(ends[0], ends[1]):
        Y[:] = images[b]
        if seen.size:
            Q[:] = seen[b % len(seen)]
        else:
            Q[:] = 1
        ground = behind[b % len(behind)] if behind.size else behind.reshape((0, 0, 0))
        for n in range(N):
            if not exists[b, n]:
                continue
            part, at = inside(row[b, n], column[b, n], (h, w), (H, W)), (row[b, n], column[b, n])
            T, M, mine = prototypes[b, n], masks[b, n], colour[b, n]
            _sums(Y, Q, ground, T, M, part, at, sums)
            least = max(sums[C], TINY)
            for c in range(C):
                mine[c] = min(max(sums[c] / least, limits[0]), limits[1])
            if gradient[0].size:
                _slopes(gradient[0][b, n], sums, limits, slopes)
                _spread(Y, Q, ground, T, M, part, at, slopes, gradient[1][b, n], gradient[2][b, n])
            _occlude(Y, Q, T, M, part, at, mine)


@compiled
def _sums(
    Y: Array,
    Q: Array,
    behind: Array,
    T: Array,
    M: Array,
    part: tuple[int, int, int, int],
    at: tuple[int, int],
    sums: Array,
) -> None:
    """The coefficients a, channel by channel, and q of one object; see `evidence.colour_coefficients`."""
    top, bottom, left, right = part
    C, begin, end = len(Y), at[1] + left, at[1] + right
    sums[:] = 0
    for y in range(top, bottom):
        t, m, clear = T[y, left:right], M[y, left:right], Q[at[0] + y, begin:end]
        for c in range(C):
            if behind.size:
                sums[c] += _left_over(Y[c, at[0] + y, begin:end], clear, behind[c, at[0] + y, begin:end], t, m)
            else:
                sums[c] += _left(Y[c, at[0] + y, begin:end], t, m)
        sums[C] += _squares(clear, t, m)


@compiled
def _left(Y: Array, T: Array, M: Array) -> Any:
    total = T.dtype.type(0)
    for x in range(len(T)):
        total += Y[x] * M[x] * T[x]
    return total


@compiled
def _left_over(Y: Array, Q: Array, B: Array, T: Array, M: Array) -> Any:
    one, total = T.dtype.type(1), T.dtype.type(0)
    for x in range(len(T)):
        total += (Y[x] - Q[x] * (one - M[x]) * B[x]) * M[x] * T[x]
    return total


@compiled
def _squares(Q: Array, T: Array, M: Array) -> Any:
    total = T.dtype.type(0)
    for x in range(len(T)):
        painted = M[x] * T[x]
        total += Q[x] * painted * painted
    return total


@compiled
def _slopes(gradient: Array, sums: Array, limits: tuple[float, float], slopes: Array) -> None:
    """From the gradient of a colour that of its coefficients; none where it is at a limit."""
    C, q = len(gradient), sums[-1]
    least = max(q, TINY)
    slopes[C] = 0
    for c in range(C):
        colour = sums[c] / least
        free = limits[0] <= colour <= limits[1]
        slopes[c] = gradient[c] / least if free else 0
        if free and q >= TINY:
            slopes[C] -= gradient[c] * colour / least


@compiled
def _spread(
    Y: Array,
    Q: Array,
    behind: Array,
    T: Array,
    M: Array,
    part: tuple[int, int, int, int],
    at: tuple[int, int],
    slopes: Array,
    d_T: Array,
    d_M: Array,
) -> None:
    """From the gradient of its coefficients that of an object's prototype and mask."""
    top, bottom, left, right = part
    C, begin, end = len(Y), at[1] + left, at[1] + right
    for y in range(top, bottom):
        t, m, clear = T[y, left:right], M[y, left:right], Q[at[0] + y, begin:end]
        to_t, to_m = d_T[y, left:right], d_M[y, left:right]
        for c in range(C):
            if behind.size:
                _pass_over(
                    Y[c, at[0] + y, begin:end], clear, behind[c, at[0] + y, begin:end], t, m, slopes[c], to_t, to_m
                )
            else:
                _pass(Y[c, at[0] + y, begin:end], t, m, slopes[c], to_t, to_m)
        twice = slopes[C] + slopes[C]
        for x in range(len(t)):
            q = twice * clear[x] * m[x] * t[x]
            to_t[x] += q * m[x]
            to_m[x] += q * t[x]


@compiled
def _pass(Y: Array, T: Array, M: Array, slope: float, d_T: Array, d_M: Array) -> None:
    for x in range(len(T)):
        rest = slope * Y[x]
        d_T[x] += rest * M[x]
        d_M[x] += rest * T[x]


@compiled
def _pass_over(Y: Array, Q: Array, B: Array, T: Array, M: Array, slope: float, d_T: Array, d_M: Array) -> None:
    one = T.dtype.type(1)
    for x in range(len(T)):
        covered = slope * Q[x] * B[x]
        rest = slope * Y[x] - covered * (one - M[x])
        d_T[x] += rest * M[x]
        d_M[x] += (rest + covered * M[x]) * T[x]


@compiled
def _occlude(
    Y: Array, Q: Array, T: Array, M: Array, part: tuple[int, int, int, int], at: tuple[int, int], colour: Array
) -> None:
    """Y and Q behind one more object; see `evidence.occluded`."""
    one = T.dtype.type(1)
    top, bottom, left, right = part
    begin, end = at[1] + left, at[1] + right
    for y in range(top, bottom):
        t, m, clear = T[y, left:right], M[y, left:right], Q[at[0] + y, begin:end]
        for c in range(len(colour)):
            rest, tint = Y[c, at[0] + y, begin:end], colour[c]
            for x in range(len(t)):
                rest[x] = (one - m[x]) * (rest[x] - clear[x] * m[x] * t[x] * tint)
        for x in range(len(t)):
            clear[x] *= (one - m[x]) * (one - m[x])
