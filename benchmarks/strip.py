"""Strip: how smoothly thousands of pictures scroll in the viewer, in a real browser (Chromium).

usage: python -m benchmarks.strip [--pictures 5000] [--rounds 3]

The strip is scrolled from end to end in steps of every size, a frame at a time, then with the wheel, while thumbnails
are loaded; the time from each frame to the next is measured in the page. Beside it: how many elements the strip had at
most.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.models import tetromino_model
from benchmarks.provenance import Start
from benchmarks.serve import serving
from pcdnet.data import tetrominoes
from pcdnet.data.strip import SceneStrip
from pcdnet.scene import Scenes
from pcdnet.serve.workbench import Workbench

DISTINCT = 200
"""Generated pictures; the rest are these again."""
STEPS = (40, 400, 3000, 40_000)
"""Pixels on the screen from one frame to the next."""
FRAMES = 120
"""Frames of each pass."""
LONGEST_FRAME = 100.0
"""Milliseconds that no frame may take."""

PASS = """([step, frames]) => new Promise((done) => {
  const { place } = pcdnet.strip;
  const times = [];
  let [before, most, way] = [performance.now(), 0, step];
  const frame = (now) => {
    times.push(now - before);
    before = now;
    most = Math.max(most, place.querySelectorAll('[role=option]').length);
    if (times.length > frames) return done({ times: times.slice(1), most });
    const end = place.scrollWidth - place.clientWidth;
    if (place.scrollLeft + way > end || place.scrollLeft + way < 0) way = -way;
    place.scrollLeft += way;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { before = now; requestAnimationFrame(frame); });
})"""
"""Scrolls by so many pixels a frame, and gives the milliseconds of all frames."""

WATCHED = """() => {
  const times = (window.frames = []);
  let before = performance.now();
  const frame = (now) => {
    times.push(now - before);
    before = now;
    if (window.frames === times) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
"""Notes the milliseconds of all frames from now on."""


def parser() -> argparse.ArgumentParser:
    """What the benchmark takes."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.strip", description=__doc__)
    made.add_argument("--pictures", type=int, default=5000, help="how many there are")
    made.add_argument("--rounds", type=int, default=3, help="how often all passes are made")
    return made


def main() -> None:
    """Measure all passes and print the worst frame."""
    start, options = Start.now(), parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        images = np.resize(tetrominoes.generate(DISTINCT, seed=1).images, (options.pictures, 35, 35, 3))
        pictures = SceneStrip(Scenes(images=images, name="many"))
        workbench = Workbench(folder=Path(folder), model=tetromino_model("least_squares"), pictures=pictures)
        with serving(workbench) as address:
            rows = _measured(address, options.rounds)
    table = Table("how", "frames", "median ms", "99 % ms", "longest ms")
    for name, times in rows["passes"].items():
        table.add_row(name, f"{len(times)}", *(f"{np.percentile(times, q):.1f}" for q in (50, 99, 100)))
    Console().print(table)
    every = np.concatenate(list(rows["passes"].values()))
    start.close(
        {
            "benchmark": "strip",
            "pictures": options.pictures,
            "frames": len(every),
            "median_ms": float(np.median(every)),
            "p99_ms": float(np.percentile(every, 99)),
            "longest_ms": float(every.max()),
            "smooth": bool(every.max() < LONGEST_FRAME),
            "most_elements": rows["most"],
        },
    )


def _measured(address: str, rounds: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    passes: dict[str, list[float]] = {}
    most = 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=120_000)
        page.wait_for_timeout(1000)
        for _ in range(rounds):
            for step in STEPS:
                found = page.evaluate(PASS, [step, FRAMES])
                passes.setdefault(f"{step} pixels a frame", []).extend(found["times"])
                most = max(most, found["most"])
            passes.setdefault("wheel", []).extend(_wheeled(page))
        browser.close()
    return {"passes": passes, "most": most}


def _wheeled(page: Any) -> list[float]:
    """Milliseconds of the frames while the wheel turns, and while what is in sight is loaded after it."""
    box = page.locator("#strip").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 40)
    page.evaluate(WATCHED)
    for turn in range(60):
        page.mouse.wheel(1200 if turn % 20 < 15 else -2500, 0)
        page.wait_for_timeout(20)
    page.wait_for_timeout(600)
    times: list[float] = page.evaluate("() => { const times = window.frames; window.frames = null; return times; }")
    return times[1:]


if __name__ == "__main__":
    main()
