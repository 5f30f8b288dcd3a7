"""Laws of the noise."""

from __future__ import annotations

import dataclasses

import torch

from pcdnet.config import ModelConfig, TrainConfig
from pcdnet.model.network import PCDNet
from pcdnet.training.noise import noisy_bank

MODEL = ModelConfig(num_prototypes=200, prototype_size=(6, 6))
TRAIN = TrainConfig(noise_steps=10, mask_noise_until=0.5)


def test_most_prototypes_get_noise_in_the_first_steps_and_none_later(rng: torch.Generator) -> None:
    model = PCDNet(MODEL)
    early, late = noisy_bank(model, TRAIN, 9, 0.0, rng), noisy_bank(model, TRAIN, 10, 0.9, rng)
    changed = (early.prototypes != model.bank().prototypes).any(dim=2).any(dim=1).float().mean().item()
    assert 0.7 < changed < 0.9
    assert torch.equal(late.prototypes, model.bank().prototypes)


def test_masks_get_noise_until_their_share_is_over(rng: torch.Generator) -> None:
    model = PCDNet(MODEL)
    assert not torch.equal(noisy_bank(model, TRAIN, 500, 0.49, rng).masks, model.bank().masks)
    assert torch.equal(noisy_bank(model, TRAIN, 500, 0.5, rng).masks, model.bank().masks)


def test_noise_stays_in_its_width(rng: torch.Generator) -> None:
    model = PCDNet(MODEL)
    masks = noisy_bank(model, dataclasses.replace(TRAIN, mask_noise=0.2), 0, 0.0, rng).masks
    assert masks.min() >= 0.3
    assert masks.max() < 0.7
    assert 0.49 < masks.mean() < 0.51


def test_the_same_generator_gives_the_same_noise() -> None:
    model = PCDNet(MODEL)
    first, second = (noisy_bank(model, TRAIN, 0, 0.0, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first.prototypes, second.prototypes)
    assert torch.equal(first.masks, second.masks)


def test_gradients_pass_through_the_noise(rng: torch.Generator) -> None:
    model = PCDNet(MODEL)
    bank = noisy_bank(model, TRAIN, 0, 0.0, rng)
    (bank.prototypes.sum() + bank.masks.sum()).backward()  # type: ignore[no-untyped-call]
    assert model.prototypes.grad is not None
    assert model.masks.grad is not None
    assert (model.masks.grad > 0).all()
