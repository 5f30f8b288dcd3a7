"""Poses in a real browser: objects are turned, scaled and mirrored by hand, and painted as the server paints them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from benchmarks.serve import serving

from pcdnet.serve.workbench import Workbench
from tests.serve.conftest import make_posed_workbench
from tests.serve.pages import READY, assert_server_agrees, needs_browser, objects, open_picture, point, settle, wait

pytestmark = needs_browser

WITHIN = """async ([pose, poses]) => (await import('./static/poses.js')).within(pose, poses)"""


@pytest.fixture
def page(visit: Any, posed_site: str, posed_workbench: Workbench) -> Iterator[Any]:
    """The page of a model of poses, with the second picture open and its first object selected."""
    page = visit(posed_site)
    open_picture(page, 1)
    page.locator("#objects .row").first.click()
    yield page
    page.emulate_media(color_scheme="null", reduced_motion="null")
    page.evaluate("pcdnet.keeping.settled()")
    posed_workbench.discard_edits()


def pose(page: Any) -> tuple[float, float, bool]:
    """How the selected object is turned, scaled and mirrored."""
    thing = next(each for each in objects(page) if each["id"] == page.evaluate("pcdnet.scene.selected"))
    return thing["angle"], thing["scale"], thing["mirrored"]


def number(page: Any, name: str) -> Any:
    """A field of the selected object in the list."""
    return page.get_by_role("spinbutton", name=name, exact=True)


def middle(page: Any) -> tuple[float, float]:
    """Where on the screen the middle of the selected object is."""
    row, column = page.evaluate("pcdnet.scene.bank.sprites.middle(pcdnet.handles.thing)")
    return point(page, row - 0.5, column - 0.5)


def drag(page: Any, kind: str, degrees: float, factor: float = 1.0) -> None:
    """Take a handle of the selected object around its middle, counter-clockwise, and away from it."""
    box = page.locator(f".handle.{kind}").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    cx, cy = middle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    for part in (0.5, 1.0):
        turn, far = math.radians(part * degrees), 1 + part * (factor - 1)
        right, up = x - cx, cy - y
        right, up = right * math.cos(turn) - up * math.sin(turn), right * math.sin(turn) + up * math.cos(turn)
        page.mouse.move(cx + far * right, cy - far * up)
    page.mouse.up()


def test_the_server_says_what_objects_do(posed_workbench: Workbench, site: str) -> None:
    told = posed_workbench.describe(renaming=True).poses
    assert told is not None
    assert (told.angles, told.scales, told.mirror, told.subpixel) == ((0, 360), (0.8, 1.25), True, True)
    assert httpx.get(f"{site}/api/model").json()["poses"] is None


def test_what_was_found_in_poses_is_painted_as_the_server_paints_it(page: Any) -> None:
    assert page.evaluate("pcdnet.scene.painted.error") < 0.01
    assert_server_agrees(page)
    words = page.locator("#objects .row small").all_inner_texts()
    assert sum("; 35°, 1.00\u00d7" in each for each in words) == 2


def test_keys_turn_scale_mirror_and_move_by_tenths(page: Any) -> None:
    found = objects(page)
    angle, scale, mirrored = pose(page)
    page.locator("#stage").focus()
    page.keyboard.press("q")
    assert pose(page) == (pytest.approx(angle + 1, abs=0.06), scale, mirrored)
    page.keyboard.press("Shift+E")
    assert pose(page)[0] == pytest.approx(angle - 14, abs=0.06)
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("-")
    assert pose(page)[1] == pytest.approx(1.02, abs=0.002)
    page.keyboard.press("m")
    assert pose(page)[2] is True
    row, column = objects(page)[0]["position"]
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("ArrowRight")
    assert objects(page)[0]["position"] == pytest.approx([row - 0.1, column + 1], abs=0.006)
    assert page.evaluate("pcdnet.scene.painted.error") > 1
    assert_server_agrees(page)
    for _ in range(8):
        page.keyboard.press("Control+z")
    assert objects(page) == found
    page.keyboard.press("Control+Shift+z")
    assert pose(page)[0] == pytest.approx(angle + 1, abs=0.06)


def test_the_round_handle_turns_with_shift_in_steps_and_is_undone_at_once(page: Any) -> None:
    found, (angle, scale, _) = objects(page), pose(page)
    drag(page, "turn", 70)
    assert pose(page) == (pytest.approx(angle + 70, abs=0.5), scale, False)
    assert page.locator(".views input:checked").get_attribute("value") == "reconstruction"
    assert_server_agrees(page)
    page.keyboard.down("Shift")
    drag(page, "turn", -33)
    page.keyboard.up("Shift")
    assert pose(page)[0] == 75
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    assert objects(page) == found


def test_the_square_handle_scales_within_the_sizes_of_the_model(page: Any) -> None:
    angle, scale, _ = pose(page)
    drag(page, "size", 0, 1.15)
    assert pose(page) == (angle, pytest.approx(1.15 * scale, abs=0.02), False)
    assert_server_agrees(page)
    drag(page, "size", 0, 2.0)
    assert pose(page)[1] == 1.25
    drag(page, "size", 0, 0.3)
    assert pose(page)[1] == 0.8
    assert_server_agrees(page)


def test_handles_are_reached_and_worked_by_keys_and_say_what_they_are(page: Any) -> None:
    angle, scale, _ = pose(page)
    page.get_by_role("slider", name="Angle").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowRight")
    assert pose(page)[0] == pytest.approx(angle + 16, abs=0.06)
    assert "51° counter-clockwise" in page.locator("#said").inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Size"
    page.keyboard.press("ArrowLeft")
    assert pose(page)[1] == pytest.approx(scale / 1.02, abs=0.002)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "stage"
    assert page.locator(".handle").first.is_hidden()


def test_numbers_in_the_list_are_edits_that_are_kept(page: Any, posed_workbench: Workbench) -> None:
    number(page, "Angle").fill("120")
    number(page, "Scale").fill("0.9")
    number(page, "Scale").press("Enter")
    page.get_by_label("mirrored").check()
    number(page, "Row").fill("21.4")
    number(page, "Row").press("Enter")
    assert pose(page) == (120, 0.9, True)
    settle(page)
    edited = posed_workbench.browsing.edits_of(1)
    assert edited is not None
    thing = edited.objects[0]
    assert (thing.angle, thing.scale, thing.mirrored, thing.position[0]) == (120, 0.9, True, 21.4)
    page.reload()
    page.wait_for_selector(READY)
    open_picture(page, 1)
    assert objects(page)[0]["angle"] == 120
    assert "120°, 0.90\u00d7, mirrored" in page.locator("#objects .row").first.inner_text()
    assert_server_agrees(page)


@pytest.mark.parametrize(
    ("asked", "angles", "expected"),
    [
        ((100, 3.0), (-30, 30), (30, 1.25)),
        ((-20, 1.0), (-30, 30), (340, 1.0)),
        ((300, 0.1), (-30, 30), (330, 0.8)),
        ((725, 1.0), (0, 360), (5, 1.0)),
        ((40, 1.0), None, (0, 1.0)),
    ],
)
def test_poses_stay_in_the_ranges_of_the_model(
    page: Any, asked: tuple[float, float], angles: tuple[float, float] | None, expected: tuple[float, float]
) -> None:
    wanted = {"angle": asked[0], "scale": asked[1], "mirrored": True}
    poses = {"angles": angles, "scales": [0.8, 1.25], "mirror": False}
    assert page.evaluate(WITHIN, [wanted, poses]) == {"angle": expected[0], "scale": expected[1], "mirrored": False}


def test_objects_of_models_that_only_move_are_shifted_as_the_server_shifts_them(
    visit: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bench = make_posed_workbench(tmp_path_factory.mktemp("runs") / "moved", subpixel=True)
    with serving(bench) as where:
        page = visit(where)
        page.locator("#objects .row").first.click()
        assert page.locator(".handle:visible").count() == 0
        assert number(page, "Row").is_visible()
        assert number(page, "Scale").count() == 0
        page.locator("#stage").focus()
        before = objects(page)
        page.keyboard.press("q")
        page.keyboard.press("m")
        assert objects(page) == before
        for key in ("Alt+ArrowUp", "Alt+ArrowLeft", "Alt+ArrowLeft", "ArrowDown"):
            page.keyboard.press(key)
        assert objects(page) != before
        assert_server_agrees(page)
        page.goto("about:blank")


def test_a_model_without_poses_has_no_handles_and_its_objects_no_pose(visit: Any) -> None:
    page = visit()
    page.locator("#objects .row").first.click()
    before = objects(page)
    for key in ("q", "+", "m", "Alt+ArrowDown"):
        page.locator("#stage").press(key)
    assert objects(page) == before
    assert "angle" not in before[0]
    assert page.locator(".handle:visible, .pose, #marks .turned").count() == 0


def test_the_pc_cell_shows_every_pose_with_its_best_peak_and_the_map_of_the_chosen_one(page: Any) -> None:
    page.locator("#inside summary").click()
    page.wait_for_selector("#rivals > *")
    assert page.locator("#heat-poses label").count() == 32
    best = page.locator("#heat-poses input:checked")
    assert page.locator("#heat-poses .best small").inner_text() in best.get_attribute("aria-label")
    assert "45°" in best.get_attribute("aria-label")
    words = page.locator("#heat-words").inner_text()
    with page.expect_response("**/api/inspect"):
        page.locator("#heat-poses label").nth(4).click()
    wait(page, f"document.getElementById('heat-words').textContent !== {words!r}")
    assert "180°, 0.80\u00d7" in page.locator("#heat-words").inner_text()
    assert "turned, sized and moved until it fitted" in page.locator("#why-words").inner_text()
    assert "(45°" in page.locator("#rivals .won").inner_text()
    page.locator("#inside summary").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_wrong_with_handles_and_poses(page: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.locator("#inside summary").click()
    page.wait_for_selector("#heat-poses label")
    found = axe.Axe().run(page).response["violations"]
    grave = {each["id"]: each["nodes"][0]["html"][:200] for each in found if each["impact"] in ("serious", "critical")}
    page.locator("#inside summary").click()
    assert not grave


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_all_of_a_model_of_poses_lies_in_sight(visit: Any, posed_site: str, narrow: bool) -> None:
    page = visit(posed_site, narrow=narrow)
    page.locator("#objects .row").first.click()
    page.locator("#inside summary").click()
    page.wait_for_selector("#heat-poses label")
    stage = page.locator("#stage").bounding_box()
    for name in ("Angle", "Size"):
        box = page.get_by_role("slider", name=name).bounding_box()
        assert stage["x"] - 1 <= box["x"] <= stage["x"] + stage["width"] - box["width"] + 1
        assert min(box["width"], box["height"]) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.locator("#inside summary").click()


def test_a_thing_is_drawn_and_a_prototype_removed_in_a_model_of_poses(page: Any, posed_site: str) -> None:
    page.evaluate("pcdnet.teaching.add([20, 29, 20, 18], 'flag')")
    wait(page, "pcdnet.teaching.drawn.length === 1")
    page.evaluate("pcdnet.teaching.remove(0)")
    wait(page, "pcdnet.teaching.removed.length === 1")
    assert page.locator("#corrections li").count() == 2
    assert page.locator("#notice").is_hidden()
    page.evaluate("pcdnet.teaching.remove(0, false)")
    known = httpx.get(f"{posed_site}/api/corrections").json()
    httpx.delete(f"{posed_site}/api/corrections/{known['drawn'][0]['id']}")
    wait(page, "pcdnet.teaching.removed.length === 0")
