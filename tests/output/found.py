"""Small decompositions, and a run that needed no training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from pcdnet.config import Config
from pcdnet.data.tetrominoes import true_prototypes
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.record import Record, Results, records
from pcdnet.run import Origin, RunFolder

NAMES = Names(count=4, given={1: "L", 3: 'odd, "<b>" été'})


def random_decomposition(rng: np.random.Generator, size: tuple[int, int] = (9, 12), channels: int = 3) -> Decomposition:
    """Up to five objects in random pixels; the last is hidden if there are any."""
    count = int(rng.integers(0, 6))
    return Decomposition(
        prototype_ids=rng.integers(0, 4, count).astype(np.int32),
        positions=rng.integers(-3, 9, (count, 2)).astype(np.int32),
        colours=rng.random((count, channels)).astype(np.float32),
        error_reductions=rng.random(count).astype(np.float32),
        instances=rng.integers(0, max(1, count), size).astype(np.int32),
        reconstruction=rng.random((*size, channels)).astype(np.float32),
        error=float(rng.random()),
    )


def random_records(count: int, seed: int = 0, channels: int = 3) -> tuple[list[Decomposition], list[Record]]:
    """Some decompositions with the records that they make."""
    rng = np.random.default_rng(seed)
    found = [random_decomposition(rng, channels=channels) for _ in range(count)]
    return found, records(found, [f"image-{n}" for n in range(count)])


def results(made: list[Record], channels: int = 3) -> Results:
    """Records with the names of their prototypes, as formats take them."""
    return Results(made, NAMES, channels)


def true_run(folder: Path) -> RunFolder:
    """A run with the true prototypes of Tetrominoes."""
    config = Config.preset("tetrominoes")
    bank = PrototypeBank(*map(torch.from_numpy, true_prototypes()))
    run = RunFolder.create(folder, config, Origin(data="tetrominoes"))
    run.save_weights(PCDNet.from_bank(bank, config.model))
    return run
