"""Decoding: a picture that Pillow has opened, whatever its mode, as values of grey or RGB.

Where a picture is transparent it becomes black, which is what an empty scene is. Values of more than 8 bits stay as
they are in the file: which of them are black and white is settled for many pictures at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from jaxtyping import Num, UInt8
from PIL import ExifTags, Image

from pcdnet.data.intake import Header

Opener = Callable[[], Image.Image]
"""Opens the same picture anew."""

_GREY = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # what EXIF's orientations ask for; the last four swap height and width
_WHITE_IS_ZERO = 0  # of TIFF's photometric interpretations the one in which values are inverted
_REVERSED = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}  # orders of the bytes of a value


def header_of(image: Image.Image, _: Opener) -> Header:
    """What the header says of the picture in the end: EXIF may turn it."""
    height, width = image.height, image.width
    # TIFF has its size turned already, if a tag says so and not XMP.
    if tag(image, ExifTags.Base.Orientation, 0) == 0 and _turn(image) in [*_TURNS.values()][3:]:
        height, width = width, height
    deep = _is_deep(image) or _is_deep_colour(image)
    return Header(size=(height, width), channels=1 if image.mode in _GREY else 3, deep=deep)


def pixels_of(image: Image.Image, again: Opener) -> Num[np.ndarray, "H W C"]:
    """The decoded picture, as it is meant to be seen; C is 1 for grey modes, else 3."""
    inverted = image.mode == "I;16" and tag(image, ExifTags.Base.PhotometricInterpretation, 1) == _WHITE_IS_ZERO
    deep_colour = _is_deep_colour(image)
    image = _turned(image)
    if _is_deep(image):
        grey = np.array(image)[..., None]
        grey = grey.astype(grey.dtype.newbyteorder("="), copy=False)
        return 65535 - grey if inverted else grey  # Pillow inverts those of 8 bits only
    values = np.ascontiguousarray(_values(image))
    return values.astype(np.uint16) << 8 | np.array(_lower_bytes(again())) if deep_colour else values


def tag(image: Image.Image, number: int, default: int) -> Any:
    """The value of a TIFF file's tag."""
    return getattr(image, "tag_v2", {}).get(number, default)


def _turned(image: Image.Image) -> Image.Image:
    """The decoded picture, turned as EXIF says; Pillow turns TIFF itself."""
    turn = None if image.format == "TIFF" else _turn(image)
    image.load()
    return image if turn is None else image.transpose(turn)


def _turn(image: Image.Image) -> Image.Transpose | None:
    """How EXIF, or XMP, says that a picture must be turned that is not decoded yet."""
    with suppress(Exception):  # EXIF is a format with damage of its own; then a picture stays as it lies
        content = _exif_behind_pixels(image) if image.format == "PNG" else b""
        if content:
            exif = Image.Exif()
            exif.load(content)
        else:
            exif = Image.Image.getexif(image)  # PNG's own decodes the picture to look for more
        return _TURNS.get(exif.get(ExifTags.Base.Orientation, 1))
    return None


def _exif_behind_pixels(image: Any) -> bytes:
    """The last EXIF part of a PNG file that comes behind its pixels, if there is any."""
    place, at, pixels, found = image.fp.tell(), 8, False, b""
    while len(head := _read_at(image.fp, at, 8)) == 8:
        length, pixels = int.from_bytes(head[:4]), pixels or head[4:] == b"IDAT"
        if pixels and head[4:] == b"eXIf":
            found = b"Exif\0\0" + image.fp.read(length)
        at += length + 12
    image.fp.seek(place)
    return found


def _read_at(file: Any, place: int, count: int) -> bytes:
    file.seek(place)
    content: bytes = file.read(count)
    return content


def _is_deep(image: Image.Image) -> bool:
    """Whether it is grey, and its values have more than 8 bits."""
    return image.mode == "F" or image.mode.startswith("I")


def _is_deep_colour(image: Image.Image) -> bool:
    """Whether colours have 16 bits, of which Pillow decodes the upper 8."""
    return image.mode == "RGB" and _order(image).startswith("RGB;16")


def _order(image: Image.Image) -> str:
    """What Pillow calls the order of the bytes in the file, `RGB;16B` for example."""
    for *_, args in getattr(image, "tile", ()):
        return args if isinstance(args, str) else str(args[0]) if isinstance(args, tuple) and args else ""
    return ""


def _lower_bytes(image: Any) -> Image.Image:
    """Of colours of 16 bits the lower 8: Pillow takes them for the upper ones if it has the order reversed."""
    order = _order(image)
    order = order[:-1] + _REVERSED[order[-1]]
    image.tile = [
        getattr(type(tile), "_make", tuple)([*tile[:3], order if isinstance(tile[3], str) else (order, *tile[3][1:])])
        for tile in image.tile
    ]
    return _turned(image)


def _values(image: Image.Image) -> UInt8[np.ndarray, "H W C"]:
    """The decoded picture in 8 bits."""
    grey = image.mode in _GREY
    if image.has_transparency_data:  # multiplied by its opacity it lies over black
        image = image.convert("LA" if grey else "RGBA").convert("La" if grey else "RGBa")
        return np.array(image)[..., : 1 if grey else 3]
    values = np.array(image.convert("L" if grey else "RGB"))
    return values[..., None] if grey else values
