"""Succession: one model takes the place of another in a run's folder, which is kept and can come back.

    candidate/            what learning again made, until it is adopted or discarded
    former/1/             what a run was before, weights, names, edits and corrections
    adopting.json         there while the files of one take the place of the other's

What was there is kept first, then `adopting.json` says whose files are to come, then they come. A process that dies in
between leaves that file, and whoever opens the run next does the rest: a run is never half the one and half the other.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path

from pcdnet.errors import PcdnetError, Unwritable
from pcdnet.files import PARTIAL, content_of, sealed_json, text_of, unsealed_json, whole_file
from pcdnet.files import folder as made

CANDIDATE, FORMER, ADOPTING = "candidate", "former", "adopting.json"
"""The folders and the file of a run that are about it."""
MOST_FILE = 2**31
"""Bytes of a file of a run at most."""

_SOURCE = re.compile(rf"{CANDIDATE}|{FORMER}/[1-9]\d{{0,8}}")


def formers(path: Path) -> list[int]:
    """The numbers of the models that a run had before, the last one at the end."""
    folder = path / FORMER
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if re.fullmatch(r"[1-9]\d{0,8}", name))


def succeed(path: Path, source: str, files: tuple[str, ...], folders: tuple[str, ...]) -> Path:
    """Have the files of a folder inside the run take the place of its own; where the run's own are kept."""
    kept = _keep(path, files, folders)
    with whole_file(path / ADOPTING, "make room", durable=True) as file:
        file.write(sealed_json(json.dumps({"source": source}) + "\n").encode())
    complete(path, files, folders)
    return kept


def complete(path: Path, files: tuple[str, ...], folders: tuple[str, ...]) -> None:
    """Do what is left of a succession; nothing if there is none. Several processes may do so at the same time."""
    adopting = path / ADOPTING
    if not adopting.is_file():
        return
    try:
        source = json.loads(unsealed_json(text_of(content_of(adopting))))["source"]
        if not isinstance(source, str) or not _SOURCE.fullmatch(source):
            raise ValueError(f"it names {source!r:.40}")
    except FileNotFoundError:  # another process was quicker
        return
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        cure = f"remove it, and copy the files of the last folder of {path / FORMER} over those of the run"
        raise PcdnetError(f"cannot read {adopting}: {reason}; {cure}") from None
    if not (path / source).is_dir():
        raise PcdnetError(f"{adopting} names {path / source}, which is not there; remove that file")
    try:
        for name in files:
            _take(path / source / name, path / name)
        for name in folders:
            _take_all(path / source / name, path / name)
        adopting.unlink(missing_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror or error}; make room and open the run again") from None
    discard(path, source)


def discard(path: Path, source: str) -> None:
    """Remove a folder of a run; what a process that is killed leaves of it has no name that anybody asks for."""
    gone = path / f"{source.replace('/', '-')}.gone{PARTIAL}"
    with suppress(OSError):
        shutil.rmtree(gone, ignore_errors=True)
        (path / source).rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _keep(path: Path, files: tuple[str, ...], folders: tuple[str, ...]) -> Path:
    """Copy what a run is into a folder of its own."""
    number = max(formers(path), default=0) + 1
    kept, partial = path / FORMER / f"{number}", path / FORMER / f"{number}{PARTIAL}"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        made(partial)
        for name in files:
            if (path / name).is_file():
                _take(path / name, partial / name)
        for name in folders:
            if (path / name).is_dir():
                _take_all(path / name, partial / name)
        partial.rename(kept)
    except OSError as error:
        raise Unwritable(f"cannot keep the former model in {kept}: {error.strerror or error}; make room") from None
    return kept


def _take(source: Path, target: Path) -> None:
    """Make a file what another is, whole or not at all; gone if the other is."""
    if not source.is_file():
        target.unlink(missing_ok=True)
        return
    content = content_of(source, MOST_FILE)
    with whole_file(target, "make room", shared=True, durable=True) as file:
        file.write(content)


def _take_all(source: Path, target: Path) -> None:
    """The same for the files of a folder."""
    there = {each.name for each in source.iterdir() if each.is_file()} if source.is_dir() else set()
    for each in list(target.iterdir()) if target.is_dir() else ():
        if each.is_file() and each.name not in there:
            each.unlink(missing_ok=True)
    for name in sorted(there):
        _take(source / name, made(target) / name)
    if not there and target.is_dir():
        with suppress(OSError):  # where something else lies in it, it stays
            target.rmdir()
