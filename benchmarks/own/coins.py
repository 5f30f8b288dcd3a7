"""Coins: the photograph of 24 coins that scikit-image ships, with uneven light."""

from __future__ import annotations

import numpy as np

from benchmarks.own.pictures import GroundTruth, Pictures

BOXES = (
    *((34, 22, 40, 45), (39, 81, 35, 39), (28, 132, 46, 47), (29, 192, 44, 48), (34, 255, 38, 41), (16, 305, 56, 60)),
    *((104, 25, 41, 42), (107, 84, 38, 38), (110, 134, 35, 40)),
    *((105, 186, 39, 40), (95, 245, 49, 51), (105, 317, 39, 39)),
    *((177, 26, 40, 36), (175, 80, 42, 44), (179, 135, 38, 39)),
    *((170, 189, 47, 47), (172, 251, 45, 45), (156, 315, 62, 64)),
    *((233, 18, 55, 56), (244, 92, 43, 43), (236, 144, 51, 57)),
    *((240, 220, 48, 49), (239, 276, 50, 50), (247, 335, 42, 46)),
)
"""Top, left, height and width of every coin, drawn by hand to within a pixel or two, row by row."""


def make() -> Pictures:
    """The photograph, in which every coin is of the same kind."""
    from skimage.data import coins

    photograph = np.asarray(coins())  # type: ignore[no-untyped-call]
    boxes, count = np.array(BOXES, dtype=float), len(BOXES)
    true = GroundTruth(
        boxes=boxes,
        whole=boxes,
        kinds=np.zeros(count, np.int64),
        depths=np.arange(count),
        counted=np.ones(count, dtype=bool),
    )
    return Pictures(images=[photograph], ground_truth=[true], kinds=("coin",))
