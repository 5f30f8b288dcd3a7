"""Models and images that the tests of the model share."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from pcdnet.config import Background, Config, ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from tests.oracle.scenes import random_bank, random_scene, random_weights

SIZE, FRAME = (32, 28), (9, 8)
CONFIG = ModelConfig(
    num_prototypes=3, prototype_size=FRAME, max_objects=4, peaks_per_prototype=4, channels=3, min_error_reduction=0.2
)


def true_bank() -> PrototypeBank:
    """The true prototypes of Tetrominoes."""
    return PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes()))


def true_model(**changes: Any) -> PCDNet:
    """A model of the true prototypes of Tetrominoes."""
    return PCDNet.from_bank(true_bank(), dataclasses.replace(Config.preset("tetrominoes").model, **changes))


def tetromino_batch(count: int, seed: int) -> Tensor:
    """Generated Tetrominoes as the model takes them."""
    return torch.from_numpy(tetrominoes.generate(count, seed=seed).images).permute(0, 3, 1, 2) / 255


def random_batch(seed: int, count: int = 4) -> tuple[PrototypeBank, Tensor]:
    """Three random prototypes over black, and images of one to four objects of them."""
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 3, FRAME, None, torch.float32)
    return bank, torch.stack([random_scene(rng, bank, SIZE, 3, 1 + b % 4, 0.0) for b in range(count)])


def random_model(
    seed: int, *, background: Background = "black", images: int = 6, restarts: int = 0, **fields: Any
) -> tuple[PCDNet, Tensor]:
    """A small model of random prototypes, and noisy images of up to four objects that overlap and hang over borders."""
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 3, FRAME, (3, *SIZE) if background != "black" else None, torch.float32)
    scenes = torch.stack([random_scene(rng, bank, SIZE, 3, b % 5, 0.02) for b in range(images)])
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background=background, restarts=restarts, **fields))
    if model.colour is not None:
        random_weights(rng, model.colour)
        torch.nn.init.constant_(model.colour.head.bias, 0.6)  # untrained, but not so dim that nothing is chosen
    return model, scenes


def on_canvas(frame: Tensor, row: int, column: int, size: tuple[int, int]) -> Tensor:
    """A frame on an empty plane of an image's size; what hangs over the border is cut."""
    (h, w), (H, W) = frame.shape, size
    plane = frame.new_zeros(H + 2 * h, W + 2 * w)
    plane[row + h : row + 2 * h, column + w : column + 2 * w] = frame.detach()
    return plane[h : h + H, w : w + W]
