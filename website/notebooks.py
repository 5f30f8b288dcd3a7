"""Notebooks: those of docs/notebooks executed, and as pages with what their cells gave."""

from __future__ import annotations

import json
import os
import re
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

SECONDS = 600
"""For a cell, at most."""
Cell = dict[str, Any]


def executed(path: Path) -> Any:
    """The notebook after its cells have run in a folder of their own."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    paths = [str(Path(place).resolve()) for place in sys.path if place and Path(place).is_dir()]
    with (
        TemporaryDirectory() as folder,
        patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(paths), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}),
    ):
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}}).execute()
    return notebook


def code(path: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def page(notebook: Any, name: str) -> str:
    """The markdown of a page that shows a notebook with what its cells gave; `name` is its file's."""
    title, *rest = [_cell(cell) for cell in notebook.cells]
    offer = f"*This page is a notebook: [{name}]({name}).*"
    head, _, more = title.partition("\n")
    return "\n\n".join([head, offer, more.strip(), *rest])


def _cell(cell: Cell) -> str:
    if cell["cell_type"] != "code":
        return str(cell["source"])
    shown = [f"```python\n{cell['source']}\n```", *(_output(output) for output in cell["outputs"])]
    return "\n\n".join(part for part in shown if part)


def _output(output: Cell) -> str:
    """What a cell gave, as markdown; progress and complaints are left out."""
    if output["output_type"] == "stream":
        return _printed(output["text"]) if output["name"] == "stdout" else ""
    data = output.get("data", {})
    if "image/png" in data:
        source = "".join(data["image/png"].split())
        return f'<p><img alt="{escape(_plain(data))}" src="data:image/png;base64,{source}"></p>'
    if "text/html" in data:
        return f"<div>{''.join(data['text/html'].splitlines())}</div>"
    return _printed(_plain(data)) if data else ""


def _plain(data: Cell) -> str:
    """What stands for an output where only text can be shown."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(data.get("text/plain", "")))


def _printed(text: str) -> str:
    return f'<div class="printed" markdown>\n\n```text\n{text.rstrip()}\n```\n\n</div>'
