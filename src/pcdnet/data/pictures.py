"""Pictures: one still image from a file or from bytes, whatever its format and mode, as 8-bit grey or RGB.

Files come from strangers: the header is checked before memory is taken, and damage of any kind is a PcdnetError that
names the file. Where a picture is transparent it becomes black, which is what an empty scene is.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from pcdnet.data.intake import MOST_PIXELS, in_eight_bits
from pcdnet.data.sources import PICTURES
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

PictureFile = str | Path | io.BytesIO | io.BufferedReader
"""Where a picture is read from: a path, bytes in memory, or a file that is open for reading."""

_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")
_GREY = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TURNED = frozenset({5, 6, 7, 8})  # the EXIF orientations that swap height and width
_QUIET = threading.Lock()  # warning filters belong to the process, and a server reads pictures in threads


def is_picture(path: str | Path) -> bool:
    """Whether a name ends like that of a picture; hidden files are none."""
    path = Path(path)
    return path.suffix.lower() in PICTURES and not path.name.startswith(".")


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return a picture as the only one of its scenes."""
    return view.scenes(Scenes(images=read_picture(path)[None], names=(path.name,), name=path.name))


def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, UInt8[np.ndarray, "H W C"]]]:
    """Yield the picture, with 0 for its number."""
    yield 0, read_picture(path)


def count(path: Path) -> int:
    """How many images a picture file holds."""
    return 1


def read_picture(
    source: PictureFile, *, most_pixels: int = MOST_PIXELS, name: str | None = None
) -> UInt8[np.ndarray, "H W C"]:
    """Return the picture in a file, or in an open binary one; of a moving picture the first frame.

    C is 1 for grey modes and 3 for all others, palettes and CMYK included. What is transparent becomes black, EXIF
    rotation is applied, 16 bits are scaled to 8. `name` is for messages; the path by default.
    """
    with _opened(source, most_pixels, name) as (image, label):
        image.load()
        with suppress(Exception):  # a sound picture with broken EXIF is shown as it lies
            image = ImageOps.exif_transpose(image)
        values = _values(image, label)
    return np.ascontiguousarray(values if values.ndim == 3 else values[..., None])


def read_shape(source: PictureFile, *, most_pixels: int = MOST_PIXELS, name: str | None = None) -> tuple[int, int, int]:
    """Return height, width and channels of a picture without decoding it; damage further on goes unnoticed."""
    with _opened(source, most_pixels, name) as (image, _):
        channels = 1 if image.mode in _GREY else 3
        # PNG may carry EXIF behind the pixels, and would be decoded to look; TIFF has its size turned already.
        if image.format in ("JPEG", "MPO", "WEBP") or "exif" in image.info:
            with suppress(Exception):  # EXIF is a file format of its own, with damage of its own
                if image.getexif().get(ExifTags.Base.Orientation) in _TURNED:
                    return image.width, image.height, channels
        return image.height, image.width, channels


@contextmanager
def _opened(source: PictureFile, most_pixels: int, name: str | None) -> Iterator[tuple[Image.Image, str]]:
    """The picture with its header read; whatever goes wrong until it is closed is reported as one sentence."""
    label = name or (str(source) if isinstance(source, str | Path) else "the picture")
    too_many = f"more than the limit of {most_pixels:,}; give a smaller picture"
    try:
        # Pillow warns of what is odd; odd pictures are common, and unusable ones raise.
        with (
            _QUIET,
            warnings.catch_warnings(),
            Path(source).open("rb") if isinstance(source, str | Path) else nullcontext(source) as stream,
        ):
            warnings.simplefilter("ignore")
            stream.seek(0)
            if not stream.read(1):
                raise PcdnetError(f"{label} is empty; save the picture again")
            stream.seek(0)
            with Image.open(stream, formats=_FORMATS) as image:
                if image.width * image.height > most_pixels:
                    raise PcdnetError(f"{label} has {image.height}x{image.width} pixels, {too_many}")
                yield image, label
    except PcdnetError:
        raise
    except FileNotFoundError:
        raise PcdnetError(f"{label} does not exist; give the path of a picture") from None
    except UnidentifiedImageError:
        kinds = ", ".join(suffix[1:] for suffix in PICTURES)
        raise PcdnetError(f"{label} is no picture of a known kind; give one of {kinds}") from None
    except (Image.DecompressionBombError, MemoryError):
        raise PcdnetError(f"{label} has far too many pixels, {too_many}") from None
    except Exception as error:  # decoders that stumble over damage raise nearly anything
        reason = str(getattr(error, "strerror", None) or error) or type(error).__name__
        raise PcdnetError(f"{label} cannot be read as a picture ({reason}); save it again") from None


def _values(image: Image.Image, label: str) -> UInt8[np.ndarray, "H W *C"]:
    """The decoded picture in 8 bits: grey (H W) or RGB (H W 3)."""
    mode = image.mode
    if mode == "F" or mode.startswith("I"):
        return in_eight_bits(np.asarray(image), label, white=1 if mode == "F" else 65535)
    grey = mode in _GREY
    if image.has_transparency_data:  # multiplied by its opacity it lies over black
        image = image.convert("LA" if grey else "RGBA").convert("La" if grey else "RGBa")
        return np.array(image)[..., : 1 if grey else 3]
    return np.array(image.convert("L" if grey else "RGB"))
