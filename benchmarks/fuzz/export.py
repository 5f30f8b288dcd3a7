"""Export: models of any configuration as ONNX files, for images and batches of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from benchmarks.fuzz.target import Reader, Target
from pcdnet.config import Config
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import to_onnx

SMALL: dict[str, Any] = {"num_prototypes": 2, "prototype_size": [5, 6], "max_objects": 2, "peaks_per_prototype": 2}
SIZES = (-1, 0, 1, 2, 3, 5, 6, 7, 13, 24, 31, 64, 2048, 2049, 2**31, 10**30)
FIELDS: dict[str, tuple[Any, ...]] = {
    "num_prototypes": (1, 2, 3),
    "prototype_size": ([2, 2], [5, 6], [7, 3], [40, 40]),
    "max_objects": (1, 2, 4),
    "peaks_per_prototype": (1, 3, 50, 100_000),
    "channels": (1, 3),
    "localization": ("phase", "error_reduction"),
    "template": ("painted", "prototype"),
    "labels": ("mask", "change"),
    "colour": ("least_squares", "network", "none"),
    "background": ("black", "still", "plain", "moving"),
    "rounds": (1, 2),
    "max_unexplained": (1.0, 0.5),
    "min_error_reduction": (0.0, 1e-300, 1.0, 1e9),
    "overhang": (0.0, 0.5, 0.999999),
    "max_colour": (1e-300, 1.5, 1e9),
    "min_visible": (0.0, 0.5, 1.0),
    "min_solid": (0.0, 0.5, 1.0),
    "min_inside": (0.0, 0.5, 1.0),
    "sparse_training": (True, False),
}
"""Values of fields that a file can be asked for with."""


def mutate(content: bytes, rng: Random) -> bytes:
    """Change the size, the batch or some fields."""
    asked = json.loads(content)
    for _ in range(rng.randrange(1, 4)):
        match rng.randrange(6):
            case 0:
                asked["size"][rng.randrange(2)] = rng.choice(SIZES)
            case 1:
                asked["batch"] = rng.choice((-1, 0, 1, 2, 3, 1000, 2**31, 10**30))
            case _:
                name = rng.choice(sorted(FIELDS))
                asked["model"][name] = rng.choice(FIELDS[name])
    return json.dumps(asked).encode()


def seeds() -> Sequence[bytes]:
    """A small model with each way to choose colours."""
    ways = ("least_squares", "network", "none")
    return [json.dumps({"size": [13, 12], "batch": 2, "model": {**SMALL, "colour": way}}).encode() for way in ways]


def prepare(_: Path) -> Reader:
    """Write the file, but not to a disk."""

    def read(content: bytes) -> None:
        asked = json.loads(content)
        config = Config.from_tables({"model": asked["model"]}, "the input").model
        height, width = asked["size"]
        torch.manual_seed(0)
        model = PCDNet(config, (height, width) if min(height, width) > 0 and max(height, width) < 100 else None)
        to_onnx(model, (height, width), asked["batch"])

    return read


EXPORT = Target(name="onnx", seeds=seeds, mutate=mutate, prepare=prepare, megabytes=2500, seconds=60)
