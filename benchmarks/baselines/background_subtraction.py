"""Background subtraction: what differs from the median of all frames, cleaned up, as boxes of connected pixels.

The threshold and the sizes are the best of 24 combinations, tried out on the very frames that are scored. That favours
this baseline: nobody could tune it so without labels.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, UInt8
from scipy.ndimage import binary_closing, binary_opening, find_objects, label

from pcdnet.metrics import DetectionScores, Found, box_iou, match_scene, score_detections
from pcdnet.scene import Scenes

THRESHOLD = 40
"""Difference, of 255, in the channel that differs most, above which a pixel is no background."""
CLOSED, OPENED = 3, 3
"""Sides of the squares by which gaps are closed, and then specks and bridges are removed."""
LEAST_AREA = 80
"""Pixels that make an object at least."""


def median_background(images: UInt8[np.ndarray, "N H W C"]) -> Float32[np.ndarray, "H W C"]:
    """The median of every pixel over all frames."""
    median: np.ndarray = np.median(images, axis=0).astype(np.float32)
    return median


def find(
    image: UInt8[np.ndarray, "H W C"], background: Float32[np.ndarray, "H W C"], threshold: float = THRESHOLD
) -> Found:
    """The objects of one frame; larger ones count as surer."""
    differs = np.abs(image - background).max(axis=2) > threshold
    # Closing by hand at the border: outside the frame there is no object, but no background either.
    wide = np.pad(differs, CLOSED, mode="edge")
    inside = slice(CLOSED, -CLOSED)
    closed = binary_closing(wide, np.ones((CLOSED, CLOSED), bool))
    solid = binary_opening(closed, np.ones((OPENED, OPENED), bool))[inside, inside]
    pieces, count = label(solid, np.ones((3, 3), bool))
    areas = np.bincount(pieces.ravel(), minlength=count + 1)[1:]
    kept = [n for n in range(count) if areas[n] >= LEAST_AREA]
    places = find_objects(pieces)
    rows = [(y.start, x.start, y.stop - y.start, x.stop - x.start) for y, x in (places[n] for n in kept)]
    return Found(
        boxes=np.array(rows, np.float32).reshape(-1, 4),
        scores=areas[kept].astype(np.float32),
        prototype_ids=np.zeros(len(kept), np.int32),
    )


def scored(scenes: Scenes, background: Float32[np.ndarray, "H W C"]) -> DetectionScores:
    """How well the frames' boxes are found."""
    assert scenes.boxes is not None
    found = [find(image, background) for image in scenes.images]
    pairs = zip(found, scenes.boxes, strict=True)
    return score_detections([match_scene(each, box_iou(each.boxes, true.corners)) for each, true in pairs])
