"""Flicker: what a still background shows by turns, such as ripples of water or a light that is switched.

Where pieces too large for an object come again and again, the background has more than one look. The values that such
pixels take often are no foreground: images are looked at as if the background stood there, and what moves in front of
it is seen as ever.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from scipy import ndimage, sparse

from pcdnet.config import Background
from pcdnet.model.background.flicker import ALIKE, ALTERNATES
from pcdnet.training.foreground import LEAST_CONTRAST, Foreground, find_foreground

OFTEN = 0.02
"""What a pixel shows in this share of the images is one of its looks, if it is in too large a piece as often."""
STEP = 8
"""Values of 0 to 255 are counted in steps of this size."""


def find_steady_foreground(
    kind: Background,
    images: UInt8[np.ndarray, "N H W C"],
    behind: Float32[np.ndarray, "_ H W C"],
    frame: tuple[int, int],
) -> tuple[Foreground, UInt8[np.ndarray, "looks H W C"] | None]:
    """What stands out in images from the looks of their background, and these looks, if there are several."""
    found = find_foreground(images, behind, frame)
    if kind != "still" or not found.clutter.any():
        return found, None
    looks = other_looks(images, behind[0], found.large >= OFTEN, frame)
    return find_foreground(steadied(images, looks, behind[0]), behind, frame), looks


def other_looks(
    images: UInt8[np.ndarray, "N H W C"],
    background: Float32[np.ndarray, "H W C"],
    unsteady: Bool[np.ndarray, "H W"],
    frame: tuple[int, int],
) -> UInt8[np.ndarray, "looks H W C"]:
    """The values that unsteady pixels often take besides the background's; elsewhere, the background's."""
    usual = (background * 255).round().clip(0, 255).astype(np.uint8)
    looks = np.repeat(usual[None], ALTERNATES, axis=0)
    values, known = images[:, unsteady].astype(np.float32), usual[unsteady][None].astype(np.float32)
    for look in looks:
        new = (np.abs(values[None] - known[:, None]).max(axis=-1) > 255 * LEAST_CONTRAST).all(axis=0)
        common = _commonest(values, new)
        seen = new & (np.abs(values - common).max(axis=-1) <= 255 * ALIKE)
        look[unsteady] = np.where((seen.mean(axis=0) >= OFTEN)[:, None], common, known[0]).round()
        known = np.concatenate([known, look[unsteady][None].astype(np.float32)])
    return np.where(_wide(images, looks, usual, unsteady, frame)[..., None], looks, usual)


def _wide(
    images: UInt8[np.ndarray, "N H W C"],
    looks: UInt8[np.ndarray, "looks H W C"],
    usual: UInt8[np.ndarray, "H W C"],
    unsteady: Bool[np.ndarray, "H W"],
    frame: tuple[int, int],
) -> Bool[np.ndarray, "looks H W"]:
    """Where a look is mostly seen in pieces that are too large for an object: a thing that comes by often is none."""
    others = (looks != usual).any(axis=-1)
    times, wide = np.zeros((2, *others.shape))
    for image in images:
        shown = others & (np.abs(image.astype(np.int16) - looks).max(axis=-1) <= 255 * ALIKE)
        times += shown
        wide += shown & _large_pieces(image, unsteady, frame)
    mostly: np.ndarray = wide > times / 2
    return mostly


def _large_pieces(
    image: UInt8[np.ndarray, "H W C"], pixels: Bool[np.ndarray, "H W"], frame: tuple[int, int]
) -> Bool[np.ndarray, "H W"]:
    """Those of the pixels that are in pieces larger than a frame; neighbours of different colours do not connect."""
    number, count = np.cumsum(pixels).reshape(pixels.shape) - 1, int(pixels.sum())
    values, pairs = image.astype(np.int16), []
    for here, there in _neighbours():
        alike = np.abs(values[here] - values[there]).max(axis=-1) <= 255 * LEAST_CONTRAST
        joined = pixels[here] & pixels[there] & alike
        pairs.append(np.stack([number[here][joined], number[there][joined]]))
    one, two = np.concatenate(pairs, axis=1)
    graph = sparse.coo_array((np.ones(len(one), bool), (one, two)), shape=(count, count))
    _, piece = sparse.csgraph.connected_components(graph, directed=False)
    labels = np.zeros(pixels.shape, np.int64)
    labels[pixels] = piece + 1
    large = [
        False,
        *(r.stop - r.start > frame[0] or c.stop - c.start > frame[1] for r, c in ndimage.find_objects(labels)),
    ]
    return np.array(large)[labels]


def _neighbours() -> list[tuple[tuple[slice, slice], tuple[slice, slice]]]:
    """Pixels and their neighbours in four of the eight directions; the others are the same the other way round."""
    first, last, every = slice(None, -1), slice(1, None), slice(None)
    return [
        ((first, every), (last, every)),
        ((every, first), (every, last)),
        ((first, first), (last, last)),
        ((first, last), (last, first)),
    ]


def _commonest(
    values: Float32[np.ndarray, "N pixels C"], counted: Bool[np.ndarray, "N pixels"]
) -> Float32[np.ndarray, "pixels C"]:
    """The value that each pixel takes most often, of those that are counted.

    A median would be a mixture of several looks.
    """
    steps = (values / STEP).astype(np.int64)
    codes = np.where(counted, steps @ (256 ** np.arange(values.shape[-1])), -1)
    order = np.argsort(codes, axis=0, kind="stable")
    ranked = np.take_along_axis(codes, order, axis=0)
    row = np.arange(len(ranked))[:, None]
    begins = np.concatenate([np.ones((1, ranked.shape[1]), bool), ranked[1:] != ranked[:-1]])
    often = np.where(ranked >= 0, row - np.maximum.accumulate(np.where(begins, row, 0), axis=0), -1)
    last = np.take_along_axis(order, often.argmax(axis=0)[None], axis=0)[0]
    found: np.ndarray = values[last, np.arange(values.shape[1])]
    return found


def steadied(
    images: UInt8[np.ndarray, "N H W C"],
    looks: UInt8[np.ndarray, "looks H W C"],
    background: Float32[np.ndarray, "H W C"],
) -> UInt8[np.ndarray, "N H W C"]:
    """Images in which the background has one look."""
    near = np.zeros(images.shape[:3], bool)
    for look in looks:
        near |= np.abs(images.astype(np.int16) - look).max(axis=-1) <= 255 * ALIKE
    return np.where(near[..., None], (background * 255).round().clip(0, 255).astype(np.uint8), images)
