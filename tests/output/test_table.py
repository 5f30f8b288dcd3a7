"""Laws of the tables: a row an object, the same in CSV and Parquet."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pcdnet.output.table import COLUMNS, POSE_COLUMNS, write_csv, write_parquet
from tests.output.found import COLOURS, NAMES, random_records, results


@pytest.mark.parametrize(("channels", "colours"), [(1, ["grey"]), (3, ["red", "green", "blue"])])
def test_a_row_of_the_csv_file_is_an_object(channels: int, colours: list[str], tmp_path: Path) -> None:
    found, made = random_records(10, channels=channels)
    assert write_csv(results(made, channels), tmp_path) == [tmp_path / "objects.csv"]
    with (tmp_path / "objects.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*COLUMNS, *colours]
    things = [(n, one, thing) for n, one in enumerate(found) for thing in one.objects]
    assert len(rows) == len(things)
    for row, (n, one, thing) in zip(rows, things, strict=True):
        assert row["image"] == f"image-{n}"
        assert (row["image_height"], row["image_width"], float(row["image_error"])) == ("9", "12", one.error)
        assert (int(row["depth"]), int(row["prototype"])) == (thing.depth, thing.prototype)
        assert (int(row["kind"]), row["name"]) == (thing.prototype, NAMES[thing.prototype])
        assert (int(row["top"]), int(row["left"])) == thing.position
        box = [row[f"box_{side}"] for side in ("top", "left", "height", "width")]
        assert box == ([""] * 4 if thing.box is None else [str(side) for side in thing.box])
        assert (int(row["pixels"]), float(row["gain"])) == (thing.mask.sum(), thing.error_reduction)
        assert tuple(float(row[colour]) for colour in colours) == thing.colour


def test_parquet_holds_the_same_rows_with_their_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("pcdnet.output.table._PIECE", 3)  # many row groups
    _, made = random_records(10)
    write_parquet(results(made, kinds=COLOURS), tmp_path)
    write_csv(results(made, kinds=COLOURS), tmp_path)
    table = parquet.read_table(tmp_path / "objects.parquet")
    assert str(table.schema.field("prototype").type) == "int32"
    assert str(table.schema.field("kind").type) == "int32"
    assert set(table["name"].to_pylist()) == {kind.name for kind in COLOURS}
    assert str(table.schema.field("gain").type) == "double"
    with (tmp_path / "objects.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert table.column_names == header
    again = [["" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]
    assert again == rows


def test_no_object_makes_an_empty_table(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    write_csv(results([], 1), tmp_path)
    write_parquet(results([], 1), tmp_path)
    assert (tmp_path / "objects.csv").read_text().splitlines() == [",".join([*COLUMNS, "grey"])]
    assert parquet.read_table(tmp_path / "objects.parquet").num_rows == 0


def test_poses_have_columns_of_their_own(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    found, made = random_records(10, poses=True)
    write_csv(results(made), tmp_path)
    write_parquet(results(made), tmp_path)
    with (tmp_path / "objects.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "objects.parquet")
    assert table.column_names == list(rows[0]) == [*COLUMNS, *POSE_COLUMNS, "red", "green", "blue"]
    things = [thing for one in found for thing in one.objects]
    for row, typed, thing in zip(rows, table.to_pylist(), things, strict=True):
        pose = thing.position[0], thing.position[1], thing.angle, thing.scale, thing.mirrored
        assert tuple(typed[name] for name in ("top", "left", *POSE_COLUMNS)) == pose
        assert tuple(float(row[name]) for name in ("top", "left", "angle", "scale")) == pose[:4]
        assert row["mirrored"] == str(thing.mirrored)
