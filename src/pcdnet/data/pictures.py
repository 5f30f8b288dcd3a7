"""Pictures: still images from files or from bytes, whatever their format and mode, as grey or RGB.

Files come from strangers: the header is checked before memory is taken, and damage of any kind is a PcdnetError that
names the file. Where a picture is transparent it becomes black, which is what an empty scene is. A TIFF file may be a
stack of many pages; of all other files, moving pictures included, the first frame counts.
"""

from __future__ import annotations

import functools
import io
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Num, UInt8
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from pcdnet.data.gathering import gather
from pcdnet.data.intake import MOST_PIXELS, Header, check_pixels
from pcdnet.data.notes import Note, some, to_stderr
from pcdnet.data.sources import PICTURES, TIFFS
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

T = TypeVar("T")

PictureFile = str | Path | io.BytesIO | io.BufferedReader
"""Where a picture is read from: a path, bytes in memory, or a file that is open for reading."""

_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")
_GREY = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_TURNED = frozenset({5, 6, 7, 8})  # the EXIF orientations that swap height and width
_WHITE_IS_ZERO = 0  # of TIFF's photometric interpretations the one in which values are inverted
_SMALLER = 1  # the bit of TIFF's NewSubfileType that marks a smaller version of another page
_QUIET = threading.Lock()  # warnings and limits belong to the process, and a server reads pictures in threads


def is_picture(path: str | Path) -> bool:
    """Whether a name ends like that of a picture; hidden files are none."""
    path = Path(path)
    return path.suffix.lower() in PICTURES and not path.name.startswith(".")


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return a picture as the only one of its scenes, or the sound pages of a TIFF stack, at most `limit` of them."""
    names, kept = page_names(path, path.name), dict([*headers(path).items()][view.chosen(limit)])
    note = functools.cache(to_stderr)  # the pages may be gone through twice

    def pictures() -> Iterator[tuple[str, Num[np.ndarray, "H W C"]]]:
        return ((names[number], pixels) for number, pixels in images(path, note=note) if number in kept)

    return gather(pictures, {names[n]: header for n, header in kept.items()}, view, path.parent).scenes(path.name)


def images(path: Path, *, stride: int = 1, note: Note = to_stderr) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield the picture, with 0 for its number, or every `stride`-th page of a TIFF stack; broken ones are skipped."""
    broken, sound = {}, 0
    for number, pixels in pages(path, pixels_of, wanted=range(0, sys.maxsize, stride)):
        if isinstance(pixels, PcdnetError):
            broken[number] = pixels
        else:
            sound += 1
            yield number, pixels
    if not sound:
        raise next(iter(broken.values()))
    if broken:
        all_of = f"{len(broken)} of {sound + len(broken)} pages of {path}"
        note(f"skipped {all_of} that cannot be read: {some([*map(str, broken)])}")


def headers(path: Path) -> dict[int, Header]:
    """What the picture, or every sound page of a stack, says of itself, by number."""
    found = dict(pages(path, header_of))
    sound = {number: header for number, header in found.items() if isinstance(header, Header)}
    for broken in found.values():
        if not sound and isinstance(broken, PcdnetError):
            raise broken
    return sound


def count(path: Path) -> int:
    """How many images a picture file holds: 1, or the pages of a TIFF stack."""
    return len(page_names(path, ""))


def page_names(path: Path, name: str) -> dict[int, str]:
    """The numbers of a file's pages, with the name of each; where there is one only, it has the file's."""
    numbers = [0]
    if path.suffix.lower() in TIFFS:
        numbers = [number for number, _ in pages(path, header_of)]
    return {number: f"{name}#{number}" if len(numbers) > 1 else name for number in numbers}


def read_picture(
    source: PictureFile, *, most_pixels: int = MOST_PIXELS, name: str | None = None
) -> Num[np.ndarray, "H W C"]:
    """Return the picture in a file, or in an open binary one; of many pages or frames the first.

    C is 1 for grey modes and 3 for all others, palettes and CMYK included. What is transparent becomes black, EXIF
    rotation is applied. Values have 8 bits; where they have more in the file they are as there. `name` is for messages;
    the path by default.
    """
    return _first(pages(source, pixels_of, most_pixels=most_pixels, name=name))


def read_header(source: PictureFile, *, most_pixels: int = MOST_PIXELS, name: str | None = None) -> Header:
    """Return what a picture says of itself without decoding it; damage further on goes unnoticed."""
    return _first(pages(source, header_of, most_pixels=most_pixels, name=name))


def _first(found: Iterator[tuple[int, T | PcdnetError]]) -> T:
    _, first = next(found)
    if isinstance(first, PcdnetError):
        raise first
    return first


def pages(
    source: PictureFile,
    read: Callable[[Image.Image, str], T],
    *,
    wanted: Container[int] | None = None,
    most_pixels: int = MOST_PIXELS,
    name: str | None = None,
) -> Iterator[tuple[int, T | PcdnetError]]:
    """Yield what `read` makes of the pages of a file that are wanted, with their numbers; of broken ones the error.

    Only TIFF files that are named by a path have more than one; smaller versions of a page beside it are none.
    """
    label, image = name or (str(source) if isinstance(source, str | Path) else "the picture"), None
    stuck = False
    with ExitStack() as stack:
        for number in itertools.count():
            page, there = f"page {number} of {label}" if number else label, False
            try:
                with _careful(page):
                    if image is None:
                        named = isinstance(source, str | Path)
                        stream = stack.enter_context(Path(source).open("rb")) if named else source
                        image = _identified(stream, label)
                    if number and not (isinstance(source, Path) and image.format == "TIFF" and _has(image, number)):
                        return
                    there = True
                    if number and _tag(image, ExifTags.Base.NewSubfileType, 0) & _SMALLER:
                        continue
                    if wanted is not None and number not in wanted:
                        continue
                    check_pixels((image.height, image.width), page, most_pixels)
                    found: T | PcdnetError = read(image, page)
            except PcdnetError as error:
                if stuck and not there:  # Pillow does not get past a broken directory of tags
                    return
                stuck, found = not there, error
            yield number, found
            if image is None:
                return


def _has(image: Image.Image, number: int) -> bool:
    """Go to a page, if it is there."""
    try:
        image.seek(number)
    except EOFError:
        return False
    return True


def _tag(image: Image.Image, tag: int, default: int) -> Any:
    """The value of a TIFF file's tag."""
    return getattr(image, "tag_v2", {}).get(tag, default)


def header_of(image: Image.Image, label: str) -> Header:
    """What the header says of the picture in the end: EXIF may turn it."""
    height, width = image.height, image.width
    # PNG may carry EXIF behind the pixels, and would be decoded to look; TIFF has its size turned already.
    if image.format in ("JPEG", "MPO", "WEBP") or "exif" in image.info:
        with suppress(Exception):  # EXIF is a file format of its own, with damage of its own
            if image.getexif().get(ExifTags.Base.Orientation) in _TURNED:
                height, width = width, height
    return Header(size=(height, width), channels=1 if image.mode in _GREY else 3, deep=_is_deep(image))


def pixels_of(image: Image.Image, label: str) -> Num[np.ndarray, "H W C"]:
    """The decoded picture, as it is meant to be seen."""
    inverted = image.mode == "I;16" and _tag(image, ExifTags.Base.PhotometricInterpretation, 1) == _WHITE_IS_ZERO
    image.load()
    with suppress(Exception):  # a sound picture with broken EXIF is shown as it lies
        image = ImageOps.exif_transpose(image)
    values = _deep_values(image, inverted) if _is_deep(image) else _values(image)
    return np.ascontiguousarray(values if values.ndim == 3 else values[..., None])


def _is_deep(image: Image.Image) -> bool:
    """Whether values have more than 8 bits."""
    return image.mode == "F" or image.mode.startswith("I")


def _deep_values(image: Image.Image, inverted: bool) -> Num[np.ndarray, "H W"]:
    values = np.array(image)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    return 65535 - values if inverted else values  # Pillow inverts those of 8 bits only


def _values(image: Image.Image) -> UInt8[np.ndarray, "H W *C"]:
    """The decoded picture in 8 bits: grey (H W) or RGB (H W 3)."""
    grey = image.mode in _GREY
    if image.has_transparency_data:  # multiplied by its opacity it lies over black
        image = image.convert("LA" if grey else "RGBA").convert("La" if grey else "RGBa")
        return np.array(image)[..., : 1 if grey else 3]
    return np.array(image.convert("L" if grey else "RGB"))


def _identified(stream: io.BytesIO | io.BufferedReader, label: str) -> Image.Image:
    """The picture with its header read."""
    stream.seek(0)
    if not stream.read(1):
        raise PcdnetError(f"{label} is empty; save the picture again")
    stream.seek(0)
    return Image.open(stream, formats=_FORMATS)


@contextmanager
def _careful(label: str) -> Iterator[None]:
    """Whatever goes wrong with a picture in here is reported as one sentence."""
    try:
        with _QUIET, warnings.catch_warnings(), _unlimited():
            warnings.simplefilter("ignore")  # Pillow warns of what is odd; that is common, and what is unusable raises
            yield
    except PcdnetError:
        raise
    except FileNotFoundError:
        raise PcdnetError(f"{label} does not exist; give the path of a picture") from None
    except UnidentifiedImageError:
        kinds = ", ".join(suffix[1:] for suffix in PICTURES)
        raise PcdnetError(f"{label} is no picture of a known kind; give one of {kinds}") from None
    except MemoryError:
        raise PcdnetError(f"there is not enough memory for {label}; give a smaller picture") from None
    except Exception as error:  # decoders that stumble over damage raise nearly anything
        reason = str(getattr(error, "strerror", None) or error) or type(error).__name__
        raise PcdnetError(f"{label} cannot be read as a picture ({reason}); save it again") from None


@contextmanager
def _unlimited() -> Iterator[None]:
    """Pillow's own limit on pixels is lifted: ours is checked as soon as the header is read."""
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit
