"""Sizes: prototypes of like sizes, each group in the smallest frame that holds them all.

One frame for all prototypes is as large as the largest of them, and most of it is empty for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pcdnet.model.geometry import Box

WORTH = 0.125
"""A group becomes two where that saves at least this share of the area that all prototypes have in one frame."""


@dataclass(frozen=True, slots=True)
class Size:
    """Some prototypes of a bank, and the box around their masks."""

    prototypes: tuple[int, ...]
    box: Box


def like_sizes(boxes: Sequence[Box]) -> list[Size]:
    """Prototypes in groups, by the boxes around their masks: as few groups as keep most of the area small."""
    everything = sorted(range(len(boxes)), key=lambda n: boxes[n].height * boxes[n].width)
    return _split(boxes, everything, WORTH * _area(boxes, everything))


def _split(boxes: Sequence[Box], some: Sequence[int], worth: float) -> list[Size]:
    """Split where that saves most area, as long as it saves so much."""
    areas = [_area(boxes, some[:n]) + _area(boxes, some[n:]) for n in range(1, len(some))]
    if not areas or _area(boxes, some) - min(areas) < worth:
        return [Size(tuple(some), _box(boxes, some))]
    n = areas.index(min(areas)) + 1
    return _split(boxes, some[:n], worth) + _split(boxes, some[n:], worth)


def _area(boxes: Sequence[Box], some: Sequence[int]) -> int:
    """The area of the frames of some prototypes, if they are as large as it takes."""
    box = _box(boxes, some)
    return len(some) * box.height * box.width


def _box(boxes: Sequence[Box], some: Sequence[int]) -> Box:
    """The box around some boxes."""
    return reduce(_around, (boxes[n] for n in some))


def _around(one: Box, two: Box) -> Box:
    """The box around two boxes."""
    top, left = min(one.top, two.top), min(one.left, two.left)
    bottom = max(one.top + one.height, two.top + two.height)
    return Box(top, left, bottom - top, max(one.left + one.width, two.left + two.width) - left)
