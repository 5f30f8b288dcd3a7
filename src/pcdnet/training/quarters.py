"""Quarters: seeds up to quarter turns and mirror images, which leave every pixel whole.

Nothing has to be resampled: blobs are turned as they are, so shapes that repeat exactly are compared exactly.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import ANGLE, MIRRORED, CoarsePoses
from pcdnet.training.foreground import Blob
from pcdnet.training.gauge import Gauge
from pcdnet.training.looks import between_poses
from pcdnet.training.shapes import NEAR, Seeds, common_shape, distances, features_of, spokesmen, whole_ones

QUARTER = 90.0
"""Degrees."""
MOST_BLOBS = 1500
"""Blobs that are compared with each other in all turns."""


def only_quarters(config: ModelConfig) -> bool:
    """Whether the objects of a model are turned by quarters and mirrored, and nothing else."""
    values = CoarsePoses.of(config, torch.zeros(0)).values
    return not config.fine_poses and config.scales == 1 and not (values[:, ANGLE] % QUARTER).any()


def choose_quarter_turned(
    blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator, config: ModelConfig
) -> Seeds:
    """At most `count` prototypes and masks that most whole blobs resemble in some quarter turn of a model."""
    side = max(frame)
    whole = whole_ones(blobs, (side, side), frame)
    ways = [(round(float(pose[ANGLE] / QUARTER)), int(pose[MIRRORED])) for pose in between_poses(config, QUARTER)]
    turned = [[quarters(blob, *way) for blob in whole] for way in ways]
    looks = np.stack([features_of(each, (side, side))[0] for each in turned])
    areas = np.array([blob.mask.sum() for blob in whole], np.float32)
    some = np.arange(len(whole))
    if len(whole) > MOST_BLOBS:
        some = np.sort(rng.choice(len(whole), MOST_BLOBS, replace=False))
    still = looks[ways.index((0, 0))]
    far, _ = _nearest(looks[:, some], areas[some], still[some], areas[some])
    seeds = some[spokesmen(np.clip(NEAR - far, 0, None), np.sqrt(areas[some]), count)]
    far, which = _nearest(looks, areas, still[seeds], areas[seeds])
    kinds = np.where(far.min(axis=1) < NEAR, far.argmin(axis=1), -1)
    chosen = np.array(ways)[which[np.arange(len(whole)), kinds]]
    best = chosen.tolist()
    made = []
    for kind in range(len(seeds)):
        own = np.flatnonzero(kinds == kind)
        made.append(_drawn([quarters(whole[n], *best[n]) for n in own], chosen[own], frame, config))
    prototypes, masks = (np.stack(each) for each in zip(*made, strict=True))
    return Seeds(prototypes, masks, whole, kinds)


def quarters(blob: Blob, count: int, mirrored: int) -> Blob:
    """A blob that is mirrored left to right, if that is wanted, and then turned counter-clockwise by quarters."""
    mask, solid, grey = (
        np.rot90(layer[:, ::-1] if mirrored else layer, count) for layer in (blob.mask, blob.solid, blob.grey)
    )
    return dataclasses.replace(blob, mask=mask, solid=solid, grey=grey)


def _drawn(
    aligned: list[Blob], ways: Int64[np.ndarray, "n 2"], frame: tuple[int, int], config: ModelConfig
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """The prototype and mask of blobs that were turned in these ways to be alike, in the turn that the shape says."""
    side = max(frame)
    counts, mirrored = ways.T
    angles = QUARTER * np.where(mirrored == 1, counts, -counts)  # of the blobs before, as seen from the shape
    mask = common_shape(aligned, (side, side))[1]
    gauge = Gauge.of(mask, angles.astype(np.float64), mirrored, np.ones(len(ways)), config)
    turn = round(gauge.angle / QUARTER)
    upright = [quarters(blob, turn, gauge.mirrored) for blob in aligned]
    if not all(blob.fits(frame) for blob in upright):
        upright = [quarters(blob, 1, 0) for blob in upright]
    upright = [blob for blob in upright if blob.fits(frame)]
    return common_shape(upright, frame)


def _nearest(
    looks: Float32[np.ndarray, "ways n features"],
    areas: Float32[np.ndarray, "n"],
    others: Float32[np.ndarray, "m features"],
    their_areas: Float32[np.ndarray, "m"],
) -> tuple[Float64[np.ndarray, "n m"], Int64[np.ndarray, "n m"]]:
    """How far all blobs are from some others in the way in which they are nearest, and which way that is."""
    best = np.full((len(areas), len(others)), np.inf)
    which = np.zeros(best.shape, np.int64)
    for number, way in enumerate(looks):
        far = distances(way, areas, others, their_areas)
        which[far < best] = number
        best = np.minimum(best, far)
    return best, which
