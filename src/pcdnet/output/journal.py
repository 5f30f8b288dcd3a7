"""Journal: what is done, a line an image, so that work that was cut off, or is asked for again, goes on from there.

The first line says what the results depend on besides the images; where that is different now, all is done anew. Each
format is then written from the journal, whole. Every line has its checksum: one that was cut off or damaged is
forgotten, and its image is done again. The journal of one shard is never taken for that of another, or of all images.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pcdnet.errors import PcdnetError, Setting, Unwritable
from pcdnet.files import folder as made
from pcdnet.files import locked_file, sealed_json, unsealed_json
from pcdnet.output.record import LARGEST, Record, check_record

FILE = "journal.jsonl"
"""The file in the folder of results; without it a folder is not ours."""
FORMAT = "pcdnet-journal-2"
"""Names the schema of the journal."""

_LONGEST = 2**16  # bytes of the first line


@dataclass(frozen=True, slots=True)
class Entry:
    """What the journal knows of an image, or of a file of many that was read to its end."""

    stamp: tuple[int, int]
    """Size and time of the file that it came from."""
    place: int
    """Where its line begins."""
    drawn: str
    """What its pictures were drawn with; empty where none were."""
    count: int
    """How many images it is about: 1, or as many as the file of many turned out to hold."""


class Journal(AbstractContextManager["Journal"]):
    """The journal of a folder of results, open for reading and adding; only one process at a time may have it."""

    def __init__(self, folder: Path, settings: dict[str, Any], *, force: bool = False) -> None:
        """Open the journal, or start one; a folder that holds other things is refused unless forced.

        `settings` is what results depend on besides the images. `force` also forgets what is done.
        """
        self._path = checked_folder(folder, force=force) / FILE
        self._file = locked_file(self._path)
        self.entries: dict[str, Entry] = {}
        head = {"format": FORMAT, **settings}
        former = self._file.readline(_LONGEST)
        same = former == _text(head)
        if not same and not force:
            self._refuse_another_shard(former, settings)
        self.anew = former.endswith(b"\n") and (force or not same)
        """Whether results were there that are of no use any more."""
        if same and not force:
            self._read()
        else:
            self._file.truncate(0)
            self.add([head])

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # what could not be written was reported when it was
            self._file.close()

    def add(self, lines: Sequence[dict[str, Any]]) -> None:
        """Add lines at the end, safe from whatever comes."""
        texts = list(map(_text, lines))
        try:
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(b"".join(texts))
            self._file.flush()
        except OSError as error:
            reason = error.strerror or error
            raise Unwritable(f"cannot write {self._path}: {reason}; make room, and the same command goes on") from None
        for line, text in zip(lines, texts, strict=True):
            self._take(line, place)
            place += len(text)

    def done(self, name: str, stamp: tuple[int, int]) -> Entry | None:
        """What is known of an image, or of a file of many, if the file has not changed since."""
        entry = self.entries.get(name)
        return entry if entry is not None and entry.stamp == stamp else None

    def records(self, places: Sequence[int]) -> Records:
        """The records at those places, read when they are gone through."""
        return Records(self._file, places)

    def digest(self) -> str:
        """What tells whether the file is as it is now."""
        digest = hashlib.sha256()
        self._file.seek(0)
        for line in self._file:
            digest.update(line)
        return digest.hexdigest()

    def _read(self) -> None:
        """Take in the lines after the first that are as they were written; one at the end that was cut off goes."""
        place = self._file.tell()
        for line in self._file:
            if not line.endswith(b"\n"):
                self._file.seek(place)
                self._file.truncate()
                break
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                words = words_of(line)
                check_line(words)
                self._take(words, place)
            place += len(line)

    def _refuse_another_shard(self, former: bytes, settings: dict[str, Any]) -> None:
        """Refuse to write over results of other images: in a job array, all may be given one folder by mistake."""
        head = _head(former)
        there, asked = _shard_words(settings if head is None else head), _shard_words(settings)
        if there != asked:
            self._file.close()
            cure = Setting("out"), ", or add ", Setting("force", True), " to write there"
            raise PcdnetError(
                f"{self._path.parent} holds the results of {there}, not of {asked}; choose another ", *cure
            )

    def _take(self, line: dict[str, Any], place: int) -> None:
        if "stamp" in line:  # the first line has none
            name = line["source"] if "count" in line else line["record"]["name"]
            self.entries[name] = Entry(tuple(line["stamp"]), place, line.get("drawn", ""), line.get("count", 1))


@dataclass(frozen=True, slots=True)
class Records:
    """Records that are read from a journal each time they are gone through, and never held."""

    file: BinaryIO
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Record]:
        for place in self.places:
            self.file.seek(place)
            try:
                record: Record = words_of(self.file.readline())["record"]
            except (ValueError, KeyError, TypeError) as error:
                raise PcdnetError(f"the journal of the results was changed meanwhile: {error}; try again") from None
            yield record


def checked_folder(folder: Path, *, force: bool) -> Path:
    """The folder, made if need be, if results may be written there; worth asking before the work begins."""
    try:
        foreign = folder.is_dir() and not (folder / FILE).is_file() and any(folder.iterdir())
    except OSError as error:
        reason = error.strerror or error
        raise PcdnetError(f"{folder} cannot be read ({reason}); choose another ", Setting("out")) from None
    if foreign and not force:
        cure = Setting("out"), ", or add ", Setting("force", True), " to write there"
        raise PcdnetError(f"{folder} holds other things than results; choose another ", *cure)
    return made(folder)


def head_of(folder: Path) -> dict[str, Any] | None:
    """What the journal of a folder says that its results depend on; None where there is none that can be read."""
    try:
        with (folder / FILE).open("rb") as file:
            return _head(file.readline(_LONGEST))
    except OSError:
        return None


def words_of(line: bytes) -> Any:
    """What a line of a journal says, or ValueError where it is not as it was written."""
    text = line.decode().removesuffix("\n")
    if (rest := unsealed_json(text)) == text:
        raise ValueError("it has no checksum")
    return json.loads(rest)


def check_line(line: Any) -> None:
    """Raise ValueError for what is no line about an image, or about a file of many: a checksum alone can be made up."""
    if not isinstance(line, dict):
        raise ValueError("it is no object")
    stamp, count = line.get("stamp"), line.get("count", 1)
    if not isinstance(stamp, list | tuple) or [type(each) for each in stamp] != [int, int]:
        raise ValueError("it does not say of which file it is")
    if not isinstance(line.get("drawn", ""), str) or type(count) is not int or not 0 <= count < LARGEST:
        raise ValueError("it does not say what is done")
    if "count" not in line:
        check_record(line.get("record"))
    elif not isinstance(line.get("source"), str):
        raise ValueError("it does not say what was read to its end")


def _head(line: bytes) -> dict[str, Any] | None:
    """The first line of a journal, if it is one."""
    with suppress(ValueError, RecursionError):
        head = words_of(line)
        if isinstance(head, dict) and head.get("format") == FORMAT and _is_shard(head.get("shard", [0, 1])):
            return head
    return None


def _is_shard(words: Any) -> bool:
    return isinstance(words, list) and [type(each) for each in words] == [int, int] and 0 <= words[0] < words[1]


def _shard_words(settings: dict[str, Any]) -> str:
    if "engine" in settings:
        return f"the engine {settings['engine']}"
    shard = settings.get("shard")
    return "all images" if shard is None else f"shard {shard[0]}/{shard[1]}"


def _text(line: dict[str, Any]) -> bytes:
    return sealed_json(json.dumps(line, separators=(",", ":"))).encode() + b"\n"
