"""Shards: files of very many encoded pictures, here or far away, decoded one picture at a time.

What a kind of shard is made of is its own file's affair (`webdataset`, `parquet`): here its pictures are bytes with a
name. A damaged picture is skipped and reported, as in a folder; many are a mistake.
"""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Num

from pcdnet.data import remote
from pcdnet.data.intake import Header
from pcdnet.data.keeping import Keep, stamp
from pcdnet.data.notes import Note, printable, some, to_stderr
from pcdnet.data.pictures import read_header, read_picture
from pcdnet.data.sources import name_and_column
from pcdnet.data.streaming import streamed
from pcdnet.data.view import View
from pcdnet.errors import Incomplete, PcdnetError
from pcdnet.files import expanded
from pcdnet.scene import Scenes

MOST_DAMAGED = 0.1
"""The share of pictures that may be damaged; they are skipped."""
SAMPLED = 1000
"""Pictures whose headers say what to expect of all of them."""
MOST_LOST = 100_000
"""Damaged pictures that are passed over at most, however many there are: a table of empty rows is a small file."""
MOST_BYTES = 256 * 2**20
"""An encoded picture of more bytes is taken for damaged."""

Encoded = Callable[[Path, str, str | None, Note], Iterator[tuple[str, bytes]]]
"""The encoded pictures of a file with a label each: of which file, what messages call it, of which column, and what
takes a note if the file is odd."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of pictures."""

    label: str
    """What messages call it: its path or its address."""
    stamp: tuple[Any, ...]
    """While this stays, so do its pictures."""
    place: Path | remote.Remote
    """Where it is."""

    def opened(self) -> AbstractContextManager[Path]:
        """The file, as one that is here for as long as the block takes."""
        return nullcontext(self.place) if isinstance(self.place, Path) else remote.fetched_meanwhile(self.place)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of shards."""

    suffix: str
    """How the names of its files end."""
    encoded: Encoded
    """What is in a file."""


def read(place: str | Path, kind: Kind, *, limit: int | None, view: View) -> Scenes:
    """Return the pictures of all shards that a path, a folder, a pattern or an address names, in their order."""
    shards, column = found(place, kind.suffix)
    chosen, skipped, odd, count = view.chosen(limit), _Skipped(str(place)), list[str](), 0

    def stream() -> Iterator[tuple[str, Num[np.ndarray, "H W C"]]]:
        nonlocal count
        skipped.clear()
        odd.clear()
        count = 0
        with closing(_pictures(shards, kind, column, odd.append)) as pictures:
            for count, (label, picture) in enumerate(islice(pictures, chosen.start, chosen.stop, chosen.step), start=1):  # noqa: B007
                if isinstance(picture, PcdnetError):
                    skipped.add(label)
                else:
                    yield label, picture
        if skipped.count > MOST_DAMAGED * count:
            problem = f"{skipped.count} of {count} pictures of {place} cannot be read ({skipped})"
            raise PcdnetError(f"{problem}; fix or remove them")
        keep.words.update(skipped=skipped.first, odd=odd, count=(count, skipped.count))

    keep = Keep(name=str(place), key=([(each.label, each.stamp) for each in shards], column, limit, repr(view)))
    images = streamed(stream, view, keep)
    total, skipped.count = keep.words.get("count", (count, skipped.count))
    skipped.first = [*keep.words.get("skipped", skipped.first)]
    if skipped.count:
        to_stderr(f"skipped {skipped.count} of {total} pictures of {place} that cannot be read: {skipped}")
    for note in keep.words.get("odd", odd):
        to_stderr(note)
    return Scenes(images=images.images, name=str(place), places=images.places)


def images(place: str | Path, kind: Kind, *, stride: int) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th picture with its number, and raise Incomplete at the end if some cannot be read."""
    shards, column = found(place, kind.suffix)
    skipped, sound = _Skipped(str(place)), False
    for number, (label, picture) in enumerate(_pictures(shards, kind, column, to_stderr)):
        if number % stride == 0:
            if isinstance(picture, PcdnetError):
                skipped.add(label)
            else:
                sound = True
                yield number, picture
    if not sound:
        raise PcdnetError(f"{place} holds no image that can be read; give one that does")
    if skipped.count:
        raise Incomplete(f"{skipped.count} pictures of {place} cannot be read ({skipped}); fix or remove them")


def headers(place: str | Path, kind: Kind) -> dict[int, Header]:
    """What the first pictures say of themselves, by number; they stand for all."""
    shards, column = found(place, kind.suffix)
    said: dict[int, Header] = {}
    with closing(_every(shards, kind, column, lambda _: None)) as encoded:
        for number, (label, content) in enumerate(islice(encoded, SAMPLED)):
            try:
                said[number] = read_header(io.BytesIO(content), name=label)
            except PcdnetError:
                continue
    return said


def found(place: str | Path, suffix: str) -> tuple[list[Shard], str | None]:
    """The shards that a place names, in natural order, and the column that follows a #."""
    from pcdnet.data.folder import natural_order

    text, column = name_and_column(str(place))
    if remote.is_remote(text):
        shards = [Shard(one.url, (one.size, one.mark), one) for one in remote.listed(text, (suffix,))]
    else:
        path = expanded(text)
        names = [str(path)]
        if path.is_dir():
            names = [str(each) for each in path.iterdir() if each.suffix.lower() == suffix and each.is_file()]
        elif not path.exists():
            names = [one for each in braces(str(path)) for one in glob.glob(each)]  # noqa: PTH207
        if not names:
            raise PcdnetError(
                f"{place} names no {suffix} file; give one, a folder of them, or a pattern such as *{suffix}"
            )
        shards = [Shard(one, (str(Path(one).absolute()), *stamp(Path(one))), Path(one)) for one in names]
    return sorted(shards, key=lambda each: natural_order(each.label)), column or None


def braces(pattern: str) -> list[str]:
    """The patterns that one with a range in braces stands for: `a-{000..199}.tar`, as WebDataset writes it."""
    match = re.search(r"\{(\d{1,9})\.\.(\d{1,9})\}", pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    numbers = range(int(first), min(int(last), int(first) + 10**6) + 1)
    return [f"{pattern[: match.start()]}{number:0{len(first)}}{pattern[match.end() :]}" for number in numbers]


class _Skipped:
    """The pictures that cannot be read: how many, and the names of the first."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.clear()

    def __str__(self) -> str:
        named = some(self.first[:3], 3)
        return f"{named} and {self.count - 3} more" if self.count > 3 else named

    def clear(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, label: str) -> None:
        """One more; if there are far too many, that is an error."""
        self.count += 1
        self.first += [label] if len(self.first) < 10 else []
        if self.count > MOST_LOST:
            raise PcdnetError(f"more than {MOST_LOST:,} pictures of {self._place} cannot be read ({self}); remove them")


def _every(shards: list[Shard], kind: Kind, column: str | None, note: Note) -> Generator[tuple[str, bytes], None, None]:
    for shard in shards:
        with shard.opened() as path:
            for name, content in kind.encoded(path, shard.label, column, note):
                yield f"{printable(name)} of {shard.label}", content


def _pictures(
    shards: list[Shard], kind: Kind, column: str | None, note: Note
) -> Generator[tuple[str, Num[np.ndarray, "H W C"] | PcdnetError], None, None]:
    """Every picture with its label; of damaged ones the error."""
    for label, content in _every(shards, kind, column, note):
        try:
            yield label, read_picture(io.BytesIO(content), name=label)
        except PcdnetError as error:
            yield label, error
