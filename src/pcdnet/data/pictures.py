"""Pictures: still images from files or from bytes.

Files come from strangers: the header is checked before memory is taken, and damage of any kind is a PcdnetError that
names the file. A TIFF file may be a stack of many pages; of all other files, moving pictures included, the first frame
counts.
"""

from __future__ import annotations

import functools
import io
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Num
from PIL import ExifTags, Image, UnidentifiedImageError

from pcdnet.data.decoding import Opener, header_of, pixels_of, tag
from pcdnet.data.gathering import gather
from pcdnet.data.intake import MOST_PIXELS, Header, check_pixels
from pcdnet.data.notes import some, to_stderr
from pcdnet.data.sources import PICTURES, TIFFS
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

T = TypeVar("T")

PictureFile = str | Path | io.BytesIO | io.BufferedReader
"""Where a picture is read from: a path, bytes in memory, or a file that is open for reading."""

_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF")
_SMALLER = 1  # the bit of TIFF's NewSubfileType that marks a smaller version of another page


def is_picture(path: str | Path) -> bool:
    """Whether a name ends like that of a picture; hidden files are none."""
    path = Path(path)
    return path.suffix.lower() in PICTURES and not path.name.startswith(".")


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return a picture as the only one of its scenes, or the sound pages of a TIFF stack, at most `limit` of them."""
    names = dict([*page_names(path, path.name).items()][view.chosen(limit)])
    sound = {names[number]: header for number, header in headers(path).items() if number in names}

    def pictures() -> Iterator[tuple[str, Num[np.ndarray, "H W C"]]]:
        return ((names[number], pixels) for number, pixels in images(path) if number in names)

    if not sound or not (found := gather(pictures, sound, view, path.parent)).sizes:
        raise PcdnetError(f"the first {len(names)} pages of {path} cannot be read; save it again without them")
    report_broken(path, [number for number, name in names.items() if name not in found.sizes])
    return found.scenes(path.name)


def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield the picture, with 0 for its number, or every `stride`-th page of a TIFF stack; broken ones are skipped."""
    broken, sound = None, False
    for number, pixels in pages(path, pixels_of, wanted=range(0, sys.maxsize, stride)):
        if isinstance(pixels, PcdnetError):
            broken = broken or pixels
        else:
            sound = True
            yield number, pixels
    if broken is not None and not sound:
        raise broken


def report_broken(path: Path, numbers: Sequence[int]) -> None:
    """Report the pages of a stack that were skipped, if there are any."""
    if numbers:
        to_stderr(f"skipped pages of {path} that cannot be read: {some([*map(str, numbers)])}")


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


def _first(found: Generator[tuple[int, T | PcdnetError], None, None]) -> T:
    with closing(found):  # the error of a broken picture would keep its file open
        _, first = next(found)
    if isinstance(first, PcdnetError):
        raise first
    return first


def pages(
    source: PictureFile,
    read: Callable[[Image.Image, Opener], T],
    *,
    wanted: Container[int] | None = None,
    most_pixels: int = MOST_PIXELS,
    name: str | None = None,
) -> Generator[tuple[int, T | PcdnetError], None, None]:
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
                        if isinstance(source, str | Path):
                            stream: io.BytesIO | io.BufferedReader = stack.enter_context(Path(source).open("rb"))
                        else:
                            stream = source
                        image = _identified(stream, label)
                    if number and not _has(image, number):
                        return
                    there = True
                    if number and tag(image, ExifTags.Base.NewSubfileType, 0) & _SMALLER:
                        continue
                    if wanted is not None and number not in wanted:
                        continue
                    check_pixels((image.height, image.width), page, most_pixels)
                    found: T | PcdnetError = read(image, functools.partial(_again, stream, number))
            except PcdnetError as error:
                if stuck and not there:  # Pillow does not get past a broken directory of tags
                    return
                stuck, found = not there, error
            yield number, found
            if image is None or image.format != "TIFF" or not isinstance(source, Path):
                return


def _has(image: Image.Image, number: int) -> bool:
    """Go to a page, if it is there."""
    try:
        image.seek(number)
    except EOFError:
        return False
    return True


def _again(stream: io.BytesIO | io.BufferedReader, number: int) -> Image.Image:
    """The page opened anew."""
    stream.seek(0)
    image = Image.open(stream, formats=_FORMATS)
    image.seek(number)
    return image


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
        with _quiet:
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


class _Quiet:
    """Pillow without warnings and without its own limit on pixels, for as many threads as read pictures.

    It warns of what is odd; that is common, and what is unusable raises. Our own limit is checked as soon as the header
    is read. Warnings and limits belong to the process: the first to come changes them, the last to go puts them back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._changed = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._changed.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                self._changed.callback(setattr, Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
                Image.MAX_IMAGE_PIXELS = None
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._changed.close()


_quiet = _Quiet()
