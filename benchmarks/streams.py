"""Streams: training from shards on disk beside training from memory: images a second, and the memory that it takes.

usage: python -m benchmarks.streams [--images N] [--steps S] [--repeats R]

So many scenes of Tetrominoes are written as WebDataset shards of PNG files. Each training is a process of its own: it
opens the shards and trains with the preset `tetrominoes`, once as users do, so that the pixels are read from a file
while it trains, and once with all of them in memory. Both run by turns, and must end with the same weights. The first
training also decodes the shards, the others find them decoded. Memory is the largest resident set that the system saw.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.provenance import ROOT, Start
from pcdnet.config import Config
from pcdnet.data import tetrominoes

PER_SHARD = 10_000
"""Pictures in a shard."""
WARM = 10
"""Steps that are not counted."""


def write_shards(folder: Path, count: int) -> None:
    """Generated scenes as PNG files in shards."""
    for first in range(0, count, PER_SHARD):
        scenes = tetrominoes.generate(min(PER_SHARD, count - first), 7_000_000 + first)
        with tarfile.open(folder / f"scenes-{first // PER_SHARD:04}.tar", "w") as archive:
            for number, image in enumerate(np.asarray(scenes.images), start=first):
                content = io.BytesIO()
                Image.fromarray(image).save(content, "PNG", compress_level=1)
                member = tarfile.TarInfo(f"{number:08}.png")
                member.size = len(content.getvalue())
                archive.addfile(member, io.BytesIO(content.getvalue()))


def train(data: str, steps: int) -> dict[str, Any]:
    """Train in this process; what it took."""
    import pcdnet
    from pcdnet.training.loop import Progress

    seen: list[Progress] = []
    worked: list[float] = []

    def watch(progress: Progress) -> None:
        # The first steps may have to compile, and the validation at the end is the same for both, and long.
        if progress.validation is None and (progress.step >= WARM or not seen):
            seen.append(progress)
            worked.append(time.process_time())

    changes = {"train.steps": steps, "train.validate_every": steps, "model.restarts": 0}
    start = time.perf_counter()
    model = pcdnet.fit(data, "tetrominoes", changes=changes, quiet=True, watch=watch)
    whole = time.perf_counter() - start
    images = (seen[-1].step - seen[0].step) * Config.preset("tetrominoes").train.batch
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in model.state_dict().values()))
    return {
        "images": images,
        "images_per_second": images / (seen[-1].seconds - seen[0].seconds),
        "images_per_processor_second": images / (worked[-1] - worked[0]),
        "seconds_in_all": whole,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "weights": digest.hexdigest(),
    }


def apart(data: Path, cache: Path, steps: int, memory: int | None) -> dict[str, Any]:
    """Train in a process of its own, with so many MiB of pixels in memory at most."""
    environment = {**os.environ, "PCDNET_CACHE": str(cache)}
    environment |= {} if memory is None else {"PCDNET_MAX_MEMORY": str(memory)}
    command = [sys.executable, "-m", "benchmarks.streams", "--train", str(data), "--steps", str(steps)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{'from a file' if memory is None else 'from memory'}: {found}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, and print one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        print(json.dumps(train(asked.train, asked.steps)))
        return
    begun = Start.now()
    with tempfile.TemporaryDirectory() as place:
        data, cache = Path(place) / "shards", Path(place) / "cache"
        data.mkdir()
        start = time.perf_counter()
        write_shards(data, asked.images)
        written = time.perf_counter() - start
        print(f"wrote {asked.images} pictures in {written:.0f} s", file=sys.stderr, flush=True)
        decoding = apart(data, cache, 2 * WARM, None)
        pairs = [
            (apart(data, cache, asked.steps, None), apart(data, cache, asked.steps, 8192)) for _ in range(asked.repeats)
        ]
    streamed, held = zip(*pairs, strict=True)
    speeds, works = (
        [statistics.median(one[f"images_per_{what}second"] for one in each) for each in (streamed, held)]
        for what in ("", "processor_")
    )
    begun.close(
        {
            "benchmark": "streams",
            "images": asked.images,
            "steps": asked.steps,
            "repeats": asked.repeats,
            "streamed_images_per_second": round(speeds[0]),
            "memory_images_per_second": round(speeds[1]),
            "ratio": round(speeds[0] / speeds[1], 3),
            "streamed_images_per_processor_second": round(works[0]),
            "memory_images_per_processor_second": round(works[1]),
            "processor_ratio": round(works[0] / works[1], 3),
            "streamed_peak_mib": round(max(one["peak_mib"] for one in (decoding, *streamed))),
            "memory_peak_mib": round(max(one["peak_mib"] for one in held)),
            "seconds_with_decoding": round(decoding["seconds_in_all"], 1),
            "seconds_without_decoding": round(min(one["seconds_in_all"] for one in streamed), 1),
            "same_weights": len({one["weights"] for one in (*streamed, *held)}) == 1,
        }
    )


if __name__ == "__main__":
    main()
