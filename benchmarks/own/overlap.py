"""Overlap: pairs of icons of which one is in front of the other, on plain paper, with single icons beside them."""

from __future__ import annotations

import numpy as np

from benchmarks.own.icons import HEIGHT, SIZE, SYMBOLS, WIDTH, colour, painted
from benchmarks.own.pictures import COVERED, OPAQUE, Box, GroundTruth, Pictures, Thing, bounds, scatter, sign

PAIRS, SINGLES = 2, 2
"""How many of each a picture holds."""
LEAST, MOST = 0.15, 0.45
"""Share of the smaller box that the other one covers."""
SHARED = 20
"""Pixels that both cover at least: where there is none, neither is in front."""


def make(count: int, seed: int) -> Pictures:
    """Pictures of two pairs and two single icons."""
    made = [_picture(np.random.default_rng([seed, n])) for n in range(count)]
    return Pictures(images=[image for image, _ in made], ground_truth=[true for _, true in made], kinds=tuple(SYMBOLS))


def pairs(true: GroundTruth) -> list[tuple[int, int]]:
    """The objects whose boxes overlap, the nearer one first."""
    found = []
    for i, first in enumerate(true.whole):
        for j, second in enumerate(true.whole):
            ends = np.minimum(first[:2] + first[2:], second[:2] + second[2:])
            if true.depths[i] < true.depths[j] and (np.maximum(first[:2], second[:2]) < ends).all():
                found.append((i, j))
    return found


def _picture(rng: np.random.Generator) -> tuple[np.ndarray, GroundTruth]:
    groups = [_pair(rng) for _ in range(PAIRS)] + [[_icon(rng)] for _ in range(SINGLES)]
    places = scatter(rng, [_size(group) for group in groups], (HEIGHT, WIDTH), gap=2)
    things = [
        thing._replace(row=thing.row + row, column=thing.column + column)
        for group, (row, column) in zip(groups, places, strict=False)
        for thing in group
    ]
    return painted(things)


def _icon(rng: np.random.Generator, *others: tuple[float, ...]) -> Thing:
    kind = int(rng.integers(len(SYMBOLS)))
    return Thing(kind, sign(SYMBOLS[kind], SIZE).alpha, 0, 0, colour(rng, *others))


def _pair(rng: np.random.Generator) -> list[Thing]:
    """Two icons that overlap, the nearer one first; their rows and columns begin at 0."""
    while True:
        front = _icon(rng)
        back = _icon(rng, front.colour)
        (h, w), (height, width) = front.alpha.shape, back.alpha.shape
        back = back._replace(row=int(rng.integers(1 - height, h)), column=int(rng.integers(1 - width, w)))
        top, left = min(0, back.row), min(0, back.column)
        pair = [thing._replace(row=thing.row - top, column=thing.column - left) for thing in (front, back)]
        boxes = [_covered(thing) for thing in pair]
        lengths = [min(a[n] + a[n + 2], b[n] + b[n + 2]) - max(a[n], b[n]) for a, b in [boxes] for n in (0, 1)]
        share = max(0, lengths[0]) * max(0, lengths[1]) / min(box[2] * box[3] for box in boxes)
        if LEAST <= share <= MOST and _shared(pair) >= SHARED:
            return pair


def _covered(thing: Thing) -> Box:
    top, left, height, width = bounds(thing.alpha >= COVERED)
    return thing.row + top, thing.column + left, height, width


def _shared(pair: list[Thing]) -> int:
    """Pixels that both things cover."""
    height, width = _size(pair)
    times = np.zeros((height, width), dtype=int)
    for thing in pair:
        h, w = thing.alpha.shape
        times[thing.row : thing.row + h, thing.column : thing.column + w] += thing.alpha >= OPAQUE
    return int((times == 2).sum())


def _size(group: list[Thing]) -> tuple[int, int]:
    rows = max(thing.row + thing.alpha.shape[0] for thing in group)
    return rows, max(thing.column + thing.alpha.shape[1] for thing in group)
