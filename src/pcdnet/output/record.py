"""Record: what was found in one image, in words and numbers, with the visible masks; every format is written from it.

A record is `Decomposition.to_dict` in which every object also has its `mask`, as COCO's compressed run-length encoding
(`size` and `counts`). Kinds and names are added only when a format is written, since people change them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pcdnet.decomposition import POSE, Decomposition
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import whole_file
from pcdnet.kinds import Kinds
from pcdnet.output.rle import corners, encode
from pcdnet.turning import OrientedBox, oriented_box

FILE = "decompositions.jsonl"
"""The name of the file of all records."""
Record: TypeAlias = dict[str, Any]
"""The dictionary, as docs/decomposition.md describes it."""
LARGEST = 2**31
"""No whole number of a record is as large."""


@dataclass(frozen=True, slots=True)
class Results:
    """What was found in many images, ready to be written in any format."""

    records: Iterable[Record]
    """The records; they can be gone through any number of times."""
    kinds: Kinds
    """The kinds of the objects."""
    channels: int
    """Channels of the images, and so of the colours."""

    @property
    def posed(self) -> bool:
        """Whether objects have poses, as the first of them says; all are of one model."""
        first: dict[str, Any] = next((record["objects"][0] for record in self.records if record["objects"]), {})
        return POSE[0] in first

    def named(self) -> Iterator[Record]:
        """The records, in which every object has its kind and the kind's name, but for those of hidden prototypes."""
        count, hidden = len(self.kinds.names), self.kinds.names.hidden
        for record in self.records:
            things = record["objects"]
            for thing in things:  # a checksum does not say of which model a record is
                if thing["prototype"] >= count or len(thing["colour"]) != self.channels:
                    raise PcdnetError(
                        f"{record['name']} has an object of prototype {thing['prototype']} with {len(thing['colour'])} "
                        f"colour values, which this model has not; do it again with ",
                        Setting("force", True),
                    )
            if hidden:
                things = [thing for thing in things if thing["prototype"] not in hidden]
                record = {**record, "objects": things}  # what is kept stays as it is
            prototypes = np.array([thing["prototype"] for thing in things], np.int64)
            colours = np.array([thing["colour"] for thing in things], np.float64).reshape(len(things), self.channels)
            for thing, kind in zip(things, self.kinds.ids(prototypes, colours).tolist(), strict=True):
                thing |= {"kind": kind, "name": self.kinds[kind].name}
            yield record


def check_record(record: Any) -> None:
    """Raise ValueError for what is no record: whoever writes it anew relies on all that it must have."""
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        raise ValueError("a record has no name")
    things = record.get("objects")
    sides = _whole(record.get("size"), 2) and 0 < min(record["size"]) <= max(record["size"]) < LARGEST
    if not sides or not _finite([record.get("error")]) or not isinstance(things, list):
        raise ValueError(f"the record of {record['name']} has no size, no error or no objects")
    for thing in things:
        if not isinstance(thing, dict) or not _is_object(thing):
            raise ValueError(f"the record of {record['name']} has an object that is none")


def _is_object(thing: dict[str, Any]) -> bool:
    mask, box, colour = thing.get("mask"), thing.get("box"), thing.get("colour")
    return (
        _whole([thing.get(name) for name in ("prototype", "depth", "pixels")], 3)
        and min(thing["prototype"], thing["depth"], thing["pixels"]) >= 0
        and _is_placed(thing)
        and "box" in thing
        and (box is None or _whole(box, 4))
        and isinstance(colour, list)
        and _finite([*colour, thing.get("gain")])
        and isinstance(mask, dict)
        and _whole(mask.get("size"), 2)
        and isinstance(mask.get("counts"), str)
    )


def _is_placed(thing: dict[str, Any]) -> bool:
    """Whether an object is somewhere, and in a pose if it is said to have one."""
    position, pose = thing.get("position"), [thing[name] for name in POSE if name in thing]
    if not pose:
        return _whole(position, 2)
    return (
        isinstance(position, list)
        and len(position) == 2
        and _finite([*position, *pose[:2]])
        and all(abs(at) < LARGEST for at in position)
        and len(pose) == len(POSE)
        and pose[1] > 0
        and type(pose[2]) is bool
    )


def _whole(values: Any, count: int) -> bool:
    """Whether these are so many whole numbers that tables can hold."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(type(value) is int and abs(value) < LARGEST for value in values)
    )


def _finite(values: list[Any]) -> bool:
    return all(type(value) in (int, float) and abs(value) <= sys.float_info.max for value in values)


def records(found: Sequence[Decomposition], images: Sequence[str]) -> list[Record]:
    """The records of a batch of equally large images, under the images' names."""
    if not found:
        return []
    labels = found[0].instances[None] if len(found) == 1 else np.stack([one.instances for one in found])
    masks = encode(labels, [len(one) for one in found])
    made = []
    for one, image, counts in zip(found, images, masks, strict=True):
        record = {**one.to_dict(), "name": image}
        for thing, count in zip(record["objects"], counts, strict=True):
            thing["mask"] = {"size": record["size"], "counts": count}
        made.append(record)
    return made


def turned_box(record: Record, thing: dict[str, Any]) -> OrientedBox:
    """The box around the visible pixels of an object of a record that is turned as the object is."""
    height, width = thing["mask"]["size"]
    try:
        pixels = corners(thing["mask"]["counts"], (height, width))
        if len(pixels) == 0:
            raise ValueError("it is empty")
    except ValueError as error:
        cure = "do it again with ", Setting("force", True)
        raise PcdnetError(f"{record['name']} has an object whose mask is none ({error}); ", *cure) from None
    return oriented_box(pixels, thing[POSE[0]])


def write_json_lines(results: Results, folder: Path) -> list[Path]:
    """Write one record a line, for pandas, jq and everything else, whole or not at all."""
    with whole_file(folder / FILE) as file:
        for record in results.named():
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    return [folder / FILE]
