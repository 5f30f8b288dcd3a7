"""Record: what was found in one image, in words and numbers, with the visible masks; every format is written from it.

A record is `Decomposition.to_dict` in which every object also has its `mask`, as COCO's compressed run-length encoding
(`size` and `counts`). Kinds and names are added only when a format is written, since people change them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pcdnet.decomposition import Decomposition
from pcdnet.files import whole_file
from pcdnet.kinds import Kinds
from pcdnet.output.rle import encode

FILE = "decompositions.jsonl"
"""The name of the file of all records."""
Record: TypeAlias = dict[str, Any]
"""The dictionary, as docs/decomposition.md describes it."""


@dataclass(frozen=True, slots=True)
class Results:
    """What was found in many images, ready to be written in any format."""

    records: Iterable[Record]
    """The records; they can be gone through any number of times."""
    kinds: Kinds
    """The kinds of the objects."""
    channels: int
    """Channels of the images, and so of the colours."""

    def named(self) -> Iterator[Record]:
        """The records, in which every object has its kind and the kind's name."""
        for record in self.records:
            things = record["objects"]
            prototypes = np.array([thing["prototype"] for thing in things], np.int64)
            colours = np.array([thing["colour"] for thing in things], np.float64).reshape(len(things), self.channels)
            for thing, kind in zip(things, self.kinds.ids(prototypes, colours).tolist(), strict=True):
                thing |= {"kind": kind, "name": self.kinds[kind].name}
            yield record


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


def write_json_lines(results: Results, folder: Path) -> list[Path]:
    """Write one record a line, for pandas, jq and everything else, whole or not at all."""
    with whole_file(folder / FILE) as file:
        for record in results.named():
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
    return [folder / FILE]
