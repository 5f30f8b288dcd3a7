"""Shapes: blobs that resemble each other, and what they have in common.

Objects repeat, so the shapes that many blobs resemble are objects: chosen one after the other, each seed is the blob
that brings most others near to a seed. Blobs of two objects that touch, or of one that is cut off, resemble few others
and are not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from pcdnet.errors import PcdnetError, Setting
from pcdnet.training.foreground import Blob

NEAR = 0.5
"""From this distance on two blobs are simply different; farther is not worse."""
SUPPORT = 3.0
"""A seed must stand for so many blobs, itself included, that no other seed stands for."""
MOST_BLOBS = 3000
"""Blobs that are compared with each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Seeds:
    """First prototypes, and the blobs they stand for."""

    prototypes: Float32[np.ndarray, "n h w"]
    """Grey, centred in their frames."""
    masks: Float32[np.ndarray, "n h w"]
    """The share of its blobs that cover each pixel."""
    blobs: list[Blob]
    """The blobs that were compared: whole ones that fit into the frame."""
    kinds: Int64[np.ndarray, "blobs"]
    """Which seed every blob resembles most; -1 where it resembles none."""


def choose_seeds(blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator) -> Seeds:
    """At most `count` prototypes and masks that most whole blobs resemble, centred in frames of this size."""
    h, w = frame
    whole = [blob for blob in blobs if blob.fits(frame)]
    if not whole:
        raise PcdnetError(
            f"no object of at most {h}x{w} pixels stands out from the background of the images; use ",
            *(Setting("model.prototype_size"), " for larger frames, or ", Setting("train.init", "constant")),
        )
    if len(whole) > MOST_BLOBS:
        sample = [whole[n] for n in np.sort(rng.choice(len(whole), MOST_BLOBS, replace=False))]
    else:
        sample = whole
    features, areas = _features(sample, frame)
    near = np.clip(NEAR - _distances(features, areas, features, areas), 0, None)  # how well one stands for the other
    weight = np.sqrt(areas)  # large objects count for more than specks
    served = np.zeros(len(sample))
    seeds: list[int] = []
    while len(seeds) < min(count, len(sample)):
        gains = (weight[:, None] * np.clip(near - served[:, None], 0, None)).sum(axis=0)
        best = int(gains.argmax())
        if seeds and gains[best] < SUPPORT * NEAR * weight[best]:
            break
        seeds.append(best)
        served = np.maximum(served, near[:, best])
    if sample is not whole:
        chosen, sizes = features[seeds], areas[seeds]
        features, areas = _features(whole, frame)
        near = np.clip(NEAR - _distances(features, areas, chosen, sizes), 0, None)
    else:
        near = near[:, seeds]
    kinds = np.where(near.max(axis=1) > 0, near.argmax(axis=1), -1)
    half = features.shape[1] // 2
    means = np.stack([features[kinds == kind].mean(axis=0) for kind in range(len(seeds))])
    masks, greys = means[:, :half].reshape(-1, h, w), means[:, half:].reshape(-1, h, w)
    return Seeds(greys / np.maximum(masks, 1e-3), masks, whole, kinds)


def _features(
    blobs: list[Blob], frame: tuple[int, int]
) -> tuple[Float32[np.ndarray, "n features"], Float32[np.ndarray, "n"]]:
    """What blobs are compared by, their masks and what these show, centred in a frame; and the areas of the masks."""
    features = np.empty((len(blobs), 2, frame[0] * frame[1]), np.float32)
    for row, blob in zip(features, blobs, strict=True):
        mask, grey = _framed(blob, frame)
        row[0], row[1] = mask.ravel(), (mask * grey).ravel()
    return features.reshape(len(blobs), -1), features[:, 0].sum(axis=1)


def _framed(blob: Blob, frame: tuple[int, int]) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """The blob's mask and grey in the middle of a frame; the grey spans up to 1, since colour will dim it."""
    mask, grey = np.zeros(frame, np.float32), np.zeros(frame, np.float32)
    h, w = blob.mask.shape
    top, left = (frame[0] - h) // 2, (frame[1] - w) // 2
    inside = slice(top, top + h), slice(left, left + w)
    mask[inside] = blob.mask
    max_colour = max(float(np.percentile(blob.grey[blob.mask], 90)), 1e-3)
    grey[inside] = np.clip(blob.grey / max_colour, 0, 1)
    return mask, grey


def _distances(
    one: Float32[np.ndarray, "n features"],
    one_area: Float32[np.ndarray, "n"],
    two: Float32[np.ndarray, "m features"],
    two_area: Float32[np.ndarray, "m"],
) -> Float64[np.ndarray, "n m"]:
    """The squared difference of every two blobs, as a share of their areas together."""
    squares = [np.square(features).sum(axis=1, dtype=np.float64) for features in (one, two)]
    apart = squares[0][:, None] + squares[1][None] - 2 * (one @ two.T).astype(np.float64)
    share: np.ndarray = np.clip(apart, 0, None) / (one_area[:, None] + two_area[None])
    return share
