"""Noise that keeps a few prototypes from being chosen always, and masks from staying grey."""

from __future__ import annotations

import torch
from torch import Tensor

from pcdnet.config import TrainConfig
from pcdnet.model.bank import PrototypeBank, soft_clamp
from pcdnet.model.network import PCDNet


def noisy_bank(model: PCDNet, config: TrainConfig, step: int, share: float, rng: torch.Generator) -> PrototypeBank:
    """The model's bank as it is painted in a training step: noise first, then the soft clamp.

    Prototypes get theirs in the first iterations, so that all of them are tried. Masks get it for most of the time: a
    mask withstands noise only where it is well above 1 or below 0, and so it becomes crisp. `share` is how much of the
    training is over.
    """
    prototypes: Tensor = model.prototypes
    masks: Tensor = model.masks
    if step < config.noise_steps and config.noise > 0:
        chosen = torch.rand(len(prototypes), 1, 1, generator=rng) < config.noise_probability
        prototypes = prototypes + (_uniform(prototypes, config.noise, rng) * chosen).to(prototypes)
    if share < config.mask_noise_until and config.mask_noise > 0:
        masks = masks + _uniform(masks, config.mask_noise, rng).to(masks)
    return PrototypeBank(prototypes, masks, model.background).map(soft_clamp)


def _uniform(like: Tensor, half: float, rng: torch.Generator) -> Tensor:
    """Noise in [-half, half), from the CPU's generator on every device: the same seed, the same noise."""
    return half * (2 * torch.rand(like.shape, generator=rng) - 1)
