"""How the page looks in every state, wide and narrow, light and dark: nothing that axe calls serious, all in sight."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.serve.pages import needs_browser, objects, wait

pytestmark = needs_browser
axe_source = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

FIGURES = {"mse": 0.02, "explained": 0.9, "objects": 2.5, "prototypes": 18, "f1": None}
LEARNING = {
    "state": "running",
    "step": 40,
    "steps": 100,
    "eta": 20.0,
    "seconds": 9.0,
    "loss": 0.01,
    "message": "step 40 of 100",
    "before": None,
    "after": None,
    "reasons": [],
    "former": 1,
}
DONE = {
    **LEARNING,
    "state": "done",
    "before": FIGURES,
    "after": {**FIGURES, "mse": 0.01},
    "reasons": ["one thing more"],
}

SMALL = """[...document.querySelectorAll('button, input:not(.unseen), summary')]
    .filter((each) => each.checkVisibility())
    .map((each) => [each.getBoundingClientRect(), each.id || each.className || each.textContent])
    .filter(([box]) => Math.max(box.width, box.height) < 24)
    .map(([, name]) => name)"""
"""What is too small for a finger."""
FOCUSED = """() => {
    const at = document.activeElement;
    const style = getComputedStyle(at.matches('.unseen') ? at.parentElement : at);
    const outlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none';
    return [at.id || at.className || at.tagName, at.matches('.views input') || outlined];
}"""
"""What has the focus, and whether that is seen."""
ABSOLUTE = """[...document.querySelectorAll('[src], [href]')]
    .map((each) => each.getAttribute('src') ?? each.getAttribute('href'))
    .filter((address) => address.startsWith('/'))"""
"""Addresses that are not relative to the page."""


def started(page: Any) -> None:
    """Nothing was touched yet."""


def edited(page: Any) -> None:
    """An object is chosen and was moved."""
    page.locator("#objects .row").nth(1).click()
    page.locator("#stage").focus()
    page.keyboard.press("ArrowDown")


def drawing(page: Any) -> None:
    """A box is being drawn."""
    page.locator("#draw").click()
    page.keyboard.press("ArrowDown")
    assert page.locator("#drawing").is_visible()


def counted(page: Any) -> None:
    """The folder is counted, two kinds are chosen and one is hidden."""
    page.locator("#count-start").click()
    wait(page, "pcdnet.kinds.state.state === 'done'")
    for n in (2, 3):
        page.locator(".kind-row input[type=checkbox]").nth(n).check()
    assert page.locator("#merging").is_visible()


def corrected(page: Any) -> None:
    """A prototype is said to be no object, and all panels are open."""
    for panel in ("inside", "prototypes"):
        page.locator(f"#{panel} summary").click()
    page.wait_for_selector("#rivals > *")


def learning(page: Any) -> None:
    """It is learning again."""
    relearn(page, LEARNING)
    page.wait_for_selector("#learning-now:not([hidden])")


def learned(page: Any) -> None:
    """It has learned again."""
    relearn(page, DONE)
    page.wait_for_selector("#outcome:not([hidden])")
    page.wait_for_selector("#outcome figure")


def dialog(name: str) -> Callable[[Any], None]:
    """That a dialog is open."""

    def opened(page: Any) -> None:
        page.locator(f"#{name}").click()
        page.wait_for_selector({"help": "#shortcuts[open]", "save": "#formats input", "units": "#units-words"}[name])

    opened.__name__ = name
    return opened


def relearn(page: Any, state: dict[str, Any]) -> None:
    """Have the server say that it learns again."""
    page.route("**/api/learning", lambda route: route.fulfill(json=state))
    both = """async () => { const answer = await fetch('api/decompose', { method: 'POST',
        headers: { 'Content-Type': 'application/json' }, body: '{"picture": 0}' });
        const found = await answer.json(); return JSON.stringify({ before: found, after: found }); }"""
    found = page.evaluate(both)
    page.route("**/api/learning/pictures/*", lambda route: route.fulfill(json=json.loads(found)))
    page.evaluate("pcdnet.learning.polling.now()")


STATES = (
    started, edited, drawing, counted, corrected, learning, learned, dialog("help"), dialog("save"), dialog("units")
)  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_nothing_serious_is_wrong_and_nothing_lies_beside_the_screen(visit: Any, state: Any, narrow: bool) -> None:
    page = visit(narrow=narrow)
    try:
        state(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found = axe_source.Axe().run(page).response["violations"]
            serious = {each["id"]: [node["html"][:120] for node in each["nodes"][:3]] for each in found}
            grave = [each["id"] for each in found if each["impact"] in ("serious", "critical")]
            assert not grave, {name: serious[name] for name in grave}
        width = page.viewport_size["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SMALL) == []
    finally:
        page.unroute_all()
        page.emulate_media(color_scheme="null", reduced_motion="null")
        page.evaluate("pcdnet.scene.undo()")


def test_what_has_the_focus_is_seen_to_have_it(visit: Any) -> None:
    page = visit()
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    assert [name for name, seen in reached if not seen] == []
    names = [name for name, _ in reached]
    assert names.index("strip") < names.index("stage") < names.index("row")


def test_the_shortcuts_are_shown_by_a_key_and_by_a_button(visit: Any) -> None:
    page = visit()
    page.locator("#stage").focus()
    page.keyboard.press("?")
    page.wait_for_selector("#shortcuts[open]")
    keys = page.locator("#keys dt").all_inner_texts()
    assert {"B", "Delete", "[ ]", ", ."} <= set(keys)
    before = objects(page)
    page.keyboard.press("b")
    assert page.locator("#drawing").is_hidden()
    page.keyboard.press("Escape")
    assert page.locator("#shortcuts").is_hidden()
    page.get_by_role("button", name="Shortcuts").click()
    page.get_by_role("button", name="Close").click()
    assert objects(page) == before
    for n, view in enumerate(("image", "reconstruction", "residual", "instances", "semantics")):
        page.keyboard.press(str(n + 1))
        assert page.locator(".views input:checked").get_attribute("value") == view


def test_letters_that_are_written_are_no_shortcuts(visit: Any) -> None:
    page = visit()
    page.locator(".kind-row input[type=text]").first.focus()
    page.keyboard.type("b?[]1")
    assert page.locator("#drawing").is_hidden()
    assert page.locator("#shortcuts").is_hidden()
    assert page.locator(".kind-row input[type=text]").first.input_value().endswith("b?[]1")
    page.keyboard.press("Escape")


def test_numbers_are_explained_with_their_units(visit: Any) -> None:
    page = visit()
    page.get_by_role("button", name="What the numbers mean").click()
    words = page.locator("#units-words").inner_text()
    assert "summed over all pixels and channels" in " ".join(words.split())
    page.keyboard.press("Escape")
    error, whole = page.evaluate("[pcdnet.scene.painted.error, pcdnet.scene.painted.errors[0]]")
    assert f"{round(100 * (1 - error / whole))} % explained" in page.locator("#error").inner_text()


def test_every_address_is_relative_to_the_page(visit: Any, client: Any) -> None:
    page = visit()
    for path in ("/", "/docs"):
        text = client.get(path).text
        assert 'href="/' not in text
        assert 'src="/' not in text
    assert page.evaluate(ABSOLUTE) == []
