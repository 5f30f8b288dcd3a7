"""Intake: images in memory brought to the type, the size and the channels that are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Num, UInt8
from PIL import Image

from pcdnet.errors import PcdnetError, Setting

MOST_PIXELS = 64 * 2**20
"""Images of more pixels than this are refused: a few kilobytes can claim any size."""
MOST_BYTES = 8 * 2**30
"""Images that together take more memory than this are refused."""


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


def check_memory(size: int, what: str, cure: Sequence[str | Setting] | None = None) -> None:
    """Refuse images that take more bytes than the limit; `cure` ends the message."""
    if size > MOST_BYTES:
        usual = "use ", Setting("resize"), ", ", Setting("crop"), " or ", Setting("stride"), ", or fewer images"
        problem = f"{what} take {size / 2**30:.1f} GiB, more than the limit of {MOST_BYTES / 2**30:.0f} GiB; "
        raise PcdnetError(problem, *(cure or usual))


def in_eight_bits(values: Num[np.ndarray, "*shape"], label: str, white: int = 1) -> UInt8[np.ndarray, "*shape"]:
    """Values of 0 to `white` as 8 bits, whatever the brightest is, so that many images are scaled alike."""
    least, most = float(values.min()), float(values.max())
    if not (least >= 0 and most <= white):  # not a number is neither
        raise PcdnetError(f"{label} has values from {least:g} to {most:g}; give 8 bits, or values of 0 to {white}")
    return (values * (255 / white)).round().astype(np.uint8)
