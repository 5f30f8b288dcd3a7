"""Table: one row an object, as CSV or, typed and small, as Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pcdnet.decomposition import POSE, UPRIGHT
from pcdnet.files import whole_file
from pcdnet.output.record import Results

CSV, PARQUET = "objects.csv", "objects.parquet"
"""The names of the files."""

_TYPES = {"image": "string", "name": "string", "image_error": "float64", "gain": "float64"}  # as pyarrow calls them
_COLUMNS = (
    *("image", "image_height", "image_width", "image_error", "depth", "prototype", "kind", "name", "top", "left"),
    *("box_top", "box_left", "box_height", "box_width", "pixels", "gain"),
)
COLUMNS = {column: _TYPES.get(column, "int32") for column in _COLUMNS}
"""The columns that every table has, with their types; those of poses, if there are any, and the colour's follow."""
POSE_COLUMNS = dict(zip(POSE, ("float64", "float64", "bool_"), strict=True))
"""The columns of poses; where they are, positions may be fractions."""

_PIECE = 50_000  # rows of a Parquet file that are held at a time


def write_csv(results: Results, folder: Path) -> list[Path]:
    """Write the table as text, whole or not at all; the box of a hidden object is empty."""
    with whole_file(folder / CSV) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow([*_columns(results)])
        lines.writerows(_rows(results))
        text.detach()
    return [folder / CSV]


def write_parquet(results: Results, folder: Path) -> list[Path]:
    """Write the table for pandas, Polars or DuckDB, whole or not at all; the box of a hidden object is null."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    schema = arrow.schema([(column, getattr(arrow, kind)()) for column, kind in _columns(results).items()])
    rows = _rows(results)
    with whole_file(folder / PARQUET) as file, parquet.ParquetWriter(file, schema) as writer:
        while piece := list(islice(rows, _PIECE)):
            columns = zip(*piece, strict=True)
            arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    return [folder / PARQUET]


def _columns(results: Results) -> dict[str, str]:
    """All columns of a table with their types, as pyarrow calls them."""
    poses = {"top": "float64", "left": "float64", **POSE_COLUMNS} if results.posed else {}
    colours = ("grey",) if results.channels == 1 else ("red", "green", "blue")
    return {**COLUMNS, **poses, **dict.fromkeys(colours, "float64")}


def _rows(results: Results) -> Iterator[list[Any]]:
    posed = results.posed
    for record in results.named():
        image = [record["name"], *record["size"], record["error"]]
        for thing in record["objects"]:
            box = thing["box"] or [None] * 4
            who = [thing[key] for key in ("depth", "prototype", "kind", "name")]
            pose = [thing.get(key, usual) for key, usual in UPRIGHT.items()] if posed else []
            yield [*image, *who, *thing["position"], *box, thing["pixels"], thing["gain"], *pose, *thing["colour"]]
