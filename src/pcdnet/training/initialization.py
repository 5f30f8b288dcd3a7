"""Initialization: first prototypes taken from the images themselves.

Whatever stands out from the static background falls into blobs, connected pieces of foreground. Most blobs are one
object each, and objects repeat, so the shapes that many blobs resemble are a far better start than the paper's grey
squares: chosen one after the other, each seed is the blob that brings most others near to a seed. Blobs of two objects
that touch, or of one that is cut off, resemble few others and are not chosen. What the model learns from there on
is learned as ever, from the error of its reconstructions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64, UInt8
from scipy import ndimage

from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.training.reset import COPY_NOISE

NOISE_FACTOR = 4.0
"""What differs from the background by more than so many times the noise is foreground."""
LEAST_CONTRAST = 0.04
"""Differences below this are never foreground: images without noise have other flaws, such as compression."""
LEAST_PIXELS = 4
"""Smaller blobs are specks."""
LEAST_SHARE = 0.15
"""Blobs with less than this share of the typical blob's energy are specks, too."""
COMES_AND_GOES = 0.1
"""What is not there in this share of the images is no part of the background."""
NEAR = 0.5
"""From this distance on two blobs are simply different; farther is not worse."""
SUPPORT = 3.0
"""A seed must stand for so many blobs, itself included, that no other seed stands for."""
MOST_IMAGES = 400
"""Images that are looked at; more tell nothing new."""
MOST_BLOBS = 3000
"""Blobs that are compared with each other."""
SURE = 1.5
"""Raw mask values lie in [1 - SURE, SURE] at the start: pixels that all blobs agree on withstand the noise on masks."""


@dataclass(frozen=True, slots=True, eq=False)
class Blob:
    """One connected piece of foreground."""

    image: int
    """Which image it is in."""
    top: int
    left: int
    mask: Bool[np.ndarray, "h w"]
    """Its pixels, within the box around it."""
    grey: Float32[np.ndarray, "h w"]
    """The image there, in grey of 0 to 1."""
    energy: float
    """The squared error of the bare background there."""
    cut: bool
    """Whether it reaches the border of the image: there may be more of it outside."""


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


@torch.no_grad()
def init_from_images(model: PCDNet, images: UInt8[np.ndarray, "N H W C"], seed: int) -> None:
    """Start a model from the images: its background, and as many prototypes as there are shapes to take."""
    still = still_background(images, model.config.prototype_size)
    if model.background is None:
        still = np.zeros_like(still)
    else:
        model.background.copy_(torch.from_numpy(still).permute(2, 0, 1))
    rng = np.random.default_rng(seed)
    blobs = find_blobs(images, still)
    seeds = choose_seeds(blobs, model.config.num_prototypes, model.config.prototype_size, rng)
    n = len(seeds.prototypes)
    model.prototypes[:n] = torch.from_numpy(seeds.prototypes)
    model.masks[:n] = torch.from_numpy(seeds.masks) * (2 * SURE - 1) + (1 - SURE)
    # Where there are fewer shapes than prototypes, the commonest get a second chance to be distinguished.
    counts = np.bincount(seeds.kinds[seeds.kinds >= 0], minlength=n)
    for spare, kind in zip(range(n, len(model.prototypes)), itertools.cycle(np.argsort(-counts)), strict=False):
        for values in (model.prototypes, model.masks):
            noise = rng.uniform(-COPY_NOISE, COPY_NOISE, values.shape[1:]).astype(np.float32)
            values[spare] = values[int(kind)] + torch.from_numpy(noise).to(values)


def still_background(images: UInt8[np.ndarray, "N H W C"], frame: tuple[int, int]) -> Float32[np.ndarray, "H W C"]:
    """What is behind everything, of 0 to 1: the median of the images, without things that just stand there.

    A piece of the median that its surroundings do not explain belongs to the background if it is always seen, but if
    the surroundings are seen in its place now and then, it is a thing that comes and goes. `frame` is how large
    things may be.
    """
    spread = images[:: _every(len(images))].astype(np.float32) / 255
    median = np.median(spread, axis=0).astype(np.float32)
    around = tuple(2 * side + 1 for side in frame)
    plain = np.stack([ndimage.median_filter(plane, size=around) for plane in np.moveaxis(median, -1, 0)], axis=-1)
    gone = (np.abs(spread - plain).max(axis=-1) < LEAST_CONTRAST).mean(axis=0)
    pieces, count = ndimage.label(np.abs(median - plain).max(axis=-1) >= LEAST_CONTRAST)
    often = np.atleast_1d(ndimage.median(gone, pieces, np.arange(1, count + 1))) >= COMES_AND_GOES
    movable = np.concatenate([[False], often])[pieces]
    background: np.ndarray = np.where(movable[..., None], plain, median)
    return background


def _every(count: int) -> int:
    """The stride at which MOST_IMAGES of `count` images are looked at."""
    return max(1, count // MOST_IMAGES)


def find_blobs(images: UInt8[np.ndarray, "N H W C"], background: Float32[np.ndarray, "H W C"]) -> list[Blob]:
    """The connected pieces of foreground in at most MOST_IMAGES of the images, without faint specks."""
    chosen = np.arange(0, len(images), _every(len(images)))[:MOST_IMAGES]
    far = np.stack([np.abs(images[n] / np.float32(255) - background).max(axis=-1) for n in chosen])
    threshold = max(NOISE_FACTOR * 1.4826 * float(np.median(far)), LEAST_CONTRAST)
    blobs = []
    for n, distance in zip(chosen.tolist(), far, strict=True):
        blobs += _blobs_of(n, images[n], background, distance > threshold)
    least = LEAST_SHARE * typical_energy(blobs)
    return [blob for blob in blobs if blob.energy >= least]


def typical_energy(blobs: list[Blob]) -> float:
    """The energy of the blob in which, counted from the faintest, half of all energy is reached."""
    energies = np.sort([blob.energy for blob in blobs])
    if len(energies) == 0:
        return 0.0
    return float(energies[np.searchsorted(np.cumsum(energies), energies.sum() / 2)])


def _blobs_of(
    n: int,
    image: UInt8[np.ndarray, "H W C"],
    background: Float32[np.ndarray, "H W C"],
    foreground: Bool[np.ndarray, "H W"],
) -> list[Blob]:
    pieces, _ = ndimage.label(ndimage.binary_fill_holes(foreground), structure=np.ones((3, 3)))
    H, W = foreground.shape
    grey = (image.mean(axis=-1) / 255).astype(np.float32)
    energy = np.square(image / np.float32(255) - background).sum(axis=-1)
    found = []
    for label, box in enumerate(ndimage.find_objects(pieces), start=1):
        mask = pieces[box] == label
        if mask.sum() < LEAST_PIXELS:
            continue
        rows, columns = box
        cut = rows.start == 0 or columns.start == 0 or rows.stop == H or columns.stop == W
        removed = float((energy[box] * mask).sum())
        found.append(Blob(n, int(rows.start), int(columns.start), mask, grey[box], removed, cut))
    return found


def choose_seeds(blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator) -> Seeds:
    """At most `count` prototypes and masks that most whole blobs resemble, centred in frames of this size."""
    h, w = frame
    whole = [blob for blob in blobs if not blob.cut and blob.mask.shape[0] <= h and blob.mask.shape[1] <= w]
    if not whole:
        raise PcdnetError(
            f"no object of at most {h}x{w} pixels stands out from the background of the images; use ",
            *(Setting("model.prototype_size"), " for larger frames, or ", Setting("train.init", "constant")),
        )
    if len(whole) > MOST_BLOBS:
        whole = [whole[n] for n in np.sort(rng.choice(len(whole), MOST_BLOBS, replace=False))]
    masks, greys = (np.stack(parts) for parts in zip(*(_framed(blob, frame) for blob in whole), strict=True))
    painted = masks * greys
    features = np.concatenate([masks.reshape(len(whole), -1), painted.reshape(len(whole), -1)], axis=1)
    near = np.clip(NEAR - _distances(features, masks), 0, None)  # how well one stands for the other
    weight = np.sqrt(masks.sum(axis=(1, 2)))  # large objects count for more than specks
    served = np.zeros(len(whole))
    seeds: list[int] = []
    while len(seeds) < min(count, len(whole)):
        gains = (weight[:, None] * np.clip(near - served[:, None], 0, None)).sum(axis=0)
        best = int(gains.argmax())
        if seeds and gains[best] < SUPPORT * NEAR * weight[best]:
            break
        seeds.append(best)
        served = np.maximum(served, near[:, best])
    kinds = np.where(served > 0, near[:, seeds].argmax(axis=1), -1)
    averages = np.stack([masks[kinds == kind].mean(axis=0) for kind in range(len(seeds))])
    greys = np.stack([painted[kinds == kind].mean(axis=0) for kind in range(len(seeds))])
    prototypes = greys / np.maximum(averages, 1e-3)
    return Seeds(prototypes.astype(np.float32), averages.astype(np.float32), whole, kinds)


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


def _distances(features: Float32[np.ndarray, "n f"], masks: Float32[np.ndarray, "n h w"]) -> Float64[np.ndarray, "n n"]:
    """The squared difference of every two blobs, as a share of their areas together."""
    squares = np.square(features).sum(axis=1, dtype=np.float64)
    apart = squares[:, None] + squares[None] - 2 * (features @ features.T).astype(np.float64)
    areas = masks.sum(axis=(1, 2), dtype=np.float64)
    share: np.ndarray = np.clip(apart, 0, None) / (areas[:, None] + areas[None])
    return share
