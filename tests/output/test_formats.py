"""Laws of the list of formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.formats import checked_formats, write_formats
from tests.output.found import NAMES, random_records


def test_a_list_of_formats_is_read_whatever_its_blanks() -> None:
    assert checked_formats("json") == ("json",)
    assert checked_formats(" COCO, json ,,coco") == ("coco", "json")


@pytest.mark.parametrize("text", ["xml", "json,xml", "json;csv", "", " , "])
def test_other_formats_are_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(PcdnetError, match="use some of json,coco,png,csv,parquet"):
        checked_formats(text)


def test_only_what_was_asked_for_is_written(tmp_path: Path) -> None:
    _, told = random_records(2)
    written = write_formats(("csv", "png", "json"), told, NAMES, tmp_path, channels=3)
    assert written == [tmp_path / "objects.csv", tmp_path / "decompositions.jsonl"]
    assert sorted(tmp_path.iterdir()) == sorted(written)
