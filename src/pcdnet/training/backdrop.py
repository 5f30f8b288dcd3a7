"""Backdrop: which background images have, and what is behind the objects of each, before there is a model.

Every kind is tried on images that it was not made from. What counts is the share of pixels that it leaves to objects:
a background that is not there, such as a still one behind a moving camera, leaves nearly all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from pcdnet.config import Background
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.background.moving import Panorama, find_places, look, stitch
from pcdnet.model.background.plain import Surface, fit_surface
from pcdnet.pixels import Pixels, pieces, spread
from pcdnet.training.foreground import LEAST_CONTRAST, still_background

TRIED = 60
"""Images that a background is tried on, at most."""
STITCHED = 400
"""Images that the large picture of a moving camera is made from, at most."""
AT_ONCE = 16
"""Images whose surfaces are fitted at a time."""
FEWEST = 8
"""Images that a still background can be told from, at least."""
CLEARLY, BETTER = 0.02, 0.2
"""A less simple background must leave this share of all pixels less to objects, or this share of them less."""
TOO_MUCH = 0.15
"""A camera is suspected of moving where every other background leaves so much."""
FULLY = 0.2
"""A pixel that differs from the background by this much, of full scale, is left to objects altogether."""


@dataclass(frozen=True, slots=True)
class Backdrop:
    """A kind of background, and how well it explains images."""

    kind: Background
    left: float
    """The share of pixels that it leaves to objects, on images that it was not made from."""
    reason: str
    """Why it was chosen, in words."""
    picture: Float32[np.ndarray, "Y X C"] | None = field(default=None, compare=False, repr=False)
    """The large picture that a moving camera saw of these images."""


def choose_background(images: UInt8[Pixels, "N H W C"], frame: tuple[int, int], *, tiles: bool = False) -> Backdrop:
    """The simplest background that leaves few pixels to objects; `frame` is how large objects may be.

    What is behind `tiles`, parts of larger pictures, neither stands still nor moves.
    """
    some = spread(images, max(1, len(images) // (2 * TRIED)))
    made_from, tried = some[::2], some[1::2][:TRIED]
    if len(tried) == 0:
        tried = some
    picture = None
    left: dict[Background, float] = {"black": _left(tried, np.zeros((1, *images.shape[1:]), np.float32))}
    left["plain"] = _left(tried, np.stack([*painted(plain_surfaces(tried))]))
    if len(made_from) >= FEWEST and not tiles:
        left["still"] = _left(tried, still_background(made_from, frame)[None])
    if min(left.values()) > TOO_MUCH and len(images) >= FEWEST and not tiles:
        panorama = stitch_images(images)
        if panorama is not None:
            left["moving"] = _left(tried, seen_of(panorama.picture, tried))
            picture = _channels_last(panorama)
    best: Background = "black"
    for kind in ("plain", "still", "moving"):
        if kind in left and left[best] - left[kind] > min(CLEARLY, BETTER * left[best]):
            best = kind
    words = {"black": "black", "plain": "a plain surface", "still": "still", "moving": "seen by a moving camera"}
    shares = ", ".join(f"{words[kind]} {100 * share:.0f} %" for kind, share in sorted(left.items(), key=lambda x: x[1]))
    reason = f"the background is {words[best]}; pixels left to objects: {shares}"
    return Backdrop(best, left[best], reason, picture if best == "moving" else None)


def behind_images(
    kind: Background,
    images: UInt8[np.ndarray, "N H W C"],
    picture: Float32[np.ndarray, "Y X C"] | None,
    surfaces: Sequence[Surface] | None = None,
) -> Float32[np.ndarray, "_ H W C"]:
    """What is behind the objects: one background for all images, or one for each; `picture` is the learned one.

    `surfaces` are those of the images, if they were fitted before.
    """
    if kind == "plain":
        return np.stack([*painted(plain_surfaces(images) if surfaces is None else surfaces)])
    if picture is None:
        return np.zeros((1, *images.shape[1:]), np.float32)
    return seen_of(torch.from_numpy(picture).permute(2, 0, 1), images) if kind == "moving" else picture[None]


def learned_picture(
    kind: Background, images: UInt8[Pixels, "N H W C"], frame: tuple[int, int]
) -> Float32[np.ndarray, "Y X C"] | None:
    """The first values of a background that is learned, still or moving; None for the others."""
    if kind == "still":
        return still_background(images, frame)
    if kind != "moving":
        return None
    panorama = stitch_images(images)
    if panorama is None:
        raise PcdnetError(
            "the images do not fit together as views of one large picture; choose another ", Setting("model.background")
        )
    return _channels_last(panorama)


def _channels_last(panorama: Panorama) -> Float32[np.ndarray, "Y X C"]:
    return panorama.picture.permute(1, 2, 0).contiguous().numpy()


def plain_surfaces(images: UInt8[np.ndarray, "N H W C"]) -> Iterator[Surface]:
    """The plain surfaces behind the objects of images, of some of them at a time."""
    for start in range(0, len(images), AT_ONCE):
        yield fit_surface(to_tensor(images[start : start + AT_ONCE]))


def painted(surfaces: Iterable[Surface]) -> Iterator[Float32[np.ndarray, "H W C"]]:
    """Surfaces as pictures, one an image."""
    for surface in surfaces:
        yield from surface.picture().permute(0, 2, 3, 1).numpy()


def stitch_images(images: UInt8[Pixels, "N H W C"]) -> Panorama | None:
    """The large picture that a moving camera saw, from some of the images; None where they do not fit together."""
    return stitch(to_tensor(spread(images, -(-len(images) // STITCHED))), 2 * LEAST_CONTRAST)


def seen_of(picture: Tensor, images: UInt8[np.ndarray, "N H W C"]) -> Float32[np.ndarray, "N H W C"]:
    """What a moving camera saw of the large picture when the images were taken."""
    batch = to_tensor(images)
    return look(picture, find_places(batch, picture), images.shape[1:3]).permute(0, 2, 3, 1).numpy()


def to_tensor(images: UInt8[np.ndarray, "N H W C"]) -> Tensor:
    """Images as a batch of values from 0 to 1."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


def _left(images: UInt8[np.ndarray, "N H W C"], backgrounds: Float32[np.ndarray, "_ H W C"]) -> float:
    """The share of pixels that differ from the background; those that differ a little count a little."""
    away = np.abs(images / np.float32(255) - backgrounds).max(axis=-1)
    return float(np.minimum(away / FULLY, 1).mean())


def pixel_noise(images: UInt8[Pixels, "N H W C"]) -> float:
    """The standard deviation of the noise, from the differences of neighbouring pixels."""
    counts = np.zeros(256, np.int64)
    for piece in pieces(images):
        for image in piece:
            across = np.abs(np.diff(image[::2].astype(np.int16), axis=1))
            counts += np.bincount(across.ravel(), minlength=256)
    upto = np.cumsum(counts)
    middle = [np.searchsorted(upto, (upto[-1] + more) // 2, side="right") for more in (-1, 0)]
    return float(1.4826 / 2**0.5 * np.mean(np.array(middle, np.float32) / 255)) if upto[-1] else float("nan")
