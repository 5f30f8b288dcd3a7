"""Turned: shapes that blobs share up to turns, sizes and mirror images.

What `shapes` does for blobs that repeat as they are, for objects that have poses: blobs are compared in all poses that
one object can have as seen from another, one seed is chosen for all poses of a shape, and its blobs are turned back to
it before what they have in common is averaged. Many angles average out the steps of pixels.
"""

from __future__ import annotations

import math

import numpy as np

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import MARGIN, pose_frame
from pcdnet.training.aligning import align, averages
from pcdnet.training.foreground import Blob
from pcdnet.training.gauge import draw
from pcdnet.training.looks import NEAR, Looks, apart, between_poses
from pcdnet.training.quarters import choose_quarter_turned, only_quarters
from pcdnet.training.shapes import Seeds, spokesmen, whole_ones

MOST_BLOBS = 800
"""Blobs that are compared with each other in all poses."""
STEP, FINE_STEP = 10.0, 2.5
"""Degrees between the angles at which blobs are compared with each other, and with what they have in common."""
PASSES = 2
"""How often blobs are aligned with what they have in common."""


def choose_posed_seeds(
    blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator, config: ModelConfig
) -> Seeds:
    """At most `count` prototypes and masks, in frames of this size, that most whole blobs resemble in some pose."""
    if only_quarters(config):
        return choose_quarter_turned(blobs, count, frame, rng, config)
    y, x = pose_frame(frame, config)
    rim = 2 * MARGIN if config.fine_poses or config.subpixel else 0
    whole = whole_ones(blobs, (y - rim, x - rim), frame)
    chosen = np.sort(rng.choice(len(whole), min(MOST_BLOBS, len(whole)), replace=False))
    sample = [whole[n] for n in chosen]
    looks, weight = Looks.of(sample, config), np.array([math.sqrt(blob.mask.sum()) for blob in sample])
    coarse, fine = between_poses(config, STEP), between_poses(config, FINE_STEP)
    seeds = spokesmen(np.clip(NEAR - apart(looks, coarse, config), 0, None), weight, count, NEAR)
    shapes = looks.layers[seeds]
    for _ in range(PASSES):
        shapes = averages(looks, align(looks, shapes, fine), shapes)
    found = align(looks, shapes, fine)
    kept = np.unique(found.kinds[found.kinds >= 0])
    drawn = [draw(sample, looks, found, kind, shapes[kind], frame, config) for kind in kept.tolist()]
    prototypes, masks = (np.stack(each) for each in zip(*drawn, strict=True))
    if len(whole) > len(sample):
        found = align(Looks.of(whole, config), shapes[kept], coarse)
        return Seeds(prototypes, masks, whole, found.kinds)
    return Seeds(prototypes, masks, whole, np.where(found.kinds >= 0, np.searchsorted(kept, found.kinds), -1))
