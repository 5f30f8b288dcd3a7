"""Pictures of the README and of the docs: the method in one diagram, and the viewer.

usage: python -m benchmarks.pictures method
       python -m benchmarks.pictures viewer RUN [--data DATA]
       python -m benchmarks.pictures workplace RUN [--data DATA]

`method` draws a generated scene on its way through the model, with the true prototypes. `viewer` starts `pcdnet serve`
for a run and takes a screenshot of the whole window with a browser (Chromium). `workplace` takes one of each part of it
at work on a copy of the run: docs/pictures/viewer-*.png.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from benchmarks.serve import serving
from pcdnet.colours import instance_colours
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.inspection import locate
from pcdnet.model.network import PCDNet
from pcdnet.run import RunFolder
from pcdnet.serve.workbench import Workbench

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SCENE = 3
"""Which generated scene is shown."""
WINDOW, NARROW = {"width": 1280, "height": 1070}, {"width": 390, "height": 844}
"""Pixels of the browser's window."""


def method(path: Path) -> None:
    """Draw an image, its localization maps, the candidates, the objects and the image that they make."""
    bank = PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes()))
    model = PCDNet.from_bank(bank, Config.preset("tetrominoes").model)
    pixels = tetrominoes.generate(SCENE + 1, seed=0).images[SCENE]
    found = model.decompose(pixels)
    image = torch.from_numpy(pixels).permute(2, 0, 1) / 255
    figure = Figure(figsize=(11, 3.9))
    FigureCanvasAgg(figure)
    rows = [0.615, 0.315, 0.015]
    shown = found.prototype_ids.tolist()
    _panel(figure, (0.01, 0.315), pixels, "image")
    arrays = bank.to_numpy()
    for n, (row, p) in enumerate(zip(rows, shown, strict=True)):
        _panel(figure, (0.19, row), arrays.prototypes[p] * arrays.masks[p], "" if n else "learned prototypes")
        heat = locate(model, image, p).heat.numpy()
        _panel(figure, (0.37, row), heat, "" if n else "where?\nphase correlation", cmap="magma")
        _panel(
            figure, (0.55, row), model.render(_only(found, n)), "" if n else "which, in what colour?\ngreedy selection"
        )
    labels = np.concatenate([np.zeros((1, 3), np.uint8), instance_colours(len(found))])[found.instances]
    _panel(figure, (0.73, 0.315), found.reconstruction, "does it add up?\nreconstruction")
    _panel(figure, (0.87, 0.315), labels, "objects")
    for start, end in ((0.135, 0.185), (0.315, 0.365), (0.495, 0.545), (0.675, 0.725)):
        arrow = FancyArrowPatch((start, 0.445), (end, 0.445), arrowstyle="-|>", mutation_scale=14, color="#707070")
        figure.add_artist(arrow)
    figure.savefig(path, dpi=150)


def _only(found: Decomposition, n: int) -> Decomposition:
    """The scene with its n-th object alone."""
    record = found.to_dict()
    return Decomposition.from_dict({**record, "objects": [record["objects"][n]]})


def _panel(figure: Figure, place: tuple[float, float], picture: np.ndarray, title: str, cmap: str = "gray") -> Axes:
    """A picture whose lower left corner is at `place`, in shares of the figure."""
    axes = figure.add_axes((*place, 0.12, 0.27))
    axes.imshow(picture, cmap=cmap, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    if title:
        axes.set_title(title, fontsize=10, color="#333333")
    return axes


def viewer(run: Path, data: str | None, path: Path) -> None:
    """Take a picture of the whole window of the viewer, with an object selected."""
    with _viewed(run, data) as page:
        page.locator(".object").nth(1).click()
        page.wait_for_timeout(500)
        page.screenshot(path=str(path))


def workplace(run: Path, data: str | None, folder: Path) -> None:
    """Take a picture of every part of the viewer at work, and of all of it on a narrow screen in the dark."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(run, Path(scratch) / run.resolve().name))
        with _viewed(copy, data) as page:
            _draw(page)
            page.locator(".seeing").screenshot(path=str(folder / "viewer-drawing.png"))
            page.locator("#drawn-cancel").click()
            page.locator("#count-start").click()
            _counted(page)
            page.locator("#kinds").screenshot(path=str(folder / "viewer-kinds.png"))
            page.locator("#help").click()
            page.locator("#shortcuts").screenshot(path=str(folder / "viewer-shortcuts.png"))
        with _viewed(copy, data, viewport=NARROW, color_scheme="dark") as page:
            page.screenshot(path=str(folder / "viewer-narrow.png"))


@contextmanager
def _viewed(run: Path, data: str | None, **options: Any) -> Iterator[Any]:
    """The page of a server for a run, in a browser."""
    from playwright.sync_api import sync_playwright

    with serving(Workbench.for_run(RunFolder.open(run), data, "cpu")) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(**{"viewport": WINDOW, **options})
        page.goto(address)
        page.wait_for_selector("html[data-ready] .object", timeout=120_000)
        page.wait_for_timeout(500)
        yield page
        browser.close()


def _draw(page: Any) -> None:
    """Draw a box around the first object, as if it were missing."""
    page.locator("#draw").click()
    box = page.locator("#picture").bounding_box()
    height, width = page.evaluate("pcdnet.scene.size")
    top, left, rows, columns = page.evaluate("pcdnet.scene.painted.boxes[0]")
    places = ((top, left), (top + rows - 1, left + columns - 1))
    for (row, column), act in zip(places, (page.mouse.down, page.mouse.up), strict=True):
        page.mouse.move(
            box["x"] + (column + 0.5) * box["width"] / width, box["y"] + (row + 0.5) * box["height"] / height
        )
        act()
    page.locator("#drawn-name").fill("alien")


def _counted(page: Any) -> None:
    """Wait until the folder is counted."""
    while page.evaluate("pcdnet.kinds.state.state") != "done":
        page.wait_for_timeout(200)


def main() -> None:
    """Make one of the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("method")
    for name in ("viewer", "workplace"):
        shot = commands.add_parser(name)
        shot.add_argument("run", type=Path)
        shot.add_argument("--data")
    options = parser.parse_args()
    if options.command == "method":
        method(PICTURES / "method.png")
    elif options.command == "viewer":
        viewer(options.run, options.data, PICTURES / "viewer.png")
    else:
        workplace(options.run, options.data, PICTURES)


if __name__ == "__main__":
    main()
