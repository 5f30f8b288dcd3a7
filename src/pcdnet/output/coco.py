"""COCO: the objects as instances, in the two forms that COCO's own tools read.

`coco.json` is a data set: images, annotations, and kinds as categories, from 1. `coco_results.json` is the list
that `COCO.loadRes` takes, to be scored against a ground truth. Objects that others hide entirely are in neither.
Where objects have poses, annotations have them, too, and boxes that are turned with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pcdnet.decomposition import POSE
from pcdnet.files import whole_file
from pcdnet.output.record import Record, Results, turned_box

FILE, RESULTS = "coco.json", "coco_results.json"
"""The names of the files."""
RESULT = ("image_id", "category_id", "segmentation", "bbox", "score")
"""What results say of an object, of all that annotations do."""


def write(results: Results, folder: Path) -> list[Path]:
    """Write both files, each whole or not at all; records are gone through more than once, never held."""
    kinds, sizes = results.kinds, ((record["name"], *record["size"]) for record in results.records)
    parts: dict[str, Iterable[dict[str, Any]]] = {
        "categories": ({"id": kind.id + 1, "name": kind.name, "supercategory": kind.group} for kind in kinds),
        "images": ({"id": n, "file_name": name, "height": h, "width": w} for n, (name, h, w) in enumerate(sizes, 1)),
        "annotations": _annotations(results.named()),
    }
    with whole_file(folder / FILE) as file:
        file.write(b'{"info": {"description": "objects that pcdnet found"}, "licenses": []')
        for name, values in parts.items():
            file.write(f',\n"{name}": '.encode())
            write_list(file, values)
        file.write(b"}\n")
    with whole_file(folder / RESULTS) as file:
        write_list(file, ({key: one[key] for key in RESULT} for one in _annotations(results.named())))
        file.write(b"\n")
    return [folder / FILE, folder / RESULTS]


def _annotations(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """The visible objects; what COCO calls a score is the error reduction."""
    number = 0
    for image, record in enumerate(records, start=1):
        for thing in record["objects"]:
            if thing["box"] is not None:
                number += 1
                top, left, height, width = thing["box"]
                yield {
                    "image_id": image,
                    "category_id": thing["kind"] + 1,
                    "segmentation": thing["mask"],
                    "bbox": [left, top, width, height],
                    "score": thing["gain"],
                    "id": number,
                    "area": thing["pixels"],
                    "iscrowd": 0,
                    **_pose(record, thing),
                }


def _pose(record: Record, thing: dict[str, Any]) -> dict[str, Any]:
    """The pose of an object, and its box as middle, width, height and angle; nothing where there are no poses."""
    if POSE[0] not in thing:
        return {}
    return {**{name: thing[name] for name in POSE}, "oriented_box": list(turned_box(record, thing))}


def write_list(file: BinaryIO, values: Iterable[dict[str, Any]]) -> None:
    """A JSON array, a line each, without ever being in memory."""
    file.write(b"[")
    for number, value in enumerate(values):
        file.write((b",\n" if number else b"\n") + json.dumps(value, separators=(",", ":")).encode())
    file.write(b"]")
