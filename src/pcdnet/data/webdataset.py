"""WebDataset: .tar files in which the files of one sample stand one after the other, with one name up to the first dot.

Archives come from strangers: nothing is extracted to the disk, names are words and never paths, links and devices are
no pictures, and sizes are checked before memory is taken.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np
from jaxtyping import Num

from pcdnet.data import shards
from pcdnet.data.intake import Header
from pcdnet.data.notes import Note, printable, readable
from pcdnet.data.sources import PICTURES
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

_DAMAGE = (tarfile.TarError, EOFError, ValueError, RecursionError, OverflowError, MemoryError)
_BLOCK, _RECORD = 512, 20 * 512
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def read(path: str | Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the pictures of an archive, of a folder of archives or of a pattern of them, at most `limit`."""
    return shards.read(path, KIND, limit=limit, view=view)


def images(path: str | Path, *, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th picture with its number; see `shards.images`."""
    return shards.images(path, KIND, stride=stride)


def headers(path: str | Path) -> dict[int, Header]:
    """What the first pictures say of themselves, by number."""
    return shards.headers(path, KIND)


def count(path: str | Path) -> int:
    """How many pictures the archives hold, of which none is decoded."""
    found, column = shards.found(path, KIND.suffix)
    total = 0
    for shard in found:
        with shard.opened() as place:
            total += sum(1 for _ in _members(place, shard.label, column, lambda _: None, contents=False))
    return total


def encoded(path: Path, label: str, column: str | None, note: Note) -> Iterator[tuple[str, bytes]]:
    """Yield the encoded pictures of an archive with their names; one that claims too many bytes is empty."""
    return _members(path, label, column, note)


def _members(
    path: Path, label: str, column: str | None, note: Note, *, contents: bool = True
) -> Iterator[tuple[str, bytes]]:
    _check_plain(path, label)
    with (
        readable(label, "a .tar file", _DAMAGE, "download it again"),
        path.open("rb") as file,
        tarfile.open(fileobj=file, mode="r:") as archive,
    ):
        before: tuple[str, str] = "", ""
        while (member := archive.next()) is not None:
            vars(archive)["members"].clear()  # which tarfile would keep, all of them
            sample, ending = _parts(member.name)
            if not member.isreg() or not ending.endswith(PICTURES) or column not in (None, ending[1:]):
                continue
            if sample == before[0] and ending != before[1]:
                two = f"{before[1][1:]}, {ending[1:]}"
                raise PcdnetError(
                    f"{label} has several pictures of {printable(sample)!r} ({printable(two)}); add the one to "
                    f"use, as in {label}#{printable(ending[1:])}"
                )
            before = sample, ending
            sound = contents and member.size <= shards.MOST_BYTES and not member.issparse()
            stream = archive.extractfile(member) if sound else None
            content = b"" if stream is None else stream.read()
            if sound and len(content) < member.size:
                raise EOFError(f"{printable(member.name)} is cut off")
            yield member.name, content
        _check_end(file, archive.offset, label, note)


def _check_plain(path: Path, label: str) -> None:
    """Refuse an archive that is compressed as a whole."""
    with readable(label, "a .tar file"), path.open("rb") as file:
        beginning = file.read(8)
    for mark, tool in _COMPRESSED.items():
        if beginning.startswith(mark):
            raise PcdnetError(f"{label} is compressed by {tool}, and no plain .tar file; decompress it with {tool} -d")


def _check_end(file: BinaryIO, end: int, label: str, note: Note) -> None:
    """Refuse an archive that does not end where its members do: tarfile takes all that is no header for the end.

    One that was cut off between two members and filled up with zeros cannot be told from a whole one, but hardly ever
    ends as these do: with two blocks, or where a record of twenty is full.
    """
    file.seek(end)
    block = file.read(_BLOCK)
    if any(block):
        raise PcdnetError(f"{label} is damaged after {end:,} bytes; download it again")
    if len(block) < _BLOCK:  # a whole archive ends with blocks of zeros
        raise PcdnetError(f"{label} is cut off after {end:,} bytes; download it again")
    while block := file.read(2**20):
        if any(block):
            raise PcdnetError(
                f"{label} goes on behind its end at {end:,} bytes; download it again, or give archives that were put "
                "together as they were before"
            )
    zeros = file.tell() - end
    if zeros > 2 * _BLOCK and (file.tell() % _RECORD or zeros >= _RECORD + 2 * _BLOCK):
        note(
            f"{label} ends with {zeros:,} bytes of zeros, as if its last pictures were lost; compare its size with "
            "that of the original"
        )


def _parts(name: str) -> tuple[str, str]:
    """The sample that a file is of, and how its name ends, in lower case."""
    path = PurePosixPath(name)
    stem, dot, ending = path.name.partition(".")
    return f"{path.parent}/{stem}", f"{dot}{ending}".lower()


KIND = shards.Kind(".tar", encoded)
"""What shards of this kind are."""
