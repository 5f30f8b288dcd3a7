"""Quality: how well given banks decompose Tetrominoes, over several seeds, greedy alone and refined.

usage: python -m benchmarks.quality [SEEDS] [--scenes N]
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.models import true_bank
from benchmarks.provenance import Start
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.data.tetromino_records import factored
from pcdnet.metrics import foreground_ari, score
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet

SHARED = Path(__file__).resolve().parents[2] / "shared"
SCENES = 1_000
EXACT = 0.01
"""A scene whose squared error is below this is explained exactly: if its labels are wrong all the same, it can be
cut in more than one way."""


def measure(model: PCDNet, scenes: tetrominoes.TetrominoScenes) -> dict[str, float]:
    """Scores, speed, and how many wrong scenes are ambiguous rather than badly explained."""
    start = time.perf_counter()
    found = model.decompose_all(scenes.images)
    taken = time.perf_counter() - start
    scores = score(scenes.labels, np.stack([thing.instances for thing in found]))
    wrong = [
        thing.error
        for labels, thing in zip(scenes.labels, found, strict=True)
        if foreground_ari(labels, thing.instances) < 1
    ]
    return {
        **dataclasses.asdict(scores),
        "ambiguous": sum(error < EXACT for error in wrong),
        "badly_explained": sum(error >= EXACT for error in wrong),
        "images_per_second": len(found) / taken,
    }


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="?", type=int, default=3, help="how many seeds")
    parser.add_argument("--scenes", type=int, default=SCENES, help="scenes a seed")
    return parser


def main() -> None:
    """Print a table, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    preset = Config.preset("tetrominoes").model
    banks = {"true prototypes": true_bank()}
    if (SHARED / "reference").is_dir():
        banks["authors' released bank"] = PrototypeBank.load(SHARED / "reference" / "tetrominoes.safetensors")
    columns = (
        "fg_ari",
        "ari",
        "miou",
        "count_accuracy",
        "perfect",
        "ambiguous",
        "badly_explained",
        "images_per_second",
    )
    table = Table(title=f"Re-created Tetrominoes, {asked.scenes} scenes a seed, {preset.peaks_per_prototype} peaks")
    for name in ("bank", "search", "seed", *columns):
        table.add_column(name.replace("_", " "), justify="left" if name in ("bank", "search") else "right")
    rows = []
    for name, bank in banks.items():
        for search, restarts in (("greedy", 0), ("refined", preset.restarts)):
            model = PCDNet.from_bank(bank, dataclasses.replace(preset, restarts=restarts))
            for seed in range(asked.seeds):
                result = measure(model, tetrominoes.generate(asked.scenes, seed))
                rows.append({"bank": name, "search": search, "seed": seed, **result})
                table.add_row(name, search, str(seed), *(f"{result[column]:.6g}" for column in columns))
        genuine = SHARED / "data" / "tetrominoes" / "tetrominoes_mini.tfrecords"
        if genuine.is_file():
            result = measure(PCDNet.from_bank(bank, preset), factored(genuine))
            rows.append({"bank": name, "search": "refined", "seed": "genuine", **result})
            table.add_row(name, "refined", "10 genuine", *(f"{result[column]:.6g}" for column in columns))
    Console(width=160).print(table)
    start.close({"benchmark": "quality", "scenes": asked.scenes, "rows": rows})


if __name__ == "__main__":
    main()
