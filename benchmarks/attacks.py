"""Attacks: what other clients of a server notice of hostile ones, how much memory these take, and how a server ends.

usage: python -m benchmarks.attacks [seconds] [--only NAME ...]

Each attack (benchmarks/assaults.py) has a server of its own, started as `pcdnet serve` on loopback. Meanwhile another
client asks for something small, again and again.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.assaults import ASSAULTS, Assault, array, connected, posted, scene, wide_objects
from benchmarks.provenance import Start
from benchmarks.serving import served, tetromino_run, wide_run

WARM = 5
"""Requests before anything is measured."""


@contextmanager
def attacker(assault: Assault, site: str, seconds: float) -> Iterator[None]:
    """Somebody who attacks a server from a process of his own, and has begun to."""
    command = [sys.executable, "-m", "benchmarks.assaults", assault.__name__, site, f"{seconds}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            yield
        finally:
            process.kill()


def attacked(assault: Assault, run: Path, seconds: float) -> dict[str, Any]:
    """What another client notices of an attack on a server of a run."""
    small = {**scene(1, 64), "background": array([64, 64, 3], "float32", 4)} if assault is wide_objects else None
    with served(run) as process, httpx.Client(base_url=process.site, timeout=60) as client:

        def ask() -> httpx.Response:
            if small is None:
                return client.post("/api/decompose", json={"picture": 0})
            return client.post("/api/render", json=small)

        for _ in range(WARM):
            ask().raise_for_status()
        before = process.memory()
        taken: list[float] = []
        wrong: list[str] = []
        with attacker(assault, process.site, seconds + 10):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                start = time.perf_counter()
                try:
                    if (status := ask().status_code) != 200:
                        wrong.append(f"{status}")
                except httpx.HTTPError as error:
                    wrong.append(repr(error))
                taken.append(time.perf_counter() - start)
                time.sleep(0.02)
            peak = process.memory()
            ended, code, said = process.stop(signal.SIGTERM)
    ranked = sorted(taken)
    return {
        "attack": assault.__name__,
        "seconds": seconds,
        "requests": len(taken),
        "errors": len(wrong),
        "first_error": wrong[0] if wrong else None,
        "median_ms": 1000 * statistics.median(ranked),
        "p95_ms": 1000 * ranked[int(0.95 * (len(ranked) - 1))],
        "longest_ms": 1000 * ranked[-1],
        "memory_before_mib": before,
        "memory_peak_mib": peak,
        "stop_seconds": ended,
        "exit_code": code,
        "stderr": said[-300:],
    }


def stopped(run: Path, by: signal.Signals) -> dict[str, Any]:
    """How a server ends while many wait for large work."""
    request = posted("/api/render", json.dumps(scene(128, 512, background=True)).encode())
    with served(run) as process:
        waiting = [connected(process.site) for _ in range(40)]
        for connection in waiting:
            threading.Thread(target=connection.sendall, args=(request,), daemon=True).start()
        time.sleep(1.5)
        seconds, code, said = process.stop(by)
        for connection in waiting:
            connection.close()
    return {"signal": by.name, "stop_seconds": seconds, "exit_code": code, "stderr": said[-300:]}


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=10.0, help="for how long each attack lasts")
    parser.add_argument("--only", nargs="*", choices=[each.__name__ for each in ASSAULTS], help="these attacks alone")
    return parser


def shown(rows: Sequence[dict[str, Any]]) -> Table:
    """The attacks as a table."""
    table = Table(title="Another client during attacks, milliseconds; MiB of the server; all on one machine")
    columns = ("attack", "requests", "errors", "median_ms", "p95_ms", "longest_ms", "memory_peak_mib", "stop_seconds")
    for column in columns:
        table.add_column(column, justify="left" if column == "attack" else "right")
    for row in rows:
        values = (row[column] for column in columns)
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else f"{value}" for value in values))
    return table


def main() -> None:
    """Print a table, then one JSON line."""
    start, asked = Start.now(), parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, wide = tetromino_run(Path(folder) / "small"), wide_run(Path(folder) / "wide")
        rows = [
            attacked(assault, wide if assault is wide_objects else small, asked.seconds)
            for assault in ASSAULTS
            if not asked.only or assault.__name__ in asked.only
        ]
        ends = [stopped(wide, by) for by in (signal.SIGINT, signal.SIGTERM)]
    Console(width=140).print(shown(rows))
    for end in ends:
        print(f"{end['signal']} with a queue: {end['stop_seconds']:.2f} s, exit code {end['exit_code']}")
    start.close({"benchmark": "attacks", "rows": rows, "ends": ends})


if __name__ == "__main__":
    main()
