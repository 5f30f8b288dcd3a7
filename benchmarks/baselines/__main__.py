"""Baselines: what others would use instead, beside ours, in one run.

usage: python -m benchmarks.baselines [--minutes M] [--seed S] [--scenes N]

On re-created Tetrominoes our training comes first, by the preset or, if M is given, for M minutes. Slot Attention and
the Slot MLP then learn from the same scenes for as many minutes of processor time as it took, and template matching
looks for the prototypes that it learned. All are scored on fresh scenes. Background subtraction is scored on frames of
two traffic cameras, which lie in ../shared; without them it is left out. The figures of the paper's table are beside
these, labelled as published.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.baselines import background_subtraction, learning, template_matching
from benchmarks.baselines.published import PUBLISHED
from benchmarks.baselines.slot_attention import slot_attention
from benchmarks.baselines.slot_mlp import slot_mlp
from benchmarks.learning import TRAIN_SCENES, VALID_SCENES
from benchmarks.provenance import Start
from pcdnet.config import Config
from pcdnet.data.opening import open_data, training_data
from pcdnet.data.sources import TEST_SEED, TRAINING_SEED, VALIDATION_SEED
from pcdnet.metrics import score, score_detections
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress

CAMERAS = Path(__file__).resolve().parents[3] / "shared" / "data" / "ngsim"
SLOT_MODELS = {"Slot Attention": slot_attention, "Slot MLP": slot_mlp}
FIGURES = {
    "fg_ari": ".4f",
    "f1": ".4f",
    "parameters": ",.0f",
    "images_per_second": ",.1f",
    "core_minutes": ".2f",
    "steps": ",.0f",
}
"""What the table of Tetrominoes shows, and how."""
DETECTION = {"f1": ".3f", "f1_at_30": ".3f", "precision": ".3f", "recall": ".3f", "frames_per_second": ",.0f"}
"""The same for the cameras."""

Row = dict[str, Any]


def ours(train: Scenes, valid: Scenes, unseen: Scenes, seed: int, minutes: float | None) -> tuple[PCDNet, Row]:
    """Our model, trained by the default preset, and its figures."""
    config = Config.preset("tetrominoes").with_fields({"train.seed": seed})
    steps = 0

    def watch(progress: Progress) -> None:
        nonlocal steps
        steps = progress.step

    busy = time.process_time()
    model = fit(train, config, validation=valid, minutes=minutes, watch=watch, quiet=True)
    busy = time.process_time() - busy
    scores = evaluate(model, unseen).to_dict()
    figures = {name: scores[name] for name in ("fg_ari", "f1", "mse", "parameters", "images_per_second")}
    return model, {"model": "pcdnet", **figures, "core_minutes": busy / 60, "steps": steps}


def matched(model: PCDNet, unseen: Scenes) -> Row:
    """The figures of template matching with the prototypes of a model."""
    assert unseen.labels is not None
    with torch.no_grad():
        templates = template_matching.Template.of(model.bank())
    start = time.perf_counter()
    found = [template_matching.find(image, templates) for image in unseen.images]
    taken = time.perf_counter() - start
    return {
        "model": "template matching",
        "fg_ari": score(unseen.labels, [each.labels for each in found]).fg_ari,
        "f1": score_detections([each.matches(true) for each, true in zip(found, unseen.labels, strict=True)]).f1,
        "templates": len(templates),
        "images_per_second": len(unseen) / taken,
    }


def tetrominoes(seed: int, minutes: float | None, scenes: int, train_scenes: int = TRAIN_SCENES) -> Iterator[Row]:
    """The rows of Tetrominoes, each when it is measured."""
    train = open_data("tetrominoes", count=train_scenes, seed=TRAINING_SEED + seed)
    valid = open_data("tetrominoes", count=VALID_SCENES, seed=VALIDATION_SEED + seed)
    unseen = open_data("tetrominoes", count=scenes, seed=TEST_SEED + seed)
    model, row = ours(train, valid, unseen, seed, minutes)
    yield row
    for name, make in SLOT_MODELS.items():
        learned = learning.learn(make, train.images, seed, 60 * row["core_minutes"])
        yield {"model": name, **learning.scored(learned, unseen, seed)}
    yield matched(model, unseen)


def traffic(cameras: Path = CAMERAS) -> Iterator[Row]:
    """Background subtraction on every camera that there is; a row with the reason where there is none."""
    for name in ("us101-a", "us101-b"):
        row = {"model": "background subtraction", "data": name}
        if not (cameras / name).is_dir():
            yield {**row, "left_out": "its frames are not beside the project"}
            continue
        train, _ = training_data(cameras / name, seed=0)
        frames = open_data(cameras / name, count=1_000, seed=TEST_SEED)
        start = time.perf_counter()
        scores = background_subtraction.scored(frames, background_subtraction.median_background(train.images))
        speed = len(frames) / (time.perf_counter() - start)
        figures = {name: getattr(scores, name) for name in ("f1", "f1_at_30", "precision", "recall")}
        yield {**row, "frames": len(frames), **figures, "frames_per_second": speed}


def shown(title: str, rows: Sequence[Row], label: str, columns: dict[str, str]) -> None:
    """Print a table."""
    table = Table(title=title)
    table.add_column(label)
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        cells = (row.get(name) for name in columns)
        table.add_row(
            row[label],
            *("-" if value is None else f"{value:{form}}" for value, form in zip(cells, columns.values(), strict=True)),
        )
    Console(width=140).print(table)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__, formatter_class=form)
    parser.add_argument("--minutes", type=float, help="minutes of our training; by default all steps of the preset")
    parser.add_argument("--seed", type=int, default=0, help="seed of the scenes and of training")
    parser.add_argument("--scenes", type=int, default=1_000, help="fresh scenes to score on")
    parser.add_argument("--train-scenes", type=int, default=TRAIN_SCENES, help=argparse.SUPPRESS)  # to try it out
    return parser


def main() -> None:
    """Print a line of JSON for every row, two tables, and all in one line of JSON."""
    start, asked = Start.now(), parser()
    given = asked.parse_args()
    if given.minutes is not None and not (np.isfinite(given.minutes) and given.minutes > 0):
        asked.error(f"--minutes {given.minutes:g} is no time to learn in; give more than 0")
    measured: list[Row] = []
    for row in tetrominoes(given.seed, given.minutes, given.scenes, given.train_scenes):
        measured.append(row)
        print(json.dumps(row), flush=True)
    cameras = list(traffic())
    published = [{**row, "model": f"{row['model']}, published"} for row in PUBLISHED]
    title = f"Re-created Tetrominoes, {given.scenes} fresh scenes; published: genuine ones, RTX 3090"
    shown(title, [*measured, *published], "model", FIGURES)
    for row in cameras:
        if "left_out" in row:
            print(f"{row['model']} on {row['data']} is left out: {row['left_out']}")
    if scored := [row for row in cameras if "left_out" not in row]:
        shown("Background subtraction, tuned on these frames", scored, "data", DETECTION)
    settings = {"seed": given.seed, "minutes": given.minutes, "threads": torch.get_num_threads()}
    rows = {"rows": measured, "traffic": cameras, "published": list(PUBLISHED)}
    start.close({"benchmark": "baselines", **settings, "scenes": given.scenes, **rows})


if __name__ == "__main__":
    main()
