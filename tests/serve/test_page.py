"""The page in a real browser: see, question, edit, and no harm done."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.serve import serving
from PIL import Image

from pcdnet.serve.access import Token
from pcdnet.serve.gallery import Gallery
from pcdnet.serve.workbench import Workbench
from tests.serve.pages import (
    READY,
    WIDE,
    assert_server_agrees,
    needs_browser,
    objects,
    open_picture,
    point,
    seen,
    wait,
)
from tests.serve.test_gallery import served as gallery_served

pytestmark = needs_browser


def test_an_uploaded_picture_is_decomposed(visit: Any, workbench: Workbench) -> None:
    page = visit()
    content = workbench.browsing.file(4)
    with page.expect_response("**/api/decompose"):
        page.set_input_files("#file", {"name": "mine.png", "mimeType": "image/png", "buffer": content})
    wait(page, "pcdnet.scene.name === 'mine.png'")
    found = workbench.model.decompose(workbench.browsing.pixels(4))
    assert [thing["position"] for thing in objects(page)] == found.positions.tolist()
    assert page.locator("#objects .row").count() == len(found)
    assert page.locator(".views canvas").count() == 5
    assert_server_agrees(page)


def test_a_large_picture_is_shown_smaller_and_cannot_be_edited(visit: Any, workbench: Workbench) -> None:
    page, buffer = visit(), io.BytesIO()
    sheet = np.zeros((700, 900, 3), np.uint8)
    for row, column in ((40, 50), (600, 800)):
        sheet[row : row + 35, column : column + 35] = workbench.browsing.pixels(4)
    Image.fromarray(sheet).save(buffer, "png")
    page.set_input_files("#file", {"name": "large.png", "mimeType": "image/png", "buffer": buffer.getvalue()})
    wait(page, "pcdnet.scene.name === 'large.png'")
    assert page.evaluate("[pcdnet.scene.shrunk, pcdnet.scene.size, pcdnet.scene.whole]") == [2, [350, 450], [700, 900]]
    assert "shown 2 times smaller" in page.locator("#notice-words").inner_text()
    found = objects(page)
    assert len(found) == page.locator("#objects .row").count() == 6
    page.locator("#objects .row").first.click()
    assert page.locator("#marks .chosen").count() == 1
    assert page.locator(".editor").count() == 0
    page.locator("#stage").press("Delete")
    page.locator("#stage").press("ArrowDown")
    assert objects(page) == found
    assert page.locator("#inside").is_hidden()
    assert page.get_by_role("button", name="+ Add an object").is_disabled()
    open_picture(page, 0)
    wait(page, "pcdnet.scene.shrunk === 1")
    assert page.locator("#inside").is_visible()


def test_hovering_in_list_or_picture_highlights_in_both(visit: Any) -> None:
    page = visit()
    page.locator("#objects .row").nth(1).hover()
    assert page.locator("#marks .lit").count() == 1
    in_list = page.locator("#marks .lit").get_attribute("d")
    page.mouse.move(1, 1)
    wait(page, "pcdnet.scene.hovered === null")
    assert page.locator("#marks path").count() == 0
    page.mouse.move(*point(page, *seen(page, 1)))
    assert page.locator("#objects li").nth(1).evaluate("item => item.classList.contains('lit')")
    assert page.locator("#marks .lit").get_attribute("d") == in_list


def test_dragging_moves_an_object_and_undo_brings_it_back(visit: Any) -> None:
    page = visit()
    before = objects(page)
    row, column = seen(page, 1)
    page.mouse.move(*point(page, row, column))
    page.mouse.down()
    for step in range(1, 4):
        page.mouse.move(*point(page, row + step, column - step))
    page.mouse.up()
    after = objects(page)
    top, left = before[1]["position"]
    assert after[1]["position"] == [top + 3, left - 3]
    assert [thing["position"] for thing in after[::2]] == [thing["position"] for thing in before[::2]]
    assert page.locator(".views input:checked").get_attribute("value") == "reconstruction"
    assert page.evaluate("pcdnet.scene.painted.error") > 1
    assert_server_agrees(page)
    page.keyboard.press("Control+z")
    assert objects(page) == before
    page.keyboard.press("Control+Shift+z")
    assert objects(page) == after
    page.get_by_role("button", name="Undo").click()
    assert objects(page) == before


def test_recolouring_swapping_and_depth_are_seen_at_once(visit: Any) -> None:
    page = visit()
    page.locator("#objects .row").nth(2).click()
    page.locator(".editor input[type=color]").fill("#3366cc")
    assert objects(page)[2]["colour"] == pytest.approx([0.2, 0.4, 0.8])
    page.locator(".editor .kinds input").nth(18).check(force=True)
    assert objects(page)[2]["prototype"] == 18
    chosen = objects(page)[2]["id"]
    page.get_by_role("button", name="Bring forward").click()
    assert objects(page)[1]["id"] == chosen
    page.get_by_role("button", name="Duplicate").click()
    assert len(objects(page)) == 4
    assert_server_agrees(page)


def test_the_keyboard_is_enough_to_edit(visit: Any) -> None:
    page = visit()
    start = objects(page)
    page.locator("#stage").focus()
    page.keyboard.press(".")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "PageDown"):
        page.keyboard.press(key)
    row, column = start[0]["position"]
    assert objects(page)[1]["id"] == start[0]["id"]
    assert objects(page)[1]["position"] == [row + 1, column + 2]
    page.keyboard.press("PageUp")
    page.keyboard.press("Delete")
    assert [thing["id"] for thing in objects(page)] == [thing["id"] for thing in start[1:]]
    assert page.evaluate("document.activeElement.id") == "stage"
    for _ in range(6):
        page.keyboard.press("Control+z")
    assert objects(page) == start
    reached = []
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    page.locator("#stage").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.className || document.activeElement.id"))
        assert page.evaluate("document.activeElement !== document.body")
    assert "row" in reached


def test_deleting_in_the_list_leaves_the_others(visit: Any) -> None:
    page = visit()
    start = objects(page)
    page.locator("#objects .row").nth(0).click()
    page.get_by_role("button", name="Delete (Del)").click()
    assert [thing["id"] for thing in objects(page)] == [thing["id"] for thing in start[1:]]
    assert page.locator("#objects .row").count() == len(start) - 1
    assert_server_agrees(page)


def test_downloads_hold_the_edited_scene(visit: Any) -> None:
    page = visit()
    page.locator("#objects .row").nth(0).click()
    page.keyboard.press("ArrowLeft")
    placed = [thing["position"] for thing in objects(page)]
    contents = {}
    page.get_by_role("button", name="Download…").click()
    page.wait_for_selector("#saving[open]")
    for kind in ("PNG", "JSON", "COCO"):
        with page.expect_download() as caught:
            page.get_by_role("radio", name=kind, exact=True).check(force=True)
            page.get_by_role("button", name="This picture").click()
        contents[kind] = Path(caught.value.path()).read_bytes()
        assert caught.value.suggested_filename.endswith({"PNG": ".png"}.get(kind, ".json"))
    assert [thing["position"] for thing in json.loads(contents["JSON"])["objects"]] == placed
    assert len(json.loads(contents["COCO"])["annotations"]) == len(placed)
    picture = np.array(Image.open(io.BytesIO(contents["PNG"]))).astype(int)
    mine = np.array(page.evaluate("Array.from(pcdnet.scene.painted.picture)")).reshape(35, 35, 3)
    assert np.abs(picture - np.round(255 * mine)).max() <= 1


def test_a_bad_file_gets_a_sentence_and_leaves_the_scene(visit: Any) -> None:
    page = visit()
    before = objects(page)
    page.set_input_files("#file", {"name": "a.png", "mimeType": "image/png", "buffer": b"<script>alert(1)</script>"})
    page.wait_for_selector("#notice:not([hidden])")
    assert "no picture of a known kind" in page.locator("#notice-words").inner_text()
    assert objects(page) == before
    page.get_by_role("button", name="Dismiss").click()
    assert page.locator("#notice").is_hidden()


def test_a_picture_of_another_size_can_be_resized_on_the_spot(visit: Any) -> None:
    page = visit()
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9)).save(buffer, "png")
    page.set_input_files("#file", {"name": "tiny.png", "mimeType": "image/png", "buffer": buffer.getvalue()})
    page.get_by_role("button", name="Resize it to").click()
    wait(page, "pcdnet.scene.name === 'tiny.png'")
    assert page.evaluate("pcdnet.scene.size") == [35, 35]
    assert page.locator("#objects .row").count() == 0
    page.get_by_role("button", name="+ Add an object").click()
    assert page.locator("#objects .row").count() == 1
    assert_server_agrees(page)


def test_prototypes_that_are_named_alike_have_one_colour_at_once(visit: Any, workbench: Workbench) -> None:
    page = visit()
    p = objects(page)[0]["prototype"]
    q = 0 if p else 1
    first, last = sorted((p, q))
    page.locator("#prototypes summary").click()
    for prototype in (p, q):
        name = page.get_by_label(f"Name of prototype {prototype}", exact=True)
        with page.expect_response("**/api/names/*"):
            name.fill("spade")
            name.press("Enter")
        wait(page, f"pcdnet.scene.bank.names[{prototype}] === 'spade'")
    assert page.evaluate("([a, b]) => pcdnet.scene.bank.hex[a] === pcdnet.scene.bank.hex[b]", [p, q])
    shown = page.evaluate(
        "[...document.querySelectorAll('#bank .kind')].map((card) => card.style.getPropertyValue('--kind'))"
    )
    assert shown[first] == shown[last]
    assert page.locator("#objects .row b").first.inner_text() == "spade"
    assert page.evaluate("document.querySelector('#objects .object').style.getPropertyValue('--kind')") == shown[first]
    for prototype in (p, q):
        workbench.rename(prototype, "")


def test_a_name_with_markup_is_shown_as_it_is_written(visit: Any, workbench: Workbench) -> None:
    page = visit()
    markup = "<img src=x onerror=alert(1)>"
    p = objects(page)[0]["prototype"]
    page.locator("#prototypes summary").click()
    name = page.get_by_label(f"Name of prototype {p}", exact=True)
    with page.expect_response("**/api/names/*"):
        name.fill(markup)
        name.press("Enter")
    wait(page, f"pcdnet.scene.bank.names[{p}].startsWith('<img')")
    assert page.locator("#objects .row b").first.inner_text() == markup
    assert page.locator("#objects img, #bank img").count() == 0
    assert workbench.names[p] == markup
    page.reload()
    page.wait_for_selector(READY)
    page.wait_for_selector("#objects .row")
    assert page.locator("#objects .row b").first.inner_text() == markup
    workbench.rename(p, "")


def test_the_inside_of_the_search_is_shown(visit: Any) -> None:
    page = visit()
    open_picture(page, 1)
    page.locator("#inside summary").click()
    page.wait_for_selector("#rivals .rival.won")
    assert "peaks" in page.locator("#heat-words").inner_text()
    first = page.locator("#heat-words").inner_text()
    page.locator("#heat-kinds input").nth(18).check(force=True)
    wait(page, "document.getElementById('heat-words').textContent.startsWith('prototype 18')")
    assert page.locator("#heat-words").inner_text() != first
    slider, words = page.locator("#step"), page.locator("#step-words")
    slider.fill("0")
    assert words.inner_text().startswith("After 0 choices")
    slider.fill("3")
    assert "It ends here: there are as many objects" in page.locator("#rivals").inner_text()
    slider.fill("4")
    assert words.inner_text() == "After refinement the error is 0."
    shown = "document.getElementById('heat').getContext('2d').getImageData(0, 0, 350, 350).data"
    reds = f"{shown}.filter((_, i) => i % 4 === 0)"
    assert page.evaluate(f"Math.max(...{reds}.slice(0, 60000))") > 200
    assert page.evaluate(f"Math.min(...{reds}.slice(0, 60000))") < 20


def test_a_search_that_ends_for_want_of_gain_says_so(visit: Any, workbench: Workbench) -> None:
    page = visit()
    open_picture(page, 2)
    page.locator("#inside summary").click()
    page.wait_for_selector("#rivals .rival.won")
    page.locator("#step").fill("3")
    words = page.locator("#rivals").inner_text()
    gain = re.search(r"It ends here: nothing would lower the error by ([0-9.]+) or more", words)
    assert gain is not None, words
    assert float(gain[1]) == workbench.model.config.min_error_reduction


def test_on_a_narrow_screen_everything_fits_and_a_finger_can_drag(visit: Any) -> None:
    page = visit(narrow=True)
    row, column = seen(page, 0)
    before = objects(page)[0]["position"]
    session = page.context.new_cdp_session(page)
    for kind, step in (("touchStart", 0), ("touchMove", 1), ("touchMove", 2), ("touchEnd", None)):
        x, y = point(page, row + (step or 0), column)
        points = [] if step is None else [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    wait(page, f"pcdnet.scene.objects[0].position[0] === {before[0] + 2}")
    # A tap that comes right after a finger has moved would end that movement, and be nothing else.
    page.locator("#inside summary").click()
    page.locator("#prototypes summary").click()
    page.wait_for_selector("#rivals > *")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = "[...document.querySelectorAll('button')].map(button => button.getBoundingClientRect())"
    sizes = page.evaluate(f"{boxes}.map(box => [box.width, box.height])")
    assert all(min(size) >= 24 for size in sizes if max(size) > 0)


def test_a_long_list_stays_beside_the_picture_and_shows_what_is_chosen_there(visit: Any) -> None:
    page = visit()
    page.evaluate("() => { for (let n = 0; n < 30; n++) pcdnet.scene.add(n % 19); pcdnet.scene.select(null); }")
    box = page.locator("#objects").bounding_box()
    assert box["height"] < 0.7 * WIDE["height"]
    before = page.evaluate("scrollY")
    page.evaluate("pcdnet.scene.select(pcdnet.scene.objects.at(-1).id)")
    chosen = page.locator("#objects .chosen").bounding_box()
    assert box["y"] <= chosen["y"]
    assert chosen["y"] + chosen["height"] <= box["y"] + box["height"] + 1
    assert page.evaluate("scrollY") == before


@pytest.mark.parametrize("where", ["grey_site", "plain_site"])
def test_soft_masks_over_a_background_are_painted_as_the_server_does(
    visit: Any, where: str, request: pytest.FixtureRequest
) -> None:
    page = visit(request.getfixturevalue(where))
    assert_server_agrees(page)
    page.locator("#objects .row").nth(0).click()
    page.locator(".editor input[type=range]").fill("0.3")
    assert objects(page)[0]["colour"] == [0.3]
    page.get_by_role("button", name="Duplicate").click()
    for _ in range(8):
        page.keyboard.press("ArrowUp")
    page.locator("#stage").focus()
    for _ in range(12):
        page.keyboard.press("Shift+ArrowUp")
    assert_server_agrees(page)


def test_the_page_follows_the_light_of_the_system(visit: Any) -> None:
    page = visit()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        style = "getComputedStyle(document.body)"
        paper, ink = (page.evaluate(f"{style}.{name}") for name in ("backgroundColor", "color"))
        brightness = [sum(int(part) for part in colour[4:-1].split(",")) for colour in (paper, ink)]
        assert (brightness[0] > brightness[1]) == (scheme == "light")
    page.emulate_media(color_scheme="null")


def test_the_page_works_with_a_token_which_does_not_stay_in_the_address(browser: Any, workbench: Workbench) -> None:
    secret = "a-secret-of-letters-0123"
    with serving(workbench, token=Token(secret)) as where:
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        page.goto(f"{where}/?token={secret}")
        page.wait_for_selector(READY)
        page.wait_for_selector("#objects .row")
        assert page.url == f"{where}/"
        assert page.evaluate("document.cookie") == ""
        page.goto(f"{where}/")
        page.wait_for_selector("#objects .row")
        stranger = browser.new_context().new_page()
        assert stranger.goto(f"{where}/").status == 401
        context.close()


def test_trained_models_work_below_their_names_where_nothing_is_kept(visit: Any) -> None:
    for where in gallery_served(Gallery(threads=1)):
        page = visit(f"{where}/tetrominoes/")
        found = objects(page)
        page.locator("#objects .row").first.click()
        page.keyboard.press("Delete")
        assert "this page alone" in page.locator("#kept").inner_text()
        open_picture(page, 1)
        open_picture(page, 0)
        assert [each["position"] for each in objects(page)] == [each["position"] for each in found[1:]]
        page.get_by_role("button", name="Undo").click()
        assert len(objects(page)) == len(found)
        for name in ("Draw a box", "Count the whole folder", "Learn again from here"):
            assert page.get_by_role("button", name=name).is_hidden()
        page.goto("about:blank")
