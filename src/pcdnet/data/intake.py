"""Intake: images in memory brought to the type, the size and the channels that are wanted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num, UInt8
from PIL import Image

from pcdnet.errors import PcdnetError, Setting

LIMIT = "PCDNET_MAX_PIXELS"
"""The environment variable that sets the limit on an image's pixels."""


def most_pixels() -> int:
    """The limit on an image's pixels: what the environment says, or as many as a square of 8192x8192 has."""
    asked = os.environ.get(LIMIT, str(64 * 2**20))
    if not asked.isdecimal():
        raise PcdnetError(f"the environment variable {LIMIT} is {asked!r}; set it to a number of pixels")
    return int(asked)


MOST_PIXELS = most_pixels()
"""Images of more pixels than this are refused: a few kilobytes can claim any size."""
MOST_BYTES = 8 * 2**30
"""Images that together take more memory than this are refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """What an image says of itself before it is decoded."""

    size: tuple[int, int]
    """Height and width."""
    channels: int
    """1 if it is grey, else 3."""
    deep: bool
    """Whether its values have more than 8 bits."""


def fitted(
    image: UInt8[np.ndarray, "H W C"],
    *,
    channels: int,
    size: tuple[int, int] | None = None,
    resize: bool = False,
    cure: Sequence[str | Setting] = ("use ", Setting("resize", True)),
) -> UInt8[np.ndarray, "h w c"]:
    """The image as a model takes it: in grey or RGB and, where the model has a size, in that size.

    An image of another size is refused unless it may be resized; `cure` ends the message.
    """
    if image.shape[2] != channels:
        image = in_grey(image) if channels == 1 else image.repeat(3, axis=2)
    if size is None or image.shape[:2] == size:
        return image
    if not resize:
        (height, width), (h, w) = image.shape[:2], size
        raise PcdnetError(f"{height}x{width} pixels do not fit the model's background of {h}x{w}; ", *cure)
    return resized(image, size)


def in_grey(image: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 1"]:
    """The ITU-R 601 luma of a colour image; a grey one is left as it is."""
    return image if image.shape[2] == 1 else np.array(Image.fromarray(image).convert("L"))[..., None]


def resized(image: UInt8[np.ndarray, "H W C"], size: tuple[int, int]) -> UInt8[np.ndarray, "h w C"]:
    """The image in another height and width; shrinking averages, and no filter leaves a halo around objects."""
    height, width = check_size(size)
    if (height, width) == image.shape[:2]:
        return image
    shrinks = height <= image.shape[0] and width <= image.shape[1]
    # Both are without negative lobes, so without the dark rims that sharper filters draw, and that would be learned.
    filter = Image.Resampling.HAMMING if shrinks else Image.Resampling.BILINEAR
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    return np.array(picture.resize((width, height), filter)).reshape(height, width, image.shape[2])


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """The height and width, if images can be brought to them."""
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        sides = f"a height and a width from 1, of at most {MOST_PIXELS:,} pixels together, as "
        raise PcdnetError(f"images cannot be resized to {size[0]}x{size[1]}; give {sides}", Setting("resize"))
    return size


def check_stack(shape: tuple[int, ...], label: str) -> None:
    """Refuse a shape that is not that of a stack of images; `label` is for messages."""
    if len(shape) not in (3, 4) or shape[3:] not in ((), (1,), (3,)) or 0 in shape:
        raise PcdnetError(
            f"{label} has shape {shape}; give at least one image, as images x height x width x channels with 1 or 3 "
            f"channels, or as images x height x width of grey images"
        )


def check_type(dtype: np.dtype[np.generic], label: str) -> None:
    """Refuse a type that images do not have; `label` is for messages."""
    if dtype.kind != "f" and dtype not in (np.uint8, np.uint16):
        raise PcdnetError(f"{label} is of type {dtype}; give uint8 of 0 to 255, uint16, or floats")


def check_memory(size: int, what: str, cure: Sequence[str | Setting] | None = None) -> None:
    """Refuse images that take more bytes than the limit; `cure` ends the message."""
    if size > MOST_BYTES:
        usual = "use ", Setting("resize"), ", ", Setting("crop"), " or ", Setting("stride"), ", or fewer images"
        problem = f"{what} take {size / 2**30:.1f} GiB, more than the limit of {MOST_BYTES / 2**30:.0f} GiB; "
        raise PcdnetError(problem, *(cure or usual))


def check_pixels(size: tuple[int, int], label: str, most: int = MOST_PIXELS) -> None:
    """Refuse an image that claims too many pixels; `label` is for messages."""
    height, width = size
    if height * width > most:
        cure = f"give a smaller picture, or set the environment variable {LIMIT} to {height * width}"
        raise PcdnetError(f"{label} has {height}x{width} pixels, more than the limit of {most:,}; {cure}")


def in_eight_bits(
    pixels: Num[np.ndarray, "*shape"], values: tuple[float, float] | None = None, label: str = "the picture"
) -> UInt8[np.ndarray, "*shape"]:
    """Pixels in 8 bits, in the same way for many images: those of 8 bits as they are, others from black to white.

    `values` are black and white, and what is beyond them becomes one of the two; without them, all that integers of 16
    bits hold, or 0 to 1 for floats, and nothing may be beyond. What is no number becomes black.
    """
    if pixels.dtype == np.uint8:
        return pixels
    black, white = values or (0.0, 1.0 if pixels.dtype.kind == "f" else 65535.0)
    if values is None and not (pixels.min() >= black and pixels.max() <= white):  # not a number is neither
        found = f"has values from {pixels.min():g} to {pixels.max():g}"
        cure = f"give 8 bits, values of 0 to {white:g}, or those that are black and white as "
        raise PcdnetError(f"{label} {found}; {cure}", Setting("values"))
    floats: Float[np.ndarray, "*shape"] = pixels.astype(np.float32 if pixels.itemsize < 4 else np.float64)
    scaled = (floats - black) * (255 / (white - black))
    return np.asarray(np.nan_to_num(scaled, nan=0, posinf=255, neginf=0).clip(0, 255).round(), np.uint8)


def all_in_eight_bits(
    images: Num[np.ndarray, "N *shape"], values: tuple[float, float] | None, label: str
) -> UInt8[np.ndarray, "N *shape"]:
    """The same for many images, one after the other, so that little more memory is taken."""
    if images.dtype == np.uint8:
        return images
    found = np.empty(images.shape, np.uint8)
    for target, image in zip(found, images, strict=True):
        target[...] = in_eight_bits(image, values, label)
    return found
