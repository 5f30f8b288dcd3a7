"""Learning: train on re-created Tetrominoes from several seeds and score what was learned.

usage: python -m benchmarks.learning [--preset tetrominoes] [--seeds 0 1] [--scenes 1000] [--set train.steps=600 ...]
                                     [--pictures FOLDER]

Every scene that is not labelled right is in the closing line, with its reason (see `benchmarks.failures`), and in a
picture failed-PRESET-SEED.png in the folder, if one is named.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import tempfile
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Integer, UInt8
from rich.console import Console
from rich.table import Table

from benchmarks.failures import LEARNED, draw, failures, fits
from benchmarks.lines import renamed
from benchmarks.provenance import Start
from pcdnet.config import ColourModule, Config
from pcdnet.data import tetrominoes
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED, TRAINING_SEED, VALIDATION_SEED
from pcdnet.files import folder
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress

SHARED = Path(__file__).resolve().parents[2] / "shared"
TRAIN_SCENES, VALID_SCENES = 60_000, 320


def shape_ious(model: PCDNet) -> list[float]:
    """For each of the 19 shapes the best IoU of any learned mask with it, wherever either lies in its frame."""
    ious: list[float] = fits(model).iou.max(axis=1).tolist()
    return ious


def crispness(model: PCDNet) -> float:
    """Share of mask values below 0.05 or above 0.95."""
    masks = model.bank().masks
    return float(((masks < 0.05) | (masks > 0.95)).float().mean())


def with_true_prototypes(config: Config) -> PCDNet:
    """A model that knows the shapes and searches in the same way: what learning can come to.

    Colours are the closed form's at any rate, as a network would have to learn them first.
    """
    prototypes, masks = map(torch.from_numpy, tetrominoes.true_prototypes())
    bank = PrototypeBank(prototypes, masks)
    colour: ColourModule = "none" if config.model.colour == "none" else "least_squares"
    return PCDNet.from_bank(bank, dataclasses.replace(config.model, num_prototypes=len(bank.masks), colour=colour))


def exact_cut(image: UInt8[np.ndarray, "H W 3"], labels: Integer[np.ndarray, "H W"]) -> bool:
    """Whether labels cut all that is seen into whole sprites.

    Touching sprites of one colour can often be cut in several ways, and nothing in the image says which is right.
    """
    return np.array_equal(labels > 0, image.any(axis=-1)) and all(
        any(np.array_equal(_cropped(image * (labels == n)[..., None]), sprite) for sprite in _sprites())
        for n in np.unique(labels[labels > 0])
    )


@cache
def _sprites() -> list[UInt8[np.ndarray, "h w 3"]]:
    """All shapes in all colours."""
    greys = [_cropped(np.rint(255 * grey).astype(np.uint8)[..., None]) for grey in tetrominoes.true_prototypes()[0]]
    return [grey * colour for grey in greys for colour in tetrominoes.COLOURS]


def _cropped(picture: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "h w C"]:
    """The box around all that is not black."""
    rows, columns = (np.flatnonzero(picture.any(axis=axes)) for axes in ((1, 2), (0, 2)))
    return picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def one(
    config: Config, seed: int, scenes: int, picture: Path | None = None, train_scenes: int = TRAIN_SCENES
) -> dict[str, Any]:
    """Train one seed; all figures. Scenes that failed are drawn, if a picture is named."""
    config = config.with_fields({"train.seed": seed})
    splits = 0
    last: Progress | None = None

    def watch(progress: Progress) -> None:
        nonlocal splits, last
        splits += sum(event.kind == "split" for event in progress.events)
        last = progress

    train = open_data("tetrominoes", count=train_scenes, seed=TRAINING_SEED + seed)
    valid = open_data("tetrominoes", count=min(VALID_SCENES, train_scenes), seed=VALIDATION_SEED + seed)
    with tempfile.TemporaryDirectory() as place:
        start, busy = time.perf_counter(), time.process_time()
        model = fit(train, config, validation=valid, out=Path(place) / "run", watch=watch, quiet=True)
        taken, busy = time.perf_counter() - start, time.process_time() - busy
    assert last is not None
    unseen = tetrominoes.generate(scenes, TEST_SEED + seed)
    fresh, greedy = evaluate(model, unseen), evaluate(model, unseen, refined=False)
    ious, ceiling = shape_ious(model), evaluate(with_true_prototypes(config), unseen).fg_ari or 0.0
    found = model.decompose_all(unseen.images)
    wrong = failures(model, unseen, found)
    if picture is not None:
        draw(wrong, unseen, found, picture)
    result = {
        "seed": seed,
        "fg_ari": fresh.fg_ari or 0.0,
        "true_prototypes": ceiling,
        "below": ceiling - (fresh.fg_ari or 0.0),
        "greedy_fg_ari": greedy.fg_ari or 0.0,
        "perfect": fresh.perfect or 0.0,
        "wrong_cuts": sum(not exact_cut(unseen.images[n], found[n].instances) for n in range(scenes)),
        "count_accuracy": fresh.count_accuracy or 0.0,
        "mse": fresh.mse,
        "shapes": float(np.sum(np.array(ious) >= LEARNED)),
        "least_iou": min(ious),
        "crisp": crispness(model),
        "splits": splits,
        "minutes": taken / 60,
        "core_minutes": busy / 60,
        "images_per_second": last.step * config.train.batch / taken,
        "threads": torch.get_num_threads(),
        "parameters": fresh.parameters,
        "scenes": scenes,
        "failed": [dataclasses.asdict(each) for each in wrong],
    }
    genuine = SHARED / "data" / "tetrominoes" / "tetrominoes_mini.tfrecords"
    if genuine.is_file():
        result["genuine_fg_ari"] = evaluate(model, genuine).fg_ari or 0.0
    return result


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__, formatter_class=form)
    parser.add_argument("--preset", default="tetrominoes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--scenes", type=int, default=1_000, help="fresh scenes to score on")
    parser.add_argument("--set", nargs="*", default=[], help="fields to change, as section.field=value")
    parser.add_argument("--pictures", type=Path, help="folder to draw the failed scenes in")
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)  # to try the benchmark itself
    parser.add_argument("--train-scenes", type=int, default=TRAIN_SCENES, help=argparse.SUPPRESS)
    return parser


def changed(preset: str, changes: list[str]) -> Config:
    """A preset with some of its fields changed."""
    tables = tomllib.loads(Config.preset(preset).to_toml())
    for change in changes:
        section, field, value = re.split("[.=]", change, maxsplit=2)
        tables[section][field] = tomllib.loads(f"value = {value}")["value"]
    return Config.from_tables(tables, "--set")


def main() -> None:
    """Print a table row by row, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    changes = [renamed(change) for change in asked.set]
    config = changed(asked.preset, changes)
    if asked.steps is not None:
        config = config.with_fields({"train.steps": asked.steps})
    rows = []
    for seed in asked.seeds:
        picture = None if asked.pictures is None else folder(asked.pictures) / f"failed-{asked.preset}-{seed}.png"
        row = one(config, seed, asked.scenes, picture, asked.train_scenes)
        rows.append(row if picture is None else {**row, "picture": picture.name})
        print(json.dumps(rows[-1]), flush=True)
    table = Table(title=f"{asked.preset} {' '.join(changes)}: {asked.scenes} fresh re-created Tetrominoes a seed")
    names = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{row[name]:.6g}" for name in names))
    Console(width=180).print(table)
    trial = {} if asked.steps is None else {"trial_of_steps": asked.steps}
    start.close({"benchmark": "learning", "preset": asked.preset, "set": changes, **trial, "rows": rows})


if __name__ == "__main__":
    main()
