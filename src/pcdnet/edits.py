"""Edits: scenes that people corrected, kept in a run's folder, a sealed file for each picture.

    edits/4f1d0c9a62b07e35-9c1185a5c5e9fc54.json

A file is called by the picture's name and by its pixels: so edits follow a picture whose place in the folder changes,
and are never laid over another picture of that name. They are for people to go on with; `decompose` does not read them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from pcdnet.config import FULL_TURN, MOST_SCALE
from pcdnet.decomposition import POSE, UPRIGHT
from pcdnet.errors import PcdnetError
from pcdnet.files import content_of, sealed_json, text_of, unsealed_json, whole_file
from pcdnet.files import folder as made

FOLDER = "edits"
"""The folder of a run that holds them."""
FORMAT = "pcdnet-edits-1"
"""Names the schema of a file."""
MOST_OBJECTS, FARTHEST, STRONGEST = 4096, 100_000, 16.0
"""Objects of a scene at most, how far from a picture's corner they may lie, and how large colour values may be."""
LARGEST_SIDE = 1 << 16
"""Pixels that a side of a picture has at most."""

_KEY = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.json")
_LARGEST = 2**20  # bytes of a file


@dataclass(frozen=True, slots=True)
class Placed:
    """An object as somebody placed it."""

    prototype: int
    """Which prototype it is an instance of, from 0."""
    position: tuple[float, float]
    """Top row and left column of the prototype's frame, upright."""
    colour: tuple[float, ...]
    """Factor per channel on the grey prototype."""
    angle: float = 0.0
    """By how many degrees it is turned counter-clockwise around the middle of its frame."""
    scale: float = 1.0
    """How much larger it is than its prototype."""
    mirrored: bool = False
    """Whether it is a mirror image."""

    def to_dict(self) -> dict[str, Any]:
        """The object as records have it; what is upright has no pose."""
        pose = dict(zip(POSE, (self.angle, self.scale, self.mirrored), strict=True))
        words = {} if pose == UPRIGHT else pose
        return {"prototype": self.prototype, "position": self.position, **words, "colour": self.colour}


@dataclass(frozen=True, slots=True)
class Edited:
    """A picture's objects, front to back, as somebody left them."""

    name: str
    """What the picture is called."""
    digest: str
    """That of its pixels; see `digest_of`."""
    size: tuple[int, int]
    """Height and width of the picture."""
    objects: tuple[Placed, ...]
    """The objects."""

    def to_json(self) -> str:
        """The sealed text of a file."""
        words = {"format": FORMAT, "name": self.name, "digest": self.digest, "size": self.size}
        things = [thing.to_dict() for thing in self.objects]
        return sealed_json(json.dumps({**words, "objects": things}, separators=(",", ":")) + "\n")

    @staticmethod
    def from_json(text: str) -> Edited:
        """Read `to_json`'s text, or raise ValueError."""
        if (rest := unsealed_json(text)) == text:
            raise ValueError("it has no checksum")
        words = json.loads(rest)
        if not isinstance(words, dict) or words.keys() != {"format", "name", "digest", "size", "objects"}:
            raise ValueError("it holds other things than a scene")
        things = words["objects"]
        if words["format"] != FORMAT or not all(isinstance(words[key], str) for key in ("name", "digest")):
            raise ValueError("it does not say of which picture it is")
        if not _whole(words["size"], 1, LARGEST_SIDE) or not isinstance(things, list) or len(things) > MOST_OBJECTS:
            raise ValueError("it has no size, or no list of objects")
        height, width = words["size"]
        return Edited(words["name"], words["digest"], (height, width), tuple(map(_placed, things)))

    def checked(self, prototypes: int, channels: int) -> Edited:
        """The same, if a model of so many prototypes and channels can paint it."""
        for thing in self.objects:
            if thing.prototype >= prototypes or len(thing.colour) != channels:
                raise PcdnetError(
                    f"the edits of {self.name} have an object of prototype {thing.prototype} with "
                    f"{len(thing.colour)} colour values, which this model has not; discard them"
                )
        return self


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of a run.

    Examples
    --------
    >>> import tempfile
    >>> picture = np.zeros((4, 6, 3), np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edits = Edits(Path(folder) / "edits")
    ...     edits.keep(Edited("a.png", digest_of(picture), (4, 6), ()))
    ...     [each.name for each in edits], edits.of("a.png", digest_of(picture)) is not None
    (['a.png'], True)
    """

    folder: Path
    """Where they are; nothing need be there."""

    def keep(self, edited: Edited) -> None:
        """Keep a scene in the place of what there was of this picture, whole or not at all."""
        made(self.folder)
        with whole_file(self.folder / _file_name(edited.name, edited.digest), durable=True) as file:
            file.write(edited.to_json().encode())

    def of(self, name: str, digest: str) -> Edited | None:
        """What is kept of a picture; a damaged file is a PcdnetError that names it, and never believed."""
        path = self.folder / _file_name(name, digest)
        if not path.exists():
            return None
        found = _read(path)
        if (found.name, found.digest) != (name, digest):
            raise PcdnetError(f"{path} is about another picture than its name says; remove it")
        return found

    def discard(self, name: str, digest: str | None = None) -> None:
        """Forget what is kept of a picture, or of all pictures that were ever called so."""
        mark = _mark(name)
        for key, own in self._keys():
            if key == mark and (digest is None or own == digest[:16]):
                self._remove(self.folder / f"{key}-{own}.json")

    def discard_all(self) -> None:
        """Forget all, damaged ones too."""
        for key, own in self._keys():
            self._remove(self.folder / f"{key}-{own}.json")
        with suppress(OSError):  # where something else lies in it, it stays
            self.folder.rmdir()

    def marks(self) -> set[str]:
        """The marks of the names of all pictures of which something is kept; see `is_among`."""
        return {key for key, _ in self._keys()}

    @staticmethod
    def is_among(name: str, marks: set[str]) -> bool:
        """Whether something is kept of a picture that is called so."""
        return _mark(name) in marks

    def __iter__(self) -> Iterator[Edited]:
        """All that can be read, in the order of their files; `damaged` has the others."""
        for key, own in sorted(self._keys()):
            with suppress(PcdnetError):
                yield _read(self.folder / f"{key}-{own}.json")

    def damaged(self) -> list[str]:
        """What is wrong with the files that cannot be read."""
        wrong = []
        for key, own in sorted(self._keys()):
            try:
                _read(self.folder / f"{key}-{own}.json")
            except PcdnetError as error:
                wrong.append(str(error))
        return wrong

    def renumbered(self, numbers: dict[int, int], shift: tuple[int, int], folder: Path) -> None:
        """Write the edits into another folder, for a bank in which prototypes have other numbers and frames.

        Objects of prototypes that have no new number are left out; `shift` is added to every position.
        """
        for edited in self:
            kept = [
                replace(
                    thing,
                    prototype=numbers[thing.prototype],
                    position=(thing.position[0] + shift[0], thing.position[1] + shift[1]),
                )
                for thing in edited.objects
                if thing.prototype in numbers
            ]
            Edits(folder).keep(replace(edited, objects=tuple(kept)))

    def _keys(self) -> list[tuple[str, str]]:
        try:
            names = [entry.name for entry in self.folder.iterdir()] if self.folder.is_dir() else []
        except OSError as error:
            raise PcdnetError(f"{self.folder} cannot be read ({error.strerror}); make it readable") from None
        return [(found[1], found[2]) for name in names if (found := _KEY.fullmatch(name))]

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise PcdnetError(f"cannot remove {path}: {error.strerror or error}; make it writable") from None


def digest_of(picture: UInt8[np.ndarray, "H W C"]) -> str:
    """What tells a picture from all others: a digest of its size and its pixels."""
    digest = hashlib.sha256(repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture).data)
    return digest.hexdigest()


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def _file_name(name: str, digest: str) -> str:
    return f"{_mark(name)}-{digest[:16]}.json"


def _read(path: Path) -> Edited:
    try:
        return Edited.from_json(text_of(content_of(path, _LARGEST)))
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PcdnetError(f"{path} cannot be used: {reason}; remove it") from None


def _placed(thing: Any) -> Placed:
    known = {"prototype", "position", "colour"}
    if not isinstance(thing, dict) or thing.keys() - set(POSE) != known:
        raise ValueError("it has an object that is none")
    prototype, position, colour = thing["prototype"], thing["position"], thing["colour"]
    if type(prototype) is not int or not 0 <= prototype < FARTHEST or not _is_place(position):
        raise ValueError("it has an object that is nowhere")
    if not _numbers(colour, -STRONGEST, STRONGEST) or len(colour) not in (1, 3):
        raise ValueError("it has an object without a colour")
    angle, scale, mirrored = (thing.get(name, usual) for name, usual in UPRIGHT.items())
    turned = _numbers([angle], -FULL_TURN, FULL_TURN) and _numbers([scale], 1 / MOST_SCALE, MOST_SCALE)
    if not turned or type(mirrored) is not bool:
        raise ValueError("it has an object in a pose that is none")
    place = position[0], position[1]
    return Placed(prototype, place, tuple(map(float, colour)), float(angle), float(scale), mirrored)


def _is_place(position: Any) -> bool:
    return _numbers(position, -FARTHEST, FARTHEST) and len(position) == 2


def _numbers(values: Any, least: float, most: float) -> bool:
    """Whether these are numbers within bounds."""
    return isinstance(values, list) and all(type(v) in (int, float) and least <= v <= most for v in values)


def _whole(values: Any, least: int, most: int) -> bool:
    """Whether these are two whole numbers within bounds."""
    return isinstance(values, list) and len(values) == 2 and all(type(v) is int and least <= v <= most for v in values)
