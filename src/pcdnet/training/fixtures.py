"""Fixtures: what is drawn at fixed places, such as a score or a clock, and is no object.

A shape that is seen at a few places only is fixed. Where several fixed shapes are drawn one after the other, and little
else is ever seen, there is a counter; a fixed shape that is drawn in one counter belongs to counters wherever it is.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from jaxtyping import Bool

from pcdnet.training.shapes import Seeds

FEW_PLACES, RARE_PLACES = 4, 0.02
"""A shape is fixed if its places are so few, or so small a share of its blobs."""
COUNTER_SHAPES = 3
"""So many shapes, one after the other at one place, are a counter's."""
ALONE = 0.9
"""Share of all that is seen at a counter's place that is of fixed shapes."""

Box = tuple[int, int, int, int]


def counters(seeds: Seeds, size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Where counters are drawn in images of this size: the boxes of everything that is drawn in them."""
    fixed = {kind: boxes for kind, boxes in _places(seeds).items() if boxes}
    shapes = np.zeros(size, int)
    for boxes in fixed.values():
        shapes += _filled(boxes, size)
    alone = _alone(seeds, set(fixed), size)
    drawn = _grown(fixed, (shapes >= COUNTER_SHAPES) & alone, size)
    # Shapes that counters share lead from one counter to the next.
    region: np.ndarray = _grown(fixed, drawn, size) & alone
    return region


def _alone(seeds: Seeds, fixed: set[int], size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Where nearly all that is ever seen are fixed shapes, and not parts of what comes by."""
    often = np.zeros((2, *size), int)
    for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True):
        h, w = blob.mask.shape
        often[int(kind in fixed), blob.top : blob.top + h, blob.left : blob.left + w] += 1
    alone: np.ndarray = often[0] <= (1 - ALONE) * often.sum(axis=0)
    return alone


def _places(seeds: Seeds) -> dict[int, set[Box]]:
    """The boxes of every fixed shape; none of those that are not fixed."""
    boxes: dict[int, Counter[Box]] = {}
    for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True):
        if kind >= 0:
            boxes.setdefault(kind, Counter())[blob.top, blob.left, *blob.mask.shape] += 1
    return {
        kind: set(count) if len(count) <= max(FEW_PLACES, RARE_PLACES * count.total()) else set()
        for kind, count in boxes.items()
    }


def _grown(
    fixed: dict[int, set[Box]], drawn: Bool[np.ndarray, "H W"], size: tuple[int, int]
) -> Bool[np.ndarray, "H W"]:
    """All boxes of the shapes that have one mostly inside of what is drawn."""
    region = np.zeros(size, bool)
    for boxes in fixed.values():
        if any(drawn[top : top + height, left : left + width].mean() > 0.5 for top, left, height, width in boxes):
            region |= _filled(boxes, size)
    return region


def _filled(boxes: set[Box], size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    filled = np.zeros(size, bool)
    for top, left, height, width in boxes:
        filled[top : top + height, left : left + width] = True
    return filled
