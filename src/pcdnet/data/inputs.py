"""Inputs: the images that paths name, one after the other, however many there are.

A path is a picture, a video, an .npz file with the array `image`, a folder of pictures, a pattern such as
`photos/*.png`, or `-` for the bytes of one picture on standard input. Only one image is held at a time.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from pcdnet.data import folder, stack, video
from pcdnet.data.pictures import PICTURES, in_grey, is_picture, read_picture, resized
from pcdnet.errors import PcdnetError

STDIN = "-"
"""The path that stands for standard input."""
USABLE = f"a picture ({', '.join(PICTURES)}), a video, an .npz file, a folder or a pattern of them, or - for stdin"
"""What a path can name, in words."""
MOST_STDIN = 256 * 2**20
"""Bytes that are read from standard input at most."""
LONGEST_TITLE = 60
"""Characters of an input's title at most."""

Kind = Literal["picture", "video", "npz"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A file of one or more images."""

    kind: Kind
    """What it is."""
    name: str
    """The file as it was named, for results and messages."""
    path: Path
    """Where it is."""
    stamp: tuple[int, int]
    """Size and time of its last change: while they stay, so do its images."""
    title: str = ""
    """A name for output files: no two inputs of a call have the same, and every file system takes it."""
    content: bytes | None = None
    """The bytes that came by standard input."""

    def count(self, stride: int = 1) -> int:
        """How many images it holds, or claims to hold: a video may err, and of a broken file one is awaited."""
        try:
            if self.kind == "npz":
                return stack.count(self.path)
            return -(-max(1, video.count(self.path)) // stride) if self.kind == "video" else 1
        except Exception:  # it is for a display; what is wrong with the file is told when it is read
            return 1

    def images(self, stride: int = 1) -> Iterator[tuple[int, UInt8[np.ndarray, "H W C"]]]:
        """The images with their numbers; of a video every so-manieth."""
        if self.kind == "npz":
            yield from enumerate(stack.images(self.path))
        elif self.kind == "video":
            for number, frame in enumerate(video.frames(self.path, stride)):
                yield number * stride, frame
        else:
            source = self.path if self.content is None else io.BytesIO(self.content)
            yield 0, read_picture(source, name=self.name)

    def image_name(self, number: int) -> str:
        """The name of an image; in a file of many its number follows the file's."""
        return self.name if self.kind == "picture" else f"{self.name}#{number}"

    def image_title(self, number: int) -> str:
        """A name for the output files of an image; those of a file of many have a folder of their own."""
        return self.title if self.kind == "picture" else f"{self.title}/{number:06}"


def find_inputs(paths: Sequence[str], *, without: Path | None = None) -> list[Input]:
    """The inputs that paths name, each once, in the order of the paths; those inside the folder `without` are left out.

    A path that names nothing is refused: that is cheaper to hear before the work than after it.
    """
    if not paths:
        raise PcdnetError(f"no image was named; give {USABLE}")
    barred = None if without is None else without.resolve()
    found: dict[Path, Input] = {}
    for path in paths:
        for one in [_stdin()] if path == STDIN else _inputs(path):
            place = one.path.resolve()
            if barred is None or barred not in place.parents:
                found.setdefault(place, one)
    if not found:
        raise PcdnetError(f"all that {paths[0]} names lies inside {without}; give images that are no results")
    return _titled(list(found.values()))


def fitted(
    image: UInt8[np.ndarray, "H W C"], *, channels: int, size: tuple[int, int] | None, resize: bool
) -> UInt8[np.ndarray, "h w c"]:
    """The image as a model wants it: in grey or RGB and, if the model has a size, of that size.

    An image of another size is refused unless it may be resized.
    """
    if image.shape[2] != channels:
        image = in_grey(image) if channels == 1 else image.repeat(3, axis=2)
    if size is None or image.shape[:2] == size:
        return image
    if not resize:
        (height, width), (h, w) = image.shape[:2], size
        raise PcdnetError(f"its {height}x{width} pixels do not fit the model's background of {h}x{w}; add --resize")
    return resized(image, size)


def _inputs(path: str) -> list[Input]:
    """What one path names: one file, or those of a folder or a pattern."""
    place = Path(path).expanduser()
    try:
        if place.is_dir():
            inside = [place / name for name in folder.names(place)]
            if not inside:
                raise PcdnetError(f"{path} holds no picture; give a folder of pictures, or a pattern of other files")
            return [_file(one, "picture") for one in inside]
        if not place.exists() and glob.has_magic(path):
            every = [Path(one) for one in glob.glob(str(place), recursive=True)]  # noqa: PTH207  (Path's needs a folder)
            every.sort(key=lambda one: folder.natural_order(one.as_posix()))
            usable = [(one, kind) for one in every if (kind := kind_of(one)) and one.is_file()]
            if not usable:
                raise PcdnetError(f"the pattern {path} matches no picture, video or .npz file; mend it")
            return [_file(one, kind) for one, kind in usable]
        if not place.exists():
            raise PcdnetError(f"{path} does not exist; give {USABLE}")
        kind = kind_of(place)
        if kind is None:
            raise PcdnetError(f"{path} is nothing that images are read from; give {USABLE}")
        return [_file(place, kind)]
    except (OSError, ValueError) as error:
        raise PcdnetError(
            f"{path[:200]} cannot be read ({getattr(error, 'strerror', None) or error}); mend it"
        ) from None


def printable(text: str) -> str:
    """The text for a terminal: what is in file names must neither break lines nor give commands."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def kind_of(path: Path) -> Kind | None:
    """What a file is by its name; None if it is of no use here."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return "npz"
    if suffix in video.VIDEOS:
        return "video"
    return "picture" if is_picture(path) else None


def _file(path: Path, kind: Kind) -> Input:
    stat = path.stat()
    name = os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
    return Input(kind=kind, name=name, path=path, stamp=(stat.st_size, stat.st_mtime_ns))


def _stdin() -> Input:
    content = sys.stdin.buffer.read(MOST_STDIN + 1)
    if len(content) > MOST_STDIN:
        raise PcdnetError(f"standard input holds more than {MOST_STDIN // 2**20} MiB; give one picture there")
    if not content:
        raise PcdnetError(f"standard input is empty; give one picture there, or {USABLE.removesuffix(' for stdin')}")
    mark = int.from_bytes(hashlib.sha256(content).digest()[:6])
    return Input(kind="picture", name="stdin", path=Path("/dev/stdin"), stamp=(len(content), mark), content=content)


def _titled(inputs: list[Input]) -> list[Input]:
    """The inputs with titles: the names of their files without suffix, and a mark where that is not enough."""
    plain = [_plain(one.path.stem) for one in inputs]
    often = Counter(title.casefold() for title in plain)  # some file systems take a and A for the same
    return [
        replace(one, title=title if often[title.casefold()] == 1 else f"{title}-{_mark(one.name)}")
        for one, title in zip(inputs, plain, strict=True)
    ]


def _plain(stem: str) -> str:
    kept = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in stem[:LONGEST_TITLE])
    return kept.strip(".") or "_"


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
