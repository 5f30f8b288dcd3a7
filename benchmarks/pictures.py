"""Pictures of the README and the documentation: the method in one diagram, its stages, the viewer, and reports.

usage: python -m benchmarks.pictures method
       python -m benchmarks.pictures stages [RUN]
       python -m benchmarks.pictures viewer RUN [--data DATA]
       python -m benchmarks.pictures report RUN [--data DATA]
       python -m benchmarks.pictures study STUDY

`method` draws a generated scene on its way through the model, with the true prototypes; `stages` a frame of Space
Invaders, stage by stage. `viewer` starts `pcdnet serve` for a run and takes a screenshot of the whole window with a
browser (Chromium). `report` does the same with the top of the report of a run, and with its kinds, and `study` with the
report that `pcdnet tune` left. `MADE` has the commands of all pictures of docs/pictures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

import pcdnet
from benchmarks.serve import serving
from benchmarks.stages import RUN, stages
from pcdnet.colours import instance_colours
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.inspection import locate
from pcdnet.model.network import PCDNet
from pcdnet.run import RunFolder
from pcdnet.serve.workbench import Workbench

REPORTED = 200
"""Scenes that the report is about."""
PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
MADE = {
    "method.png": "python -m benchmarks.pictures method",
    "stages-*.png": "python -m benchmarks.pictures stages",
    "viewer.png": "python -m benchmarks.pictures viewer runs/space-invaders",
    "viewer-*.png": "python -m benchmarks.screens runs/space-invaders",
    "report*.png": "python -m benchmarks.pictures report runs/space-invaders",
    "study.png": "python -m benchmarks.pictures study studies/mine",
    "gallery-*.png": "python -m benchmarks.gallery",
    "model-*.png": "pcdnet figure letters --kind segmentation --count 2 --out docs/pictures/model-letters.png",
    "limits.png": "python -m benchmarks.limits",
    "failed-*.png": "python -m benchmarks.run",
    "real-*.png": "python -m benchmarks.run",
    "prototypes.png": "pcdnet demo",
    "decompositions.png": "pcdnet demo",
    "traffic.png": "pcdnet figure runs/us101-b --kind segmentation --out docs/pictures/traffic.png",
}
"""The command that makes each picture of docs/pictures."""
SCENE = 3
"""Which generated scene is shown."""
WINDOW = {"width": 1280, "height": 1070}
"""Pixels of the browser's window."""
STUDY = {"width": 900, "height": 1020}
"""The same for the report of a study."""
PAGE = {"width": 1100, "height": 900}
"""The same for the report."""


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
    from playwright.sync_api import sync_playwright

    with serving(Workbench.for_run(RunFolder.open(run), data, "cpu")) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_selector(".object")
        page.locator(".object").nth(1).click()
        page.wait_for_timeout(500)
        page.screenshot(path=str(path))
        browser.close()


def study(folder: Path, path: Path) -> None:
    """Take a picture of the beginning of a study's report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=STUDY)  # type: ignore[arg-type]
        page.goto((folder / "report.html").resolve().as_uri())
        page.screenshot(path=str(path))
        browser.close()


def of_report(run: Path, data: str | None, folder: Path) -> None:
    """Take pictures of the report of a run: what it begins with, and the table and plots of kinds."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as scratch, sync_playwright() as play:
        page = pcdnet.report(run, data, out=Path(scratch) / "report.html", count=REPORTED).path
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        window = browser.new_page(viewport=PAGE)  # type: ignore[arg-type]
        window.goto(page.as_uri())
        window.screenshot(path=str(folder / "report.png"))
        window.locator("#kinds").screenshot(path=str(folder / "report-kinds.png"))
        browser.close()


def main() -> None:
    """Make one of the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("method")
    commands.add_parser("stages").add_argument("run", nargs="?", default=RUN)
    for name in ("viewer", "report"):
        shot = commands.add_parser(name)
        shot.add_argument("run", type=Path)
        shot.add_argument("--data")
    commands.add_parser("study").add_argument("folder", type=Path, metavar="STUDY")
    options = parser.parse_args()
    if options.command == "method":
        method(PICTURES / "method.png")
    elif options.command == "stages":
        stages(PICTURES, options.run)
    elif options.command == "study":
        study(options.folder, PICTURES / "study.png")
    elif options.command == "report":
        of_report(options.run, options.data, PICTURES)
    else:
        viewer(options.run, options.data, PICTURES / "viewer.png")


if __name__ == "__main__":
    main()
