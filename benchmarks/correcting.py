"""Correcting: a model that confuses and misses kinds is put right by drawn boxes and a merge, and learned again.

usage: python -m benchmarks.correcting [seeds]

Six kinds of signs lie on paper. The model has one kind twice, two kinds as one blur, and one not at all. What a person
would do in the browser is asked of a server: a box around a sign of each kind that is missing or blurred, the blur
removed, the two copies merged; then it learns again for a minute, and what it learned is adopted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from jaxtyping import Float, Float64
from scipy.ndimage import shift

from benchmarks.own.icons import apart, painted
from benchmarks.own.pictures import Pictures, sign
from benchmarks.provenance import Start
from benchmarks.serving import Process, served
from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.metrics import box_iou
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.origin import Origin
from pcdnet.run import RunFolder, load
from pcdnet.training.initialization import SURE

KINDS = "♚♠★♣♜♥"
"""The signs; the first is there twice, the next two are one blur, and the last is missing."""
SIDE, SIZE, FRAME = 96, 22, 28
"""Pixels of a picture's side, of a sign's height in its font, and of a prototype's frame."""
PICTURES, HELD_OUT = 300, 100
"""Pictures that the run learned from and learns from again, and others that it is scored on."""
MINUTES = 1.0
LEAST_IOU = 0.5
CONFIG = Config(
    model=ModelConfig(
        num_prototypes=5,
        prototype_size=(FRAME, FRAME),
        localization="error_reduction",
        max_objects=9,
        peaks_per_prototype=9,
        background="plain",
        min_error_reduction=13.0,
        restarts=3,
        rounds=2,
        max_colour=3.0,
        min_visible=0.5,
        min_solid=0.4,
    ),
    loss=LossConfig(tv=0.01),
    train=TrainConfig(
        steps=200, batch=17, learning_rate=0.005, init="shapes", noise_steps=0, mask_noise=0.3, settle=True
    ),
)
"""What is chosen from such pictures where nobody says anything, but for the bank."""


def make(count: int, seed: int) -> Pictures:
    """Pictures of three to six signs that keep apart."""
    seeds = (np.random.default_rng([seed, n]) for n in range(count))
    made = [painted(apart(rng, KINDS, int(rng.integers(3, 7)), SIZE, (SIDE, SIDE)), (SIDE, SIDE)) for rng in seeds]
    return Pictures(images=[image for image, _ in made], ground_truth=[true for _, true in made], kinds=tuple(KINDS))


def wrong_bank(seed: int) -> tuple[PrototypeBank, dict[int, str]]:
    """A bank that has one kind twice, two as one blur, two right and one not at all; and what a person calls them."""
    rng = np.random.default_rng(seed)
    first, second, third, fourth, fifth, _ = (_framed(sign(kind, SIZE).alpha) for kind in KINDS)
    # Copies as training leaves them: of one kind, but one is a little bolder, and each explains some of its objects.
    alphas = [first, np.clip(1.15 * shift(first, (0, 0.4), order=1), 0, 1), (second + third) / 2, fourth, fifth]
    masks = np.clip(np.stack(alphas) + 0.03 * rng.standard_normal((5, FRAME, FRAME)), 0, 1)
    paint = torch.from_numpy(np.where(masks > 0.1, 1.0, 0.0).astype(np.float32))
    raw = torch.from_numpy(masks.astype(np.float32)) * (2 * SURE - 1) + (1 - SURE)
    return PrototypeBank(paint, raw), {0: KINDS[0], 2: KINDS[1], 3: KINDS[3], 4: KINDS[4]}


def make_run(folder: Path, pictures: Pictures, seed: int) -> RunFolder:
    """A run of that bank, on pictures in a file beside it."""
    images = np.stack(pictures.images)
    data = folder / "pictures.npz"
    np.savez(data, image=images)
    bank, names = wrong_bank(seed)
    run = RunFolder.create(folder / "run", CONFIG, Origin(data=str(data), size=(SIDE, SIDE)))
    run.save_weights(PCDNet.from_bank(bank, CONFIG.model))
    run.keep_names(Names(count=len(bank.masks), given=names))
    return run


def f1(folder: Path, pictures: Pictures) -> float:
    """F1 by place and kind: a find counts where its box and its name are those of a sign."""
    model = load(folder)
    names, right, found, true = list(model.names), 0, 0, 0
    for one, truth in zip(model.decompose_all(np.stack(pictures.images)), pictures.ground_truth, strict=True):
        things = [thing for thing in one.objects if thing.box is not None]
        overlap = _overlap([thing.box for thing in things if thing.box is not None], truth.boxes)
        same = np.array([[names[thing.prototype] == pictures.kinds[kind] for kind in truth.kinds] for thing in things])
        overlap = overlap * same.reshape(overlap.shape)
        found, true = found + len(things), true + len(truth)
        while overlap.size and overlap.max() >= LEAST_IOU:
            n, k = np.unravel_index(overlap.argmax(), overlap.shape)
            overlap[n], overlap[:, k], right = 0, 0, right + 1
    return 2 * right / max(found + true, 1)


def corrected(process: Process, pictures: Pictures) -> float:
    """Do what a person would do, by the server's routes; the seconds that learning again took."""
    with httpx.Client(base_url=process.site, timeout=120) as client:
        corrections(client, pictures)
        start = time.perf_counter()
        client.post("/api/learning", json={"minutes": MINUTES}).raise_for_status()
        while (told := client.get("/api/learning").raise_for_status().json())["state"] == "running":
            time.sleep(0.5)
        seconds = time.perf_counter() - start
        if told["state"] != "done":
            raise RuntimeError(f"learning again ended as {told['state']}: {told['message']}")
        client.post("/api/learning/adopt").raise_for_status()
    return seconds


def corrections(client: httpx.Client, pictures: Pictures) -> None:
    """What is wrong, as a person shows it."""
    for kind in (1, 2, 5):
        number, box = example(pictures, kind)
        message = {"picture": number, "box": box, "name": KINDS[kind]}
        client.post("/api/corrections", json=message).raise_for_status()
    client.post("/api/corrections", json={"remove": 2}).raise_for_status()
    client.put("/api/kinds", json={"prototypes": [0, 1], "name": KINDS[0]}).raise_for_status()


def correct_one(seed: int) -> dict[str, Any]:
    """One seed: how good the run was, how long it took, and how good it is then."""
    pictures, held_out = make(PICTURES, seed), make(HELD_OUT, seed + 1000)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), pictures, seed)
        before = f1(run.path, held_out)
        with served(run.path) as process:
            seconds = corrected(process, pictures)
        return {"seed": seed, "f1_before": before, "f1_after": f1(run.path, held_out), "seconds": seconds}


def example(pictures: Pictures, kind: int) -> tuple[int, list[int]]:
    """A picture with a sign of a kind that lies apart from the border, and a box around it with a pixel to spare."""
    for number, true in enumerate(pictures.ground_truth):
        for box in true.boxes[true.kinds == kind].astype(int).tolist():
            top, left, height, width = box[0] - 1, box[1] - 1, box[2] + 2, box[3] + 2
            if min(top, left) >= 0 and top + height <= SIDE and left + width <= SIDE:
                return number, [top, left, height, width]
    raise RuntimeError(f"no picture shows {KINDS[kind]}")


def _framed(alpha: Float64[np.ndarray, "h w"]) -> Float64[np.ndarray, "H W"]:
    framed = np.zeros((FRAME, FRAME))
    top, left = (FRAME - alpha.shape[0]) // 2, (FRAME - alpha.shape[1]) // 2
    framed[top : top + alpha.shape[0], left : left + alpha.shape[1]] = alpha
    return framed


def _overlap(boxes: list[tuple[int, int, int, int]], true: Float[np.ndarray, "n 4"]) -> np.ndarray:
    return box_iou(np.array(boxes, np.float32).reshape(-1, 4), true.astype(np.float32))


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correcting", description=__doc__.splitlines()[0])
    parser.add_argument("seeds", nargs="*", type=int, default=[0, 1, 2], help="seeds of pictures and bank")
    return parser


def main() -> None:
    """Print a line a seed, then one JSON line."""
    start, rows = Start.now(), []
    for seed in parser().parse_args().seeds:
        rows.append(row := correct_one(seed))
        print(f"seed {seed}: F1 {row['f1_before']:.3f} -> {row['f1_after']:.3f} in {row['seconds']:.0f} s", flush=True)
    start.close({"benchmark": "correcting", "minutes": MINUTES, "rows": rows})


if __name__ == "__main__":
    main()
