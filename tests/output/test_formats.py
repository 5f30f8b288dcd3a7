"""Laws of the registry of formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.formats import FORMATS, checked_formats, offered
from tests.output.found import random_records, results


def test_a_list_of_formats_is_read_whatever_its_blanks() -> None:
    assert [each.name for each in checked_formats("json")] == ["json"]
    assert [each.name for each in checked_formats(" COCO, json ,,coco")] == ["coco", "json"]
    assert checked_formats(["csv", " png"]) == checked_formats("csv,png")


@pytest.mark.parametrize("text", ["xml", "json,xml", "json;csv", "", " , "])
def test_other_formats_are_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(PcdnetError, match="use some of json,coco,png,csv,parquet"):
        checked_formats(text)


def test_every_format_is_offered_with_what_it_writes(tmp_path: Path) -> None:
    """Pictures alone are drawn elsewhere, while the images are at hand."""
    pytest.importorskip("pyarrow")
    for each in FORMATS:
        assert f"{each.name} (" in offered()
        if each.writer is None:
            assert each.name == "png"
            continue
        folder = tmp_path / each.name
        folder.mkdir()
        written = each.write(results(random_records(2)[1]), folder)
        assert sorted(folder.iterdir()) == sorted(written)
        assert all(path.name in offered() for path in written)


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcdnet.output.formats.find_spec", lambda _: None)
    with pytest.raises(PcdnetError, match=r"needs pyarrow.*pip install 'pcdnet\[parquet\]'"):
        checked_formats("json,parquet")
    assert checked_formats("json,csv,coco,png")


def test_formats_are_written_without_torch_and_the_registry_imports_no_writer() -> None:
    code = (
        "import sys, pcdnet.output.formats; assert not {'numpy', 'pcdnet.output.table', 'torch'} & set(sys.modules); "
        "import pcdnet.output.coco, pcdnet.output.record, pcdnet.output.table, pcdnet.output.pictures; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
