"""Gather: the parts of a sharded decomposition, put together; every file is as if there had been one part only."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import content_of, whole_file
from pcdnet.files import folder as made
from pcdnet.kinds import Kinds
from pcdnet.output.formats import checked_formats
from pcdnet.output.journal import FILE as JOURNAL
from pcdnet.output.journal import Journal, check_line, head_of, words_of
from pcdnet.output.pictures import is_whole_png, picture_files
from pcdnet.output.pipeline import PICTURES
from pcdnet.output.record import Results
from pcdnet.output.shard import LARGEST, Seal, Sealed
from pcdnet.output.summary import Summary
from pcdnet.progress import phase, shown, track

TOGETHER = 64
"""Images whose lines are added to the journal together."""
_SOURCE = b'{"source":'  # how a line about a file of many begins


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """What `gather` did."""

    files: tuple[Path, ...]
    """What was written; pictures are one folder."""
    summary: Summary
    """What was found, in numbers."""
    parts: int
    """How many parts were put together."""
    inputs: int
    """Files that the parts were made of."""
    failed: dict[str, str]
    """The files that could not be used, or not in full, with what is wrong with them."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that is done, with its journal open."""

    folder: Path
    seal: Seal
    file: BinaryIO
    sources: tuple[dict[str, Any], ...]  # what the journal has of files of many

    def line(self, image: Sealed) -> dict[str, Any]:
        """The line of an image in the journal."""
        try:
            self.file.seek(image.line)
            line: dict[str, Any] = words_of(self.file.readline())
            check_line(line)
            if "record" not in line or "drawn" not in line:
                raise ValueError("it is not about an image")
        except (ValueError, OverflowError, RecursionError) as error:
            raise PcdnetError(
                f"the journal in {self.folder} has no image where the seal says that there is one ({error}); ",
                *(f"run shard {self.seal.shard} again with ", Setting("force", True)),
            ) from None
        return line


def gather(
    folders: str | Path | Iterable[str | Path], out: str | Path, *, force: bool = False, quiet: bool = False
) -> Gathered:
    """Put the parts together that `decompose_files` made of several shards; the files are those of one single call.

    The folder is then a usual one, with which `decompose_files` goes on. Parts of different runs, inputs or options,
    missing, doubled and unfinished ones, and damaged files are refused.

    Parameters
    ----------
    folders
        The folders of all parts, in any order.
    out
        Folder for the results, another one than those of the parts.
    force
        Write into the folder even if it holds other things.
    quiet
        Show no progress.

    Returns
    -------
    Gathered
        What was written, what was found, and which files could not be used.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import ModelConfig, PCDNet, decompose_files
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "abc":
    ...         Image.new("RGB", (40, 30)).save(f"{folder}/{name}.png")
    ...     for index in range(2):
    ...         part = f"{folder}/part-{index}"
    ...         done = decompose_files(PCDNet(ModelConfig()), folder, part, shard=(index, 2), quiet=True)
    ...     gathered = gather([f"{folder}/part-0", f"{folder}/part-1"], f"{folder}/all", quiet=True)
    ...     gathered.summary.images, [path.name for path in gathered.files]
    (3, ['decompositions.jsonl'])
    """
    out, places = Path(out), [Path(path) for path in ([folders] if isinstance(folders, str | Path) else folders)]
    with shown(quiet=quiet), phase("reading what the parts hold"):
        seals = {place: Seal.read(place) for place in places}
    _check(places, seals, out)
    first = seals[places[0]]
    formats, settings = checked_formats(first.formats), dict(first.settings)
    _check_target(out, settings, force)
    with shown(quiet=quiet), ExitStack() as stack:
        parts = [_opened(place, seal, stack) for place, seal in seals.items()]
        journal = stack.enter_context(Journal(out, settings, force=force))
        images = sorted(((image, part) for part in parts for image in part.seal.images), key=lambda pair: pair[0][:2])
        if not images:
            raise PcdnetError(f"none of the {first.inputs} files could be used, so there is nothing to put together")
        steps = _copied(images, journal, out)
        lines = list(steps if quiet else track(((1, line) for line in steps), len(images), "images"))
        stack.enter_context(phase("writing what was found"))
        for line in (line for part in parts for line in part.sources):  # most are the same in all parts
            if journal.done(line["source"], tuple(line["stamp"])) is None:
                journal.add([line])
        results = Results(journal.records(lines), Kinds(first.names), first.channels)
        files = [path for each in formats if each.writer is not None for path in each.write(results, out)]
        return Gathered(
            files=(*files, *([out / PICTURES] if any(each.writer is None for each in formats) else [])),
            summary=Summary.from_results(results),
            parts=len(parts),
            inputs=first.inputs,
            failed={name: reason for part in parts for name, reason in part.seal.failed.items()},
        )


def _check(places: Sequence[Path], seals: dict[Path, Seal], out: Path) -> None:
    """Refuse parts that are not those of one decomposition, each once."""
    if not places:
        raise PcdnetError("there is no part to put together; give the folders of all shards")
    if any(place.resolve() == out.resolve() for place in places):
        raise PcdnetError(f"{out} is one of the parts; choose another ", Setting("out"))
    first = seals[places[0]]
    for place, seal in seals.items():
        if difference := _difference(first, seal):
            raise PcdnetError(f"{places[0]} and {place} ", *difference)
    seen: dict[int, Path] = {}
    for place in places:
        index = seals[place].shard.index
        if index in seen:
            raise PcdnetError(f"shard {seals[place].shard} is there twice, {seen[index]} and {place}; give one of them")
        seen[index] = place
    count = first.shard.count
    lost = count - len(seen)  # of as many as somebody claims; only the first are looked for
    if lost:
        named = list(islice((f"{n}/{count}" for n in range(count) if n not in seen), 3))
        more = f" and {lost - len(named)} more" if lost > len(named) else ""
        s, are, them = ("", "is", "it") if lost == 1 else ("s", "are", "them")
        raise PcdnetError(
            f"shard{s} {', '.join(named)}{more} {are} missing; decompose {them} if that is not done yet, and give the "
            f"folder{s}, too"
        )


def _difference(one: Seal, other: Seal) -> tuple[str | Setting, ...]:
    """Why two parts do not belong together, in words that end with the cure; nothing where they do."""
    again = "run the shards that differ again, with the same"
    if one.shard.count != other.shard.count:
        return (f"are shards of {one.shard.count} and of {other.shard.count}; give those of one number",)
    differ = {name for name, value in one.settings.items() if other.settings.get(name) != value}
    for name, what, same in (("model", "runs", "run"), ("pcdnet", "versions of pcdnet", "version")):
        if name in differ:
            return (f"are of different {what}; {again} {same}",)
    for name in differ | ({"stride"} if one.stride != other.stride else set()):
        return ("are of different ", Setting(name), f"; {again} ", Setting(name))
    if one.formats != other.formats:
        formats = ",".join(one.formats), ",".join(other.formats)
        return (f"have the formats {formats[0]} and {formats[1]}; {again} ones: nothing is decomposed twice",)
    if (one.inputs, one.digest) != (other.inputs, other.digest):
        files = f"{one.inputs} and {other.inputs} files" if one.inputs != other.inputs else "files that differ"
        return (f"are of different inputs, {files} by name, size or time; {again} paths to files that do not change",)
    if one.names != other.names or one.channels != other.channels:
        return (f"name the prototypes differently; {again} run: nothing is decomposed twice",)
    return ()


def _check_target(out: Path, settings: dict[str, Any], force: bool) -> None:
    """Refuse to forget what is known of other results."""
    head = head_of(out)
    if force or head is None or all(head.get(name) == value for name, value in settings.items()):
        return
    cure = Setting("out"), ", or add ", Setting("force", True), " to write there"
    raise PcdnetError(f"{out} holds results of another run or of other options; choose another ", *cure)


def _opened(folder: Path, seal: Seal, stack: ExitStack) -> _Part:
    """A part with its journal, if that is as it was when the part was sealed."""
    path, digest, sources = folder / JOURNAL, hashlib.sha256(), []
    again = f"run shard {seal.shard} again with ", Setting("force", True)
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is no file")
        file = stack.enter_context(path.open("rb"))
        for line in file:
            digest.update(line)
            if line.startswith(_SOURCE):
                sources.append(line)
    except OSError as error:
        reason = error.strerror or error
        raise PcdnetError(f"{path} cannot be read ({reason}); make it readable, or ", *again) from None
    if digest.hexdigest() != seal.journal:
        raise PcdnetError(f"{path} is damaged, or was changed since the shard was done; ", *again)
    return _Part(folder, seal, file, tuple(_sound(sources)))


def _sound(sources: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """What the journal has of files of many, but for what is no such line: whole files can be read again."""
    for line in sources:
        with suppress(ValueError, RecursionError):
            check_line(words := words_of(line))
            if "count" in words:
                yield words


def _copied(images: Sequence[tuple[Sealed, _Part]], journal: Journal, out: Path) -> Iterator[int]:
    """Add what the parts know of the images to the journal, with their pictures; where each image's line is."""
    left = iter(images)
    while some_images := list(islice(left, TOGETHER)):
        lines = [part.line(image) for image, part in some_images]
        for image, part in some_images:
            _copy_pictures(image, part, out)
        journal.add([line for line in lines if not _known(journal, line)])
        for line in lines:
            yield journal.entries[line["record"]["name"]].place


def _known(journal: Journal, line: dict[str, Any]) -> bool:
    """Whether the journal has a line already, as that of an earlier attempt."""
    entry = journal.done(line["record"]["name"], tuple(line["stamp"]))
    return entry is not None and entry.drawn == line["drawn"]


def _copy_pictures(image: Sealed, part: _Part, out: Path) -> None:
    if not image.title:
        return
    for path in picture_files(part.folder / PICTURES / image.title):
        try:
            content = content_of(path, LARGEST)
        except OSError as error:
            raise PcdnetError(
                f"{path} cannot be read ({error.strerror or error}); run shard {part.seal.shard} again, which draws it"
            ) from None
        if not is_whole_png(content):
            raise PcdnetError(f"{path} is damaged; delete it, and run shard {part.seal.shard} again, which draws it")
        target = out / path.relative_to(part.folder)
        made(target.parent)
        with whole_file(target) as file:
            file.write(content)
