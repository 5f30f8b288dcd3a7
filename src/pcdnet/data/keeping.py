"""Keeping: images that would fill the memory, decoded once into a file of the user's cache.

What is kept is found again by a key, which is made of all that decides what the pixels are: the sources with sizes and
times, and the view. A file is written whole or not at all, every byte of it is checked when it is opened, and one that
is damaged is made anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from pcdnet.data.notes import to_stderr
from pcdnet.errors import PcdnetError
from pcdnet.files import folder, whole_file
from pcdnet.pixels import HEAD, Images, PixelStore, open_store, write_store

LIMIT = "PCDNET_MAX_MEMORY"
"""The environment variable that sets how many MiB of pixels are held in memory."""
USUAL, SHARE = 512 * 2**20, 0.25
"""Bytes of pixels that are held in memory at most where nobody says how many, and the share of what is free."""
HELD = 64 * 2**20
"""Bytes of a stream that are held before it is written to a file: shorter ones never are."""
VERSION = 1
"""Counts changes in how pictures are decoded or seen: what an older version has kept is not used again."""
UNUSED = 30 * 24 * 3600
"""Seconds after which pixels that nothing was trained on make room for others."""
CACHE = "PCDNET_CACHE"
"""The environment variable that names the folder of everything that is kept."""


def most_in_memory() -> int:
    """Bytes of pixels that are held in memory at most: what the environment says, or what a share of the memory is."""
    asked = os.environ.get(LIMIT)
    if asked is None:
        return min(USUAL, int(SHARE * _free_memory()))
    if not asked.isdecimal():
        raise PcdnetError(f"the environment variable {LIMIT} is {asked!r}; set it to a number of MiB")
    return int(asked) * 2**20


def cache(what: str) -> Path:
    """The folder that something is kept in: of $PCDNET_CACHE, else of the user's folder for such things."""
    own, users = os.environ.get(CACHE), os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path(users or "~/.cache").expanduser() / "pcdnet") / what


def stamp(path: Path) -> tuple[int, int]:
    """Size and time of the last change of a file: while they stay, so do its images."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True, kw_only=True, slots=True)
class Keep:
    """Images that may have to be kept in a file: which they are, and what was said of them while they were decoded."""

    name: str
    """What they are called in messages."""
    key: tuple[Any, ...]
    """All that decides which pixels they have; its text is what counts."""
    words: dict[str, Any] = field(default_factory=dict)
    """What is kept beside the pixels, which decoding may fill in."""

    @property
    def path(self) -> Path:
        """Where the file is, or will be."""
        mark = hashlib.sha256(repr((VERSION, self.key)).encode(errors="surrogatepass")).hexdigest()
        return cache("pixels") / f"{mark[:32]}.pixels"

    def kept(self) -> Images | None:
        """What is kept already, with its words; None if there is nothing, or if it is damaged."""
        try:
            store = open_store(self.path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            to_stderr(f"{self.path} is damaged ({error}), so {self.name} is decoded again")
            return None
        self.words.clear()
        self.words.update(store.words)
        with suppress(OSError):  # so that it is seen to be in use
            os.utime(self.path)
        return _as_is_best(store)

    def collect(self, images: Iterable[UInt8[np.ndarray, "_ _ _"]], size: int = 0) -> Images:
        """All images, which have one size: as an array if they are few, or in a file.

        So many bytes are expected, if that is known: without room for them on the disk nothing is decoded.
        """
        self._check_room(size)
        stream = iter(images)
        first = next(stream, None)
        if first is None:
            raise PcdnetError(f"{self.name} holds no image that can be read; give one that does")
        few = [first, *islice(stream, max(0, min(most_in_memory(), HELD) // first.size - 1))]
        last = next(stream, None)
        if last is None:
            return np.stack(few)
        to_stderr(f"{self.name} is decoded once, into {self.path}")
        _forget_unused(folder(self.path.parent))
        with whole_file(self.path, *self._cure(), shared=True) as file:
            write_store(file, chain(_emptied(few), [last], stream), self.words)
        return _as_is_best(open_store(self.path))

    def _check_room(self, size: int) -> None:
        if not size:
            return
        place = next(each for each in self.path.parents if each.exists())
        free = shutil.disk_usage(place).free
        if size + HEAD > free:
            problem = (
                f"{self.name} takes {size / 2**30:.1f} GiB on the disk, and {free / 2**30:.1f} are free in {place}"
            )
            raise PcdnetError(f"{problem}; ", *self._cure())

    def _cure(self) -> tuple[str, ...]:
        return (f"make room, or set the environment variable {CACHE} to a folder with more",)


def _forget_unused(place: Path) -> None:
    """Remove the pixels that were not used for long; a training that still reads them keeps its open file."""
    for path in place.glob("*.pixels*"):  # with those that a process that was killed left half-written
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED:
                path.unlink()
                to_stderr(f"removed {path}, which was not used for {UNUSED // (24 * 3600)} days")


def _emptied(images: list[Any]) -> Iterator[Any]:
    """The images of a list, which lets go of them."""
    images.reverse()
    while images:
        yield images.pop()


def _as_is_best(store: PixelStore) -> Images:
    images: Any = store
    return np.asarray(store) if store.nbytes <= most_in_memory() else images


def _free_memory() -> int:
    """Bytes that programs can have, as far as the system tells."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return int(USUAL / SHARE)
