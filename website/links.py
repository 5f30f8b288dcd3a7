"""Links: what the pages link to beside docs/, as it is on the site."""

from __future__ import annotations

import re

PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files of the project's folder, and the pages that show them."""
LINK = re.compile(r"\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_the_site(markdown: str, depth: int = 0) -> str:
    """A page of docs/, so many folders deep, with its links to files outside."""
    outside, up = "../" * (depth + 1), "../" * depth
    return LINK.sub(lambda found: _moved(found, outside, up), markdown)


def from_the_root(markdown: str) -> str:
    """A file of the project's folder as a page in docs/."""
    return LINK.sub(lambda found: _moved(found, "", ""), markdown)


def _moved(found: re.Match[str], outside: str, up: str) -> str:
    words, target = found[1], found[2]
    path, mark, anchor = target.partition("#")
    if not path or ":" in path or not path.startswith(outside):
        return found[0]
    path = path.removeprefix(outside)
    if path in PAGES:
        return f"[{words}]({up}{PAGES[path]}{mark}{anchor})"
    if path.startswith("docs/"):
        return f"[{words}]({up}{path.removeprefix('docs/')}{mark}{anchor})"
    return found[0] if not outside else f"`{path}`"  # code has no page
