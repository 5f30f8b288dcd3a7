"""Label Studio: every image as a task, with the visible objects as a prediction to be accepted or corrected.

`label_studio.json` is the list of tasks that Label Studio imports, `label_studio.xml` the labelling interface that goes
with it: one rectangle label a kind. Objects that others hide entirely are in none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from pcdnet.decomposition import POSE
from pcdnet.files import whole_file
from pcdnet.kinds import Kinds
from pcdnet.output.coco import write_list
from pcdnet.output.record import Record, Results, turned_box

TASKS, INTERFACE = "label_studio.json", "label_studio.xml"
"""The names of the files."""
IMAGE, LABEL = "image", "label"
"""What the interface calls the image and the rectangles on it."""


def write(results: Results, folder: Path) -> list[Path]:
    """Write both files, each whole or not at all; records are gone through, never held."""
    with whole_file(folder / TASKS) as file:
        write_list(file, _tasks(results.named()))
        file.write(b"\n")
    with whole_file(folder / INTERFACE) as file:
        file.write(interface(results.kinds).encode())
    return [folder / TASKS, folder / INTERFACE]


def interface(kinds: Kinds) -> str:
    """The labelling interface, as Label Studio's settings take it."""
    labels = "".join(f"    <Label value={quoteattr(kind.name)}/>\n" for kind in kinds)
    return (
        f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <RectangleLabels name="{LABEL}" toName="{IMAGE}">\n{labels}  </RectangleLabels>\n</View>\n'
    )


def _tasks(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """A task an image; places are in per cent of its sides."""
    for number, record in enumerate(records, start=1):
        seen = [thing for thing in record["objects"] if thing["box"] is not None]
        found = [_region(f"{number}-{n}", thing, record) for n, thing in enumerate(seen, start=1)]
        prediction = {"model_version": "pcdnet", "result": found}
        yield {"id": number, "data": {IMAGE: record["name"]}, "predictions": [prediction]}


def _region(name: str, thing: dict[str, Any], record: Record) -> dict[str, Any]:
    (H, W), (top, left, height, width), rotation = record["size"], thing["box"], 0.0
    if thing.get(POSE[0]):  # a rectangle is turned around its upper left corner, clockwise
        box = turned_box(record, thing)
        (left, top), width, height, rotation = box.corner, box.width, box.height, -box.angle % 360
    return {
        "id": name,
        "type": "rectanglelabels",
        "from_name": LABEL,
        "to_name": IMAGE,
        "original_width": W,
        "original_height": H,
        "image_rotation": 0,
        "value": {
            "x": 100 * left / W,
            "y": 100 * top / H,
            "width": 100 * width / W,
            "height": 100 * height / H,
            "rotation": rotation or 0,
            "rectanglelabels": [thing["name"]],
        },
        "meta": {"text": [f"prototype {thing['prototype']}", f"error reduction {json.dumps(thing['gain'])}"]},
    }
