"""Laws of Parquet: the column of pictures is found by type and name, and damage is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.data import shards
from pcdnet.data.inputs import find_inputs
from pcdnet.data.opening import open_data
from pcdnet.data.parquet import count, images, read
from pcdnet.errors import Incomplete, PcdnetError
from tests.data.test_webdataset import COLOURS, png

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))


def table(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path, row_group_size=7)
    return path


BYTES = [png(image) for image in COLOURS]
FACES = [{"bytes": each, "path": f"{n}.png"} for n, each in enumerate(BYTES)]


@pytest.mark.parametrize("values", [BYTES, FACES, pyarrow.array(BYTES, pyarrow.large_binary())])
def test_pictures_come_as_they_were_written(values: Any, tmp_path: Path) -> None:
    path = table(tmp_path / "d" / "a.parquet", label=[*range(40)], image=values, words=["x"] * 40)
    for place in (path, path.parent, path.parent / "*.parquet", f"{path}#image"):
        np.testing.assert_array_equal(open_data(place, count=99, seed=0).images, COLOURS)
    assert count(path) == 40
    (found,) = find_inputs([str(path.parent)])
    np.testing.assert_array_equal(np.stack([image for _, image in found.images()]), COLOURS)


def test_the_column_is_found_by_type_then_by_name_and_otherwise_asked_for(tmp_path: Path) -> None:
    mirrored = [png(image[:, ::-1].copy()) for image in COLOURS]
    np.testing.assert_array_equal(read(table(tmp_path / "a.parquet", other=BYTES, n=[1] * 40)).images, COLOURS)
    np.testing.assert_array_equal(read(table(tmp_path / "b.parquet", before=mirrored, Image=BYTES)).images, COLOURS)
    unclear = table(tmp_path / "c.parquet", left=BYTES, right=mirrored)
    with pytest.raises(PcdnetError, match=r"several columns that may be pictures \(left, right\); add .*parquet#left"):
        read(unclear)
    np.testing.assert_array_equal(read(f"{unclear}#right").images, COLOURS[:, :, ::-1])
    with pytest.raises(PcdnetError, match=r"no column 'up' of pictures \(it has left, right\)"):
        read(f"{unclear}#up")
    with pytest.raises(PcdnetError, match=r"no column of encoded pictures \(its columns: a, b\)"):
        read(table(tmp_path / "d.parquet", a=[1], b=["x"]))
    dotted = {"a": [{"b": each} for each in mirrored], "a.b": pyarrow.array(BYTES)}
    np.testing.assert_array_equal(read(table(tmp_path / "e.parquet", **dotted)).images, COLOURS)
    twice = pyarrow.table([BYTES, mirrored], names=["image", "image"])
    parquet.write_table(twice, tmp_path / "f.parquet")
    with pytest.raises(PcdnetError, match=r"has several columns called 'image'; write it again with a name for each"):
        read(tmp_path / "f.parquet")


def test_a_table_of_nothing_but_empty_rows_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MOST_LOST", 100)
    path = table(tmp_path / "a.parquet", image=pyarrow.nulls(10_000, pyarrow.binary()))
    for reading in (read, lambda path: list(images(path))):
        with pytest.raises(PcdnetError, match="more than 100 pictures of .*a.parquet cannot be read .* and 98 more"):
            reading(path)


def test_empty_and_damaged_rows_are_skipped_and_damaged_files_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "a.parquet", image=[*BYTES[:20], None, b"", *BYTES[22:]])
    np.testing.assert_array_equal(read(path).images, np.delete(COLOURS, [20, 21], axis=0))
    assert "skipped 2 of 40 pictures" in capsys.readouterr().err
    with pytest.raises(
        Incomplete, match=r"2 pictures of .*a.parquet cannot be read \(row 20 of .*, row 21 of [^,]*\);"
    ):
        list(images(path))
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[:-20], whole[:300] + bytes(900) + whole[1200:], b"x" * 5000):
        path.write_bytes(content)
        with pytest.raises(PcdnetError, match=r"a.parquet"):
            read(path)
