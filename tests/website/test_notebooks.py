"""Laws of the notebooks: their cells run, and they hold nothing that was not written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from website import notebooks

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with mpl.rc_context():
        for number, cell in enumerate(notebooks.code(path), start=1):
            exec(compile(cell, f"{path.name}, cell {number}", "exec"), names)
    assert names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_pictures_without_words_have_empty_ones() -> None:
    html = '<figure><img src="data:a"><figcaption>two objects</figcaption></figure>'
    cell = {
        "cell_type": "code",
        "source": "f()",
        "outputs": [{"output_type": "display_data", "data": {"text/html": html}}],
    }
    text = notebooks.page({"cells": [{"cell_type": "markdown", "source": "# Title"}, cell]}, "one.ipynb")
    assert html.replace("<img ", '<img alt="" ') in text


def test_a_page_shows_what_cells_print_draw_and_give_and_no_progress() -> None:
    given = [
        {"output_type": "stream", "name": "stdout", "text": "three "},
        {"output_type": "stream", "name": "stderr", "text": "step 3"},
        {"output_type": "stream", "name": "stdout", "text": "<objects>\n"},
        {"output_type": "display_data", "data": {"image/png": "aGk=\n", "text/plain": "<Figure at 0x7f00>"}},
        {"output_type": "execute_result", "data": {"text/plain": "PCDNet(2 prototypes)"}},
    ]
    cells = [{"cell_type": "markdown", "source": "# Title\n\nWords."}, {"cell_type": "code", "source": "f()"}]
    cells[1]["outputs"] = given  # type: ignore[assignment]
    text = notebooks.page({"cells": cells}, "one.ipynb")
    assert text.startswith("# Title\n\n*This page is a notebook: [one.ipynb](one.ipynb).*\n\nWords.")
    places = [text.index(part) for part in ("```python\nf()\n```", "three <objects>", "base64,aGk=", "PCDNet(2 prot")]
    assert places == sorted(places)
    assert "step 3" not in text
    assert "0x7f00" not in text
