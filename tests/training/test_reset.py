"""Laws of the bank's health."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pcdnet.config import Config, ModelConfig, TrainConfig
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.reset import Health, centre, likeness, reset_prototypes


def model_of(prototypes: torch.Tensor, masks: torch.Tensor) -> tuple[PCDNet, torch.optim.Adam]:
    model = PCDNet.from_bank(PrototypeBank(prototypes, masks), Config.preset("tetrominoes").model).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return model, optimizer


def true_bank() -> tuple[torch.Tensor, torch.Tensor]:
    prototypes, masks = tetrominoes.true_prototypes()
    return torch.from_numpy(prototypes), torch.from_numpy(masks)


def observed(model: PCDNet, batches: int = 30) -> Health:
    health = Health.start(19)
    for batch in range(batches):
        images = torch.from_numpy(tetrominoes.generate(64, seed=batch).images).permute(0, 3, 1, 2) / 255
        with torch.no_grad():
            health.observe(images, model(images))
    return health


def test_a_sound_bank_is_left_alone(rng: torch.Generator) -> None:
    model, optimizer = model_of(*true_bank())
    health = observed(model)
    assert reset_prototypes(model, optimizer, health, TrainConfig(), 1000, rng) == []
    assert health.in_use() == 19
    assert health.value.min() > 10
    assert health.error.max() < 5


def test_a_shape_that_was_lost_to_a_twin_is_won_back_from_it(rng: torch.Generator) -> None:
    """Prototype 3 doubles prototype 4, and what 3 stood for is missing: one of the two is split off to learn it."""
    prototypes, masks = true_bank()
    prototypes[3], masks[3] = prototypes[4], masks[4]
    model, optimizer = model_of(prototypes, masks)
    health = observed(model)
    assert int(health.value.argmin()) in (3, 4)
    events = reset_prototypes(model, optimizer, health, TrainConfig(), 1000, rng)
    assert [event.kind for event in events] == ["split"]
    assert events[0].prototype in (3, 4)
    assert events[0].source not in (3, 4)
    copy, source = model.prototypes[events[0].prototype], model.prototypes[events[0].source]
    assert not torch.equal(copy, source)
    assert (copy - source).abs().max() <= 0.3


def test_a_prototype_that_nobody_chooses_is_worth_nothing() -> None:
    prototypes, masks = true_bank()
    prototypes[7], masks[7] = torch.rand(25, 25, generator=torch.Generator().manual_seed(1)), 1.0
    model, _ = model_of(prototypes, masks)
    health = observed(model, batches=60)
    assert int(health.usage.argmin()) == 7
    assert int(health.value.argmin()) == 7
    assert health.in_use() == 18


def test_what_was_just_split_is_given_time(rng: torch.Generator) -> None:
    prototypes, masks = true_bank()
    prototypes[3], masks[3] = prototypes[4], masks[4]
    model, optimizer = model_of(prototypes, masks)
    health = observed(model)
    health.changed[:] = 990
    assert reset_prototypes(model, optimizer, health, TrainConfig(reset_every=50), 1000, rng) == []


def test_centring_moves_a_prototype_and_what_the_optimizer_knows_of_it() -> None:
    prototypes, masks = true_bank()
    model, optimizer = model_of(prototypes.roll((2, -3), (1, 2)), masks.roll((2, -3), (1, 2)))
    moments = optimizer.state[model.prototypes]["exp_avg"]
    moments.copy_(model.prototypes.detach())
    moved = centre(model, optimizer)
    assert moved == [p for p in range(19) if p not in (0, 1)] or len(moved) == 19
    square = 18
    assert torch.equal(model.prototypes[square], prototypes[square])
    assert torch.equal(model.masks[square], masks[square])
    assert torch.equal(moments[square], prototypes[square])
    assert centre(model, optimizer) == []


def test_of_a_prototype_from_rim_to_rim_the_largest_part_is_centred() -> None:
    """A slice of the next thing at the other rim would keep it off the centre for ever."""
    prototypes, masks = true_bank()
    square = 18
    prototypes[square], masks[square] = prototypes[square].roll(8, 0), masks[square].roll(8, 0)
    prototypes[square, :2, 8:12], masks[square, :2, 8:12] = 1.0, 1.0
    model, optimizer = model_of(prototypes, masks)
    assert square not in centre(model, optimizer)
    assert square in centre(model, optimizer, by_parts=True)
    true = true_bank()
    assert torch.equal(model.prototypes[square, 7:18], true[0][square, 7:18])
    assert square not in centre(model, optimizer, by_parts=True)


def test_a_shape_is_like_itself_wherever_it_lies_in_its_frame() -> None:
    prototypes, masks = true_bank()
    square = prototypes[18:19]
    bank = PrototypeBank(
        torch.cat([square, square.roll((5, -4), (1, 2)), prototypes[:1]]),
        torch.cat([masks[18:19], masks[18:19].roll((5, -4), (1, 2)), masks[:1]]),
    )
    alike = likeness(bank)
    torch.testing.assert_close(alike.diagonal(), torch.ones(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(alike[0, 1].item(), 1.0, atol=1e-4, rtol=0)
    assert alike[0, 2] < 0.8


def test_likeness_is_that_of_the_best_pose_where_a_model_has_poses() -> None:
    frame = torch.zeros(3, 15, 15)
    frame[0, 3:12, 5:8] = frame[0, 9:12, 5:11] = 1
    frame[1], frame[2] = frame[0].rot90(), frame[0].flip(1)
    bank = PrototypeBank(frame, frame)
    turned = ModelConfig(num_prototypes=3, prototype_size=(15, 15), rotations=4, fine_poses=False)
    assert likeness(bank)[0, 1] < 0.95
    assert likeness(bank, turned)[0, 1].item() == pytest.approx(1, abs=1e-4)
    assert likeness(bank, turned)[0, 2] < 0.95
    assert likeness(bank, dataclasses.replace(turned, mirror=True))[0, 2].item() == pytest.approx(1, abs=1e-4)
