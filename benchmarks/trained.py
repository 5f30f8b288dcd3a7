"""Trained: make the models that come with the package, each with names, scores, card and sample pictures.

usage: python -m benchmarks.trained [--models NAME...] [--out DIR] [--keep]

Each is trained by the command on its card, in the folder DIR (build/trained). Then each prototype is called what its
objects mostly are, as the ground truth of other scenes says; the model is scored on scenes that served neither purpose,
and put in the package. With --keep, what was trained in DIR before is only named, scored and put there anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from PIL import Image

from benchmarks.provenance import ROOT, Start
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED, VALIDATION_SEED
from pcdnet.data.tetrominoes import SHAPES, TetrominoScenes
from pcdnet.files import folder, whole_file
from pcdnet.metrics import box_iou, found_objects, match_scene
from pcdnet.model.network import PCDNet
from pcdnet.output.drawing import figure
from pcdnet.output.figures import save_figure
from pcdnet.run import RunFolder
from pcdnet.scene import Boxes, Scenes, visible_boxes
from pcdnet.trained import CARD, NAMES, SAMPLES, Card
from pcdnet.training.evaluation import evaluate

NAMED_BY, SCORED_ON, SHOWN = 320, 1000, 6
"""Scenes that prototypes are named by, scenes that the model is scored on, and pictures that come with it."""
LEAST = 5
"""Objects of one kind that a prototype must have found to be called so."""
SCORES = (
    *("fg_ari", "perfect", "miou", "f1", "precision", "recall", "f1_at_30", "ap50", "count_accuracy", "count_error"),
    *("purity", "semantic_accuracy", "mse", "objects"),
)
"""What a card says of the scores, where it is known."""
UPRIGHT = {"I": "####", "O": "##/##", "T": ".#./###", "S": ".##/##.", "Z": "##./.##", "L": "..#/###", "J": "#../###"}
"""The tetrominoes as players know them; the others are these, turned clockwise."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is made, and what is said about it that no figure says."""

    options: tuple[str, ...]
    """Options of the training."""
    checked: int
    """Scenes that the tests score it on."""
    finds: str
    limits: tuple[str, ...]

    def command(self, name: str) -> list[str]:
        """The training, as it is written on the card."""
        return ["pcdnet", "train", *self.options, "--seed", "0", "--out", f"runs/{name}"]


RECIPES = {
    "tetrominoes": Recipe(
        options=("--data", "tetrominoes"),
        checked=100,
        finds="the 19 tetrominoes, in any of six colours, on black",
        limits=(
            "scenes of the size and texture of the data set alone: tiles of 5x5 pixels, whole pixels, no rotation",
            "touching tetrominoes of one colour can often be cut in more than one exact way",
        ),
    ),
    "space-invaders": Recipe(
        options=("--data", "space-invaders"),
        checked=24,
        finds="aliens of six rows in both of their shapes, shields and the cannon of the Atari game Space Invaders",
        limits=(
            "frames as the emulator draws them, 160 wide, without their upper 25 rows: no screenshots of other sizes",
            "bullets and explosions have no prototype; shields that are shot to pieces are found while most is left",
            "the digit at the bottom, the lives that are left, is taken for a shield and a cannon",
        ),
    ),
    "letters": Recipe(
        options=("--data", "letters"),
        checked=24,
        finds="the capital letters A to Z in one printed font, dark on paper in uneven light",
        limits=(
            "Computer Modern bold of 20 pixels alone: another font or size needs another training, which takes minutes",
            "letters of lines that are not turned; no lower case, no digits, no accents",
            "masks reach about a pixel beyond the ink, much of a thin letter: 7 % of the I are missed or too wide",
        ),
    ),
}


def make(name: str, out: Path, *, keep: bool) -> dict[str, Any]:
    """Make one model; what is printed about it."""
    recipe, run = RECIPES[name], out / "runs" / name
    if not (keep and run.is_dir()):
        train(name, out)
    cost = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    source = RunFolder.at(run)
    model = source.load_model()
    kinds = name_prototypes(source, model, known_kinds(open_data(name, count=NAMED_BY, seed=VALIDATION_SEED)))
    model = source.load_model()
    scenes = open_data(name, count=SCORED_ON, seed=TEST_SEED)
    whole = evaluate(model, scenes).to_dict()
    first = evaluate(model, open_data(name, count=recipe.checked, seed=TEST_SEED)).to_dict()
    card = Card(
        name=name,
        finds=recipe.finds,
        command=shlex.join(recipe.command(name)),
        seed=0,
        **cost,
        naming=f"called what most of their objects are, as the ground truth of {NAMED_BY} other scenes says",
        prototypes=model.config.num_prototypes,
        size=(scenes.images.shape[1], scenes.images.shape[2]),
        channels=scenes.images.shape[3],
        limits=recipe.limits,
        scenes=SCORED_ON,
        scores=shown(whole),
        checked=recipe.checked,
        expected=shown(first),
    )
    put(source, card, scenes)
    for kind in ("prototypes", "segmentation"):
        save_figure(figure(source, kind, name, count=4), out / f"{name}-{kind}.png")
    size = sum(path.stat().st_size for path in card.folder.rglob("*") if path.is_file())
    return {"model": name, **card.scores, "recall_by_kind": whole["recall_by_kind"], "named": kinds, "bytes": size}


def train(name: str, out: Path) -> None:
    """Run the command on the card, and keep what it cost: minutes of one core, however busy the machine is."""
    commit, before = Start.now().commit, resource.getrusage(resource.RUSAGE_CHILDREN)
    _, *words = RECIPES[name].command(name)
    places = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-m", "pcdnet", *words, "--force"],
        cwd=folder(out),
        env={**os.environ, "PYTHONPATH": places},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with whole_file(out / f"{name}.json") as file:
        file.write(json.dumps({"minutes": round(seconds / 60, 1), "commit": commit}).encode())


def shown(scores: dict[str, Any]) -> dict[str, float]:
    """The scores that a card has, in few digits."""
    return {name: float(f"{scores[name]:.4g}") for name in SCORES if scores[name] is not None}


def known_kinds(scenes: Scenes) -> Scenes:
    """The scenes with the kind of every true object; those of Tetrominoes follow from the factors."""
    if not isinstance(scenes, TetrominoScenes):
        return scenes
    boxes = []
    for labels, shapes in zip(scenes.labels, scenes.shapes, strict=True):
        corners = visible_boxes(labels.astype(np.int32), len(shapes))
        boxes.append(Boxes.from_rows([(*box, kind) for box, kind in zip(corners, shapes, strict=True) if box]))
    return Scenes(images=scenes.images, boxes=boxes, kinds=tuple(map(tetromino, range(len(SHAPES)))), name=scenes.name)


def tetromino(shape: int) -> str:
    """What a shape is called: the letter, and by how much it is turned, clockwise."""
    tiles = {tuple(tile) for tile in SHAPES[shape].tolist()}
    for letter, picture in UPRIGHT.items():
        grid = np.array([[sign == "#" for sign in line] for line in picture.split("/")])
        for turns in range(4):
            if {tuple(tile) for tile in np.argwhere(np.rot90(grid, -turns)).tolist()} == tiles:
                return f"{letter} {90 * turns}°" if turns else letter
    raise AssertionError(f"shape {shape} is no tetromino")


def name_prototypes(run: RunFolder, model: PCDNet, scenes: Scenes) -> dict[str, str]:
    """Call each prototype what most of its objects are; by prototype the name, and how often that is so."""
    times = matches_by_kind(model, scenes)
    usual, most = times.argmax(axis=1), times.max(axis=1)
    given = {p: scenes.kinds[usual[p]] for p in range(len(times)) if most[p] >= LEAST}
    run.keep_names(replace(run.names(), given=given))
    return {str(p): f"{given.get(p, '-')}: {most[p]} of {times[p].sum()}" for p in range(len(times))}


def matches_by_kind(model: PCDNet, scenes: Scenes) -> Int64[np.ndarray, "P kinds"]:
    """How many of the true objects that each prototype finds are of which kind."""
    assert scenes.boxes is not None, "it takes the ground truth"
    times = np.zeros((model.config.num_prototypes, len(scenes.kinds)), np.int64)
    for found, true in zip(model.decompose_all(np.asarray(scenes.images)), scenes.boxes, strict=True):
        seen = found_objects(found.instances, found.prototype_ids, found.error_reductions)
        partners = match_scene(seen, box_iou(seen.boxes, true.corners), kinds=true.kinds).partners
        np.add.at(times, (seen.prototype_ids[partners >= 0], true.kinds[partners[partners >= 0]]), 1)
    return times


def put(run: RunFolder, card: Card, scenes: Scenes) -> None:
    """Put a model in the package, with its card and some of the scenes that it was scored on."""
    made = run.path.parent.parent / "package" / card.name
    shutil.rmtree(made, ignore_errors=True)
    run.copy(made)
    for n, index in enumerate(np.linspace(0, len(scenes) - 1, SHOWN).astype(int), start=1):
        picture = Image.fromarray(np.asarray(scenes.images[index]).squeeze())
        with whole_file(folder(made / SAMPLES) / f"{card.name}-{n}.png") as file:
            picture.save(file, format="PNG", optimize=True)
    with whole_file(made / CARD) as file:
        file.write(card.to_toml().encode())
    shutil.rmtree(card.folder, ignore_errors=True)
    shutil.move(made, card.folder)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trained", description=__doc__, formatter_class=form)
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "trained", help="folder to train in")
    parser.add_argument("--keep", action="store_true", help="train nothing that lies there already")
    return parser


def main() -> None:
    """Print a line of JSON for every model, then all in one."""
    start, arguments = Start.now(), parser().parse_args()
    rows = []
    for name in arguments.models:
        rows.append(make(name, arguments.out, keep=arguments.keep))
        print(json.dumps(rows[-1]), flush=True)
    start.close({"benchmark": "trained", "rows": rows})


if __name__ == "__main__":
    main()
