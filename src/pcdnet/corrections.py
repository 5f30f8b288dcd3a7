"""Corrections: what a model gets wrong, as people showed it: boxes around things it misses, prototypes that are none.

    corrections/corrections.json      boxes, names and removed prototypes, sealed
    corrections/1.png                 the picture of box 1, as the model sees it

They are kept with the run until a model that learned from them is adopted, or until they are taken back.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from pcdnet.data.pictures import read_picture
from pcdnet.errors import PcdnetError
from pcdnet.files import content_of, sealed_json, text_of, unsealed_json, whole_file
from pcdnet.files import folder as made
from pcdnet.names import checked_name

FOLDER, FILE = "corrections", "corrections.json"
"""The folder of a run that holds them, and the file of all but the pictures."""
FORMAT = "pcdnet-corrections-1"
"""Names the schema of the file."""
MOST_DRAWN, MOST_REMOVED = 64, 4096
"""Boxes and removed prototypes at most."""
SMALLEST = 2
"""Pixels that a side of a box has at least."""

_LARGEST_PICTURE = 64 * 2**20  # bytes of a file

Box = tuple[int, int, int, int]
"""Top, left, height and width."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A box that somebody drew around a thing."""

    image: UInt8[np.ndarray, "H W C"]
    """The picture as the model sees it."""
    box: Box
    """Top, left, height and width, in pixels."""
    name: str = ""
    """What the thing is called; things of one name are one kind."""

    def __post_init__(self) -> None:
        top, left, height, width = self.box
        H, W = self.image.shape[:2]
        if min(top, left) < 0 or min(height, width) < SMALLEST or top + height > H or left + width > W:
            problem = f"a box of {height}x{width} at row {top}, column {left} is none of a picture of {H}x{W}"
            raise PcdnetError(f"{problem}; give top, left, height and width of a part of it")
        checked_name(self.name)


@dataclass(frozen=True, slots=True)
class Kept:
    """A drawn box as it is kept."""

    id: int
    """Its number, which no other has."""
    picture: str
    """What the picture is called, where it has a name."""
    box: Box
    name: str
    digest: str
    """That of the picture's file."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections of a run."""

    folder: Path
    """Where they are; nothing need be there."""

    def drawn(self) -> tuple[Kept, ...]:
        """The boxes."""
        return self._read()[0]

    def removed(self) -> tuple[int, ...]:
        """The prototypes that are no objects."""
        return self._read()[1]

    def add(self, drawn: Drawn, picture: str = "") -> Kept:
        """Keep a box with its picture."""
        known, removed = self._read()
        if len(known) >= MOST_DRAWN:
            raise PcdnetError(f"{len(known)} boxes are drawn already; learn again from them first")
        number = max((each.id for each in known), default=0) + 1
        buffer = io.BytesIO()
        image = drawn.image
        Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(buffer, format="png")
        content = buffer.getvalue()
        with whole_file(made(self.folder) / f"{number}.png", durable=True) as file:
            file.write(content)
        kept = Kept(number, picture, drawn.box, checked_name(drawn.name), hashlib.sha256(content).hexdigest())
        self._write((*known, kept), removed)
        return kept

    def take_back(self, number: int) -> bool:
        """Forget a box; whether there was one."""
        known, removed = self._read()
        left = tuple(each for each in known if each.id != number)
        if len(left) < len(known):
            self._write(left, removed)
            (self.folder / f"{number}.png").unlink(missing_ok=True)
        return len(left) < len(known)

    def remove(self, prototype: int, *, removed: bool = True) -> None:
        """Note that a prototype is no object, or that it is one after all."""
        known, others = self._read()
        others = tuple(each for each in others if each != prototype)
        self._write(known, (*others, prototype) if removed else others)

    def load(self) -> list[Drawn]:
        """The boxes with their pictures; a picture that is not as it was kept is refused."""
        found = []
        for each in self.drawn():
            path = self.folder / f"{each.id}.png"
            try:
                content = content_of(path, _LARGEST_PICTURE)
                if hashlib.sha256(content).hexdigest() != each.digest:
                    raise PcdnetError("it is not as it was written: its digest differs")
                image = read_picture(io.BytesIO(content), name=str(path))
            except (OSError, PcdnetError) as error:
                reason = getattr(error, "strerror", None) or error
                cure = f"take box {each.id} back, and draw it anew"
                raise PcdnetError(f"the picture {path} of a drawn box cannot be used: {reason}; {cure}") from None
            found.append(Drawn(image, each.box, each.name))
        return found

    def _read(self) -> tuple[tuple[Kept, ...], tuple[int, ...]]:
        path = self.folder / FILE
        if not path.exists():
            return (), ()
        try:
            text = text_of(content_of(path))
            if (rest := unsealed_json(text)) == text:
                raise ValueError("it has no checksum")
            return _from_words(json.loads(rest))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, PcdnetError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PcdnetError(f"{path} cannot be used: {reason}; remove it, and draw the boxes anew") from None

    def _write(self, drawn: tuple[Kept, ...], removed: tuple[int, ...]) -> None:
        words = [{"id": d.id, "picture": d.picture, "box": d.box, "name": d.name, "digest": d.digest} for d in drawn]
        text = json.dumps({"format": FORMAT, "drawn": words, "removed": removed}, indent=1) + "\n"
        with whole_file(made(self.folder) / FILE, durable=True) as file:
            file.write(sealed_json(text).encode())


def within(drawn: Drawn, channels: int) -> Drawn:
    """The box with its picture in the channels of a model."""
    from pcdnet.data.intake import fitted

    return replace(drawn, image=fitted(drawn.image, channels=channels))


def _from_words(words: Any) -> tuple[tuple[Kept, ...], tuple[int, ...]]:
    if not isinstance(words, dict) or words.get("format") != FORMAT or words.keys() != {"format", "drawn", "removed"}:
        raise ValueError("it holds other things than corrections")
    drawn, removed = words["drawn"], words["removed"]
    if not isinstance(drawn, list) or not isinstance(removed, list) or len(drawn) > MOST_DRAWN:
        raise ValueError("it has no list of boxes, or too long a one")
    if len(removed) > MOST_REMOVED or not all(type(p) is int and p >= 0 for p in removed):
        raise ValueError("it removes what is no prototype")
    kept = []
    for each in drawn:
        box = each["box"]
        if type(each["id"]) is not int or not 0 < each["id"] < 2**31 or not isinstance(each["digest"], str):
            raise ValueError("a box has no number")
        if not isinstance(box, list) or len(box) != 4 or not all(type(side) is int for side in box):
            raise ValueError("a box is none")
        if not isinstance(each["picture"], str) or not isinstance(each["name"], str):
            raise ValueError("a box has no picture, or no name")
        kept.append(Kept(each["id"], each["picture"], tuple(box), checked_name(each["name"]), each["digest"]))
    return tuple(kept), tuple(removed)
