"""Pages: the windows of a real browser, and what tests ask of the page in them."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path")

NUMBERS = "async (array) => Array.from((await import('./static/api.js')).numbers(array))"
WIDE, NARROW = {"width": 1280, "height": 1000}, {"width": 390, "height": 844}
READY = "html[data-ready] #bench:not([aria-busy]):not([hidden])"


class Watch:
    """Windows of the browser, and what went on in them since the last look."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._windows: dict[bool, Any] = {}
        self.asked: list[str] = []
        self.troubles: list[str] = []

    def window(self, *, narrow: bool) -> Any:
        """A window that was opened before, if there is one: to load a page in it is far faster than in a new one."""
        if narrow not in self._windows:
            self._windows[narrow] = self.fresh(narrow=narrow)
        return self._windows[narrow]

    def fresh(self, *, narrow: bool = False) -> Any:
        """A new window."""
        context = self._browser.new_context(viewport=NARROW if narrow else WIDE, has_touch=narrow)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", self._noted)
        page.on("dialog", self._dismissed)
        return page

    def _noted(self, message: Any) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.troubles.append(message.text)

    def _dismissed(self, dialog: Any) -> None:
        if dialog.type == "beforeunload":
            dialog.accept()
            return
        self.troubles.append(f"dialog {dialog.message}")
        dialog.dismiss()


def wait(page: Any, condition: str) -> None:
    """Until a condition in the page holds; the browser's own way needs eval, which the page forbids."""
    for _ in range(1500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"{condition} never held")


def objects(page: Any) -> list[dict[str, Any]]:
    """The objects of the scene, as the page has them."""
    found: list[dict[str, Any]] = page.evaluate("pcdnet.scene.objects")
    return found


def point(page: Any, row: float, column: float) -> tuple[float, float]:
    """Where on the screen a pixel of the picture is."""
    box = page.locator("#picture").bounding_box()
    height, width = page.evaluate("pcdnet.scene.size")
    return box["x"] + (column + 0.5) * box["width"] / width, box["y"] + (row + 0.5) * box["height"] / height


def seen(page: Any, n: int) -> tuple[int, int]:
    """A pixel of the n-th object that is seen."""
    at = page.evaluate(f"pcdnet.scene.painted.instances.indexOf({n + 1})")
    width = page.evaluate("pcdnet.scene.size[1]")
    return at // width, at % width


def open_picture(page: Any, number: int) -> None:
    """Open a picture of the strip and wait until it is there."""
    page.evaluate("n => pcdnet.strip.go(n)", number)
    wait(page, f"pcdnet.bench.number === {number} && !document.querySelector('#bench[aria-busy]')")


def settle(page: Any) -> None:
    """Wait until all edits are kept."""
    wait(page, "pcdnet.keeping.pending === 0")


def assert_server_agrees(page: Any) -> None:
    """The picture that the page paints is the server's, within one level, and so are error and gains."""
    mine = np.array(page.evaluate("Array.from(pcdnet.scene.painted.picture)")).clip(0, 1) * 255
    answer = page.evaluate("pcdnet.render()")
    theirs = np.array(page.evaluate(NUMBERS, answer["reconstruction"]))
    assert np.abs(np.round(mine) - theirs).max() <= 1
    assert page.evaluate("Array.from(pcdnet.scene.painted.instances)") == page.evaluate(NUMBERS, answer["instances"])
    assert page.evaluate("pcdnet.scene.painted.error") == pytest.approx(answer["scene"]["error"], abs=0.01)
    gains = [thing["gain"] for thing in answer["scene"]["objects"]]
    assert page.evaluate("pcdnet.scene.painted.gains") == pytest.approx(gains, abs=0.01)
