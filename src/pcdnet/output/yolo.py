"""YOLO: a text file an image, a line an object: the kind, and the middle and the sides of its box as shares.

The folder `yolo` holds `labels` and `data.yaml`, which names the kinds. Files are named as the images are, with a mark
where two images would share one; those that another call left are removed. Hidden objects have no line.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from pcdnet.files import folder as made
from pcdnet.files import whole_file
from pcdnet.output.record import Record, Results

FOLDER, LABELS, NAMES = "yolo", "labels", "data.yaml"
"""The folder, and what is in it."""


def write(results: Results, folder: Path) -> list[Path]:
    """Write the folder of labels and the names, each file whole or not at all."""
    labels, names = made(folder / FOLDER / LABELS), folder / FOLDER / NAMES
    often, written = Counter(_title(record["name"]).casefold() for record in results.records), set()
    for record in results.named():
        title = _title(record["name"])
        mark = f"-{hashlib.sha256(record['name'].encode()).hexdigest()[:8]}" if often[title.casefold()] > 1 else ""
        with whole_file(labels / f"{title}{mark}.txt") as file:
            file.write("".join(_lines(record)).encode())
        written.add(f"{title}{mark}.txt")
    for path in labels.glob("*.txt"):
        if path.name not in written:
            path.unlink()
    with whole_file(names) as file:
        kinds = "".join(f"  {kind.id}: {json.dumps(kind.name, ensure_ascii=False)}\n" for kind in results.kinds)
        file.write(f"path: .\ntrain: images\nval: images\nnames:\n{kinds}".encode())
    return [folder / FOLDER]


def _title(name: str) -> str:
    """An image's name without folders and suffix; one of many in a file has its number behind it."""
    file, hash_sign, number = name.rpartition("#")
    if not hash_sign or not number.isdecimal():
        file, number = name, ""
    return f"{PurePath(file).stem or 'image'}{'-' if number else ''}{number}"


def _lines(record: Record) -> Iterator[str]:
    H, W = record["size"]
    for thing in record["objects"]:
        if thing["box"] is not None:
            yield f"{thing['kind']} {' '.join(f'{share:.6f}' for share in _shares(thing, H, W))}\n"


def _shares(thing: dict[str, Any], H: int, W: int) -> tuple[float, float, float, float]:
    top, left, height, width = thing["box"]
    return (left + width / 2) / W, (top + height / 2) / H, width / W, height / H
