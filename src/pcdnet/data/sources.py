"""Sources: all that images can come from, one entry each.

A source is a file of this package and an entry of that name in `SOURCES`; what `--data` takes, what `decompose` takes,
the help and the messages follow. The file has `generate` if scenes are made by seed, and otherwise `read`, `images` and
`count`, and `headers` if they are still pictures. It is imported when it is used, since this registry is imported for
every `--help`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Num

    from pcdnet.data.intake import Header
    from pcdnet.data.view import View
    from pcdnet.scene import Scenes

TRAINING_SEED, VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000, 3_000_000
"""Seeds of generated scenes begin here, so that no two purposes share a scene."""
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")
TIFFS = (".tif", ".tiff")
VIDEOS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".gif")
"""How the names of pictures, of those that may have many pages, and of videos end, in lower case."""
PARTS = ("train", "val", "test")
"""The folders that a folder may have instead of images, as many data sets do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something that images come from."""

    name: str
    """That of its file, with - for _; capitals after a colon stand for what a user puts there."""
    words: str
    """What it is called in help and messages."""
    suffixes: tuple[str, ...] = ()
    """How the names of its files end, in lower case."""
    training: tuple[int, int] | None = None
    """How many scenes are generated for training and for validation; None if scenes lie in files."""
    preset: str | None = None
    """The preset that is made for it."""
    many: bool = True
    """Whether it holds many images; then each has a number."""
    strided: bool = False
    """Whether `decompose` may skip some of its images."""
    shards: bool = False
    """Whether a folder, a pattern or an address of its files is one, too; `#` and a column may follow."""

    @property
    def generated(self) -> bool:
        """Whether its scenes are made by seed, and not read from a file."""
        return self.training is not None

    def recognises(self, name: str) -> bool:
        """Whether a name or path is of this source: it is its name, ends as its files do, or is a folder."""
        if self.generated:
            beginning, colon, _ = self.name.partition(":")
            return name.startswith(f"{beginning}:") if colon else name == beginning and not _holds_pictures(name)
        if self.shards and shards_in(name) in self.suffixes:
            return True
        if self.suffixes:
            return Path(name_and_column(name)[0] if self.shards else name).suffix.lower() in self.suffixes
        with suppress(OSError):  # too long for a name, for example
            return bool(name) and (_is_folder_far_away(name) or Path(name).is_dir()) and not shards_in(name)
        return False

    def generate(self, name: str, *, count: int, seed: int) -> Scenes:
        """So many scenes of a seed; what follows a colon in the name says which, those of a game for example."""
        made: Scenes = self._module().generate(count, seed, *name.split(":", 1)[1:])
        return made

    def read(self, path: str | Path, *, limit: int | None, view: View) -> Scenes:
        """At most so many scenes of a file or folder, as they are to be seen."""
        found: Scenes = self._module().read(path, limit=limit, view=view)
        return found

    def images(self, path: str | Path, *, stride: int) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
        """Every `stride`-th image of a file or folder with its number, one held at a time; values are as they lie.

        Incomplete is raised at the end if some of a file cannot be read.
        """
        yield from self._module().images(path, stride=stride)

    def headers(self, path: str | Path) -> dict[int, Header]:
        """What the pictures of a file or folder say of themselves, by number; of films and games nothing is asked."""
        found: dict[int, Header] = getattr(self._module(), "headers", lambda _: {})(path)
        return found

    def count(self, path: Path) -> int:
        """How many images a file claims to hold."""
        return int(self._module().count(path))

    def _module(self) -> Any:
        return import_module(f"pcdnet.data.{self.name.partition(':')[0].replace('-', '_')}")


PICTURE = Source("pictures", "a picture or TIFF stack", PICTURES, many=False)
"""One picture, which may also come by standard input or lie in a folder."""
STACK = replace(PICTURE, many=True)
"""A TIFF file of many pages."""
SOURCES = (
    Source("tetrominoes", "tetrominoes (generated)", training=(60_000, 320), preset="tetrominoes"),
    Source("letters", "letters (generated)", training=(2_000, 100)),
    Source("multi-dsprites", "multi-dsprites (re-created)", training=(2_000, 100), preset="multi-dsprites"),
    Source("symbols", "symbols (generated)", training=(1_000, 100)),
    Source("symbols:TURNED", "symbols:TURNED (turned, symbols:quarter or symbols:any)", training=(1_000, 100)),
    Source("space-invaders", "space-invaders (played and recorded)", training=(3_000, 100), preset="space-invaders"),
    Source("atari:GAME", "atari:GAME (another game, atari:ms_pacman for example)", training=(3_000, 100)),
    Source("folder", "a folder of images"),
    Source("webdataset", "WebDataset shards (.tar files, a folder or a pattern of them)", (".tar",), shards=True),
    Source("parquet", "Parquet files with a column of pictures", (".parquet",), shards=True),
    Source("video", "a video", VIDEOS, strided=True),
    PICTURE,
    Source("npz", "an .npz file with the array 'image'", (".npz",)),
    Source("tetromino-records", "a .tfrecords file of Tetrominoes", (".tfrecords", ".tfrecord"), preset="tetrominoes"),
)
"""Every source, in the order in which they are asked: a .gif is a video, and a picture only in a folder of pictures."""

GENERATED = tuple(source for source in SOURCES if source.generated)
"""Those whose scenes are made by seed."""
FILES = tuple(source for source in SOURCES if not source.generated)
"""Those that lie in files and folders."""


FETCHED = (*{suffix for source in FILES for suffix in (*PICTURES, *source.suffixes)}, ".json")
"""How the names of files end that are fetched with a folder far away."""


def name_and_column(name: str) -> tuple[str, str]:
    """A name of shards without the column that follows a #, and that column; a # may be part of a path that is there.

    Examples
    --------
    >>> name_and_column("run#7/*.parquet#photo")
    ('run#7/*.parquet', 'photo')
    """
    ends = [place for place, sign in enumerate(name) if sign == "#"]
    with suppress(OSError, ValueError):  # too long for a name, for example
        for end in (len(name), *reversed(ends)) if ends and "://" not in name else ():
            if Path(name[:end]).expanduser().exists():
                return name[:end], name[end + 1 :]
    suffixes = [suffix for source in SOURCES if source.shards for suffix in source.suffixes]
    last = next((end for end in ends if name[:end].lower().endswith(tuple(suffixes))), None)
    if last is None and not name.lower().endswith(tuple(suffixes)):
        last = next(iter(ends), None)
    return (name, "") if last is None else (name[:last], name[last + 1 :])


def shards_in(name: str) -> str:
    """How the shards end that a folder, here or far away, holds instead of pictures; nothing if there are none."""
    endings = (*PICTURES, *(suffix for source in SOURCES if source.shards for suffix in source.suffixes))
    first = ""
    if _is_folder_far_away(name):
        from pcdnet.data import remote

        first = remote.holds(name, endings)
    with suppress(OSError, ValueError):
        if not first and name and Path(name).is_dir():
            with os.scandir(name) as entries:
                first = next((s for e in entries if (s := Path(e.name).suffix.lower()) in endings), "")
    return "" if first in PICTURES else first


def _holds_pictures(name: str) -> bool:
    """Whether a folder of that name holds pictures or the parts of a data set: then it is meant, not what is made."""
    with suppress(OSError), os.scandir(name) as entries:
        return any(Path(entry.name).suffix.lower() in PICTURES or entry.name in PARTS for entry in entries)
    return False


def _is_folder_far_away(name: str) -> bool:
    """Whether a name is an address of no file or pattern that is known."""
    suffix = Path(name_and_column(name)[0]).suffix.lower()
    return "://" in name and not any(suffix in source.suffixes for source in SOURCES)


def source_of(name: str | Path) -> Source | None:
    """The source that a name or path is of; None where it is of none."""
    return next((source for source in SOURCES if source.recognises(str(name))), None)


def usable(sources: Iterable[Source] = SOURCES) -> str:
    """What can be used, in words."""
    *others, last = (source.words for source in sources)
    return f"{', '.join(others)} or {last}"


def is_generated(name: str | Path) -> bool:
    """Whether data are made by seed, and not read from a file."""
    source = source_of(name)
    return source is not None and source.generated


def usual_preset(name: str | Path) -> str | None:
    """The preset that is made for some data; None where there is none."""
    source = source_of(name)
    return None if source is None else source.preset
