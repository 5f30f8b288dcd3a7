"""Laws of the site: nothing is loaded from elsewhere, and every command and notebook has its place."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="the extra docs is not installed")

from mkdocs.config.defaults import MkDocsConfig
from website.hooks import on_config, on_page_markdown, on_post_page

from pcdnet.cli import COMMANDS

PAGE: Any = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://example.org/a.js"></script>',
        "<img alt='a' src=https://example.org/a.png>",
        '<link rel="stylesheet" href="https://example.org/a.css">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_a_warning(tag: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="mkdocs"):
        on_post_page(f"<p>{tag}</p>", page=PAGE)
    assert "https://example.org/a." in caplog.text


def test_links_and_files_of_the_site_are_none(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="mkdocs"):
        on_post_page('<a href="https://example.org">a</a><script src="b.js"></script>', page=PAGE)
    assert not caplog.records


def test_every_command_is_in_the_navigation() -> None:
    config = MkDocsConfig()
    config.nav = [{"Use": ["command-line/index.md", {"Python": "python.md"}]}]
    [use] = on_config(config).nav or []
    pages = use["Use"][0]["The command line"]
    assert pages == ["command-line/index.md", *(f"command-line/{name}.md" for name in COMMANDS)]


def test_links_to_notebooks_lead_to_their_pages_and_offers_to_their_files() -> None:
    text = "[first](notebooks/first-steps.ipynb), [first-steps.ipynb](first-steps.ipynb)"
    made = on_page_markdown(text, page=PAGE)
    assert made == "[first](notebooks/first-steps.md), [first-steps.ipynb](first-steps.ipynb)"


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    root = Path(__file__).resolve().parents[2]
    nav = (root / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert [path.name for path in (root / "docs").glob("*.md") if path.name not in nav] == []
