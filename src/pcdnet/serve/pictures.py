"""Pictures: from what a stranger sends to pixels that the model takes."""

from __future__ import annotations

import io
import struct
from math import ceil, sqrt

import numpy as np
from jaxtyping import Shaped, UInt8
from PIL import Image

from pcdnet.data import intake
from pcdnet.data.pictures import read_header, read_picture
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.serve.limits import MOST_DECODED, MOST_DEEP, MOST_PIXELS, MOST_READS, MOST_SCANS, MOST_TAGGED
from pcdnet.serve.refusal import Refusal

_BEGINNINGS = (b"\x89PNG", b"\xff\xd8", b"RIFF", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"BM", b"GIF8")
_BYTES = frozenset((1, 2, 6, 7))  # the types of TIFF's that are bytes and texts


class _Sparing(io.BytesIO):
    """A file that cannot be read in millions of crumbs: Pillow takes microseconds for each, while all others wait."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._left = MOST_READS

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise PcdnetError("the picture is a file of too many parts; save it again without metadata")
        return super().read(size)


def size_of(content: bytes) -> tuple[int, int]:
    """Height and width of the picture in the bytes of a file; nothing of it is decoded."""
    if not content.startswith(_BEGINNINGS):
        raise Refusal(415, "this is no picture of a known kind; send a PNG, JPEG, WebP, GIF, BMP or TIFF file")
    if content.startswith(b"\xff\xd8") and content.count(b"\xff\xda") > MOST_SCANS:
        raise Refusal(422, f"the picture has more than {MOST_SCANS} scans; save it again, not as a progressive JPEG")
    if content.startswith((b"II", b"MM")) and _tagged(content) > MOST_TAGGED:
        raise Refusal(422, f"the picture has more than {MOST_TAGGED:,} numbers in its tags; save it again without them")
    header = read_header(_Sparing(content), most_pixels=1 << 40, name="the picture")
    (height, width), most = header.size, MOST_DEEP if header.deep else MOST_DECODED
    if height * width > most:
        problem = f"the picture has {height}x{width} pixels, more than {most:,}"
        raise Refusal(413, f"{problem}; send a smaller picture")
    return height, width


def _tagged(content: bytes) -> int:
    """How many numbers the tags of a TIFF file hold, beside texts and bytes: Pillow makes objects of all of them."""
    order, wide = "<" if content.startswith(b"II") else ">", b"+" in content[2:4]
    try:
        (first,) = struct.unpack_from(order + ("Q" if wide else "I"), content, 8 if wide else 4)
        (count,) = struct.unpack_from(order + ("Q" if wide else "H"), content, first)
    except (struct.error, OverflowError):
        return 0  # Pillow finds none either
    first, tag = first + (8 if wide else 2), struct.Struct(order + ("HHQQ" if wide else "HHII"))
    there = content[first : first + tag.size * min(count, 1 << 16)]
    tags = tag.iter_unpack(there[: len(there) // tag.size * tag.size])
    return sum(number for _, kind, number, _ in tags if kind not in _BYTES)


def decoded(content: bytes, channels: int, values: tuple[float, float] | None = None) -> UInt8[np.ndarray, "H W C"]:
    """The picture in the bytes of a file, with the model's channels; see `PCDNet` for its values."""
    size_of(content)
    picture = read_picture(_Sparing(content), most_pixels=MOST_DECODED, name="the picture")
    return intake.fitted(intake.in_eight_bits(picture, values), channels=channels)


def checked(values: Shaped[np.ndarray, "*any"], channels: int) -> UInt8[np.ndarray, "H W C"]:
    """Numbers that a program sent, if they are a picture, with the model's channels."""
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[2] not in (1, 3) or 0 in values.shape or values.dtype != np.uint8:
        raise PcdnetError(
            f"the picture is an array of shape {list(values.shape)} and type {values.dtype.name}; "
            f"send height x width x 1 or 3 of uint8"
        )
    return intake.fitted(values, channels=channels)


def fitted(
    picture: UInt8[np.ndarray, "H W C"], model: PCDNet, size: tuple[int, int] | None, *, fit: bool, whole: bool = False
) -> UInt8[np.ndarray, "h w C"]:
    """The picture as it can be decomposed; one that cannot is refused, or resized if that is asked for.

    `size` is what the model is used to; it takes no other if it has a still background. `whole` says that a large
    picture can be taken, too.
    """
    cure = "send one of another size" if size is None else f"let it be resized to {size[0]}x{size[1]} (fit), or crop it"
    wanted = size if fit or model.image_size is not None else None
    try:
        picture = intake.fitted(picture, channels=picture.shape[2], size=wanted, resize=fit, cure=(cure,))
    except PcdnetError as error:
        raise Refusal(422, str(error), fit=True) from None
    (height, width), (h, w) = picture.shape[:2], model.config.prototype_size
    Y, X = model.weights().image_size or (height, width)
    if wanted is not None and fit:
        return picture
    if height < h or width < w:
        problem = f"{height}x{width} pixels are less than a prototype has ({h}x{w})"
    elif height > Y or width > X:
        problem = f"{height}x{width} pixels are more than the model's background shows ({Y}x{X})"
    elif height * width > (MOST_DECODED if whole else MOST_PIXELS):
        problem = f"{height}x{width} pixels are more than {MOST_DECODED if whole else MOST_PIXELS:,}"
    else:
        return picture
    raise Refusal(422, f"{problem}; {cure}", fit=size is not None)


def shrinking(size: tuple[int, ...]) -> int:
    """By which factor a picture of that size is shown smaller."""
    return max(1, ceil(sqrt(size[0] * size[1] / MOST_PIXELS)))


def shrunk(picture: UInt8[np.ndarray, "H W C"], factor: int) -> UInt8[np.ndarray, "h w C"]:
    """A picture, smaller by a whole factor; what is less than that at its end is left out."""
    return intake.resized(picture, (max(1, picture.shape[0] // factor), max(1, picture.shape[1] // factor)))


def png(picture: UInt8[np.ndarray, "H W 3"]) -> bytes:
    """The bytes of a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, format="png")
    return buffer.getvalue()
