"""Speed: the engine beside the literal equations, how time and memory grow, and where the time goes.

usage: python -m benchmarks.speed [--without-growth]
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from tests.oracle.equations import Oracle
from torch import Tensor

from benchmarks.models import crowded, tetromino_images, tetromino_model
from benchmarks.provenance import Start
from benchmarks.timing import seconds, shares
from pcdnet.config import ColourModule
from pcdnet.model.network import PCDNet

BATCH = 64
ORACLE_IMAGES = 4


def inference(model: PCDNet, images: Tensor) -> Callable[[], object]:
    """Explain one batch after the other: fresh images, as in life, some of them in need of refinement."""
    batches = list(torch.split(images, BATCH))
    state = [0]

    def call() -> object:
        state[0] = (state[0] + 1) % len(batches)
        with torch.inference_mode():
            return model(batches[state[0]])

    return call


def training_step(model: PCDNet, images: Tensor) -> Callable[[], object]:
    """Forward and backward of the reconstruction error."""

    def call() -> None:
        model.zero_grad()
        (model(images[:BATCH]).reconstruction - images[:BATCH]).square().mean().backward()

    return call


def oracle_call(model: PCDNet, images: Tensor, *, backward: bool) -> Callable[[], object]:
    """The same job by the literal equations, for a few images."""

    def network(masked: Tensor, _: int, row: int, column: int) -> Tensor:
        assert model.colour is not None
        h, w = model.config.prototype_size
        wide = torch.nn.functional.pad(masked, (w, w, h, h))
        colour: Tensor = model.colour(wide[None, :, row + h : row + 2 * h, column + w : column + 2 * w], frozen=True)[0]
        return colour

    def call() -> None:
        bank = model.bank() if backward else model.bank().map(torch.Tensor.detach)
        for image in images[:ORACLE_IMAGES]:
            oracle = Oracle(
                image, bank.prototypes, bank.masks, bank.background, model.config, network if model.colour else None
            )
            with torch.set_grad_enabled(backward):
                _, picture = oracle.explain(refine=not backward)
            if backward:
                (picture - image).square().mean().backward(retain_graph=True)

    return call


def engine_and_oracle(console: Console) -> dict[str, dict[str, float]]:
    """Images per second of both, in one run."""
    images = tetromino_images(16 * BATCH, seed=0)
    table = Table(title=f"Re-created Tetrominoes, batch {BATCH}, defaults: images/s")
    for column in ("job", "colour", "engine", "literal equations", "ratio"):
        table.add_column(column, justify="left" if column in ("job", "colour") else "right")
    results = {}
    colours: list[ColourModule] = ["least_squares", "network"]
    for colour in colours:
        model = tetromino_model(colour)
        jobs = [
            ("inference", inference(model.eval(), images), 32),
            ("forward+backward", training_step(model, images), 9),
        ]
        for job, call, repeats in jobs:
            model.train(job != "inference")
            engine = BATCH / seconds(call, repeats)
            literal = ORACLE_IMAGES / seconds(oracle_call(model, images, backward=model.training), 1)
            table.add_row(job, colour, f"{engine:.0f}", f"{literal:.2f}", f"{engine / literal:.0f}x")
            results[f"{job} {colour}"] = {"engine": engine, "oracle": literal, "ratio": engine / literal}
    console.print(table)
    return results


def peak_mib() -> float:
    """The most memory this process has held, libraries included."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else float("nan")


def row_of_growth(settings: dict[str, int]) -> dict[str, float]:
    """Time of an image and of its selection, and peak memory, for one setting; in a process of its own."""
    torch.set_num_threads(2)
    side = (settings["height"], settings["width"])
    model, images = crowded(side, settings["P"], settings["K"], settings["N"], settings["batch"])
    base = peak_mib()

    def call() -> object:
        with torch.inference_mode():
            return model(images)

    taken = seconds(call, 5)
    parts = shares(call, 3)
    return {
        **settings,
        "milliseconds": 1000 * taken / len(images),
        "images_per_second": len(images) / taken,
        "correlation_ms": 1000 * taken * parts["correlation"] / len(images),
        "selection_ms": 1000 * taken * parts["selection"] / len(images),
        "peak_mib": peak_mib(),
        "working_mib": peak_mib() - base,
    }


def growth(console: Console) -> list[dict[str, float]]:
    """How time and memory go with the image's side, P, K and N; the last row is Space Invaders' size."""
    start = {"height": 96, "width": 96, "P": 8, "K": 4, "N": 8, "batch": 16}
    rows = [start]
    rows += [{**start, "height": side, "width": side} for side in (192, 384)]
    rows += [{**start, "P": P} for P in (16, 32)]
    rows += [{**start, "K": K} for K in (8, 16)]
    rows += [{**start, "height": 192, "width": 192, "N": N} for N in (16, 32)]
    rows += [{"height": 185, "width": 160, "P": 14, "K": 8, "N": 50, "batch": 16}]
    table = Table(title="Growth (grey, 20x20 prototypes, batch 16), milliseconds an image; last: Space Invaders' size")
    for column in ("image", "P", "K", "N", "all", "correlation", "selection", "images/s", "peak MiB", "of it working"):
        table.add_column(column, justify="right")
    results = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for result in pool.imap(row_of_growth, rows):
            results.append(result)
            table.add_row(
                f"{result['height']}x{result['width']}",
                *(str(result[name]) for name in ("P", "K", "N")),
                *(f"{result[name]:.1f}" for name in ("milliseconds", "correlation_ms", "selection_ms")),
                f"{result['images_per_second']:.0f}",
                *(f"{result[name]:.0f}" for name in ("peak_mib", "working_mib")),
            )
    console.print(table)
    return results


def stages(console: Console) -> dict[str, dict[str, float]]:
    """Where the time goes."""
    images = tetromino_images(16 * BATCH, seed=0)
    table = Table(title="Share of each stage, inference on re-created Tetrominoes")
    table.add_column("colour")
    results: dict[str, dict[str, float]] = {}
    colours: list[ColourModule] = ["least_squares", "network"]
    for colour in colours:
        results[colour] = shares(inference(tetromino_model(colour), images), 16)
        if not table.rows:
            for stage in results[colour]:
                table.add_column(stage, justify="right")
        table.add_row(colour, *(f"{100 * share:.0f} %" for share in results[colour].values()))
    console.print(table)
    return results


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.splitlines()[0])
    parser.add_argument("--without-growth", action="store_true", help="leave out how time and memory grow")
    return parser


def main() -> None:
    """Print the tables, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    console, begun = Console(width=120), time.perf_counter()
    report = {
        "benchmark": "speed",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "tetrominoes": engine_and_oracle(console),
        "growth": [] if asked.without_growth else growth(console),
        "stages": stages(console),
    }
    start.close({**report, "seed": 0, "seconds": time.perf_counter() - begun})


if __name__ == "__main__":
    main()
