"""Learning: train on re-created Tetrominoes from several seeds and score what was learned.

usage: python -m benchmarks.learning [--preset tetrominoes] [--seeds 5] [--scenes 1000] [--set train.steps=600 ...]
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

import numpy as np
import torch
from jaxtyping import Integer, UInt8
from rich.console import Console
from rich.table import Table

from benchmarks.results import renamed
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED, TRAINING_SEED, VALIDATION_SEED
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.evaluation import evaluate
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress

SHARED = Path(__file__).resolve().parents[2] / "shared"
TRAIN_SCENES, VALID_SCENES = 60_000, 320


def shape_ious(model: PCDNet) -> list[float]:
    """For each of the 19 shapes the best IoU of any learned mask with it, wherever either lies in its frame."""
    learned = (model.bank().masks > 0.5).float()
    shapes = torch.from_numpy(tetrominoes.true_prototypes()[1])
    grid = (64, 64)
    product = torch.fft.rfft2(shapes, s=grid)[:, None] * torch.fft.rfft2(learned, s=grid).conj()[None]
    overlap = torch.fft.irfft2(product, s=grid).flatten(2).amax(dim=-1)
    union = shapes.sum((1, 2))[:, None] + learned.sum((1, 2))[None] - overlap
    ious: list[float] = (overlap / union).amax(dim=1).tolist()
    return ious


def crispness(model: PCDNet) -> float:
    """Share of mask values below 0.05 or above 0.95."""
    masks = model.bank().masks
    return float(((masks < 0.05) | (masks > 0.95)).float().mean())


def with_true_prototypes(config: Config) -> PCDNet:
    """A model that knows the shapes and searches in the same way: what learning can come to."""
    prototypes, masks = map(torch.from_numpy, tetrominoes.true_prototypes())
    bank = PrototypeBank(prototypes, masks)
    return PCDNet.from_bank(bank, dataclasses.replace(config.model, num_prototypes=len(bank.masks)))


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
    rows, columns = picture.any(axis=(1, 2)).nonzero()[0], picture.any(axis=(0, 2)).nonzero()[0]
    return picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def one(config: Config, seed: int, scenes: int) -> dict[str, float]:
    """Train one seed; all figures."""
    config = config.with_fields({"train.seed": seed})
    splits = 0
    last: Progress | None = None

    def watch(progress: Progress) -> None:
        nonlocal splits, last
        splits += sum(event.kind == "split" for event in progress.events)
        last = progress

    train = open_data("tetrominoes", count=TRAIN_SCENES, seed=TRAINING_SEED + seed)
    valid = open_data("tetrominoes", count=VALID_SCENES, seed=VALIDATION_SEED + seed)
    with tempfile.TemporaryDirectory() as folder:
        start, busy = time.perf_counter(), time.process_time()
        model = fit(train, config, validation=valid, out=Path(folder) / "run", watch=watch, quiet=True)
        taken, busy = time.perf_counter() - start, time.process_time() - busy
    assert last is not None
    unseen = open_data("tetrominoes", count=scenes, seed=TEST_SEED + seed)
    fresh, greedy = evaluate(model, unseen), evaluate(model, unseen, refined=False)
    ious, ceiling = shape_ious(model), evaluate(with_true_prototypes(config), unseen).fg_ari or 0.0
    cuts = zip(unseen.images, model.decompose_all(unseen.images), strict=True)
    result = {
        "seed": seed,
        "fg_ari": fresh.fg_ari or 0.0,
        "true_prototypes": ceiling,
        "below": ceiling - (fresh.fg_ari or 0.0),
        "greedy_fg_ari": greedy.fg_ari or 0.0,
        "perfect": fresh.perfect or 0.0,
        "wrong_cuts": sum(not exact_cut(image, found.instances) for image, found in cuts),
        "count_accuracy": fresh.count_accuracy or 0.0,
        "mse": fresh.mse,
        "shapes": float(np.sum(np.array(ious) >= 0.95)),
        "least_iou": min(ious),
        "crisp": crispness(model),
        "splits": splits,
        "minutes": taken / 60,
        "core_minutes": busy / 60,
        "images_per_second": last.step * config.train.batch / taken,
        "threads": torch.get_num_threads(),
        "parameters": fresh.parameters,
    }
    genuine = SHARED / "data" / "tetrominoes" / "tetrominoes_mini.tfrecords"
    if genuine.is_file():
        result["genuine_fg_ari"] = evaluate(model, genuine).fg_ari or 0.0
    return result


def main() -> None:
    """Print a table row by row, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="tetrominoes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--scenes", type=int, default=1_000)
    parser.add_argument("--set", nargs="*", default=[], help="fields to change, as section.field=value")
    arguments = parser.parse_args()
    tables = tomllib.loads(Config.preset(arguments.preset).to_toml())
    changes = [renamed(change) for change in arguments.set]
    for change in changes:
        section, field, value = re.split("[.=]", change, maxsplit=2)
        tables[section][field] = tomllib.loads(f"value = {value}")["value"]
    config = Config.from_tables(tables, "--set")
    rows = []
    table = Table(
        title=f"{arguments.preset} {' '.join(changes)}: {arguments.scenes} fresh re-created Tetrominoes a seed"
    )
    for seed in arguments.seeds:
        rows.append(one(config, seed, arguments.scenes))
        print(json.dumps(rows[-1]), flush=True)
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.6g}" for value in row.values()))
    Console(width=180).print(table)
    print(json.dumps({"benchmark": "learning", "preset": arguments.preset, "set": changes, "rows": rows}))


if __name__ == "__main__":
    main()
