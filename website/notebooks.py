"""Notebooks: those of docs/notebooks executed, and as pages with what their cells gave."""

from __future__ import annotations

import hashlib
import json
import os
import re
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pcdnet
from pcdnet.files import folder, whole_file

SECONDS = 600
"""For a cell, at most."""
Cell = dict[str, Any]


def executed(path: Path, keep: Path) -> Any:
    """The notebook after its cells have run in a folder of their own; kept until it or the code is another."""
    import nbformat

    kept = keep / f"{path.stem}-{_digest(path)}.ipynb"
    if not kept.is_file():
        notebook = nbformat.read(path, as_version=4)
        _execute(notebook)
        with whole_file(folder(keep) / kept.name) as file:
            file.write(nbformat.writes(notebook).encode())
    return nbformat.read(kept, as_version=4)


def _digest(path: Path) -> str:
    """Of a notebook and all code that it may run."""
    seen = hashlib.sha256(path.read_bytes())
    for file in sorted(Path(pcdnet.__file__).parent.rglob("*.*")):
        if file.suffix in (".py", ".toml", ".safetensors"):
            seen.update(file.read_bytes())
    return seen.hexdigest()[:16]


def _execute(notebook: Any) -> None:
    from nbclient import NotebookClient

    paths = [str(Path(place).resolve()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    with (
        TemporaryDirectory() as place,
        patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(paths), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}),
    ):
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": place}}).execute()


def code(path: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def page(notebook: Any, name: str) -> str:
    """The markdown of a page that shows a notebook with what its cells gave; `name` is its file's."""
    title, *rest = [_cell(cell) for cell in notebook["cells"]]
    offer = f"*This page is a notebook: [{name}]({name}).*"
    head, _, more = title.partition("\n")
    return "\n\n".join([head, offer, more.strip(), *rest])


def _cell(cell: Cell) -> str:
    if cell["cell_type"] != "code":
        return str(cell["source"])
    printed = "".join(one["text"] for one in cell["outputs"] if one.get("name") == "stdout")
    given = [_output(one) for one in cell["outputs"] if one["output_type"] != "stream"]  # progress is left out
    shown = [f"```python\n{cell['source']}\n```", _printed(printed) if printed else "", *given]
    return "\n\n".join(part for part in shown if part)


def _output(output: Cell) -> str:
    """What a cell gave, as markdown."""
    data = output.get("data", {})
    if "image/png" in data:
        source = "".join(data["image/png"].split())
        return f'<p><img alt="{escape(_plain(data))}" src="data:image/png;base64,{source}"></p>'
    if "text/html" in data:
        html = "".join(data["text/html"].splitlines())
        named = re.sub("<img (?![^>]*alt=)", '<img alt="" ', html)  # a caption says what it is
        return f"<div>{named}</div>"
    return _printed(_plain(data)) if data else ""


def _plain(data: Cell) -> str:
    """What stands for an output where only text can be shown."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(data.get("text/plain", "")))


def _printed(text: str) -> str:
    return f'<div class="printed" markdown>\n\n```text\n{text.rstrip()}\n```\n\n</div>'
