"""COCO: true boxes in the JSON that annotation programs write, read with care.

Files come from strangers: nothing is believed before its type and size are checked, and a mistake is reported with
the entry that it is in. Crowds and boxes without an area are skipped.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pcdnet.data.notes import printable, readable
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes

MOST_BYTES = 256 * 2**20
"""Files larger than this are refused."""

_FARTHEST = 1e6  # pixels; no image reaches as far
_TEXT: dict[type, str] = {str: "a text"}
_IDENTITY: dict[type, str] = {int: "a whole number", **_TEXT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What the file says of one image."""

    name: str
    """The image's file, as it is written there."""
    size: tuple[int, int] | None
    """Height and width, if they are said."""
    boxes: Boxes
    """The objects of the image; none is a statement too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotations:
    """The images of a COCO file and their objects."""

    entries: tuple[Entry, ...]
    """What is said of every image."""
    kinds: tuple[str, ...]
    """The names of the categories."""
    strays: int
    """Objects of images that the file does not know."""

    def matched(self, names: Sequence[str], within: str | None = None) -> dict[str, Entry]:
        """The entries of those of the images that have one, by the images' names.

        Names count from the folder of the file; or, if the file lies beside a folder `within`, from both. Programs also
        write names from somewhere else: such an entry is taken by its last part, if no other has the same.
        """
        written = {_key(entry.name): entry for entry in self.entries}
        if within is not None:
            keys = [(name, key) for name in names for key in (_key(name), _key(f"{within}/{name}"))]  # the last counts
            return {name: written[key] for name, key in keys if key in written}
        found = {name: written[_key(name)] for name in names if _key(name) in written}
        ends = Counter(_last(entry.name) for entry in self.entries)
        here = Counter(map(_last, names))
        loose = {_last(entry.name): entry for entry in self.entries if ends[_last(entry.name)] == 1}
        rest = [name for name in names if name not in found and here[_last(name)] == 1 and _last(name) in loose]
        return {**found, **{name: loose[_last(name)] for name in rest}}


def _key(name: str) -> str:
    """A file's name as it is compared: programs write slashes and accents in different ways."""
    return unicodedata.normalize("NFC", str(PurePosixPath(name.replace("\\", "/"))))


def _last(name: str) -> str:
    return _key(name).rpartition("/")[2]


def read(path: Path) -> Annotations:
    """Return the annotations of a COCO file; of each, `bbox` counts, and neither segmentation nor keypoints."""
    damage, cure = (ValueError, RecursionError), "export it again, or rename it if it is none"
    with readable(path, "an annotation file in COCO form", damage, cure):
        size = path.stat().st_size
        if size > MOST_BYTES:
            limit = f"{size / 2**20:.0f} MiB, more than the limit of {MOST_BYTES / 2**20:.0f} MiB"
            raise PcdnetError(f"{path} has {limit}; split it, or leave out segmentations")
        return _annotations(json.loads(path.read_text(encoding="utf-8-sig")))


def _annotations(whole: Any) -> Annotations:
    """What the parsed JSON says; a ValueError is the reason why it says nothing."""
    if not isinstance(whole, dict):
        raise ValueError("it is no JSON object")
    kinds = {
        _value(category, "id", where, _IDENTITY): printable(_value(category, "name", where, _TEXT))
        for where, category in _entries(whole, "categories", "category")
    }
    images: dict[int | str, tuple[str, tuple[int, int] | None]] = {}
    for where, image in _entries(whole, "images", "image"):
        identity = _value(image, "id", where, _IDENTITY)
        if identity in images:
            raise ValueError(f"{where} has the id {identity!r} of another image")
        images[identity] = _value(image, "file_name", where, _TEXT), _size(image, where)
    if len({_key(name) for name, _ in images.values()}) < len(images):
        raise ValueError("two images have the same file_name")
    numbers = {identity: number for number, identity in enumerate(kinds)}
    rows: dict[int | str, list[list[float]]] = {identity: [] for identity in images}
    strays = 0
    for where, annotation in _entries(whole, "annotations", "annotation"):
        owner, kind = (_value(annotation, name, where, _IDENTITY) for name in ("image_id", "category_id"))
        corners = _corners(annotation, where)
        if kind not in numbers:
            raise ValueError(f"{where} has the category_id {kind!r}, which no category has")
        if owner not in images:
            strays += 1
        elif not annotation.get("iscrowd") and min(corners[2:]) > 0:
            rows[owner].append([*corners, numbers[kind]])
    entries = [Entry(name=name, size=size, boxes=Boxes.from_rows(rows[id])) for id, (name, size) in images.items()]
    return Annotations(entries=tuple(entries), kinds=tuple(kinds.values()), strays=strays)


def _entries(whole: dict[str, Any], name: str, word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every entry of a list, with what messages call it."""
    values = whole.get(name)
    if not isinstance(values, list):
        raise ValueError(f"it has no list {name!r}")
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"entry {index} of {name!r} is no JSON object")
        yield f"{word} {index}", value


def _value(entry: dict[str, Any], name: str, where: str, kinds: dict[type, str]) -> Any:
    value = entry.get(name)
    if type(value) not in kinds or value == "":
        raise ValueError(f"{where} has no {name!r} that is {' or '.join(kinds.values())}")
    return value


def _size(entry: dict[str, Any], where: str) -> tuple[int, int] | None:
    sides: Any = entry.get("height"), entry.get("width")
    if sides == (None, None):
        return None
    if not all(type(side) is int and 0 < side < _FARTHEST for side in sides):
        raise ValueError(f"{where} has no height and width that are pixels")
    height, width = sides
    return height, width


def _corners(annotation: dict[str, Any], where: str) -> list[float]:
    """Top, left, height and width; COCO itself has left, top, width, height."""
    box = annotation.get("bbox")
    if not isinstance(box, list) or [type(x) in (int, float) and abs(x) < _FARTHEST for x in box] != [True] * 4:
        raise ValueError(f"{where} has no 'bbox' of four numbers")
    left, top, width, height = map(float, box)
    if width < 0 or height < 0:
        raise ValueError(f"{where} has a 'bbox' of {height:g}x{width:g}")
    return [top, left, height, width]
