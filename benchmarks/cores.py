"""Cores: how many requests a server answers to 32 clients on one core and on two, and what each takes of a processor.

usage: python -m benchmarks.cores [seconds] [--rounds N]

Servers of one core and of two are measured by turns, on the same cores. All clients are one light process, which takes
its share of these cores, as does whatever else the machine does: so what the server had of them is printed, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.assaults import posted
from benchmarks.provenance import Start
from benchmarks.serving import served, tetromino_run
from pcdnet.data import tetrominoes

CLIENTS = 32
TILES = 6
"""The larger picture is so many scenes wide and high: there the search is most of the work."""


def requests() -> dict[str, bytes]:
    """A small picture and a larger one, as requests."""
    from pcdnet.serve.messages import Array

    scenes = tetrominoes.generate(TILES * TILES, seed=7).images
    height, width, channels = scenes.shape[1:]
    wide = scenes.reshape(TILES, TILES, height, width, channels).swapaxes(1, 2)
    pictures = {"35x35": scenes[0], "210x210": wide.reshape(TILES * height, TILES * width, channels)}
    return {
        name: posted("/api/decompose", json.dumps({"image": Array.from_numpy(picture).model_dump()}).encode())
        for name, picture in pictures.items()
    }


async def _client(site: str, request: bytes, end: float) -> tuple[int, int]:
    """Ask until a moment of `time.monotonic`: how many answers came, and how many were no good."""
    where = urlsplit(site)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    answers = errors = 0
    while time.monotonic() < end:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(size.split(b":")[1]))
        answers += 1
        errors += not head.startswith(b"HTTP/1.1 200")
    writer.close()
    return answers, errors


async def _crowd(site: str, request: bytes, seconds: float) -> tuple[int, int]:
    end = time.monotonic() + seconds
    found = await asyncio.gather(*(_client(site, request, end) for _ in range(CLIENTS)))
    return sum(answers for answers, _ in found), sum(errors for _, errors in found)


@contextmanager
def only(cores: set[int]) -> Iterator[None]:
    """Let processes that start meanwhile have these cores alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def processor_seconds(process: int) -> float:
    """Seconds that a process had a core, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(run: Path, name: str, cores: set[int], seconds: float) -> dict[str, Any]:
    """What a server of these cores answers."""
    with only(cores):
        server = served(run)
        process = server.__enter__()
    try:
        command = [sys.executable, "-m", "benchmarks.cores", f"{seconds}", "--ask", process.site, name]
        subprocess.run([*command[:3], "2", *command[4:]], check=True, stdout=subprocess.DEVNULL)  # to get warm
        before = processor_seconds(process.handle.pid)
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        had = processor_seconds(process.handle.pid) - before
    finally:
        server.__exit__(None, None, None)
    return {
        "picture": name,
        "cores": len(cores),
        "requests": told["requests"],
        "errors": told["errors"],
        "requests_per_second": told["requests"] / seconds,
        "processor_ms_per_request": 1000 * had / max(1, told["requests"]),
        "cores_had": had / seconds,
        "client_processor_ms_per_request": 1000 * told["processor_seconds"] / max(1, told["requests"]),
    }


def ratio(rows: list[dict[str, Any]], name: str, what: str) -> float:
    """The median with two cores over that with one."""
    one, two = (
        statistics.median(row[what] for row in rows if row["picture"] == name and row["cores"] == cores)
        for cores in (1, 2)
    )
    return two / one if one else 0.0


def main() -> None:
    """Print a line for every measurement and picture, then one JSON line."""
    start, parser = Start.now(), argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=15.0, help="for how long each server is asked")
    parser.add_argument("--rounds", type=int, default=3, help="how often each server is measured")
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.ask:
        answers, errors = asyncio.run(_crowd(asked.ask[0], requests()[asked.ask[1]], asked.seconds))
        used = resource.getrusage(resource.RUSAGE_SELF)
        told = {"requests": answers, "errors": errors, "processor_seconds": used.ru_utime + used.ru_stime}
        print(json.dumps(told))
        return
    available, rows = sorted(os.sched_getaffinity(0)), []
    with tempfile.TemporaryDirectory() as folder:
        run = tetromino_run(Path(folder) / "run")
        for _ in range(asked.rounds):
            for name in requests():
                for cores in (1, 2):
                    rows.append(row := measured(run, name, set(available[:cores]), asked.seconds))
                    answered = f"{row['requests_per_second']:.1f} requests/s, {row['errors']} errors"
                    each = f"{row['processor_ms_per_request']:.1f} ms of a core each, {row['cores_had']:.2f} cores had"
                    print(f"{name}, {cores} core(s): {answered}, {each}", flush=True)
    for name in requests():
        figures = (ratio(rows, name, what) for what in ("requests_per_second", "cores_had", "processor_ms_per_request"))
        throughput, had, taken = figures
        print(
            f"{name}: two cores over one: {throughput:.2f} requests/s, {had:.2f} cores had, {taken:.2f} time a request"
        )
    start.close({"benchmark": "cores", "clients": CLIENTS, "rows": rows})


if __name__ == "__main__":
    main()
