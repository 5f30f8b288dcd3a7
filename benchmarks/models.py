"""Models and scenes for the benchmarks, at the sizes of the paper's data sets."""

from __future__ import annotations

import dataclasses

import torch
from tests.oracle.scenes import random_bank, random_scene
from torch import Tensor

from pcdnet.config import ColourModule, Config, ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet


def true_bank() -> PrototypeBank:
    """The true prototypes of Tetrominoes."""
    prototypes, masks = tetrominoes.true_prototypes()
    return PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))


def tetromino_images(count: int, seed: int) -> Tensor:
    """Re-created Tetrominoes as a batch."""
    return (torch.from_numpy(tetrominoes.generate(count, seed).images).permute(0, 3, 1, 2) / 255).contiguous()


def tetromino_model(colour: ColourModule) -> PCDNet:
    """The default model with the true prototypes; the colour network, if it has one, is fitted for a moment."""
    config = dataclasses.replace(Config.preset("tetrominoes").model, colour=colour)
    torch.manual_seed(0)
    model = PCDNet.from_bank(true_bank(), config)
    if model.colour is not None:
        fit_colours(model, steps=150)
    return model


def fit_colours(model: PCDNet, steps: int) -> None:
    """Train the colour network alone, for a model whose colours mean something."""
    assert model.colour is not None
    optimizer = torch.optim.Adam(model.colour.parameters(), lr=0.01)
    images = tetromino_images(640, seed=99)
    model.train()
    for step in range(steps):
        batch = images[step % 10 * 64 :][:64]
        optimizer.zero_grad()
        (model(batch).reconstruction - batch).square().mean().backward()
        optimizer.step()
    model.eval()


def crowded(
    side: tuple[int, int], prototypes: int, peaks: int, objects: int, count: int, frame: int = 20
) -> tuple[PCDNet, Tensor]:
    """A grey model of random prototypes with `count` images of `objects` objects."""
    rng = torch.Generator().manual_seed(0)
    bank = random_bank(rng, prototypes, (frame, frame), None, torch.float32)
    images = torch.stack([random_scene(rng, bank, side, 1, objects, 0.0) for _ in range(count)])
    config = ModelConfig(
        num_prototypes=prototypes,
        prototype_size=(frame, frame),
        max_objects=objects,
        peaks_per_prototype=peaks,
        channels=1,
        min_error_reduction=0.1,
    )
    return PCDNet.from_bank(bank, config), images
