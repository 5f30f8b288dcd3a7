"""Prototypes that are not needed go, and those that are stay."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from pcdnet.config import ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.training.settling import settle

IMAGES = tetrominoes.generate(60, seed=3).images


def model_with(*extra: tuple[np.ndarray, np.ndarray]) -> PCDNet:
    """The true prototypes of Tetrominoes, and further ones."""
    prototypes, masks = tetrominoes.true_prototypes()
    added = [np.stack(parts) for parts in zip(*extra, strict=True)] if extra else [prototypes[:0], masks[:0]]
    bank = PrototypeBank(
        torch.from_numpy(np.concatenate([prototypes, added[0]]).astype(np.float32)),
        torch.from_numpy(np.concatenate([masks, added[1]]).astype(np.float32)),
    )
    config = ModelConfig(num_prototypes=len(bank.prototypes), min_error_reduction=1.0, max_objects=4)
    return PCDNet.from_bank(bank, config)


def test_a_bank_of_different_shapes_is_left_alone() -> None:
    model = model_with()
    assert settle(model, IMAGES, 0.0).config.num_prototypes == 19


def test_copies_go_and_one_of_each_shape_stays() -> None:
    prototypes, masks = tetrominoes.true_prototypes()
    copies = [(np.clip(prototypes[p] + 0.01, 0, 1), masks[p]) for p in (0, 5, 5)]
    settled = settle(model_with(*copies), IMAGES, 0.0)
    assert settled.config.num_prototypes == 19
    errors = [found.error for found in settled.decompose_all(IMAGES)]
    assert np.mean(errors) < 1


def test_what_is_never_chosen_goes_and_names_follow() -> None:
    noise = np.random.default_rng(0).uniform(size=(25, 25)).astype(np.float32)
    model = model_with((noise, np.ones((25, 25), np.float32)))
    model.names, model.learned_size = Names(count=20, given={18: "last", 19: "noise"}), (35, 35)
    settled = settle(model, IMAGES, 0.0)
    assert settled.config.num_prototypes == 19
    assert settled.names.given == {18: "last"}
    assert settled.learned_size == (35, 35)


def test_settling_changes_nothing_in_the_model_that_it_is_given() -> None:
    model = model_with()
    before = dataclasses.replace(model.config), model.prototypes.detach().clone()
    settle(model, IMAGES[:20], 0.0)
    assert model.config == before[0]
    assert torch.equal(model.prototypes, before[1])
