"""Workers: those of a Ray cluster, killed at random moments of small decompositions, and what that loses."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.runs import true_run

from pcdnet.data import tetrominoes
from pcdnet.output.cluster import cluster
from pcdnet.output.dataset import save_scenes
from pcdnet.output.decompose import decompose_files

IMAGES = 1280
"""Scenes of a decomposition."""
FILES = ("decompositions.jsonl", "coco.json", "objects.csv")
"""What must be the same to the byte."""
FORMATS = "json,coco,csv"


def worker_pids() -> list[int]:
    """The processes that work on pieces for the cluster that this process has started."""
    parents, working = dict[int, int](), list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
        if title.startswith(b"ray::") and b"(Worker)" in title:
            working.append(int(folder.name))
    return [pid for pid in working if os.getpid() in _line(pid, parents)]


def _line(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


@contextmanager
def killing(moment: Callable[[], bool], rng: np.random.Generator) -> Iterator[list[int]]:
    """Kill one worker as soon as it is the moment and there is one; the list has those that were killed."""
    killed: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if moment() and (pids := worker_pids()):
                victim = int(rng.choice(pids))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def drill(count: int, seed: int) -> dict[str, int]:
    """Kill so many workers, one a decomposition: how often it was tried, the images lost or doubled, what differs."""
    rng, found = np.random.default_rng(seed), {"tried": 0, "lost": 0, "different": 0}
    with tempfile.TemporaryDirectory(prefix="pcdnet-") as name, cluster():
        folder = Path(name)
        run, data, whole = true_run(folder / "run").path, folder / "scenes.npz", folder / "whole"
        save_scenes(tetrominoes.generate(IMAGES, seed=seed), data)
        decompose_files(run, data, whole, formats=FORMATS, quiet=True)
        took = _by_ray(run, data, folder / "unbroken")
        for attempt in range(3 * count):  # some end before their worker can be killed
            if found["tried"] == count:
                break
            out, end = folder / f"out-{attempt}", time.monotonic() + float(rng.uniform(0, took))
            with killing(lambda end=end: time.monotonic() >= end, rng) as killed:  # type: ignore[misc]
                _by_ray(run, data, out)
            if killed:
                found["tried"] += 1
                lines = (out / FILES[0]).read_text().splitlines()
                found["lost"] += abs(IMAGES - len(lines)) + len(lines) - len(set(lines))
                found["different"] += any((out / each).read_bytes() != (whole / each).read_bytes() for each in FILES)
    return found


def _by_ray(run: Path, data: Path, out: Path) -> float:
    start = time.monotonic()
    decompose_files(run, data, out, formats=FORMATS, engine="ray", quiet=True)
    return time.monotonic() - start


if __name__ == "__main__":
    print(drill(2, 0))
