"""Serve: how long a request takes, alone and among many, whether any fails, and whether memory grows.

usage: python -m benchmarks.serve [seconds]

For hostile clients see benchmarks/attacks.py.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.provenance import Start
from benchmarks.serving import Process, served, tetromino_run
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.data.strip import SceneStrip
from pcdnet.run import load
from pcdnet.serve.app import create_app
from pcdnet.serve.messages import Array
from pcdnet.serve.server import address, bind, make_server
from pcdnet.serve.workbench import Workbench

CLIENTS = 32
ALONE = 60
MOMENTS = 8
"""How often it is looked how much memory the server has."""


def true_workbench(folder: Path) -> Workbench:
    """A model with the true prototypes of Tetrominoes, and six pictures."""
    run = tetromino_run(folder / "run")
    return Workbench(
        folder=run, model=load(run), pictures=SceneStrip(open_data("tetrominoes", count=6, seed=TEST_SEED))
    )


@contextmanager
def serving(workbench: Workbench, **options: Any) -> Iterator[str]:
    """The address of a server in a thread of this process; for the options see `create_app`."""
    with bind("127.0.0.1", 0) as bound:
        server = make_server(create_app(workbench, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield address(bound).rstrip("/")
        finally:
            server.should_exit = True
            thread.join(10)


def milliseconds(taken: list[float]) -> dict[str, float]:
    """The median, the 95th percentile and the longest."""
    ranked = sorted(taken)
    return {
        "median_ms": 1000 * statistics.median(ranked),
        "p95_ms": 1000 * ranked[int(0.95 * (len(ranked) - 1))],
        "longest_ms": 1000 * ranked[-1],
    }


def requests(client: httpx.Client, workbench: Workbench) -> dict[str, Callable[[int], httpx.Response]]:
    """One call of each kind, for the n-th time."""
    files = [workbench.browsing.file(n) for n in range(6)]
    found = client.post("/api/decompose", json={"picture": 0}).json()
    things = [{key: thing[key] for key in ("prototype", "position", "colour")} for thing in found["scene"]["objects"]]
    scene = {"size": found["scene"]["size"], "objects": things, "image": found["image"]}
    images = [Array.from_numpy(workbench.browsing.pixels(n)).model_dump() for n in range(6)]
    return {
        "decompose": lambda n: client.post("/api/decompose", files={"image": ("scene.png", files[n % 6])}),
        "render": lambda _: client.post("/api/render", json=scene),
        "inspect": lambda n: client.post("/api/inspect", json={"image": images[n % 6], "prototype": n % 19}),
        "export": lambda _: client.post("/api/export", json={"scene": scene, "format": "coco"}),
    }


def alone(site: str, workbench: Workbench) -> dict[str, dict[str, float]]:
    """One client, one request after the other."""
    results = {}
    with httpx.Client(base_url=site, timeout=60) as client:
        for name, call in requests(client, workbench).items():
            taken = []
            for n in range(ALONE):
                start = time.perf_counter()
                call(n).raise_for_status()
                taken.append(time.perf_counter() - start)
            results[name] = milliseconds(taken)
    return results


def crowd(process: Process, workbench: Workbench, seconds: float) -> dict[str, Any]:
    """Many clients at once, each asking again as soon as it is answered; every answer is checked."""
    files = [workbench.browsing.file(n) for n in range(6)]
    expected = [workbench.decompose_file(content, "scene.png", fit=False).scene["objects"] for content in files]
    taken: list[float] = []
    wrong: list[str] = []
    end = time.perf_counter() + seconds

    def client(first: int) -> None:
        with httpx.Client(base_url=process.site, timeout=60) as own:
            n = first
            while time.perf_counter() < end:
                start = time.perf_counter()
                try:
                    answer = own.post("/api/decompose", files={"image": ("scene.png", files[n % 6])})
                    if answer.status_code != 200 or answer.json()["scene"]["objects"] != expected[n % 6]:
                        wrong.append(answer.text[:100])
                except httpx.HTTPError as error:
                    wrong.append(repr(error))
                taken.append(time.perf_counter() - start)
                n += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    memory = []
    for _ in range(MOMENTS):  # in their middles, so that none is before the first answers or after the last
        time.sleep(seconds / MOMENTS / 2)
        memory.append(process.memory("VmRSS"))
        time.sleep(seconds / MOMENTS / 2)
    for thread in threads:
        thread.join()
    return {
        "memory_mib": memory,
        "clients": CLIENTS,
        "seconds": seconds,
        "requests": len(taken),
        "errors": len(wrong),
        "first_error": wrong[0] if wrong else None,
        "requests_per_second": len(taken) / seconds,
        **milliseconds(taken),
    }


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=30.0, help="for how long many clients ask at once")
    return parser


def main() -> None:
    """Print a table, then one JSON line."""
    start, seconds = Start.now(), parser().parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        workbench = true_workbench(Path(folder))
        with served(workbench.folder) as process:
            single, many = alone(process.site, workbench), crowd(process, workbench, seconds)
    table = Table(title="Requests for re-created Tetrominoes, milliseconds; client and server share the machine")
    for column in ("request", "median", "95 %", "longest"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for name, row in {**single, f"decompose, {CLIENTS} clients": many}.items():
        table.add_row(name, *(f"{row[key]:.1f}" for key in ("median_ms", "p95_ms", "longest_ms")))
    Console(width=120).print(table)
    figures = f"{many['requests_per_second']:.0f} requests/s, {many['errors']} errors"
    print(f"{CLIENTS} clients: {figures}, MiB: {', '.join(f'{mib:.0f}' for mib in many['memory_mib'] if mib)}")
    rows = [{"request": name, **row} for name, row in single.items()]
    rows.append({"request": f"decompose, {CLIENTS} clients", **many})
    start.close({"benchmark": "serve", "seed": TEST_SEED, "rows": rows})


if __name__ == "__main__":
    main()
