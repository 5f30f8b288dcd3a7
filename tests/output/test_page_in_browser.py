"""The report in a real browser: it fits every window, light and dark, and axe finds nothing that keeps people out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.output.page import write_page
from pcdnet.training.suggestions import Suggestion
from pcdnet.training.verdict import Verdict
from tests.output.test_page import report

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, from the extra dev")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium on the path")

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with everything that a page may have, and long words."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    command = f"pcdnet train --config {'long/' * 40}config.toml"
    verdict = Verdict(verdict="failed", reasons=("little is explained", "3 in use"))
    merge = Suggestion(words="make prototypes 3 and 7 one kind", reason="they lie between", command=command)
    healthy = {"names": {3: "W" * 60, 5: "bar", 6: "bar"}, "verdict": verdict, "suggestions": [merge] * 2}
    page = report(**healthy, command=command)
    sick = {"usage": np.eye(19)[0], "twins": [(3, 8)], "likeness": page.health.likeness}
    health = type(page.health)(error=page.health.error, changed=page.health.changed, **sick)
    write_page(report(**healthy, command=command, health=health), path)
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_fits_the_window_and_can_be_read_by_all(
    browser: Any, address: str, size: dict[str, int], scheme: str
) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
    troubles: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: troubles.append(message.text))
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    table = page.locator(".kinds")
    assert table.evaluate("element => element.scrollWidth > element.clientWidth") == (size is NARROW)
    table.focus()  # who has no mouse can scroll it with the keys
    assert table.evaluate("element => element === document.activeElement")
    assert troubles == []
    axe = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    context.close()
