"""Working: how long quick requests take while all pictures are counted, and while the run learns again.

usage: python -m benchmarks.working [seconds]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.correcting import CONFIG, HELD_OUT, KINDS, corrections, make, make_run
from benchmarks.provenance import Start
from benchmarks.serve import milliseconds
from benchmarks.serving import served

PAUSE = 0.02
"""Seconds between two requests."""
BEFORE = 10
"""Requests before anything is measured."""


def asked(client: httpx.Client, seconds: float) -> dict[str, float]:
    """How long one client waits for small answers: a decomposition, a small picture and a list by turns."""
    taken: list[float] = []
    calls = (
        lambda: client.post("/api/decompose", json={"picture": len(taken) % HELD_OUT}),
        lambda: client.get(f"/api/pictures/{len(taken) % HELD_OUT}/thumbnail"),
        lambda: client.get("/api/pictures"),
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        calls[len(taken) % len(calls)]().raise_for_status()
        taken.append(time.perf_counter() - start)
        time.sleep(PAUSE)
    return {"requests": len(taken), **milliseconds(taken[BEFORE:])}


def measured(seconds: float) -> list[dict[str, Any]]:
    """The same with nothing else going on, while pictures are counted, and while the run learns again."""
    rows = []
    pictures = make(300, 0)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), pictures, 0)
        with served(run.path) as process, httpx.Client(base_url=process.site, timeout=120) as client:
            rows.append({"meanwhile": "nothing", **asked(client, seconds)})
            client.post("/api/counts").raise_for_status()
            row = asked(client, seconds)
            rows.append({"meanwhile": "counting", **row, "state": client.get("/api/counts").json()["state"]})
            client.delete("/api/counts").raise_for_status()
            corrections(client, pictures)
            client.post("/api/learning", json={"minutes": 5}).raise_for_status()
            row = asked(client, seconds)
            rows.append({"meanwhile": "learning", **row, "state": client.get("/api/learning").json()["state"]})
            client.delete("/api/learning").raise_for_status()
    return rows


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.working", description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=10.0, help="for how long requests are made each time")
    return parser


def main() -> None:
    """Print a line for each, then one JSON line."""
    start = Start.now()
    rows = measured(parser().parse_args().seconds)
    for row in rows:
        words = " ".join(f"{row[name]:.0f}" for name in ("median_ms", "p95_ms", "longest_ms"))
        print(f"{row['meanwhile']}: median, 95 % and longest {words} ms of {row['requests']} requests")
    start.close({"benchmark": "working", "kinds": len(KINDS), "frame": CONFIG.model.prototype_size, "rows": rows})


if __name__ == "__main__":
    main()
