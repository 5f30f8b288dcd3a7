"""Hooks: what MkDocs calls while it builds the site."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pcdnet.cli import COMMANDS
from website import command_line, http_api, links, mathematics, notebooks

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROOT = DOCS.parent
OVERVIEW = "command-line/index.md"
"""What the navigation calls the pages of all commands."""
NOTEBOOK = re.compile(r"\[([^\]]*)(?<!\.ipynb)\]\(([\w/-]+)\.ipynb\)")
"""A link to a notebook, but for one that offers the file, whose words are its name."""
LOADED = re.compile(r"<(?:(?:script|img|iframe|source)[^>]+src|link[^>]+href)=.?(https?://[^\s\"'>]+)")
"""What browsers load as they show a page, if its address is that of another host."""
LOG = logging.getLogger("mkdocs.hooks")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the page of every command in the navigation."""
    config.nav = _with_commands(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code and the notebooks, and those of the project's folder."""
    made = {**command_line.pages(), "http.md": http_api.page(http_api.described())}
    for name, page in links.PAGES.items():
        if page != "index.md":
            made[page] = links.from_the_root((ROOT / name).read_text(encoding="utf-8"))
    for file in sorted((DOCS / "notebooks").glob("*.ipynb")):
        made[f"notebooks/{file.stem}.md"] = notebooks.page(
            notebooks.executed(file, ROOT / "build" / "notebooks"), file.name
        )
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files of the project and to notebooks, as they are on the site."""
    path = page.file.src_uri
    markdown = re.sub(NOTEBOOK, r"[\1](\2.md)", markdown)
    return links.on_the_site(markdown, path.count("/"))


def on_page_content(html: str, **_: Any) -> str:
    """Mathematics within lines as MathML."""
    return mathematics.inline(html)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Warn of whatever a page would load from elsewhere."""
    for address in LOADED.findall(output):
        LOG.warning("%s loads %s from elsewhere", page.file.src_uri, address)
    return output


def _with_commands(nav: list[Any]) -> list[Any]:
    """The navigation with the pages of the commands where their overview is."""
    whole: list[Any] = []
    for item in nav:
        if item == OVERVIEW:
            whole.append({"The command line": [OVERVIEW, *(f"command-line/{name}.md" for name in COMMANDS)]})
        elif isinstance(item, dict):
            whole.append(
                {title: _with_commands(part) if isinstance(part, list) else part for title, part in item.items()}
            )
        else:
            whole.append(item)
    return whole
