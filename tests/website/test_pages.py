"""Laws of the pages: links lead somewhere, pictures have a command, snippets run, and public names are all there."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pictures import MADE, PICTURES
from PIL import Image

import pcdnet
from pcdnet.cli import parse
from tests.test_readme import place as place
from website import links

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FILES = [*PAGES, *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
MADE_PAGES = re.compile(r"command-line/[\w-]+\.md|http\.md|\(#pcdnet\.")
"""Links to what is made with the site."""


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_are_there(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if ":" in target or "#pcdnet." in target or MADE_PAGES.search(target):
            continue
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found.read_text(encoding="utf-8")), target


def test_every_picture_of_the_documentation_has_a_command_that_makes_it() -> None:
    pictures = [path.name for path in PICTURES.iterdir()]
    for name in pictures:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in MADE), name
    for pattern, command in MADE.items():
        assert fnmatch.filter(pictures, pattern), pattern
        words = shlex.split(command)
        if words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]) is not None
        else:
            assert words[0] == "pcdnet"
            parse(words[1:])


def test_every_picture_is_shown_somewhere() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    seen = [path.name for path in PICTURES.iterdir() if height(path) > 1]  # of failures, where there are any
    assert [name for name in seen if f"pictures/{name}" not in text] == []


def height(path: Path) -> int:
    """The height of a picture."""
    with Image.open(path) as picture:
        return picture.height


def test_the_page_on_python_has_every_public_name_and_no_other() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: pcdnet\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted([*names, "__version__"]) == pcdnet.__all__
    assert "`pcdnet.__version__`" in text


@pytest.mark.parametrize("name", ["index.md", "python.md", "models.md", "poses.md"])
def test_snippets_of_python_run(name: str, place: Path) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(code, name, "exec"), names)
    assert isinstance(names["model"], pcdnet.PCDNet)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_lines_of_the_command_line_are_understood(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            shell = {"|", "&", "<", ">", "$"} & set("".join(words)) or "--config" in words  # whose file is read at once
            if words[:1] == ["pcdnet"] and len(words) > 2 and not shell:
                parse(words[1:])


def test_links_to_files_of_the_project_lead_to_pages_of_the_site() -> None:
    assert links.on_the_site("[a](../ARCHITECTURE.md#the-files)") == "[a](architecture.md#the-files)"
    assert links.on_the_site("[a](../../README.md)", 1) == "[a](../index.md)"
    assert (
        links.on_the_site("[a](scale.md) [b](https://x.org/../README.md)")
        == "[a](scale.md) [b](https://x.org/../README.md)"
    )
    assert links.on_the_site("[code](../src/pcdnet/run.py)") == "`src/pcdnet/run.py`"
    assert links.from_the_root("[a](docs/scale.md#ray) [b](CHANGELOG.md)") == "[a](scale.md#ray) [b](changelog.md)"
