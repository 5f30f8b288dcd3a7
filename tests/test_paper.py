"""The page on the paper names code that exists, and values that the presets have."""

from __future__ import annotations

import re
from ast import literal_eval
from operator import attrgetter
from pathlib import Path

import pytest

from pcdnet.config import Config
from pcdnet.data.sources import source_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PRESETS = tuple(Config.preset(f"{name}-paper") for name in ("tetrominoes", "space-invaders", "ngsim"))
REFERENCES = re.findall(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", PAGE)
VALUES = re.findall(r"`((?:model|loss|train)\.\w+)` = ([^;|/]+) / ([^;|/]+) / (\(\d+, \d+\)|[^;|/,]+)(?=[;|, ])", PAGE)


@pytest.mark.parametrize(("path", "names"), sorted(set(REFERENCES)))
def test_what_the_page_names_is_in_the_code(path: str, names: str) -> None:
    folder = ROOT if path.startswith(("benchmarks/", "tests/")) else ROOT / "src" / "pcdnet"
    code = (folder / path).read_text(encoding="utf-8")
    for name in re.findall(r"\w+", names):
        assert re.search(
            rf"^(def {name}\(|class {name}\b|[\w, ]*\b{name}\b[\w, ]*(:[^=]*)?=)", code, flags=re.MULTILINE
        )


@pytest.mark.parametrize(("field", "values"), [(field, values) for field, *values in VALUES])
def test_the_presets_have_the_values_of_the_page(field: str, values: list[str]) -> None:
    assert [literal_eval(value.strip()) for value in values] == [attrgetter(field)(preset) for preset in PRESETS]


def test_every_value_and_name_of_the_page_is_checked() -> None:
    assert len(VALUES) == len(re.findall(r"`(?:model|loss|train)\.\w+` = ", PAGE)) > 25
    assert len(REFERENCES) == len(re.findall(r"`[\w/]+\.py`: ", PAGE)) > 30


def test_every_statement_says_how_it_compares() -> None:
    statements = PAGE.partition("\n## ")[0]
    rows = [
        line.split(" | ") for line in statements.splitlines() if line.startswith("| ") and not line.startswith("| **")
    ]
    assert all(len(row) == 3 for row in rows)
    words = ("as written", "choice", "**departure**", "measured", "more than")
    assert all(any(word in row[2] for word in words) for row in rows[1:])


def test_an_epoch_of_tetrominoes_has_the_images_of_the_paper() -> None:
    source = source_of("tetrominoes")
    assert source is not None
    assert source.training == (60_000, 320)
