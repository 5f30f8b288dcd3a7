"""Kinds in a real browser: counted, named, merged and hidden; and results of the whole folder."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.serve.folder_messages import KindChange
from pcdnet.serve.workbench import Workbench
from tests.serve.pages import needs_browser, objects, open_picture, wait

pytestmark = needs_browser


@pytest.fixture(autouse=True)
def plain_names(workbench: Workbench) -> Iterator[None]:
    """Names as they were."""
    yield
    every = list(range(len(workbench.names)))
    workbench.change_kinds(KindChange(prototypes=every, name="", hidden=False))


def count(page: Any) -> None:
    """Count the whole folder."""
    page.locator("#count-start").click()
    wait(page, "pcdnet.kinds.state.state === 'done'")


def rows(page: Any) -> dict[str, tuple[str, str]]:
    """The counts of every kind: here, and in the folder."""
    read = """[...document.querySelectorAll('.kind-row')].map((row) =>
        [row.querySelector('input[type=text]').value, ...[...row.querySelectorAll('b')].map((b) => b.textContent)])"""
    return {name: (here, folder) for name, here, folder in page.evaluate(read)}


def truth(workbench: Workbench) -> Counter[int]:
    """How many objects of each prototype are in the folder."""
    pictures = [workbench.browsing.pixels(n) for n in range(len(workbench.browsing))]
    return Counter(p for each in pictures for p in workbench.model.decompose(each).prototype_ids.tolist())


def test_every_kind_is_counted_in_the_picture_and_in_the_folder(visit: Any, workbench: Workbench) -> None:
    page = visit()
    here = Counter(thing["prototype"] for thing in objects(page))
    count(page)
    folder = truth(workbench)
    for p in range(len(workbench.names)):
        assert rows(page)[f"prototype {p}"] == (str(here[p]), str(folder[p]))
    assert page.locator("#kinds-words").inner_text() == f"{folder.total()} objects in 6 pictures"
    page.locator("#objects .row").first.click()
    page.keyboard.press("Delete")
    wait(page, f"document.getElementById('kinds-words').textContent.startsWith('{folder.total() - 1} objects')")


def test_kinds_that_are_chosen_are_merged_and_counted_as_one_at_once(visit: Any, workbench: Workbench) -> None:
    page = visit()
    count(page)
    folder = truth(workbench)
    p, q = (objects(page)[n]["prototype"] for n in (0, 1))
    for which in (p, q):
        page.get_by_label(f"Choose prototype {which} to merge it", exact=True).check()
    page.get_by_label("Name of the merged kind").fill("hook")
    page.get_by_role("button", name="Merge", exact=True).click()
    wait(page, "pcdnet.kinds.kinds.some(({ name }) => name === 'hook')")
    wait(page, "[...document.querySelectorAll('#objects b')].some((b) => b.textContent === 'hook')")
    assert workbench.names[p] == workbench.names[q] == "hook"
    assert rows(page)["hook"] == ("2", str(folder[p] + folder[q]))
    assert f"prototype {p}" not in rows(page)
    assert page.locator("#merging").is_hidden()
    name = page.get_by_label("Name of the kind hook")
    name.fill("")
    name.press("Enter")
    wait(page, f"pcdnet.kinds.kinds.some(({{ name }}) => name === 'prototype {p}')")
    assert workbench.names[q] == f"prototype {q}"


def test_a_kind_that_is_dropped_on_another_becomes_it(visit: Any, workbench: Workbench) -> None:
    page = visit()
    page.locator(".kind-row").nth(3).drag_to(
        page.locator(".kind-row").nth(1), source_position={"x": 4, "y": 20}, target_position={"x": 4, "y": 20}
    )
    wait(page, "pcdnet.kinds.kinds.length === 18")
    assert workbench.names[3] == workbench.names[1] == "prototype 1"
    assert not page.locator("body.dropping").count()


def test_a_hidden_kind_is_neither_listed_nor_counted_until_it_is_shown(visit: Any, workbench: Workbench) -> None:
    page = visit()
    count(page)
    folder, before = truth(workbench), len(objects(page))
    p = objects(page)[0]["prototype"]
    page.get_by_role("button", name=f"Hide prototype {p}", exact=True).click()
    wait(page, f"document.getElementById('kinds-words').textContent.startsWith('{folder.total() - folder[p]} ')")
    left = sum(thing["prototype"] != p for thing in objects(page))
    assert page.locator("#objects .row").count() == left
    assert "of hidden kinds" in page.locator("#unlisted").inner_text()
    at = page.evaluate("pcdnet.scene.painted.instances.indexOf(1)")
    assert page.evaluate("at => pcdnet.scene.at(Math.floor(at / 35), at % 35)", at) is None
    page.reload()
    wait(page, "document.documentElement.dataset.ready")
    assert page.locator("#objects .row").count() == left
    page.get_by_role("button", name=f"Show prototype {p}", exact=True).click()
    wait(page, f"document.querySelectorAll('#objects .row').length === {before}")


def test_kinds_that_differ_in_colour_alone_are_told_apart_as_the_library_does(visit: Any) -> None:
    page = visit()
    rng = np.random.default_rng(0)
    for channels in (1, 3):
        known = tuple(tuple(colour) for colour in rng.uniform(0, 1, (4, channels)).tolist())
        kinds = Kinds(Names(count=1, colours={0: known}))
        shown = rng.uniform(0, 1.2, (40, channels))
        tints = [{"tint": kind.colour, "id": kind.id} for kind in kinds]
        nearest = """async ([tints, colours]) => { const { nearest } = await import('./static/kinds.js');
            return colours.map((colour) => nearest(tints, colour).id); }"""
        mine = page.evaluate(nearest, [tints, shown.tolist()])
        assert mine == kinds.ids(np.zeros(40, np.int64), shown).tolist()


def test_the_results_of_the_whole_folder_hold_edits_and_names(visit: Any, workbench: Workbench, tmp_path: Path) -> None:
    page = visit()
    open_picture(page, 1)
    page.locator("#objects .row").first.click()
    page.keyboard.press("Delete")
    left = len(objects(page))
    page.get_by_role("button", name="Download…").click()
    page.get_by_role("radio", name="JSON", exact=True).check(force=True)
    with page.expect_download() as caught:
        page.get_by_role("button", name="The whole folder (6)").click()
    path = Path(caught.value.path())
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            path = Path(packed.extract("decompositions.jsonl", tmp_path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 6
    assert len(lines[1]["objects"]) == left
    page.get_by_role("button", name="Close").click()


def test_every_format_of_the_server_is_offered(visit: Any, client: Any) -> None:
    page = visit()
    page.get_by_role("button", name="Download…").click()
    page.wait_for_selector("#saving[open]")
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    offered = page.evaluate("[...document.querySelectorAll('#formats input')].map((input) => input.value)")
    assert offered == schemas["Export"]["properties"]["format"]["enum"]
    page.keyboard.press("Escape")
    assert page.locator("#saving").is_hidden()
