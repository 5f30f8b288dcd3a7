"""Inverse Fourier transforms of many signals at once, in place, each point of all signals side by side.

A point is 2 L numbers: the real parts of L signals, then their imaginary parts. So every loop runs over L neighbours in
memory, and compiles to vector instructions. Two things make it so: indices are unsigned, since negative ones would
count from the end, and no loop writes to more than four places, since the compiler checks every pair for overlap.
Points come out in another order, which `places` gives; who reads them knows where to look.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled
from pcdnet.model.compiled.problem import Array


def factors(size: int) -> Array:
    """The radices of a transform: 4 while it can be, then 2, 3 and 5."""
    found = []
    for radix in (4, 2, 3, 5):
        while size % radix == 0:
            found.append(radix)
            size //= radix
    assert size == 1, "Fourier grids have no prime factor above 5"
    return np.array(found, np.int64)


def places(size: int) -> Array:
    """Which point of the result stands where."""
    point = np.zeros(1, np.int64)
    for radix in factors(size)[::-1]:
        point = (np.arange(radix)[:, None] + radix * point).ravel()
    return point


def turns(size: int, dtype: Any) -> tuple[Array, Array]:
    """Cosines and sines of the whole turn in so many steps."""
    angle = 2 * np.pi * np.arange(size) / size
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


@compiled
def inverse(x: Array, size: int, L: int, radices: Array, cos: Array, sin: Array) -> None:
    """Transform the first `size` points of x, without the factor 1 / size."""
    length = size
    for radix in radices:
        part, step = length // radix, size // length
        apart = 2 * L * part
        for start in range(0, size, length):
            for j in range(part):
                at, turn = 2 * L * (start + j), j * step
                if radix == 4:
                    _four(x, at, apart, L)
                elif radix == 2:
                    _two(x, at, at + apart, L)
                elif radix == 3:
                    _three(x, at, apart, L)
                else:
                    _five(x, at, apart, L)
                if turn:
                    for q in range(1, radix):
                        _turn(x, at + q * apart, L, cos[q * turn], sin[q * turn])
        length = part


@compiled
def _turn(x: Array, at: int, L: int, cos: float, sin: float) -> None:
    a, n = np.uint64(at), np.uint64(L)
    for j in range(n):
        real, imaginary = x[a + j], x[a + n + j]
        x[a + j] = real * cos - imaginary * sin
        x[a + n + j] = real * sin + imaginary * cos


@compiled
def _two(x: Array, at: int, other: int, L: int) -> None:
    """The sum in the first place, the difference in the second."""
    a, b, n = np.uint64(at), np.uint64(other), np.uint64(L)
    for j in range(n):
        ar, ai, br, bi = x[a + j], x[a + n + j], x[b + j], x[b + n + j]
        x[a + j], x[a + n + j] = ar + br, ai + bi
        x[b + j], x[b + n + j] = ar - br, ai - bi


@compiled
def _plus_i(x: Array, at: int, other: int, L: int) -> None:
    """a + i b in the first place, a - i b in the second."""
    a, b, n = np.uint64(at), np.uint64(other), np.uint64(L)
    for j in range(n):
        ar, ai, br, bi = x[a + j], x[a + n + j], x[b + j], x[b + n + j]
        x[a + j], x[a + n + j] = ar - bi, ai + br
        x[b + j], x[b + n + j] = ar + bi, ai - br


@compiled
def _four(x: Array, at: int, apart: int, L: int) -> None:
    a, d, n = np.uint64(at), np.uint64(apart), np.uint64(L)
    b, c = a + d, a + d + d
    e = c + d
    for j in range(n):
        ar, ai, br, bi = x[a + j], x[a + n + j], x[b + j], x[b + n + j]
        cr, ci, er, ei = x[c + j], x[c + n + j], x[e + j], x[e + n + j]
        s0r, s0i, s1r, s1i = ar + cr, ai + ci, ar - cr, ai - ci
        s2r, s2i, s3r, s3i = br + er, bi + ei, br - er, bi - ei
        x[a + j], x[a + n + j] = s0r + s2r, s0i + s2i
        x[b + j], x[b + n + j] = s1r - s3i, s1i + s3r
        x[c + j], x[c + n + j] = s0r - s2r, s0i - s2i
        x[e + j], x[e + n + j] = s1r + s3i, s1i - s3r


@compiled
def _three(x: Array, at: int, apart: int, L: int) -> None:
    a, d, n = np.uint64(at), np.uint64(apart), np.uint64(L)
    b, c = a + d, a + d + d
    half, sine = x.dtype.type(-0.5), x.dtype.type(0.8660254037844386)
    for j in range(n):
        ar, ai, br, bi, cr, ci = x[a + j], x[a + n + j], x[b + j], x[b + n + j], x[c + j], x[c + n + j]
        sr, si, dr, di = br + cr, bi + ci, sine * (br - cr), sine * (bi - ci)
        mr, mi = ar + half * sr, ai + half * si
        x[a + j], x[a + n + j] = ar + sr, ai + si
        x[b + j], x[b + n + j] = mr - di, mi + dr
        x[c + j], x[c + n + j] = mr + di, mi - dr


@compiled
def _five(x: Array, at: int, apart: int, L: int) -> None:
    one, two, three, four = at + apart, at + 2 * apart, at + 3 * apart, at + 4 * apart
    _two(x, one, four, L)
    _two(x, two, three, L)
    a, b, c, n = np.uint64(at), np.uint64(one), np.uint64(two), np.uint64(2 * L)
    near, far = x.dtype.type(0.30901699437494745), x.dtype.type(-0.8090169943749475)
    for j in range(n):
        first, second, third = x[a + j], x[b + j], x[c + j]
        x[a + j] = first + second + third
        x[b + j] = first + near * second + far * third
        x[c + j] = first + far * second + near * third
    d, e = np.uint64(three), np.uint64(four)
    steep, flat = x.dtype.type(0.9510565162951535), x.dtype.type(0.5877852522924731)
    for j in range(n):
        second, first = x[d + j], x[e + j]
        x[e + j] = steep * first + flat * second
        x[d + j] = flat * first - steep * second
    _plus_i(x, one, four, L)
    _plus_i(x, two, three, L)
