"""Laws of parts: what goes in comes out, to the bit and in order; what is damaged is refused and never used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.parts import Label, Parts, label_of, records_of, write_part
from tests.output.found import random_records

pytest.importorskip("pyarrow")
LABEL = Label(key="k", images=9, drawn="", failed={"été.png": "it is none"})


@pytest.mark.parametrize("channels", [1, 3])
def test_records_and_label_come_back_as_they_were(channels: int, tmp_path: Path) -> None:
    _, records = random_records(9, channels=channels)
    write_part(tmp_path / "a.parquet", records, LABEL)
    assert json.dumps([*records_of(tmp_path / "a.parquet")]) == json.dumps(
        [{key: record[key] for key in ("format", "name", "size", "error", "objects")} for record in records]
    )
    assert label_of(tmp_path / "a.parquet") == LABEL
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_poses_and_fractions_of_pixels_come_back_as_they_were(tmp_path: Path) -> None:
    found, records = random_records(9, poses=True)
    write_part(tmp_path / "a.parquet", records, LABEL)
    again = [*records_of(tmp_path / "a.parquet")]
    for record, one, back in zip(records, found, again, strict=True):
        assert json.dumps(back["objects"]) == json.dumps(record["objects"])
        np.testing.assert_array_equal(Decomposition.from_dict(back).poses, one.poses)


def test_parts_are_read_in_order_any_number_of_times(tmp_path: Path) -> None:
    _, records = random_records(7)
    for name, some in (("b", records[:3]), ("a", []), ("c", records[3:])):
        write_part(tmp_path / name, some, LABEL)
    parts = Parts([tmp_path / name for name in "bac"])
    for _ in range(2):
        assert [record["name"] for record in parts] == [record["name"] for record in records]


def test_a_table_program_reads_a_row_an_image_with_its_objects(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    _, records = random_records(9)
    write_part(tmp_path / "a.parquet", records, LABEL)
    table = pandas.read_parquet(tmp_path)
    assert table.name.tolist() == [record["name"] for record in records]
    assert table.objects.map(len).tolist() == [len(record["objects"]) for record in records]


def test_a_changed_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    _, records = random_records(9)
    path = tmp_path / "a.parquet"
    write_part(path, records, LABEL)
    content, sound = path.read_bytes(), [*records_of(path)]
    complaints = []
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            assert label_of(path) in (None, LABEL)
            assert [*records_of(path)] == sound
        except PcdnetError as error:
            complaints.append(str(error))
    assert len(complaints) > 10
    assert all("damaged" in complaint for complaint in complaints)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all"])
def test_what_is_no_part_has_no_label(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    assert label_of(tmp_path / "a") is None
    assert label_of(tmp_path / "b") is None
    with pytest.raises(PcdnetError, match=r"a is damaged .*; delete it, and the same command makes it anew"):
        next(records_of(tmp_path / "a"))
