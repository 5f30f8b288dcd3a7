"""Standing: things that never move, but look like things that do, are objects and no part of the background.

The background of a still camera is what is seen nearly always. Where it shows the shape of something that moves, in one
colour and with an edge all around, there stands such a thing. What surrounds it is put in its place, and it is found in
every image like any other object.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, Shaped, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage, signal

from pcdnet.config import Background
from pcdnet.errors import PcdnetError
from pcdnet.pixels import Pixels
from pcdnet.training.backdrop import learned_picture
from pcdnet.training.foreground import LEAST_CONTRAST, find_foreground, some_of
from pcdnet.training.initialization import MOST_SHAPES, find_start
from pcdnet.training.shapes import Seeds

LEAST_PIXELS = 12
"""Smaller shapes are met by chance."""
FULL = 0.9
"""So are those that fill their box: bars, lines and blocks are everywhere."""
EDGE = 0.9
"""Share of the pixels around a shape that must differ from it."""
TINY = 1e-12
"""What has less energy is black, in any colour."""


def first_background(
    kind: Background, images: UInt8[Pixels, "N H W C"], frame: tuple[int, int]
) -> Float32[np.ndarray, "Y X C"] | None:
    """The first values of a background that is learned, without things that stand there; None for other kinds."""
    picture = learned_picture(kind, images, frame)
    if kind != "still" or picture is None:
        return picture
    some = some_of(images)
    try:
        # Always the same lot: which blobs are compared must not change the background.
        found, lot = find_foreground(some, picture[None], frame), np.random.default_rng(0)
        start = find_start(found, MOST_SHAPES, frame, lot, still=True)
    except PcdnetError:  # nothing moves
        return picture
    return without_standing(picture, start.seeds)


def without_standing(picture: Float32[np.ndarray, "H W C"], seeds: Seeds) -> Float32[np.ndarray, "H W C"]:
    """A background in which what surrounds them is put in the place of things that have the shape of a seed."""
    covered = np.zeros(picture.shape[:2], bool)
    for prototype, mask in zip(seeds.prototypes, seeds.masks > 0.5, strict=True):
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if len(rows) == 0:
            continue
        box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        if mask.sum() < LEAST_PIXELS or mask[box].mean() > FULL:
            continue
        for row, column in find_standing(picture, prototype[box], mask[box]):
            place = covered[row : row + mask[box].shape[0], column : column + mask[box].shape[1]]
            place |= mask[box]
    if not covered.any():
        return picture
    nearest = ndimage.distance_transform_edt(covered, return_distances=False, return_indices=True)
    found: np.ndarray = picture[tuple(nearest)]
    return found


def find_standing(
    picture: Float32[np.ndarray, "H W C"], prototype: Float32[np.ndarray, "h w"], mask: Bool[np.ndarray, "h w"]
) -> Int64[np.ndarray, "n 2"]:
    """Row and column of the places where a shape is seen in one colour, with an edge all around."""
    h, w = mask.shape
    H, W, C = picture.shape
    if h + 2 > H or w + 2 > W:
        return np.zeros((0, 2), np.int64)
    texture = np.where(mask, prototype, 0).astype(np.float64)
    around = np.pad(mask, 1)
    ring = ndimage.binary_dilation(around) & ~around
    # An edge is a difference from what the shape shows next to it.
    nearest = ndimage.distance_transform_edt(~around, return_distances=False, return_indices=True)
    beside = np.where(ring, np.pad(texture, 1)[tuple(nearest)], 0)
    whole = picture.astype(np.float64)
    inside, outside = whole[1:-1, 1:-1], np.square(whole).sum(axis=-1)  # at the border of the image there is no edge
    a = _sums(inside, texture)
    colour = a / max(np.square(texture).sum(), TINY)
    error = _sums(np.square(inside).sum(axis=-1, keepdims=True), mask)[..., 0] - (a * colour).sum(axis=-1)
    edge = _sums(outside[..., None], ring)[..., 0] - (colour * (2 * _sums(whole, beside))).sum(axis=-1)
    edge += np.square(colour).sum(axis=-1) * np.square(beside).sum()
    likely = (error < (LEAST_CONTRAST / 2) ** 2 * mask.sum() * C) & (edge >= EDGE * ring.sum() * LEAST_CONTRAST**2)
    fits = np.argwhere(likely)
    windows = sliding_window_view(picture, (h + 2, w + 2), axis=(0, 1))[fits[:, 0], fits[:, 1]]
    painted = colour[fits[:, 0], fits[:, 1]][:, :, None, None] * beside
    differs = np.abs(windows - painted).max(axis=1) >= LEAST_CONTRAST
    found: np.ndarray = fits[differs[:, ring].mean(axis=1) >= EDGE] + 1
    return found


def _sums(planes: Float64[np.ndarray, "H W C"], kernel: Shaped[np.ndarray, "h w"]) -> Float64[np.ndarray, "y x C"]:
    """The sums of planes under a kernel at every place."""
    return np.stack([signal.correlate(plane, kernel * 1.0, "valid", "fft") for plane in np.moveaxis(planes, -1, 0)], -1)
