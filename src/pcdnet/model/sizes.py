"""Sizes: prototypes of like sizes, each group in the smallest frame that holds them all.

One frame for all prototypes is as large as the largest of them, and most of it is empty for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

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
    sides = np.array(boxes, np.int64).reshape(-1, 4)
    areas = sides[:, 2] * sides[:, 3]
    everything = areas.argsort(kind="stable")
    extents = np.concatenate([sides[:, :2], -sides[:, :2] - sides[:, 2:]], axis=1)[everything]
    return _split(everything, extents, WORTH * len(areas) * _areas(_around(extents))[-1])


def _split(some: Int[np.ndarray, "n"], extents: Int[np.ndarray, "n 4"], worth: float) -> list[Size]:
    """Split where that saves most area, as long as it saves so much.

    Extents are top, left, and bottom and right with the opposite sign, so that those of many are the least of each.
    """
    around, count = _around(extents), np.arange(1, len(some) + 1)
    whole = _areas(around) * count
    if len(some) > 1:
        split = whole[:-1] + (_areas(_around(extents[::-1])) * count)[-2::-1]
        if whole[-1] - split.min() >= worth:
            n = int(split.argmin()) + 1
            return _split(some[:n], extents[:n], worth) + _split(some[n:], extents[n:], worth)
    top, left, bottom, right = around[-1].tolist()
    return [Size(tuple(some.tolist()), Box(top, left, -bottom - top, -right - left))]


def _around(extents: Int[np.ndarray, "n 4"]) -> Int[np.ndarray, "n 4"]:
    """The extents of the first one, the first two, and so on."""
    around: np.ndarray = np.minimum.accumulate(extents, axis=0)
    return around


def _areas(extents: Int[np.ndarray, "n 4"]) -> Int[np.ndarray, "n"]:
    """Height times width."""
    areas: np.ndarray = (extents[:, 0] + extents[:, 2]) * (extents[:, 1] + extents[:, 3])
    return areas
