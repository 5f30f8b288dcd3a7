"""Cluster: many scenes decomposed by Ray with a worker killed on the way, by shards and by one process; the sizing.

usage: python -m benchmarks.cluster [--images N] [--seed S] [--sizing]

Images of Tetrominoes with the true prototypes. All three must write the same bytes. The speed is that of the clock, and
so of the machine's other work; the sizing table of docs/scale.md is from processor time.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tests.runs import true_run

from benchmarks.drilling.workers import killing, worker_pids
from benchmarks.large import true_model
from benchmarks.models import crowded, true_bank
from benchmarks.own import sheet
from benchmarks.provenance import Start
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.data.inputs import find_inputs
from pcdnet.model.network import PCDNet
from pcdnet.output.cluster import cluster
from pcdnet.output.dataset import save_scenes
from pcdnet.output.decompose import decompose_files
from pcdnet.output.gather import gather
from pcdnet.output.pieces import SMALLEST

FORMATS = "json,coco,csv,parquet"
FILES = ("decompositions.jsonl", "coco.json", "coco_results.json", "objects.csv", "objects.parquet")
"""What must be the same to the byte."""
TOGETHER = 1000
"""Scenes of a file."""
SHARDS = 3


def processor_seconds() -> float:
    """Processor time of this process, all of its threads included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def same(one: Path, other: Path) -> bool:
    """Whether two folders of results have the same bytes."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in FILES)


def scenes(folder: Path, count: int, seed: int) -> Path:
    """So many scenes in files of a thousand; a pattern of them."""
    folder.mkdir()
    for number, begin in enumerate(range(0, count, TOGETHER)):
        made = tetrominoes.generate(min(TOGETHER, count - begin), seed=seed + number)
        save_scenes(made, folder / f"{number:05}.npz")
    return folder / "*.npz"


def by_ray(run: Path, data: Path, out: Path, images: int, rng: np.random.Generator) -> dict[str, Any]:
    """Decompose with a worker killed once a third of the parts is there; what it took."""
    peak = [0.0]
    awaited = [0]

    def third() -> bool:
        parts = len(list((out / "parts").glob("part-*.parquet")))
        for pid in worker_pids() if parts and parts > awaited[0] else ():
            peak[0] = max(peak[0], peak_of(pid))
        awaited[0] = parts
        return parts >= images / SMALLEST / 3

    begin = time.perf_counter()
    with cluster() as ray:
        started, workers = time.perf_counter() - begin, int(ray.cluster_resources()["CPU"])
        with killing(third, rng) as killed:
            done = decompose_files(run, data, out, formats=FORMATS, engine="ray")
        begin, busy = time.perf_counter(), processor_seconds()
        again = decompose_files(run, data, out, formats="json", engine="ray", quiet=True)
        driver = processor_seconds() - busy
    return {
        "workers": workers,
        "killed": len(killed),
        "images": done.summary.images,
        "seconds": done.seconds,
        "images_per_second": done.fresh / done.seconds,
        "ray_start_seconds": started,
        "again_fresh": again.fresh,
        "again_seconds": time.perf_counter() - begin,
        "driver_processor_us_an_image": 1e6 * driver / done.summary.images,
        "worker_peak_mib": peak[0],
        "parts": len(list((out / "parts").iterdir())),
        "part_bytes_an_image": sum(path.stat().st_size for path in (out / "parts").iterdir()) / done.summary.images,
    }


def peak_of(pid: int) -> float:
    """The most memory that a process has held, in MiB; 0 where it has ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def sharded(run: Path, data: Path, folder: Path) -> Path:
    """The same by shards, gathered."""
    parts = [folder / f"part-{index}" for index in range(SHARDS)]
    for index, part in enumerate(parts):
        decompose_files(run, data, part, formats=FORMATS, shard=(index, SHARDS), quiet=True)
    gather(parts, folder / "gathered", quiet=True)
    return folder / "gathered"


def pace(model: PCDNet, data: Path, folder: Path, most: int) -> dict[str, float]:
    """Processor seconds of an image, from file to results, of the local engine; the first call compiles."""
    decompose_files(model, data, folder / "warm", quiet=True)
    begin = processor_seconds()
    done = decompose_files(model, data, folder / "out", quiet=True)
    spent = processor_seconds() - begin
    shutil.rmtree(folder)
    assert done.fresh == most
    return {
        "images": most,
        "objects_an_image": sum(done.summary.used) / most,
        "images_per_core_second": most / spent,
        "core_hours_a_billion": 1e9 * spent / most / 3600,
    }


def sizing(folder: Path) -> dict[str, dict[str, float]]:
    """What images of several kinds cost."""
    save_scenes(tetrominoes.generate(2000, seed=7), folder / "small.npz")
    true = PCDNet.from_bank(true_bank(), Config.preset("tetrominoes").model)
    found = {"tetrominoes 35x35": pace(true, folder / "small.npz", folder / "a", 2000)}
    model, images = crowded((185, 160), prototypes=12, peaks=20, objects=40, count=24, frame=16)
    pixels = (images.permute(0, 2, 3, 1).clamp(0, 1) * 255).round().byte().numpy()
    np.savez(folder / "middle.npz", image=pixels)
    found["random bank, 40 objects, 185x160"] = pace(model, folder / "middle.npz", folder / "b", 24)
    (folder / "large").mkdir()
    for number in range(2):
        drawn = sheet.make(number, 1000, sheet.COUNT // 4).images[0]  # as crowded as the sheet of 2000x2000
        Image.fromarray(drawn).convert("RGB").save(folder / "large" / f"{number}.png")
    found["symbols on paper 1000x1000"] = pace(true_model(), folder / "large", folder / "c", 2)
    return found


def listing(folder: Path, count: int = 20_000) -> dict[str, float]:
    """What a listed file costs the driver."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.png").touch()
    tracemalloc.start()
    busy = processor_seconds()
    inputs = find_inputs([str(folder)])
    held = tracemalloc.get_traced_memory()[0] / len(inputs)
    tracemalloc.stop()
    busy = processor_seconds()
    find_inputs([str(folder)])
    return {"bytes_a_file": held, "processor_us_a_file": 1e6 * (processor_seconds() - busy) / len(inputs)}


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=20_000, help="scenes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the scenes, and of whom is killed")
    parser.add_argument("--sizing", action="store_true", help="what images of several kinds cost, and nothing else")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON line; the exit code says whether all was as it must be."""
    start, asked = Start.now(), parser().parse_args(arguments)
    figures: dict[str, Any] = {"benchmark": "cluster"}
    with tempfile.TemporaryDirectory(prefix="pcdnet-") as name:
        if asked.sizing:
            figures |= {"sizing": sizing(Path(name)), "listing": listing(Path(name) / "many")}
        else:
            figures |= compared(Path(name), asked.images, asked.seed)
    start.close(figures)
    return int(not all(figures.get("held", {}).values()))


def compared(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Ray, shards and one process on the same scenes; `held` says what must be true of them."""
    run, data = true_run(folder / "run").path, scenes(folder / "scenes", images, seed)
    busy, begin = processor_seconds(), time.perf_counter()
    decompose_files(run, data, folder / "whole", formats=FORMATS)
    local = {"seconds": time.perf_counter() - begin, "processor_seconds": processor_seconds() - busy}
    ray = by_ray(run, data, folder / "ray", images, np.random.default_rng(seed))
    names = [line.partition('"name":"')[2].partition('"')[0] for line in lines_of(folder / "ray")]
    held = {
        "every_image_once": len(names) == len(set(names)) == images,
        "one_worker_killed": ray["killed"] == 1,
        "ray_as_local": same(folder / "whole", folder / "ray"),
        "nothing_done_again": ray["again_fresh"] == 0,
    }
    print(held, ray, file=sys.stderr, flush=True)
    held["shards_as_local"] = same(folder / "whole", sharded(run, data, folder))
    return {"images": images, "seed": seed, "held": held, "local": local, "ray": ray}


def lines_of(out: Path) -> list[str]:
    """The records of a folder of results, as text."""
    return (out / "decompositions.jsonl").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    raise SystemExit(main())
