"""Corrections and learning again in a real browser: draw, say what is no object, compare, adopt, and go back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from benchmarks.serve import serving

from pcdnet.run import RunFolder
from pcdnet.serve.workbench import Workbench
from tests.serve.pages import needs_browser, open_picture, point, wait
from tests.serve.test_learning import run as taught  # noqa: F401  (a fixture)
from tests.serve.test_page_looks import DONE, LEARNING, relearn

pytestmark = needs_browser


@pytest.fixture(autouse=True)
def no_corrections(client: Any) -> Iterator[None]:
    """What was corrected is taken back."""
    yield
    known = client.get("/api/corrections").json()
    for each in known["drawn"]:
        client.delete(f"/api/corrections/{each['id']}")
    for p in known["removed"]:
        client.delete(f"/api/corrections/removed/{p}")


def drawn(client: Any) -> list[dict[str, Any]]:
    """The boxes that the server has."""
    boxes: list[dict[str, Any]] = client.get("/api/corrections").json()["drawn"]
    return boxes


def thing(workbench: Workbench, number: int = 0) -> tuple[int, int, int, int]:
    """Top, left, height and width of an object of a picture."""
    found = workbench.model.decompose(workbench.browsing.pixels(number))
    return next(each.box for each in found.objects if each.box is not None)


def pull(page: Any, box: tuple[int, int, int, int]) -> None:
    """Draw a box with the mouse."""
    top, left, height, width = box
    page.mouse.move(*point(page, top, left))
    page.mouse.down()
    page.mouse.move(*point(page, top + height // 2, left + width // 2))
    page.mouse.move(*point(page, top + height - 1, left + width - 1))
    page.mouse.up()


def test_a_box_is_drawn_with_the_mouse_listed_and_taken_back(visit: Any, client: Any, workbench: Workbench) -> None:
    page = visit()
    box = thing(workbench)
    before = page.evaluate("pcdnet.scene.objects.length")
    page.get_by_role("button", name="Draw a box").click()
    pull(page, box)
    page.get_by_label("Name of the thing").fill("hook")
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector(".correction canvas")
    assert [(each["picture"], tuple(each["box"]), each["name"]) for each in drawn(client)] == [(0, box, "hook")]
    assert page.locator(".correction").inner_text().split("\n")[0] == "hook"
    assert page.locator("#frame .drawn").count() == 1
    assert page.locator("#drawing").is_hidden()
    assert page.evaluate("pcdnet.scene.objects.length") == before
    open_picture(page, 1)
    assert page.locator("#frame .drawn").count() == 0
    page.get_by_role("button", name="Take back the box around hook in picture 0").click()
    wait(page, "document.querySelectorAll('.correction').length === 0")
    assert drawn(client) == []


def test_a_box_is_drawn_with_a_finger(visit: Any, client: Any, workbench: Workbench) -> None:
    page = visit(narrow=True)
    top, left, height, width = box = thing(workbench)
    page.get_by_role("button", name="Draw a box").tap()
    session = page.context.new_cdp_session(page)
    places: list[tuple[str, tuple[int, int] | None]] = [("touchStart", (top, left)), ("touchMove", (top + 3, left + 3))]
    places += [("touchMove", (top + height - 1, left + width - 1)), ("touchEnd", None)]
    for kind, place in places:
        points = [] if place is None else [dict(zip("xy", point(page, *place), strict=True))]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    wait(page, f"JSON.stringify(pcdnet.drawing.box) === '{list(box)}'.replaceAll(' ', '')")
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector(".correction")
    assert tuple(drawn(client)[0]["box"]) == box


def test_a_box_is_drawn_with_the_keyboard(visit: Any, client: Any, workbench: Workbench) -> None:
    page = visit()
    top, left, height, width = box = thing(workbench)
    page.locator("#stage").focus()
    page.keyboard.press("b")
    page.keyboard.press("ArrowUp")
    start = page.evaluate("pcdnet.drawing.box")
    for axis, (less, more) in enumerate((("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight"))):
        for kind, wanted in (("", (top, left)[axis]), ("Shift+", (height, width)[axis])):
            now = start[axis + (2 if kind else 0)]
            # A box that is made smaller can go anywhere.
            for _ in range(abs(wanted - now)):
                page.keyboard.press(kind + (more if wanted > now else less))
    for axis, key in ((0, "ArrowDown"), (1, "ArrowRight")):
        for _ in range(max(0, (top, left)[axis] - page.evaluate("pcdnet.drawing.box")[axis])):
            page.keyboard.press(key)
    assert tuple(page.evaluate("pcdnet.drawing.box")) == box
    page.keyboard.press("Enter")
    page.keyboard.type("key")
    page.keyboard.press("Enter")
    page.wait_for_selector(".correction")
    assert [(tuple(each["box"]), each["name"]) for each in drawn(client)] == [(box, "key")]
    page.keyboard.press("b")
    page.keyboard.press("Escape")
    assert page.locator("#drawing").is_hidden()
    assert page.evaluate("document.activeElement.id") == "stage"


def test_a_box_around_nothing_is_refused_with_a_sentence_and_can_be_drawn_anew(visit: Any, client: Any) -> None:
    page = visit()
    empty = """() => { const { image, size: [H, W] } = pcdnet.scene;
        for (let y = 0; y + 3 < H; y++) for (let x = 0; x + 3 < W; x++) {
            let sum = 0;
            for (let v = 0; v < 3; v++) for (let u = 0; u < 9; u++) sum += image[((y + v) * W + x) * 3 + u];
            if (sum === 0) return [y, x, 3, 3];
        } }"""
    page.get_by_role("button", name="Draw a box").click()
    pull(page, tuple(page.evaluate(empty)))
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector("#notice:not([hidden])")
    assert page.locator("#drawing").is_visible()
    assert drawn(client) == []


def test_a_box_in_a_dropped_picture_is_sent_with_it(visit: Any, client: Any, workbench: Workbench) -> None:
    page = visit()
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": workbench.browsing.file(4)}
    page.set_input_files("#file", file)
    wait(page, "pcdnet.scene.name === 'mine.png'")
    page.get_by_role("button", name="Draw a box").click()
    pull(page, thing(workbench, 4))
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector(".correction canvas")
    assert len(drawn(client)) == 1


def test_a_prototype_that_is_no_object_is_listed_until_it_is_one_again(visit: Any, client: Any) -> None:
    page = visit()
    page.locator("#prototypes summary").click()
    page.get_by_role("button", name="Prototype 4 is no object", exact=True).click()
    page.wait_for_selector(".correction")
    assert client.get("/api/corrections").json()["removed"] == [4]
    assert page.locator("#bank .kind").nth(4).evaluate("card => card.classList.contains('gone')")
    page.reload()
    page.wait_for_selector(".correction")
    page.get_by_role("button", name="Keep prototype 4 after all").click()
    wait(page, "document.querySelectorAll('.correction').length === 0")
    assert client.get("/api/corrections").json()["removed"] == []


def test_learning_shows_its_progress_then_before_and_after_side_by_side(visit: Any) -> None:
    page = visit()
    try:
        relearn(page, LEARNING)
        page.wait_for_selector("#learning-now:not([hidden])")
        assert page.locator("#learning-words").inner_text() == "step 40 of 100 · 20 s left · loss 0.0100"
        assert page.locator("#learned").evaluate("bar => bar.value") == pytest.approx(0.4)
        assert page.locator("#learning").is_hidden()
        page.unroute("**/api/learning")
        relearn(page, DONE)
        page.wait_for_selector("#outcome figure:nth-of-type(4)")
        assert page.locator("#outcome figure").count() == 4
        assert page.locator("#outcome figure canvas").count() == 12
        figures = page.locator("#outcome table").inner_text()
        assert "0.0200" in figures
        assert "0.0100" in figures
        assert "F1" not in figures
        assert page.locator("#outcome .better").count() == 1
        assert "one thing more" in page.locator("#outcome .reasons").inner_text()
        assert page.get_by_role("button", name="Take the new prototypes").is_visible()
    finally:
        page.unroute_all()


def test_a_missing_thing_is_drawn_learned_adopted_counted_and_given_back(
    visit: Any,
    taught: RunFolder,  # noqa: F811
) -> None:
    workbench = Workbench.for_run(taught)
    rows, columns = np.nonzero(workbench.browsing.pixels(0)[20:, :20].any(axis=-1))  # the tall thing is down there
    with serving(workbench) as where:
        page = visit(where)
        count = page.evaluate("pcdnet.strip.count")
        page.get_by_role("button", name="Draw a box").click()
        pull(page, (int(rows.min()) + 19, max(0, int(columns.min()) - 1), 17, 7))
        page.get_by_label("Name of the thing").fill("tall")
        page.get_by_role("button", name="Add", exact=True).click()
        page.wait_for_selector(".correction canvas")
        for name in ("cross", "bar"):
            page.get_by_label(f"Choose {name} to merge it", exact=True).check()
        page.get_by_label("Name of the merged kind").fill("sign")
        page.get_by_role("button", name="Merge", exact=True).click()
        wait(page, "pcdnet.kinds.kinds.length === 1")
        page.locator("#minutes").fill("0.5")
        page.get_by_role("button", name="Learn again from here").click()
        page.wait_for_selector("#outcome figure:nth-of-type(4)", timeout=300_000)
        assert page.locator("#outcome figure").first.locator("small").all_inner_texts() == [
            "picture",
            "before: 2 objects",
            "after: 3 objects",
        ]
        page.get_by_role("button", name="Take the new prototypes").click()
        wait(page, "pcdnet.scene.bank.P === 3 && pcdnet.scene.objects.length === 3")
        page.locator("#count-start").click()
        wait(page, "pcdnet.kinds.state.state === 'done'")
        counts = page.evaluate("pcdnet.kinds.kinds.map(({ name, objects }) => [name, objects])")
        assert dict(counts) == {"sign": 2 * count, "tall": count}
        page.get_by_role("button", name="Give the old prototypes back…").click()
        page.get_by_role("button", name="Give them back").click()
        wait(page, "pcdnet.scene.bank.P === 2 && pcdnet.scene.objects.length === 2")
        page.goto("about:blank")
