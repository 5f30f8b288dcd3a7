"""Pictures: one still image from a file or from bytes, whatever its format and mode, as 8-bit grey or RGB.

Files come from strangers: the header is checked before memory is taken, and damage of any kind is a PcdnetError that
names the file. Where a picture is transparent it becomes black, which is what an empty scene is.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Integer, Shaped, UInt8
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from pcdnet.errors import PcdnetError

BinaryFile = io.BytesIO | io.BufferedReader
"""Bytes in memory, or a file that is open for reading."""

Source = str | Path | BinaryFile
"""Where a picture is read from."""

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")
"""How the names of picture files end, in lower case."""

MOST_PIXELS = 64 * 2**20
"""Pictures of more pixels than this are refused: a few kilobytes can claim any size."""

_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")
_GREY = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TURNED = frozenset({5, 6, 7, 8})  # the EXIF orientations that swap height and width
_QUIET = threading.Lock()  # warning filters belong to the process, and a server reads pictures in threads


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """What a picture says of itself before it is decoded."""

    size: tuple[int, int]
    """Height and width, as the picture is meant to be seen."""

    channels: int
    """1 (grey) or 3 (RGB)."""


def is_picture(path: str | Path) -> bool:
    """Whether a name ends like that of a picture; hidden files are none."""
    path = Path(path)
    return path.suffix.lower() in PICTURES and not path.name.startswith(".")


def read_picture(
    source: Source, *, most_pixels: int = MOST_PIXELS, name: str | None = None
) -> UInt8[np.ndarray, "H W C"]:
    """Return the picture in a file, or in an open binary one; of a moving picture the first frame.

    C is 1 for grey modes and 3 for all others, palettes and CMYK included. What is transparent becomes black, EXIF
    rotation is applied, 16 bits are scaled to 8. `name` is for messages; the path by default.
    """
    with _opened(source, most_pixels, name) as (image, label):
        image.load()
        values = _values(_upright(image), label)
    return np.ascontiguousarray(values if values.ndim == 3 else values[..., None])


def read_header(source: Source, *, most_pixels: int = MOST_PIXELS, name: str | None = None) -> Header:
    """Return the size and the channels of a picture without decoding it; damage further on goes unnoticed."""
    with _opened(source, most_pixels, name) as (image, _):
        turned = False
        # PNG may carry EXIF behind the pixels, and would be decoded to look; TIFF has its size turned already.
        if image.format in ("JPEG", "MPO", "WEBP") or "exif" in image.info:
            turned = _orientation(image) in _TURNED
        size = (image.width, image.height) if turned else (image.height, image.width)
        return Header(size=size, channels=1 if image.mode in _GREY else 3)


def resized(image: UInt8[np.ndarray, "H W C"], size: tuple[int, int]) -> UInt8[np.ndarray, "h w C"]:
    """The image in another height and width; shrinking averages, and no filter leaves a halo around objects."""
    height, width = size
    if height < 1 or width < 1 or height * width > MOST_PIXELS:
        raise PcdnetError(
            f"images cannot be resized to {height}x{width}; give a height and a width of at least 1 pixel"
        )
    if (height, width) == image.shape[:2]:
        return image
    shrinks = height <= image.shape[0] and width <= image.shape[1]
    # Both are without negative lobes, so without the dark rims that sharper filters draw, and that would be learned.
    filter = Image.Resampling.HAMMING if shrinks else Image.Resampling.BILINEAR
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    return np.array(picture.resize((width, height), filter)).reshape(height, width, image.shape[2])


def cropped(image: UInt8[np.ndarray, "H W C"], crop: tuple[int, int, int, int]) -> UInt8[np.ndarray, "h w C"]:
    """The part of the image that begins at (top, left) and is (height, width) large; it must lie inside."""
    top, left, height, width = check_crop(crop, image.shape[:2])
    return image[top : top + height, left : left + width]


def in_grey(image: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 1"]:
    """The ITU-R 601 luma of a colour image; a grey one is left as it is."""
    return image if image.shape[2] == 1 else np.array(Image.fromarray(image).convert("L"))[..., None]


def check_crop(
    crop: tuple[int, int, int, int], size: tuple[int, ...], what: str = "images"
) -> tuple[int, int, int, int]:
    """The crop (top, left, height, width), if it lies inside an image of that size."""
    top, left, height, width = crop
    if min(top, left) < 0 or min(height, width) < 1 or top + height > size[0] or left + width > size[1]:
        raise PcdnetError(
            f"the crop of {height}x{width} at row {top}, column {left} leaves {what} of {size[0]}x{size[1]}; "
            f"give TOP LEFT HEIGHT WIDTH inside them"
        )
    return crop


@contextmanager
def _opened(source: Source, most_pixels: int, name: str | None) -> Iterator[tuple[Image.Image, str]]:
    """The picture with its header read; whatever goes wrong until it is closed is told as one sentence."""
    label = name or (str(source) if isinstance(source, str | Path) else "the picture")
    try:
        # Pillow warns of what is odd; odd pictures are common, and unusable ones raise.
        with _QUIET, warnings.catch_warnings(), _stream(source) as stream:
            warnings.simplefilter("ignore")
            if not stream.read(1):
                raise PcdnetError(f"{label} is empty; save the picture again")
            stream.seek(0)
            with Image.open(stream, formats=_FORMATS) as image:
                if image.width * image.height > most_pixels:
                    raise PcdnetError(
                        f"{label} has {image.height}x{image.width} pixels, more than the limit of {most_pixels:,}; "
                        f"give a smaller picture"
                    )
                yield image, label
    except PcdnetError:
        raise
    except FileNotFoundError:
        raise PcdnetError(f"{label} does not exist; give the path of a picture") from None
    except UnidentifiedImageError:
        kinds = ", ".join(suffix[1:] for suffix in PICTURES)
        raise PcdnetError(f"{label} is no picture of a known kind; give one of {kinds}") from None
    except (Image.DecompressionBombError, MemoryError):
        raise PcdnetError(
            f"{label} has more pixels than the limit of {most_pixels:,}; give a smaller picture"
        ) from None
    except Exception as error:  # decoders that stumble over damage raise nearly anything
        reason = str(getattr(error, "strerror", None) or error) or type(error).__name__
        raise PcdnetError(f"{label} cannot be read as a picture ({reason}); save it again") from None


@contextmanager
def _stream(source: Source) -> Iterator[BinaryFile]:
    """The binary file, opened and closed here if it is given by its path."""
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield file
    else:
        source.seek(0, io.SEEK_SET)
        yield source


def _orientation(image: Image.Image) -> int | None:
    """How the picture is to be turned; broken EXIF says nothing."""
    try:
        found: int | None = image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # EXIF is a file format of its own, with damage of its own
        return None
    return found


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # as above: a sound picture with broken EXIF is shown as it lies
        return image


def _values(image: Image.Image, label: str) -> UInt8[np.ndarray, "H W *C"]:
    """The decoded picture in 8 bits: grey (H W) or RGB (H W 3)."""
    mode = image.mode
    if mode == "F":
        return _from_fractions(np.asarray(image), label)
    if mode == "I" or mode.startswith("I;16"):
        return _from_sixteen_bits(np.asarray(image), label)
    grey = mode in _GREY
    if image.has_transparency_data:
        return _over_black(image.convert("LA" if grey else "RGBA"))
    return np.array(image.convert("L" if grey else "RGB"))


def _over_black(image: Image.Image) -> UInt8[np.ndarray, "H W *C"]:
    values = np.asarray(image).astype(np.uint16)
    colours = (values[..., :-1] * values[..., -1:] + 127) // 255
    return (colours if colours.shape[2] == 3 else colours[..., 0]).astype(np.uint8)


def _from_sixteen_bits(values: Integer[np.ndarray, "H W"], label: str) -> UInt8[np.ndarray, "H W"]:
    """White is 65535, whatever the max_colour pixel is: the images of a folder must be scaled alike."""
    least, most = int(values.min()), int(values.max())
    if least < 0 or most > 65535:
        raise PcdnetError(f"{label} has grey values from {least} to {most}; save it with 8 or 16 bits, from 0 to 65535")
    return ((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)


def _from_fractions(values: Shaped[np.ndarray, "H W"], label: str) -> UInt8[np.ndarray, "H W"]:
    least, most = float(values.min()), float(values.max())
    if not (least >= 0 and most <= 1):  # not a number is neither
        raise PcdnetError(f"{label} has values from {least:g} to {most:g}; save fractions of 0 to 1, or 8 bits")
    scaled: UInt8[np.ndarray, "H W"] = np.rint(values * 255).astype(np.uint8)
    return scaled
