"""Turned: shapes that blobs share up to turns, sizes and mirror images.

What `shapes` does for blobs that repeat as they are, for objects that have poses: blobs are compared in all poses that
one object can have as seen from another, one seed is chosen for all poses of a shape, and its blobs are turned back to
it before what they have in common is averaged. Many angles average out the steps of pixels.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from jaxtyping import Float
from scipy import ndimage
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.poses.pose import ANGLE, MARGIN, CoarsePoses, pose_frame
from pcdnet.training.aligning import align, averages, compared
from pcdnet.training.foreground import Blob
from pcdnet.training.gauge import draw
from pcdnet.training.looks import NEAR, Looks, apart, between_poses
from pcdnet.training.quarters import choose_quarter_turned, only_quarters
from pcdnet.training.shapes import Seeds, spokesmen, whole_ones

MOST_BLOBS = 600
"""Blobs that are compared with each other in all poses."""
STEP, FINE_STEP = 10.0, 2.5
"""Degrees between the angles at which blobs are compared with each other, and with what they have in common."""
MORE = 3
"""So many times the shapes that are wanted are tried."""
FEW = 24
"""So many are tried in any case."""
TIGHT = 0.05
"""From this distance on a blob is not the shape that it is compared with."""
RARE = 0.05
"""A shape that stands for less than this share of what the commonest does is chance."""
PASSES = 2
"""How often blobs are aligned with what they have in common."""


def choose_posed_seeds(
    blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator, config: ModelConfig
) -> Seeds:
    """At most `count` prototypes and masks, in frames of this size, that most whole blobs resemble in some pose."""
    if only_quarters(config):
        return choose_quarter_turned(blobs, count, frame, rng, config)
    whole = [blob for blob in whole_ones(blobs, posed_size(config, frame), frame) if _fits(blob, frame, config)]
    whole = whole_ones(whole, posed_size(config, frame), frame)  # refuses if nothing is left
    chosen = np.sort(rng.choice(len(whole), min(MOST_BLOBS, len(whole)), replace=False))
    sample = [whole[n] for n in chosen]
    looks, coarse, fine = Looks.of(sample, config), between_poses(config, STEP), between_poses(config, FINE_STEP)
    shapes = repeated(looks, count, config)
    found = align(looks, shapes, fine, TIGHT)
    kept = np.unique(found.kinds[found.kinds >= 0])
    drawn = [draw(sample, looks, found, kind, shapes[kind], frame, config) for kind in kept.tolist()]
    prototypes, masks = (np.stack(each) for each in zip(*drawn, strict=True))
    if len(whole) > len(sample):
        found = align(Looks.of(whole, config), shapes[kept], coarse, TIGHT)
        return Seeds(prototypes, masks, whole, found.kinds)
    return Seeds(prototypes, masks, whole, np.where(found.kinds >= 0, np.searchsorted(kept, found.kinds), -1))


def repeated(looks: Looks, count: int, config: ModelConfig) -> Float[Tensor, "k 2 s s"]:
    """At most `count` shapes, as they are compared, that most of some blobs are in some pose."""
    near = np.clip(NEAR - apart(looks, between_poses(config, STEP), config), 0, None)
    shapes = looks.layers[spokesmen(near, looks.weights, max(FEW, MORE * count), best_of_all=TIGHT)]
    fine = between_poses(config, FINE_STEP)
    for _ in range(PASSES):
        shapes = averages(looks, align(looks, shapes, fine, NEAR), shapes)
    shapes = _tight(looks, shapes, fine, count)
    for _ in range(PASSES):
        shapes = averages(looks, align(looks, shapes, fine, TIGHT), shapes)
    return shapes


def _tight(
    looks: Looks,
    shapes: Float[Tensor, "m 2 s s"],
    poses: Float[Tensor, "poses 5"],
    count: int,
) -> Float[Tensor, "k 2 s s"]:
    """At most `count` of the shapes: those that many blobs are, and not merely somewhat like.

    Things that touch are like others that do, all of them roundish; only shapes repeat to within pixels.
    """
    far, _ = compared(looks, shapes, poses)
    weight, near = looks.weights, (TIGHT - far).clamp(0, TIGHT).double().numpy()
    theirs = (weight[:, None] * near).sum(axis=0) / np.maximum(near.sum(axis=0), 1e-9)
    chosen = spokesmen(near, weight, count, theirs, TIGHT)
    served = np.where(near[:, chosen].argmax(axis=1)[:, None] == np.arange(len(chosen)), near[:, chosen], 0)
    often = (weight[:, None] * served).sum(axis=0)
    return shapes[np.array(chosen)[often >= RARE * often.max()]]


def posed_size(config: ModelConfig, frame: tuple[int, int] | None = None) -> tuple[int, int]:
    """How large objects may be in the poses of a model: as its frames, or others, are, turned and grown."""
    frame = frame or config.prototype_size
    if config.poses == 1:
        return frame
    y, x = pose_frame(frame, dataclasses.replace(config, subpixel=False))
    rim = 2 * MARGIN if config.fine_poses else 0
    return y - rim, x - rim


def _fits(blob: Blob, frame: tuple[int, int], config: ModelConfig) -> bool:
    """Whether a frame, as large as objects are at most, holds a blob at one angle at least."""
    largest = config.scale_range[1]
    angles = np.radians(CoarsePoses.of(config, torch.zeros(0)).values[:, ANGLE].numpy())
    if config.fine_poses and config.rotations > 1:
        angles = np.radians(np.arange(0, FULL_TURN / 2, STEP))
    places = np.argwhere(blob.mask ^ ndimage.binary_erosion(blob.mask))
    down = places @ np.stack([np.cos(angles), np.sin(angles)])
    right = places @ np.stack([-np.sin(angles), np.cos(angles)])
    sides = np.ptp(down, axis=0) + 1, np.ptp(right, axis=0) + 1
    return bool(((sides[0] <= largest * frame[0] + 1) & (sides[1] <= largest * frame[1] + 1)).any())
