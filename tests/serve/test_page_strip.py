"""The strip of pictures in a real browser: thousands of them, of which only what is in sight is in the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from benchmarks.serve import serving

from pcdnet.data.strip import SceneStrip
from pcdnet.data.tetrominoes import generate
from pcdnet.run import load
from pcdnet.scene import Scenes
from pcdnet.serve.workbench import Workbench
from tests.runs import true_run
from tests.serve.pages import needs_browser, objects, open_picture, settle, wait

pytestmark = needs_browser
COUNT = 5000


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with thousands of pictures."""
    run = true_run(tmp_path_factory.mktemp("runs") / "long").path
    images = np.resize(generate(20, seed=3).images, (COUNT, 35, 35, 3))
    pictures = SceneStrip(Scenes(images=images, name="many"))
    with serving(Workbench(folder=run, model=load(run), pictures=pictures)) as where:
        yield where


def shown(page: Any) -> list[int]:
    """The numbers of the pictures that are in the document."""
    items = "[...document.querySelectorAll('#strip [role=option]')]"
    return sorted(page.evaluate(f"{items}.map((item) => Number(item.dataset.number))"))


def in_sight(page: Any) -> list[int]:
    """The numbers of the pictures that are in sight."""
    first, width = page.evaluate("[pcdnet.strip.place.scrollLeft, pcdnet.strip.place.clientWidth]")
    return [n for n in range(COUNT) if first <= 84 * n and 84 * (n + 1) <= first + width]


def loaded(page: Any) -> list[int]:
    """The numbers of the pictures whose thumbnails are there."""
    items = "[...document.querySelectorAll('#strip [role=option]')]"
    there = f"{items}.filter((item) => item.querySelector('img').naturalWidth > 0)"
    return sorted(page.evaluate(f"{there}.map((item) => Number(item.dataset.number))"))


def wait_for_thumbnails(page: Any) -> None:
    """Until everything in sight has its thumbnail."""
    for _ in range(400):
        if set(in_sight(page)) <= set(loaded(page)):
            return
        page.wait_for_timeout(50)
    raise AssertionError("thumbnails in sight never came")


def test_of_thousands_of_pictures_only_what_is_seen_is_in_the_document(visit: Any, watch: Any, long_site: str) -> None:
    page = visit(long_site)
    wait_for_thumbnails(page)
    most = len(shown(page))
    for place in range(0, 84 * COUNT, 84 * 97):
        page.evaluate("place => { pcdnet.strip.place.scrollLeft = place; }", place)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert set(in_sight(page)) <= set(shown(page))
        most = max(most, len(shown(page)))
    assert most <= 40
    wait_for_thumbnails(page)
    asked = {url for url in watch.asked if "/thumbnail" in url}
    assert len(asked) < 1000
    assert page.locator("#strip [aria-selected=true]").get_attribute("aria-posinset") == "1"


def test_requests_for_pictures_that_were_scrolled_away_are_dropped(visit: Any, long_site: str) -> None:
    page = visit(long_site, fresh=True)
    wait_for_thumbnails(page)
    held: list[Any] = []
    dropped: list[str] = []
    page.on("requestfailed", lambda request: dropped.append(request.url))
    page.route("**/api/pictures/20*/thumbnail*", lambda route: held.append(route))
    page.evaluate("pcdnet.strip.place.scrollLeft = 84 * 2000")
    for _ in range(200):
        if held:
            break
        page.wait_for_timeout(50)
    asked = {route.request.url for route in held}
    page.evaluate("pcdnet.strip.place.scrollLeft = 84 * 4000")
    wait_for_thumbnails(page)
    assert asked
    assert asked <= set(dropped)
    page.context.close()


def test_a_picture_is_gone_to_by_its_number(visit: Any, long_site: str) -> None:
    page = visit(long_site)
    page.get_by_label("Go to number").fill("4321")
    page.get_by_label("Go to number").press("Enter")
    wait(page, "pcdnet.bench.number === 4321")
    assert 4321 in in_sight(page)
    assert page.locator("#picture-name").inner_text() == "many#4321"
    assert page.locator("#strip [aria-selected=true]").get_attribute("data-number") == "4321"
    page.get_by_label("Go to number").fill("99999")
    page.get_by_label("Go to number").press("Enter")
    wait(page, f"pcdnet.bench.number === {COUNT - 1}")


def test_the_strip_is_gone_through_by_keys_and_only_the_last_is_opened(visit: Any, watch: Any, long_site: str) -> None:
    page = visit(long_site)
    strip = page.locator("#strip")
    strip.focus()
    opened: list[str] = []
    page.on("request", lambda request: opened.append(request.url) if "decompose" in request.url else None)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    wait(page, "pcdnet.bench.number === 5")
    assert len(opened) < 5
    page.keyboard.press("End")
    wait(page, f"pcdnet.bench.number === {COUNT - 1}")
    assert strip.get_attribute("aria-activedescendant") == f"picture-{COUNT - 1}"
    assert page.locator(f"#picture-{COUNT - 1}").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    wait(page, "pcdnet.bench.number === 0")
    page.locator("#stage").focus()
    page.keyboard.press("]")
    wait(page, "pcdnet.bench.number === 1")


def test_a_finger_moves_the_strip_and_opens_a_picture(visit: Any, long_site: str) -> None:
    page = visit(long_site, narrow=True)
    box = page.locator("#strip").bounding_box()
    y = box["y"] + 40
    session = page.context.new_cdp_session(page)
    for kind, x in (("touchStart", 370), *(("touchMove", x) for x in range(350, 10, -20)), ("touchEnd", None)):
        points = [] if x is None else [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    wait(page, "pcdnet.strip.place.scrollLeft > 200")
    wait_for_thumbnails(page)
    n = in_sight(page)[1]
    page.locator(f"#picture-{n}").tap()
    wait(page, f"pcdnet.bench.number === {n}")


def test_the_strip_says_what_is_edited_and_how_many_objects_there_are(visit: Any, workbench: Workbench) -> None:
    page = visit()
    open_picture(page, 2)
    page.locator("#objects .row").first.click()
    page.keyboard.press("Delete")
    settle(page)
    assert "edited" in page.locator("#picture-2").get_attribute("aria-label")
    page.locator("#count-start").click()
    wait(page, "pcdnet.kinds.state.state === 'done'")
    found = len(workbench.model.decompose(workbench.browsing.pixels(2)))
    badge = "document.querySelector('#picture-2 .badge').textContent"
    wait(page, f"{badge} === '{found - 1}'")
    assert f"{found - 1} object" in page.locator("#picture-2").get_attribute("aria-label")
    page.get_by_role("button", name="Undo").click()
    wait(page, f"{badge} === '{found}'")
    settle(page)
    p = objects(page)[0]["prototype"]
    page.get_by_role("button", name=f"Hide prototype {p}", exact=True).click()
    wait(page, f"{badge} === '{sum(thing['prototype'] != p for thing in objects(page))}'")
    page.get_by_role("button", name=f"Show prototype {p}", exact=True).click()
    wait(page, f"{badge} === '{found}'")


def test_counting_says_how_far_it_is_and_can_be_stopped(visit: Any, long_site: str) -> None:
    page = visit(long_site)
    page.get_by_role("button", name="Count the whole folder").click()
    wait(page, "pcdnet.kinds.state.state === 'running' && pcdnet.kinds.state.done > 0")
    assert f"of {COUNT:,}" in page.locator("#counting-words").inner_text()
    assert page.locator("#counted").is_visible()
    page.get_by_role("button", name="Stop").click()
    wait(page, "pcdnet.kinds.state.state !== 'running'")
    assert page.locator("#counting").is_hidden()
    assert page.get_by_role("button", name="Go on counting").is_visible()
    assert 0 < page.evaluate("pcdnet.kinds.state.done") < COUNT
