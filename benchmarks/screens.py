"""Screens: the parts of the viewer at work, for the docs.

usage: python -m benchmarks.screens RUN [--data DATA]

A server is started for a copy of the run, and a browser (Chromium) takes a screenshot of each part: a box being drawn,
the kinds when the folder is counted, the shortcuts, and the page on a narrow screen in the dark:
docs/pictures/viewer-*.png.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.pictures import PICTURES, WINDOW
from benchmarks.serve import serving
from pcdnet.run import RunFolder
from pcdnet.serve.workbench import Workbench

NARROW = {"width": 390, "height": 844}
"""Pixels of a telephone's window."""
PATIENCE = 120_000
"""Milliseconds until the first picture is decomposed."""


def workplace(run: Path, data: str | None, folder: Path) -> None:
    """Take a picture of every part of the viewer, at work on a copy of a run."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(run, Path(scratch) / run.resolve().name))
        with viewed(copy, data) as page:
            draw_around_first(page)
            page.locator(".seeing").screenshot(path=str(folder / "viewer-drawing.png"))
            page.locator("#drawn-cancel").click()
            page.locator("#count-start").click()
            while page.evaluate("pcdnet.kinds.state.state") != "done":
                page.wait_for_timeout(200)
            page.mouse.move(0, 0)
            page.locator("#kinds").screenshot(path=str(folder / "viewer-kinds.png"))
            page.locator("#help").click()
            page.locator("#shortcuts").screenshot(path=str(folder / "viewer-shortcuts.png"))
        with viewed(copy, data, viewport=NARROW, color_scheme="dark") as page:
            page.screenshot(path=str(folder / "viewer-narrow.png"))


@contextmanager
def viewed(run: Path, data: str | None, **options: Any) -> Iterator[Any]:
    """The page of a server for a run, in a browser."""
    from playwright.sync_api import sync_playwright

    with serving(Workbench.for_run(RunFolder.open(run), data, "cpu")) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(**{"viewport": WINDOW, **options})
        page.goto(address)
        page.wait_for_selector("html[data-ready] .object", timeout=PATIENCE)
        page.wait_for_timeout(500)
        yield page
        browser.close()


def draw_around_first(page: Any) -> None:
    """Draw a box around the first object, as if it were missing."""
    page.locator("#draw").click()
    box = page.locator("#picture").bounding_box()
    height, width = page.evaluate("pcdnet.scene.size")
    top, left, rows, columns = page.evaluate("pcdnet.scene.painted.boxes[0]")
    corners = ((top, left), (top + rows - 1, left + columns - 1))
    for (row, column), act in zip(corners, (page.mouse.down, page.mouse.up), strict=True):
        x = box["x"] + (column + 0.5) * box["width"] / width
        page.mouse.move(x, box["y"] + (row + 0.5) * box["height"] / height)
        act()
    page.locator("#drawn-name").fill(page.locator("#objects b").first.inner_text())


def main() -> None:
    """Take the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data")
    options = parser.parse_args()
    workplace(options.run, options.data, PICTURES)


if __name__ == "__main__":
    main()
