"""Shapes: blobs that resemble each other, and what they have in common.

Objects repeat, so the shapes that many blobs resemble are objects: chosen one after the other, each seed is the blob
that brings most others near to a seed. Blobs of two objects that touch, or of one that is cut off, resemble few others
and are not chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64
from scipy import ndimage

from pcdnet.errors import PcdnetError, Setting
from pcdnet.training.foreground import Blob

NEAR = 0.5
"""From this distance on two blobs are simply different; farther is not worse."""
SUPPORT = 3.0
"""A seed must stand for so many blobs, itself included, that no other seed stands for."""
MOST_BLOBS = 3000
"""Blobs that are compared with each other."""
INSIDE = 0.2
"""A blob has an inside if it is this share of its pixels."""
UNCERTAIN, MOST_UNCERTAIN = 0.2, 0.5
"""A pixel is uncertain if the share of the blobs that cover it is between this and the rest; where blobs agree, a shape
has at most so many uncertain pixels for each that most of them cover."""
OUTLINE = 3
"""Soft outlines are less than so many pixels wide."""
HOLE = 0.2
"""A pixel that fewer than this share of the blobs show solid is a hole."""


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
    whole = whole_ones(blobs, frame, frame)
    if len(whole) > MOST_BLOBS:
        sample = [whole[n] for n in np.sort(rng.choice(len(whole), MOST_BLOBS, replace=False))]
    else:
        sample = whole
    features, areas = features_of(sample, frame)
    near = np.clip(NEAR - distances(features, areas, features, areas), 0, None)  # how well one stands for the other
    seeds = spokesmen(near, np.sqrt(areas), count)
    if sample is not whole:
        chosen, sizes = features[seeds], areas[seeds]
        features, areas = features_of(whole, frame)
        near = np.clip(NEAR - distances(features, areas, chosen, sizes), 0, None)
    else:
        near = near[:, seeds]
    kinds = np.where(near.max(axis=1) > 0, near.argmax(axis=1), -1)
    return Seeds(*common(whole, kinds, len(seeds), frame), whole, kinds)


def whole_ones(blobs: list[Blob], largest: tuple[int, int], frame: tuple[int, int]) -> list[Blob]:
    """The blobs that are whole and no larger than `largest`, so that prototypes of a frame's size can show them."""
    whole = [blob for blob in blobs if blob.fits(largest)]
    if not whole:
        raise PcdnetError(
            f"no object of at most {frame[0]}x{frame[1]} pixels stands out from the background of the images; use ",
            *(Setting("model.prototype_size"), " for larger frames, or ", Setting("train.init", "constant")),
        )
    return whole


def spokesmen(
    near: Float64[np.ndarray, "n m"],
    weight: Float[np.ndarray, "n"],
    count: int,
    their_weight: Float[np.ndarray, "m"] | None = None,
    best_of_all: float = NEAR,
) -> list[int]:
    """At most `count` candidates that stand for most blobs: each is the one that brings most blobs near to one of them.

    `near` says how well the candidate of a column stands for the blob of a row, and `best_of_all` what it would be of
    the same. `weight` is by how much blobs count: large objects count for more than specks. Usually the candidates are
    the blobs themselves; others have weights of their own.
    """
    theirs = weight if their_weight is None else their_weight
    served = np.zeros(len(near))
    seeds: list[int] = []
    while len(seeds) < min(count, near.shape[1]):
        gains = (weight[:, None] * np.clip(near - served[:, None], 0, None)).sum(axis=0)
        best = int(gains.argmax())
        if seeds and gains[best] < SUPPORT * best_of_all * theirs[best]:
            break
        seeds.append(best)
        served = np.maximum(served, near[:, best])
    return seeds


def agreed(seeds: Seeds, *, soft: bool = False) -> Seeds:
    """The seeds without those whose blobs do not agree on a shape: pairs of things that touch, each in its own way.

    If no blobs agree at all, all seeds stay. Outlines are `soft` where blobs were turned to be averaged: what is not
    wider than they are does not count.
    """
    unsure = (seeds.masks > UNCERTAIN) & (seeds.masks < 1 - UNCERTAIN)
    if soft:
        unsure = ndimage.binary_opening(unsure, np.ones((1, OUTLINE, OUTLINE), bool))
    uncertain = unsure.sum(axis=(1, 2))
    kept = uncertain <= MOST_UNCERTAIN * (seeds.masks > 0.5).sum(axis=(1, 2))
    if kept.all() or not kept.any():
        return seeds
    numbers = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)  # the last is for blobs of no kind, -1
    return Seeds(seeds.prototypes[kept], seeds.masks[kept], seeds.blobs, numbers[seeds.kinds])


def common_shape(
    blobs: list[Blob], frame: tuple[int, int]
) -> tuple[Float32[np.ndarray, "h w"], Float32[np.ndarray, "h w"]]:
    """What blobs of one kind, no larger than a frame, have in common: a prototype in its middle, and its mask."""
    prototypes, masks = common(blobs, np.zeros(len(blobs), np.int64), 1, frame)
    return prototypes[0], masks[0]


def common(
    blobs: list[Blob], kinds: Int64[np.ndarray, "blobs"], count: int, frame: tuple[int, int]
) -> tuple[Float32[np.ndarray, "n h w"], Float32[np.ndarray, "n h w"]]:
    """What the blobs of each kind have in common: grey, and the share of them that cover each pixel."""
    totals, often = np.zeros((count, 3, *frame)), np.zeros(count)
    for blob, kind in zip(blobs, kinds.tolist(), strict=True):
        if kind >= 0:
            totals[kind] += framed(blob, frame)
            often[kind] += 1
    return shown(totals, often)


def shown(
    totals: Float64[np.ndarray, "n 3 h w"], often: Float64[np.ndarray, "n"]
) -> tuple[Float32[np.ndarray, "n h w"], Float32[np.ndarray, "n h w"]]:
    """Prototypes and masks from what the blobs of each kind are together (`framed`), and how many they are.

    A hole that nearly all of them have is one: what is behind shows through it. Others are pixels in which some happen
    to look like the background.
    """
    masks, solid, greys = (totals / np.maximum(often, 1)[:, None, None, None]).astype(np.float32).swapaxes(0, 1)
    return greys / np.maximum(solid, 1e-3), np.where(solid < HOLE * masks, solid, masks)


def features_of(
    blobs: list[Blob], frame: tuple[int, int]
) -> tuple[Float32[np.ndarray, "n features"], Float32[np.ndarray, "n"]]:
    """What blobs are compared by, their masks and what is solid in them, centred in a frame; and their areas."""
    features = np.empty((len(blobs), 2, frame[0] * frame[1]), np.float32)
    for row, blob in zip(features, blobs, strict=True):
        mask, _, grey = framed(blob, frame)
        row[0], row[1] = mask.ravel(), grey.ravel()
    return features.reshape(len(blobs), -1), features[:, 0].sum(axis=1)


def framed(blob: Blob, frame: tuple[int, int]) -> Float32[np.ndarray, "3 h w"]:
    """The blob's mask, its solid pixels and what these show, in the middle of a frame.

    Most of its inside is 1, since colour will dim it. What is brighter, edges and openings that are mixed with the
    background, differs from colour to colour and is left to learning.
    """
    framed = np.zeros((3, *frame), np.float32)
    h, w = blob.mask.shape
    top, left = (frame[0] - h) // 2, (frame[1] - w) // 2
    inside = ndimage.binary_erosion(blob.solid)
    shown = blob.grey[inside if inside.sum() >= INSIDE * blob.solid.sum() else blob.solid]
    typical = max(float(np.median(shown)), 1e-3)
    grey = np.where(blob.solid, np.clip(blob.grey / typical, 0, 1), 0)
    framed[:, top : top + h, left : left + w] = blob.mask, blob.solid, grey
    return framed


def distances(
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
