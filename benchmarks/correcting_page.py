"""Correcting in the browser: the same as `benchmarks.correcting`, by the hands of a person, in the page (Chromium).

usage: python -m benchmarks.correcting_page [seeds]

Boxes are drawn with the mouse, a prototype is said to be no object, two kinds are merged, "Learn again from here" is
pressed, what it learned is taken, and the whole folder is counted. Learning may take two minutes, and F1 on held-out
pictures, by place and kind, must rise from less than 0.9 to 0.97 or more.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.correcting import HELD_OUT, KINDS, MINUTES, PICTURES, example, f1, make, make_run
from benchmarks.own.pictures import Pictures
from benchmarks.provenance import Start
from benchmarks.serving import served

WINDOW = {"width": 1280, "height": 1000}
PATIENCE = 1_200_000
"""Milliseconds that anything may take."""


def corrected(page: Any, pictures: Pictures) -> dict[str, float]:
    """Do what a person does in the page; the seconds that learning took, and of all counts the share that is right."""
    for kind in (1, 2, 5):
        number, box = example(pictures, kind)
        _go(page, number)
        _draw(page, box, KINDS[kind])
    page.locator("#prototypes summary").click()
    page.get_by_role("button", name="Prototype 2 is no object", exact=True).click()
    page.wait_for_selector(".correction .crossed")
    for name in (KINDS[0], "prototype 1"):
        page.get_by_label(f"Choose {name} to merge it", exact=True).check()
    page.get_by_label("Name of the merged kind").fill(KINDS[0])
    page.get_by_role("button", name="Merge", exact=True).click()
    page.wait_for_selector("#merging", state="hidden")
    page.locator("#minutes").fill(f"{MINUTES}")
    start = time.perf_counter()
    page.get_by_role("button", name="Learn again from here").click()
    while (state := page.evaluate("pcdnet.learning.state")) is None or state["state"] == "running":
        page.wait_for_timeout(200)
    if state["state"] != "done":
        raise RuntimeError(f"learning again ended as {state['state']}: {state['message']}")
    seconds = time.perf_counter() - start
    page.wait_for_selector("#outcome figure:nth-of-type(4)")
    page.get_by_role("button", name="Take the new prototypes").click()
    page.wait_for_selector("#outcome", state="hidden")
    return {"seconds": seconds, "counts": _counts(page, pictures)}


def _go(page: Any, number: int) -> None:
    page.get_by_label("Go to number").fill(f"{number}")
    page.get_by_label("Go to number").press("Enter")
    page.wait_for_selector(f"#picture-{number}[aria-selected=true]")
    while page.evaluate("pcdnet.bench.number") != number:
        page.wait_for_timeout(50)


def _draw(page: Any, box: list[int], name: str) -> None:
    page.get_by_role("button", name="Draw a box").click()
    area = page.locator("#picture").bounding_box()
    height, width = page.evaluate("pcdnet.scene.size")
    top, left, rows, columns = box
    for (row, column), act in (
        ((top, left), page.mouse.down),
        ((top + rows - 1, left + columns - 1), page.mouse.up),
    ):
        x = area["x"] + (column + 0.5) * area["width"] / width
        y = area["y"] + (row + 0.5) * area["height"] / height
        page.mouse.move(x, y, steps=4)
        act()
    page.get_by_label("Name of the thing").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_selector("#drawing", state="hidden")


def _counts(page: Any, pictures: Pictures) -> float:
    """Of the objects of all kinds in the folder, the share that the page counts right."""
    page.locator("#count-start").click()
    while page.evaluate("pcdnet.kinds.state.state") != "done":
        page.wait_for_timeout(200)
    shown = {kind["name"]: kind["objects"] for kind in page.evaluate("pcdnet.kinds.kinds")}
    true = Counter(KINDS[kind] for truth in pictures.ground_truth for kind in truth.kinds.tolist())
    wrong = sum(abs(shown.get(name, 0) - true[name]) for name in shown.keys() | true.keys())
    return float(1 - wrong / true.total())


def correct_one(seed: int) -> dict[str, Any]:
    """One seed: how good the run was, how long it took, and how good it is then."""
    from playwright.sync_api import sync_playwright

    pictures, held_out = make(PICTURES, seed), make(HELD_OUT, seed + 1000)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), pictures, seed)
        before = f1(run.path, held_out)
        with served(run.path) as process, sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
            page.set_default_timeout(PATIENCE)
            page.goto(process.site)
            page.wait_for_selector("html[data-ready] #bench:not([hidden])")
            found = corrected(page, pictures)
            browser.close()
        return {"seed": seed, "f1_before": before, "f1_after": f1(run.path, held_out), **found}


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correcting_page", description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="*", type=int, default=[0], help="seeds of pictures and bank")
    return parser


def main() -> None:
    """Print a line a seed, then one JSON line."""
    start, rows = Start.now(), []
    for seed in parser().parse_args().seeds:
        rows.append(row := correct_one(seed))
        words = f"F1 {row['f1_before']:.3f} -> {row['f1_after']:.3f}, {100 * row['counts']:.1f} % of the counts right"
        print(f"seed {seed}: {words}, learned in {row['seconds']:.0f} s", flush=True)
    start.close({"benchmark": "correcting_page", "minutes": MINUTES, "rows": rows})


if __name__ == "__main__":
    main()
