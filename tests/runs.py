"""Runs that need no training, for the tests of whatever works with a run."""

from __future__ import annotations

from pathlib import Path

import torch

from pcdnet.config import Config, ModelConfig
from pcdnet.data.tetrominoes import true_prototypes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.origin import Origin
from pcdnet.run import RunFolder

ENDED = (0, 3)
"""The exit codes of a training that came to its end, whatever it is worth: those of a few steps are worth little."""
GREY = ModelConfig(
    num_prototypes=2, prototype_size=(5, 5), max_objects=2, peaks_per_prototype=2, channels=1, background="still"
)
"""A small grey model with a background."""


def true_run(folder: Path, origin: Origin | None = None) -> RunFolder:
    """A run with the true prototypes of Tetrominoes, by default as if trained on generated ones."""
    prototypes, masks = true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    return run_of(folder, bank, Config.preset("tetrominoes"), origin or Origin(data="tetrominoes"))


def grey_run(folder: Path, brightness: float = 1.0) -> RunFolder:
    """A grey run with a background of 20x30 and two unlike prototypes; its images were given in Python."""
    shapes = brightness * torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(0))
    bank = PrototypeBank(shapes, torch.ones(2, 5, 5), torch.full((1, 20, 30), 0.2))
    return run_of(folder, bank, Config(model=GREY), Origin())


def run_of(folder: Path, bank: PrototypeBank, config: Config, origin: Origin) -> RunFolder:
    """A run that holds a given bank."""
    run = RunFolder.create(folder, config, origin)
    run.save_weights(PCDNet.from_bank(bank, config.model))
    return run
