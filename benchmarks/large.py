"""Large: `pcdnet decompose` of one sheet of 6000x6000 pixels beside one of 500x500: memory, speed, counts.

usage: python -m benchmarks.large [SIDE]

The sheets are those of `benchmarks.own.sheet`, in RGB; the model has their true symbols, and limits as if it had
learned from tiles of 192x192. Each has a process of its own. Its time holds the start of the program; speed is given
without it, too, by processor time, which is what to look at on a machine that has other work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.own import sheet
from benchmarks.own.icons import SYMBOLS
from benchmarks.own.pictures import sign
from benchmarks.provenance import Start
from pcdnet import ModelConfig, PCDNet
from pcdnet.model.bank import PrototypeBank

SMALL, LARGE, EMPTY = 500, 6_000, 64
TILE = 192
SEED = 1
DENSITY = sheet.COUNT / sheet.SIDE**2


def true_model() -> PCDNet:
    """A model of the true symbols, black on plain paper."""
    shapes = [torch.from_numpy(sign(symbol, sheet.SIZE).alpha).float() for symbol in SYMBOLS]
    side = max(max(shape.shape) for shape in shapes)
    masks = torch.zeros(len(shapes), side, side)
    for mask, shape in zip(masks, shapes, strict=True):
        top, left = (side - shape.shape[0]) // 2, (side - shape.shape[1]) // 2
        mask[top : top + shape.shape[0], left : left + shape.shape[1]] = shape
    config = ModelConfig(
        num_prototypes=len(shapes),
        prototype_size=(side, side),
        localization="error_reduction",
        background="plain",
        max_objects=12,
        peaks_per_prototype=4,
        min_error_reduction=10.0,
    )
    model = PCDNet.from_bank(PrototypeBank(torch.full_like(masks, 0.01), masks), config)
    model.learned_size = TILE, TILE
    return model


def decomposed(run: Path, picture: Path) -> dict[str, float]:
    """Decompose a picture by the command, in a process of its own: its seconds and its largest memory."""
    out, start = picture.with_suffix(""), time.perf_counter()
    command = [sys.executable, "-m", "pcdnet", "decompose", str(run), str(picture), "--out", str(out)]
    process = subprocess.Popen([*command, "--format", "json,coco"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_mib": used.ru_maxrss / 1024,
    }


def counts(picture: Path) -> Counter[int]:
    """How many objects of every prototype were found."""
    record = json.loads((picture.with_suffix("") / "decompositions.jsonl").read_text(encoding="utf-8"))
    return Counter(thing["prototype"] for thing in record["objects"])


def measured(run: Path, folder: Path, side: int, seed: int) -> dict[str, float]:
    """Make a sheet of a side and decompose it: memory, time, and by how much the counts by kind are wrong."""
    made = sheet.make(seed, side, round(DENSITY * side**2))
    picture = folder / f"{side}.png"
    Image.fromarray(made.images[0]).convert("RGB").save(picture)
    true = Counter(made.ground_truth[0].kinds.tolist())
    result = decomposed(run, picture)
    found = counts(picture)
    wrong = sum(abs(true[kind] - found[kind]) for kind in range(len(SYMBOLS)))
    return {**result, "objects": true.total(), "found": found.total(), "wrong_by_kind": wrong}


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__.splitlines()[0])
    parser.add_argument("side", nargs="?", type=int, default=LARGE, help="pixels of a side of the large sheet")
    return parser


def main() -> None:
    """Print the table, then one JSON line."""
    begun, large = Start.now(), parser().parse_args().side
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        true_model().save(folder / "run")
        blank = folder / "blank.png"
        Image.fromarray(np.full((EMPTY, EMPTY, 3), 255, np.uint8)).save(blank)
        start = decomposed(folder / "run", blank)
        results = {side: measured(folder / "run", folder, side, SEED) for side in (SMALL, large)}
    table = Table(title="One sheet by pcdnet decompose")
    names = ("seconds", "processor_seconds", "peak_mib", "objects", "found", "wrong_by_kind")
    for column in ("side", *names, "MP/s", "MP/s without start"):
        table.add_column(column, justify="right")
    for side, result in results.items():
        result["megapixels_per_second"] = side**2 / 1e6 / result["seconds"]
        work = result["processor_seconds"] - start["processor_seconds"]
        result["megapixels_per_second_without_start"] = side**2 / 1e6 / max(work, 1e-3)
        speeds = [result[f"megapixels_per_second{rest}"] for rest in ("", "_without_start")]
        table.add_row(str(side), *(f"{result[name]:,.0f}" for name in names), *(f"{speed:.3f}" for speed in speeds))
    Console(width=120).print(table)
    speed = [result["megapixels_per_second_without_start"] for result in results.values()]
    whole = [result["megapixels_per_second"] for result in results.values()]
    ratios = {"speed_ratio": whole[1] / whole[0], "speed_ratio_without_start": speed[1] / speed[0]}
    rows = [{"side": side, **result} for side, result in results.items()]
    begun.close({"benchmark": "large", "seed": SEED, "rows": rows, **ratios})


if __name__ == "__main__":
    main()
