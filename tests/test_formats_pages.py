"""What the pages about formats say can be done: their lines of Python run, those of the shell are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import pcdnet
from pcdnet.cli import parse
from pcdnet.data.tetrominoes import generate
from pcdnet.output.formats import FORMATS
from tests.runs import true_run

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {
    "formats": "pcdnet",
    "label-studio": "label_studio_sdk",
    "yolo": "supervision",
    "cvat": "datumaro",
    "supervision": "supervision",
    "hub": "huggingface_hub",
    "napari": "napari",
}
"""Every page, with the package that its lines of Python need."""


def text_of(page: str) -> str:
    """What a page says."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore")  # of the neighbours' own
@pytest.mark.parametrize("page", ["label-studio", "yolo", "cvat", "supervision", "napari"])
def test_lines_of_python_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PAGES[page], reason=f"needs {PAGES[page]}")
    monkeypatch.chdir(tmp_path)
    true_run(tmp_path / "runs" / "mine")
    (tmp_path / "results" / "yolo" / "images").mkdir(parents=True)
    for place in ("new.png", "results/yolo/images/new.png"):
        Image.fromarray(generate(count=1, seed=1).images[0]).save(place)
    formats = "json,coco,yolo,label-studio"
    pcdnet.decompose_files("runs/mine", "new.png", "results", formats=formats, force=True, quiet=True)
    blocks, names = re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL), dict[str, Any]()
    assert blocks
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), names)


@pytest.mark.parametrize("page", list(PAGES))
def test_lines_of_the_shell_are_understood_and_links_lead_somewhere(page: str) -> None:
    text = text_of(page)
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("pcdnet ")]
    assert commands or page in ("supervision", "napari")
    for words in commands:
        parse(words[1:])
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert "://" in link or (DOCS / link).is_file()


def test_the_overview_names_every_format() -> None:
    text = text_of("formats")
    asked = {word for words in re.findall(r"--format ([\w,-]+)", text) for word in words.split(",")}
    assert asked == {each.name for each in FORMATS}
