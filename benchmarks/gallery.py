"""Gallery: eight worlds, each with images, what is found in them, and the prototypes with their counts.

usage: python -m benchmarks.gallery [WORLD ...] [--keep DIR]

tetrominoes     generated scenes, by the model that comes with the package
space-invaders  a recorded game, by the model that comes with the package
letters         generated pages, by the model that comes with the package
icons           nine kinds of icons on paper, as of benchmarks.own
overlap         the same icons in pairs that overlap
coins           scikit-image's photograph of 24 coins
spots           16-bit pictures of spots and rods
freeway         frames of an Atari game

Three more, for docs/own-images.md, are drawn only if they are named: seaquest, another game; gravel and handwriting,
two pictures of scikit-image without repeating objects.

Pictures go to docs/pictures/gallery-WORLD.png. Models that do not come with the package are learned from the pictures
alone, with no option, which takes some minutes each; they are kept in the folder, build/gallery by default, and are
not learned again if they are there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8
from matplotlib.figure import Figure
from PIL import Image

import pcdnet
from benchmarks.own import automatic
from benchmarks.own.__main__ import SETS, UNSEEN
from benchmarks.provenance import ROOT
from pcdnet.colours import as_rgb, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.files import whole_file
from pcdnet.names import first_of_each
from pcdnet.output.sheet import (
    CUT_OUT,
    EDGE,
    FAINT,
    GAP,
    HEADER,
    LINE,
    POINTS,
    SMALL_POINTS,
    STEP,
    TEXT_WIDTH,
    Sheet,
    fitting_scale,
)
from pcdnet.run import RunFolder

Picture = UInt8[np.ndarray, "H W 3"]


@dataclass(frozen=True, slots=True)
class World:
    """What a picture of the gallery shows."""

    trained: bool = False
    """Whether its model comes with the package."""
    data: str | None = None
    """What `--data` names; by default the pictures of the set of benchmarks.own that has its name."""
    picture: str | None = None
    """The picture of scikit-image that is learned from instead."""
    count: int = 1
    """How many images are shown."""
    seed: int = 0
    """Which images."""


WORLDS = {
    "tetrominoes": World(trained=True, count=2),
    "space-invaders": World(trained=True),
    "letters": World(trained=True, count=2),
    "icons": World(count=2),
    "overlap": World(count=2),
    "coins": World(),
    "spots": World(),
    "freeway": World(data="atari:freeway"),
}
"""Every world of the gallery, by its name."""
HARD = {
    "seaquest": World(data="atari:seaquest", count=2),
    "gravel": World(picture="gravel.png"),
    "handwriting": World(picture="text.png"),
}
"""Further ones, to show where it ends."""
WHOLE = pcdnet.View(tiles=0)
"""Pictures are shown whole, also where parts of them were learned from."""
LEAST = 440
"""Dots of a panel from left to right at least, for its heading."""
TINT = 0.6
"""How much of what is found is the colour of its kind."""
HEADINGS = ("image", "what is found", "the image that it makes")


def draw(name: str, keep: Path) -> Path:
    """Write the picture of a world; its path."""
    world, path = {**WORLDS, **HARD}[name], ROOT / "docs" / "pictures" / f"gallery-{name}.png"
    run, data = (RunFolder.open(name), None) if world.trained else learned(name, world, keep / name)
    scenes = run.held_out(data, count=20, seed=world.seed, view=WHOLE)
    model, images = run.load_model(), np.asarray(scenes.images)[: world.count]
    figure = card(images, model.decompose_all(images), model)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    with whole_file(path) as file:
        Image.fromarray(pixels).quantize(256, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
    return path


def learned(name: str, world: World, folder: Path) -> tuple[RunFolder, str | None]:
    """A run that learned a world with no option, and pictures to show that it did not learn from."""
    data, shown = world.data, None
    folder.mkdir(parents=True, exist_ok=True)
    if world.picture is not None:
        data = str(files("skimage.data") / world.picture)
    elif data is None:
        made = SETS[name]
        pictures, unseen = folder / "pictures", folder / "unseen"
        if not pictures.is_dir():
            automatic.write(made.make(0), pictures)
        if made.unseen is not None and not unseen.is_dir():
            automatic.write(made.unseen(UNSEEN), unseen)
        data, shown = str(pictures), str(unseen if made.unseen is not None else pictures)
    if not (folder / "run" / "verdict.json").is_file():
        pcdnet.fit(data, out=folder / "run", force=True)
    return RunFolder.open(folder / "run"), shown


def card(images: UInt8[np.ndarray, "n H W C"], found: list[Decomposition], model: pcdnet.PCDNet) -> Figure:
    """A row an image: the image, what is found in it, and what that makes; below, the prototypes with their counts."""
    names = [model.names[p] for p in range(len(model.names))]
    first = first_of_each(names)
    scale = max(fitting_scale(images.shape[2], len(HEADINGS)), -(-LEAST // images.shape[2]))
    size = (round(images.shape[1] * scale), round(images.shape[2] * scale))
    counts = Counter(first[np.concatenate([one.prototype_ids for one in found])].tolist())
    band = Band(model, counts, {p: names[p] if p in model.names.given else "" for p in counts})
    width = len(HEADINGS) * (size[1] + GAP) - GAP
    sheet = Sheet(height=2 * EDGE + HEADER + len(images) * (size[0] + GAP) + band.height(width), width=width + 2 * EDGE)
    for n, heading in enumerate(HEADINGS):
        sheet.text(EDGE + HEADER - 10, EDGE + n * (size[1] + GAP) + size[1] / 2, heading)
    for row, (image, one) in enumerate(zip(images, found, strict=True)):
        picture = as_rgb(image / 255)
        for n, panel in enumerate((picture, tinted(picture, one, first, scale), as_rgb(one.reconstruction))):
            sheet.panel(EDGE + HEADER + row * (size[0] + GAP), EDGE + n * (size[1] + GAP), size, panel)
    band.draw(sheet, EDGE + HEADER + len(images) * (size[0] + GAP), width)
    return sheet.figure


def tinted(picture: Picture, found: Decomposition, first: Int64[np.ndarray, "P"], scale: float) -> Picture:
    """The image in grey, with every object in the colour of its kind and a line around it."""
    enlarge = max(1, int(scale))
    labels = found.instances.repeat(enlarge, axis=0).repeat(enlarge, axis=1)
    grey = picture.mean(axis=2, keepdims=True).repeat(3, axis=2).repeat(enlarge, axis=0).repeat(enlarge, axis=1)
    inks = np.concatenate([np.zeros((1, 3)), prototype_colours(first[found.prototype_ids])])[labels]
    inside = (labels > 0)[..., None]
    shown = np.where(inside, TINT * inks + (1 - TINT) * grey, 0.5 * grey + 0.25 * grey.mean())
    edge = np.zeros(labels.shape, bool)
    for axis in (0, 1):
        edge |= labels != np.roll(labels, 1, axis)
    shown[edge & (labels > 0)] = inks[edge & (labels > 0)]
    coloured: Picture = shown.round().clip(0, 255).astype(np.uint8)
    return coloured


class Band:
    """The prototypes that were found, framed in the colours of their kinds, with how often each was."""

    def __init__(self, model: pcdnet.PCDNet, counts: Counter[int], names: dict[int, str]) -> None:
        arrays = model.bank().to_numpy()
        self._pictures = arrays.prototypes * arrays.masks
        self._counts, self._names = counts.most_common(), names
        h, w = self._pictures.shape[1:]
        scale = max(1, round(2 * CUT_OUT / max(h, w)))
        self._size = h * scale, w * scale

    def height(self, width: int) -> int:
        """Dots from top to bottom."""
        return -(-len(self._counts) // self._columns(width)) * self._row + EDGE

    def draw(self, sheet: Sheet, top: int, width: int) -> None:
        """Draw them from a height on, in rows, from the left."""
        columns = self._columns(width)
        for n, (p, count) in enumerate(self._counts):
            y, x = top + HEADER + n // columns * self._row, EDGE + LINE + n % columns * (self._size[1] + STEP)
            words = f"{self._names[p]} \u00d7{count}".strip()
            points = SMALL_POINTS if self._names[p] else POINTS
            sheet.text(y - LINE - 4, x + self._size[1] / 2, words, FAINT, points=points)
            sheet.panel(y, x, self._size, as_rgb(self._pictures[p][..., None]), p)

    @property
    def _row(self) -> int:
        return int(self._size[0]) + STEP + HEADER

    def _columns(self, width: int) -> int:
        return max(1, (min(width, TEXT_WIDTH) + GAP) // (int(self._size[1]) + STEP))


def main() -> None:
    """Draw the worlds that are asked for, or the eight of the gallery."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__, formatter_class=form)
    parser.add_argument(
        "worlds", nargs="*", metavar="WORLD", help=f"{', '.join([*WORLDS, *HARD])}; the first eight by default"
    )
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "gallery", metavar="DIR", help="folder of models")
    options = parser.parse_args()
    if unknown := [name for name in options.worlds if name not in {**WORLDS, **HARD}]:
        parser.error(f"there is no world {unknown[0]!r}; use some of {', '.join([*WORLDS, *HARD])}")
    for name in options.worlds or WORLDS:
        print(f"wrote {draw(name, options.keep)}", flush=True)


if __name__ == "__main__":
    main()
