"""Inputs: the images that paths name, one after the other, however many there are.

A path is a file of one of the `sources`, a folder of pictures, a pattern such as `photos/*.png`, or `-` for the bytes
of one picture on standard input. Only one image is held at a time.
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

import numpy as np
from jaxtyping import Num

from pcdnet.data import folder, pictures, remote
from pcdnet.data.notes import some
from pcdnet.data.sources import (
    FETCHED,
    FILES,
    PICTURE,
    STACK,
    Source,
    is_generated,
    name_and_column,
    shards_in,
    source_of,
    usable,
)
from pcdnet.errors import Incomplete, PcdnetError
from pcdnet.files import expanded, nameable

STDIN = "-"
"""The path that stands for standard input."""
USABLE = f"{usable(FILES)}, or a pattern of them, or {STDIN} for a picture on standard input"
"""What a path can name, in words."""
MOST_STDIN = 256 * 2**20
"""Bytes that are read from standard input at most."""
LONGEST_TITLE = 60
"""Characters of an input's title at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """A file of one or more images."""

    source: Source
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
            return -(-max(1, self.source.count(self.path)) // (stride if self.source.strided else 1))
        except Exception:  # it is for a display; what is wrong with the file is reported when it is read
            return 1

    def images(self, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
        """The images with their numbers, in the values of the file; of a video every `stride`-th.

        Incomplete is raised at the end if some of them cannot be read.
        """
        if self.content is not None:
            yield 0, pictures.read_picture(io.BytesIO(self.content), name=self.name)
        else:
            broken = set(pictures.page_names(self.path, "")) if self.source is STACK else set()
            for number, image in self.source.images(self.path, stride=stride if self.source.strided else 1):
                broken.discard(number)
                yield number, image
            if broken:
                numbers = some([str(number) for number in sorted(broken)])
                raise Incomplete(f"{len(broken)} pages of {self.name} cannot be read ({numbers}); fix or remove them")

    def image_name(self, number: int) -> str:
        """The name of an image; in a file of many its number follows the file's."""
        return f"{self.name}#{number}" if self.source.many else self.name

    def image_title(self, number: int) -> str:
        """A name for the output files of an image; those of a file of many have a folder of their own."""
        return f"{self.title}/{number:06}" if self.source.many else self.title


def find_inputs(paths: Sequence[str], *, without: Path | None = None) -> list[Input]:
    """The inputs that paths name, each once, in the order of the paths; those inside the folder `without` are left out.

    A path that names nothing is refused, before any work is done.
    """
    if not paths:
        raise PcdnetError(f"no image was named; give {USABLE}")
    barred = None if without is None else nameable(without).resolve()
    found: dict[Path, Input] = {}
    for path in paths:
        for one in [_stdin()] if path == STDIN else _inputs(path):
            place = one.path.resolve()
            if barred is None or barred not in place.parents:
                found.setdefault(place, one)
    if not found:
        raise PcdnetError(f"all that {paths[0]} names lies inside {without}; give images that are no results")
    return _titled(list(found.values()))


def _inputs(path: str) -> list[Input]:
    """What one path names: one file, or those of a folder or a pattern."""
    if remote.is_remote(path):
        return _fetched(path)
    path, column = name_and_column(path) if _columned(path) else (path, "")
    found = _here(path)
    return [replace(one, path=Path(f"{one.path}#{column}")) for one in found] if column else found


def _columned(path: str) -> bool:
    """Whether a # in a path is followed by a column of shards."""
    source = source_of(path)
    return source is not None and source.shards and not Path(path).exists()


def _fetched(path: str) -> list[Input]:
    """What an address names, as copies in the user's cache."""
    url, column = name_and_column(path)
    found = []
    for file in remote.listed(url, FETCHED):
        source = source_of(file.url)
        if source is not None and not source.generated:
            mark = int.from_bytes(hashlib.sha256(file.mark.encode()).digest()[:6])
            one = _file(remote.fetched(file), source)
            place = Path(f"{one.path}#{column}") if column else one.path
            found.append(replace(one, name=file.url, path=place, stamp=(file.size or 0, mark)))
    if not found:
        raise PcdnetError(f"{path} names nothing that images are read from; give {USABLE}")
    return sorted(found, key=lambda one: folder.natural_order(one.name))


def _here(path: str) -> list[Input]:
    """The same of what is here."""
    place = expanded(path)
    try:
        if place.is_dir():
            shards = shards_in(str(place))
            if shards:
                files = [one for one in place.iterdir() if one.suffix.lower() == shards]
                files.sort(key=lambda one: folder.natural_order(one.name))
                return [_file(one, source) for one in files if (source := source_of(one))]
            inside = [place / name for name in folder.names(place)]
            if not inside:
                raise PcdnetError(f"{path} holds no picture; give a folder of pictures, or a pattern of other files")
            return [_file(one, PICTURE) for one in inside]  # a .gif too, of which the first frame counts here
        files = [place]
        if not place.exists():
            if is_generated(path):
                name = path.replace(":", "-")
                raise PcdnetError(f"{path} is made, not a file; write it to one: `pcdnet data {path} --out {name}.npz`")
            if not glob.has_magic(path):
                raise PcdnetError(f"{path} does not exist; give {USABLE}")
            matches = map(Path, glob.glob(str(place), recursive=True))  # noqa: PTH207  (Path's needs a folder)
            files = sorted(filter(Path.is_file, matches), key=lambda one: folder.natural_order(one.as_posix()))
        found = [_file(one, source) for one in files if (source := source_of(one)) and not source.generated]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PcdnetError(f"{path[:200]} cannot be read ({reason}); give {USABLE}") from None
    if not found:
        raise PcdnetError(f"{path} names nothing that images are read from; give {USABLE}")
    return found


def _file(path: Path, source: Source) -> Input:
    stat = path.stat()
    if source is PICTURE and pictures.count(path) > 1:
        source = STACK
    name = os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
    return Input(source=source, name=name, path=path, stamp=(stat.st_size, stat.st_mtime_ns))


def _stdin() -> Input:
    content = sys.stdin.buffer.read(MOST_STDIN + 1)
    if len(content) > MOST_STDIN:
        raise PcdnetError(f"standard input holds more than {MOST_STDIN // 2**20} MiB; give one picture there")
    if not content:
        raise PcdnetError(f"standard input is empty; give one picture there, or {usable(FILES)}")
    mark = int.from_bytes(hashlib.sha256(content).digest()[:6])
    return Input(source=PICTURE, name="stdin", path=Path("/dev/stdin"), stamp=(len(content), mark), content=content)


def _titled(inputs: list[Input]) -> list[Input]:
    """The inputs with titles: the names of their files without suffix, and a mark where that is not enough."""
    plain = [_plain(one.path.stem) for one in inputs]
    often = Counter(title.casefold() for title in plain)  # some file systems take a and A for the same
    titled = []
    for one, title in zip(inputs, plain, strict=True):
        mark = f"-{hashlib.sha256(one.name.encode()).hexdigest()[:8]}" if often[title.casefold()] > 1 else ""
        titled.append(replace(one, title=title + mark))
    return titled


def _plain(stem: str) -> str:
    kept = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in stem[:LONGEST_TITLE])
    return kept.strip(".") or "_"
