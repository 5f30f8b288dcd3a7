"""Foreground: what stands out from the background of images, as blobs.

Whatever differs from the background by more than the noise falls into blobs, connected pieces of foreground. Most
blobs are one object each. Pieces that are larger than any object may be, such as ripples of water or a light that is
switched, are clutter: no object explains them, and where they come again and again nothing is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64, UInt8
from scipy import ndimage

from pcdnet.pixels import Pixels, spread

NOISE_FACTOR = 4.0
"""What differs from the background by more than so many times the noise is foreground."""
LEAST_CONTRAST = 0.04
"""Differences below this are never foreground: images without noise have other flaws, such as compression."""
LEAST_PIXELS = 4
"""Smaller blobs are specks."""
LEAST_SHARE = 0.15
"""Blobs with less than this share of the typical blob's energy are faint."""
COMES_AND_GOES = 0.1
"""What is not there in this share of the images is no part of the background."""
CLUTTERED = 0.2
"""Where pieces too large for an object are in this share of the images, nothing is looked for."""
LARGEST = 0.3
"""Objects may be as large as this share of the image's sides."""
SMALL = 24
"""In small images they may always have so many pixels a side."""
COARSE = 8
"""Pixels of a frame's side that are enough for the median of its surroundings."""
MOST_IMAGES = 400
"""Images that are looked at; more tell nothing new."""


@dataclass(frozen=True, slots=True, eq=False)
class Blob:
    """One connected piece of foreground, or several that belong together."""

    image: int
    """Which image it is in."""
    top: int
    left: int
    mask: Bool[np.ndarray, "h w"]
    """Its pixels, holes included, within the box around it."""
    solid: Bool[np.ndarray, "h w"]
    """Those of them that differ from the background."""
    grey: Float32[np.ndarray, "h w"]
    """The image there, in grey of 0 to 1."""
    energy: float
    """The squared error of the bare background there."""
    cut: bool
    """Whether it reaches the border of the image: there may be more of it outside."""

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the box around it."""
        return self.top + self.mask.shape[0] / 2, self.left + self.mask.shape[1] / 2

    def inside(self, region: Bool[np.ndarray, "H W"]) -> bool:
        """Whether most of its pixels lie in a region of the image."""
        h, w = self.mask.shape
        there = region[self.top : self.top + h, self.left : self.left + w]
        return bool((there & self.mask).sum() > self.mask.sum() / 2)

    def fits(self, frame: tuple[int, int]) -> bool:
        """Whether it is whole, and no larger than a frame."""
        return not self.cut and self.mask.shape[0] <= frame[0] and self.mask.shape[1] <= frame[1]


@dataclass(frozen=True, slots=True, eq=False)
class Foreground:
    """What stands out in some of the images."""

    blobs: list[Blob]
    """The pieces, large ones too."""
    threshold: float
    """Differences from the background above this are foreground."""
    large: Float32[np.ndarray, "H W"]
    """The share of the images in which a pixel is in a piece that is too large for an object."""

    @property
    def clutter(self) -> Bool[np.ndarray, "H W"]:
        """Where pieces that are too large for an object come again and again."""
        return self.large >= CLUTTERED

    def clear(self) -> list[Blob]:
        """The blobs that lie outside the clutter."""
        return [blob for blob in self.blobs if not blob.inside(self.clutter)]


def still_background(images: UInt8[Pixels, "N H W C"], frame: tuple[int, int]) -> Float32[np.ndarray, "H W C"]:
    """What is behind everything, of 0 to 1: the median of the images, without things that just stand there.

    A piece of the median that its surroundings do not explain belongs to the background if it is always seen, but if
    the surroundings are seen in its place now and then, it is a thing that comes and goes. `frame` is how large
    things may be.
    """
    spread = some_of(images).astype(np.float32) / 255
    median = np.median(spread, axis=0).astype(np.float32)
    plain = surroundings(median, frame)
    gone = (np.abs(spread - plain).max(axis=-1) < LEAST_CONTRAST).mean(axis=0)
    pieces, count = ndimage.label(np.abs(median - plain).max(axis=-1) >= LEAST_CONTRAST)
    often = np.atleast_1d(ndimage.median(gone, pieces, np.arange(1, count + 1))) >= COMES_AND_GOES
    movable = np.concatenate([[False], often])[pieces]
    background: np.ndarray = np.where(movable[..., None], plain, median)
    return background


def surroundings(picture: Float32[np.ndarray, "H W C"], frame: tuple[int, int]) -> Float32[np.ndarray, "H W C"]:
    """What is around every pixel, things of a frame's size left out: a median over windows of twice that size.

    A coarser picture does for it: the median of a window hardly changes when some of its pixels are left out.
    """
    rows, columns = (max(1, side // COARSE) for side in frame)
    around = 2 * frame[0] // rows + 1, 2 * frame[1] // columns + 1
    coarse = np.stack(
        [ndimage.median_filter(plane, size=around) for plane in np.moveaxis(picture[::rows, ::columns], -1, 0)], axis=-1
    )
    H, W = picture.shape[:2]
    return coarse.repeat(rows, axis=0)[:H].repeat(columns, axis=1)[:, :W]


def find_foreground(
    images: UInt8[np.ndarray, "N H W C"], background: Float32[np.ndarray, "_ H W C"], frame: tuple[int, int]
) -> Foreground:
    """What stands out in images; `background` is one for all, or one an image.

    Objects have at most the size of `frame`.
    """
    behind = [background[n % len(background)] for n in range(len(images))]
    far = np.stack([np.abs(image / np.float32(255) - b).max(axis=-1) for image, b in zip(images, behind, strict=True)])
    threshold = max(NOISE_FACTOR * _noise(far[:, ::2, ::2]), LEAST_CONTRAST)
    blobs, large = [], np.zeros(far.shape[1:])
    for n, (b, distance) in enumerate(zip(behind, far, strict=True)):
        found, too_large = blobs_of(n, images[n], b, distance > threshold, frame)
        blobs += found
        large += too_large
    return Foreground(blobs, threshold, (large / len(images)).astype(np.float32))


def _noise(far: Float32[np.ndarray, "N H W"]) -> float:
    """The standard deviation of the noise, from distances to the background.

    Objects may cover much of the images: what lies beyond the threshold is left out, until nothing new does.
    """
    noise = np.inf
    while True:
        near = far[far <= NOISE_FACTOR * noise]
        found = 1.4826 * float(np.median(near))
        if found >= 0.95 * noise or found * NOISE_FACTOR <= LEAST_CONTRAST:
            return found
        noise = found


def strong(blobs: list[Blob]) -> list[Blob]:
    """The blobs without faint ones: those with less than LEAST_SHARE of the typical blob's energy."""
    least = LEAST_SHARE * typical_energy(blobs)
    return [blob for blob in blobs if blob.energy >= least]


def typical_energy(blobs: list[Blob]) -> float:
    """The energy of the blob in which, counted from the faintest, half of all energy is reached."""
    energies = np.sort([blob.energy for blob in blobs])
    if len(energies) == 0:
        return 0.0
    return float(energies[np.searchsorted(np.cumsum(energies), energies.sum() / 2)])


def joined(parts: list[Blob]) -> Blob:
    """Several blobs of one image as one."""
    top, left = min(part.top for part in parts), min(part.left for part in parts)
    bottom = max(part.top + part.mask.shape[0] for part in parts)
    right = max(part.left + part.mask.shape[1] for part in parts)
    mask, solid = np.zeros((2, bottom - top, right - left), bool)
    grey = np.zeros(mask.shape, np.float32)
    for part in parts:
        h, w = part.mask.shape
        inside = slice(part.top - top, part.top - top + h), slice(part.left - left, part.left - left + w)
        mask[inside] |= part.mask
        solid[inside] |= part.solid
        grey[inside] = np.where(part.mask, part.grey, grey[inside])
    energy, cut = sum(part.energy for part in parts), any(part.cut for part in parts)
    return Blob(parts[0].image, top, left, mask, solid, grey, energy, cut)


def largest_objects(size: tuple[int, int]) -> tuple[int, int]:
    """Height and width that objects have at most in images of this size, as far as nobody says otherwise."""
    H, W = size
    return min(H, max(SMALL, int(LARGEST * H))), min(W, max(SMALL, int(LARGEST * W)))


def some_of(images: UInt8[Pixels, "N H W C"]) -> UInt8[np.ndarray, "n H W C"]:
    """At most MOST_IMAGES of the images, spread over all of them."""
    return spread(images, max(1, len(images) // MOST_IMAGES), MOST_IMAGES)


def blobs_of(
    n: int,
    image: UInt8[np.ndarray, "H W C"],
    background: Float32[np.ndarray, "H W C"],
    foreground: Bool[np.ndarray, "H W"],
    frame: tuple[int, int],
) -> tuple[list[Blob], Bool[np.ndarray, "H W"]]:
    """The blobs of an image, and the pixels of pieces that are too large for an object."""
    pieces, _ = ndimage.label(ndimage.binary_fill_holes(foreground), structure=np.ones((3, 3)))
    H, W = foreground.shape
    grey = (image.mean(axis=-1) / 255).astype(np.float32)
    energy = np.square(image / np.float32(255) - background).sum(axis=-1)
    found, large = [], np.zeros((H, W), bool)
    for label, box in enumerate(ndimage.find_objects(pieces), start=1):
        mask = pieces[box] == label
        if mask.shape[0] > frame[0] or mask.shape[1] > frame[1]:
            large[box] |= mask
        if mask.sum() < LEAST_PIXELS:
            continue
        rows, columns = box
        cut = rows.start == 0 or columns.start == 0 or rows.stop == H or columns.stop == W
        removed = float((energy[box] * mask).sum())
        solid = mask & foreground[box]
        found.append(Blob(n, int(rows.start), int(columns.start), mask, solid, grey[box], removed, cut))
    return found, large


def standing_pieces(difference: Float32[np.ndarray, "H W C"], threshold: float) -> Int64[np.ndarray, "H W"]:
    """What differs by more than a threshold: connected pieces, numbered from 1; specks are left out."""
    labels, _ = ndimage.label(np.abs(difference).max(axis=-1) > threshold, structure=np.ones((3, 3)))
    kept = np.bincount(labels.ravel()) >= LEAST_PIXELS
    kept[0] = False
    return np.where(kept, np.cumsum(kept), 0)[labels]
