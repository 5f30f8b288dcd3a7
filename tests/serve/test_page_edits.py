"""Edits in a real browser: kept with the run until they are discarded, and never lost in silence."""

from __future__ import annotations

from typing import Any

from pcdnet.serve.workbench import Workbench
from tests.serve.pages import READY, needs_browser, objects, open_picture, settle, wait

pytestmark = needs_browser


def things(page: Any) -> list[Any]:
    """What is placed where."""
    return [[each["prototype"], each["position"]] for each in objects(page)]


def delete_first(page: Any) -> None:
    """Remove the first object."""
    page.locator("#objects .row").first.click()
    page.get_by_role("button", name="Delete (Del)").click()


def test_an_edit_is_kept_with_the_run_and_undo_gives_back_what_was_found(visit: Any, workbench: Workbench) -> None:
    page = visit()
    found = things(page)
    delete_first(page)
    settle(page)
    page.reload()
    page.wait_for_selector(READY)
    assert things(page) == found[1:]
    assert page.locator("#picture-0.edited").count() == 1
    assert page.locator("#edited-words").inner_text() == "1 picture edited"
    page.get_by_role("button", name="Undo").click()
    assert things(page) == found
    settle(page)
    wait(page, "document.querySelectorAll('#strip .edited').length === 0")
    assert not workbench.edits.marks()


def test_edits_are_kept_in_the_order_in_which_they_were_made_and_the_last_counts(visit: Any) -> None:
    page = visit()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url[-1]) if request.method == "PUT" else None)
    places = []
    for number in (3, 1, 2):
        open_picture(page, number)
        page.locator("#objects .row").first.click()
        for _ in range(4):
            page.keyboard.press("ArrowDown")
        places.append(things(page))
    settle(page)
    assert list(dict.fromkeys(sent)) == ["3", "1", "2"]
    assert len(sent) < 12
    for number, placed in zip((3, 1, 2), places, strict=True):
        open_picture(page, number)
        assert things(page) == placed


def test_what_cannot_be_kept_is_said_loudly_stays_and_is_tried_again(visit: Any, watch: Any) -> None:
    page = visit(fresh=True)
    page.route("**/api/edits/*", lambda route: route.abort())
    delete_first(page)
    edited = things(page)
    page.wait_for_selector("#unkept:not([hidden])")
    words = page.locator("#unkept").inner_text()
    assert "picture 0 are not kept yet" in words
    assert page.locator("#unkept").get_attribute("role") == "alert"
    assert page.locator("#kept").inner_text() == "not kept"
    open_picture(page, 1)
    open_picture(page, 0)
    assert things(page) == edited
    assert page.evaluate("pcdnet.bench.unsaved")
    page.unroute("**/api/edits/*")
    page.get_by_role("button", name="Try now").click()
    settle(page)
    assert page.locator("#unkept").is_hidden()
    assert not page.evaluate("pcdnet.bench.unsaved")
    watch.troubles.clear()  # the browser complains of the requests that were cut off
    page.context.close()


def test_edits_are_discarded_after_a_question_of_one_picture_and_of_all(visit: Any, workbench: Workbench) -> None:
    page = visit()
    for number in (0, 1):
        open_picture(page, number)
        found = things(page)
        delete_first(page)
    settle(page)
    page.get_by_role("button", name="Discard edits").click()
    page.get_by_role("button", name="Keep", exact=True).click()
    assert things(page) == found[1:]
    page.get_by_role("button", name="Discard edits").click()
    page.get_by_role("button", name="Discard them").click()
    wait(page, f"pcdnet.scene.objects.length === {len(found)}")
    settle(page)
    assert len(workbench.edits.marks()) == 1
    page.get_by_role("button", name="Discard all…").click()
    page.get_by_role("button", name="Discard all", exact=True).click()
    wait(page, "document.getElementById('edited').hidden")
    assert len(workbench.edits.marks()) == 0
    open_picture(page, 0)
    assert page.locator("#discard").is_hidden()


def test_edits_of_a_dropped_picture_stay_in_the_page_which_warns_before_it_is_left(
    visit: Any, watch: Any, workbench: Workbench
) -> None:
    page = visit(fresh=True)
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": workbench.browsing.file(4)}
    page.set_input_files("#file", file)
    wait(page, "pcdnet.scene.name === 'mine.png'")
    found = things(page)
    delete_first(page)
    assert "this page alone" in page.locator("#kept").inner_text()
    open_picture(page, 1)
    page.get_by_role("button", name="mine.png · edited", exact=True).click()
    wait(page, "pcdnet.scene.name === 'mine.png'")
    assert things(page) == found[1:]
    assert not workbench.edits.marks()
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.type))
    page.close(run_before_unload=True)
    for _ in range(100):
        if asked:
            break
        watch.window(narrow=False).wait_for_timeout(50)
    assert asked == ["beforeunload"]
    watch.troubles.clear()
    page.context.close()


def test_a_picture_at_the_limit_says_so_with_the_cure(visit: Any, workbench: Workbench) -> None:
    page = visit()
    limit = workbench.model.config.max_objects
    for number in range(6):
        open_picture(page, number)
        found = page.evaluate("pcdnet.scene.found.length")
        assert page.locator("#limit").is_visible() == (found == limit)
        if found == limit:
            assert f"--model.max-objects {2 * limit}" in page.locator("#limit").inner_text()


def test_the_place_of_an_object_is_the_box_of_what_is_seen_of_it(visit: Any, workbench: Workbench) -> None:
    page = visit()
    for number in range(3):
        open_picture(page, number)
        found = workbench.model.decompose(workbench.browsing.pixels(number))
        words = page.locator("#objects .row small:first-of-type").all_inner_texts()
        places = [each for each in words if each.startswith("row")]
        boxes = [thing.box for thing in found.objects]
        assert places == [f"row {box[0]}, column {box[1]}, {box[2]}\u00d7{box[3]}" for box in boxes if box]
