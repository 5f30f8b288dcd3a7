"""Automatic: the path of a user who points the program at a folder or a film, and gives no option."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64
from PIL import Image

from benchmarks.own.pictures import Pictures


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Found:
    """The objects found in one picture, without those that others hide."""

    boxes: Float64[np.ndarray, "n 4"]
    """Top, left, height and width of what is seen of each."""
    kinds: list[str]
    """The kind of each: what the result calls so, otherwise its prototype."""
    prototypes: Int64[np.ndarray, "n"]
    """The prototype of each."""
    depths: Int64[np.ndarray, "n"]
    """0 is nearest the viewer."""

    def __len__(self) -> int:
        return len(self.kinds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a set."""

    found: list[Found]
    """The objects of every picture; none where a picture was not decomposed."""
    prototypes: int
    """How many the bank holds; 0 where nothing was learned."""
    minutes: float
    """Time of training."""
    core_minutes: float
    """Time of training, summed over processors."""
    images_per_second: float
    """Pictures decomposed in a second, the start of the program included."""
    problems: list[str]
    """What failed, in the program's words."""


def write(pictures: Pictures, path: Path) -> Path:
    """Write pictures as files: a lossless film if the path is that of one, else a folder of numbered pictures."""
    if path.suffix == ".mp4":
        _write_film(pictures, path)
        return path
    path.mkdir()
    for number, image in enumerate(pictures.images):
        Image.fromarray(image).save(path / f"{number:04d}.{'tif' if image.dtype == np.uint16 else 'png'}")
    return path


def run(learn: Path, score: Path, count: int, folder: Path, seed: int, minutes: float | None = None) -> Outcome:
    """Learn from one file or folder, and decompose the `count` pictures of another; `minutes` are for trials only."""
    limit = [] if minutes is None else ["--minutes", str(minutes)]
    problems, started = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    train = ["train", "--data", str(learn), "--out", str(folder / "run"), "--seed", str(seed), *limit]
    taken, problem = _pcdnet(train, folder / "train.log")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
    problems += [problem] if problem else []
    seconds = 0.0
    if (folder / "run").is_dir():  # a training that is not content with itself leaves a run, too
        results = ["decompose", str(folder / "run"), str(score), "--out", str(folder / "results"), "--format", "json"]
        seconds, problem = _pcdnet(results, folder / "decompose.log")
        problems += [problem] if problem else []
    lines = folder / "results" / "decompositions.jsonl"
    return Outcome(
        found=read(lines.read_text(encoding="utf-8").splitlines() if lines.is_file() else [], count),
        prototypes=_prototypes(folder / "run"),
        minutes=taken / 60,
        core_minutes=busy / 60,
        images_per_second=count / seconds if seconds else 0.0,
        problems=problems,
    )


def read(lines: Sequence[str], count: int) -> list[Found]:
    """What was found in each of `count` pictures, by the number at the end of the picture's name."""
    things: list[list[dict[str, object]]] = [[] for _ in range(count)]
    for line in lines:
        record = json.loads(line)
        number = re.search(r"(\d+)(\.\w+)?$", record["name"])
        assert number is not None, f"{record['name']} has no number"
        things[int(number[1])] = [thing for thing in record["objects"] if thing["box"]]
    return [
        Found(
            boxes=np.array([thing["box"] for thing in found], dtype=float).reshape(-1, 4),
            kinds=[str(thing.get("kind", thing["prototype"])) for thing in found],
            prototypes=np.array([thing["prototype"] for thing in found], dtype=np.int64),
            depths=np.array([thing["depth"] for thing in found], dtype=np.int64),
        )
        for found in things
    ]


def _pcdnet(arguments: list[str], log: Path) -> tuple[float, str]:
    """Run a command; the seconds that it took, and its last words if it failed."""
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run([sys.executable, "-m", "pcdnet", *arguments], stdout=file, stderr=subprocess.STDOUT)
    taken = time.perf_counter() - start
    if not done.returncode:
        return taken, ""
    last = [line.strip() for line in log.read_text(encoding="utf-8").splitlines() if line.strip()][-1:]
    return taken, " ".join([f"{arguments[0]} ended with {done.returncode}:", *last])


def _prototypes(folder: Path) -> int:
    """How many prototypes the bank of a run holds."""
    from pcdnet import PcdnetError, load

    try:
        return len(load(folder).bank().masks)
    except PcdnetError:
        return 0


def _write_film(pictures: Pictures, path: Path) -> None:
    import av

    height, width = pictures.images[0].shape[:2]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264rgb", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = width, height, "rgb24"
        for image in pictures.images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
