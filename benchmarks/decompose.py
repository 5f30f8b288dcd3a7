"""Decompose: `pcdnet decompose --format json` beside the bare engine on the same images, and its memory.

usage: python -m benchmarks.decompose [RUN]

Without a run the true prototypes are used. Each measurement has a process of its own, and the jobs take turns; medians
are shown. Processor time is what to look at on a machine that has other work.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from tests.runs import true_run

from benchmarks.provenance import Start
from benchmarks.speed import peak_mib
from pcdnet.cli.decompose import Decompose
from pcdnet.data import npz, tetrominoes
from pcdnet.data.sources import TEST_SEED
from pcdnet.output.dataset import save_scenes
from pcdnet.run import load

COUNTS = (2_000, 10_000)
BATCH = 64
ROUNDS = 3


def bare(run: Path, data: Path) -> dict[str, float]:
    """The engine alone, on tensors that are there already."""
    model = load(run)
    images = torch.from_numpy(npz.read(data).images).permute(0, 3, 1, 2).contiguous() / 255
    with torch.inference_mode():
        model(images[:BATCH])
        start, busy = time.perf_counter(), time.process_time()
        for batch in torch.split(images, BATCH):
            model(batch)
    return _figures(len(images), start, busy)


def command(run: Path, data: Path) -> dict[str, float]:
    """The command, from finding the file to the last line of the summary; only Python's imports are done before."""

    out = data.with_suffix("")
    job = Decompose(folder=run, paths=(str(data),), out=out, force=True)
    start, busy = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        job.run()
    count = sum(1 for _ in (out / "decompositions.jsonl").open("rb"))
    return _figures(count, start, busy)


def _figures(count: int, start: float, busy: float) -> dict[str, float]:
    wall, busy = time.perf_counter() - start, time.process_time() - busy
    return {
        "images": count,
        "images_per_second": count / wall,
        "images_per_processor_second": count / busy,
        "peak_mib": peak_mib(),  # not getrusage's, which begins with that of the process that started this one
    }


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decompose", description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, help="a run; by default a model of the true prototypes")
    return parser


def main() -> None:
    """Print the table, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    begin = time.perf_counter()
    table = Table(title="Re-created Tetrominoes")
    for column in ("job", "images", "images/s", "per processor second", "peak MiB"):
        table.add_column(column, justify="left" if column == "job" else "right")
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = asked.run or true_run(folder / "run").path
        files = {count: folder / f"{count}.npz" for count in COUNTS}
        for count, data in files.items():
            save_scenes(tetrominoes.generate(count, TEST_SEED), data)
        jobs = [("bare engine", bare, files[COUNTS[-1]])]
        jobs += [(f"decompose {count}", command, data) for count, data in files.items()]
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            rounds = [[pool.apply(call, (run, data)) for _, call, data in jobs] for _ in range(ROUNDS)]
    for (job, _, _), measured in zip(jobs, zip(*rounds, strict=True), strict=True):
        results[job] = {name: statistics.median(one[name] for one in measured) for name in measured[0]}
        table.add_row(job, *(f"{value:,.0f}" for value in results[job].values()))
    Console(width=120).print(table)
    few, many, engine = (results[name] for name in (f"decompose {COUNTS[0]}", f"decompose {COUNTS[1]}", "bare engine"))
    report = {
        "benchmark": "decompose",
        "seed": TEST_SEED,
        "rows": [{"job": job, **figures} for job, figures in results.items()],
        "share_of_bare": many["images_per_second"] / engine["images_per_second"],
        "share_of_bare_by_processor": many["images_per_processor_second"] / engine["images_per_processor_second"],
        "memory_growth": many["peak_mib"] / few["peak_mib"],
    }
    start.close({**report, "seconds": time.perf_counter() - begin})


if __name__ == "__main__":
    main()
