"""Training on a device that is not there, step by step as on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from pcdnet.config import Config
from pcdnet.model import compiled
from pcdnet.training.loop import Progress, Trainer
from tests.model.pretended import pretended
from tests.training.test_loop import SMALL, scenes

STEPS = 3
WAITS_A_STEP = 60
"""How often the host waits in one step of training at most."""


def trained(config: Config, device: str) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The losses of a short training, and the weights at its end."""
    losses: list[float] = []

    def watch(progress: Progress) -> None:
        losses.append(progress.loss)

    trainer = Trainer(scenes(16), scenes(4, seed=1), config, None, torch.device(device), None)
    trainer.begin()
    trainer.train(watch, lambda: False)
    return losses, {name: value.detach() for name, value in trainer.finished().state_dict().items()}


@pytest.mark.parametrize("colour", ["least_squares", "network"])
@pytest.mark.parametrize("background", ["black", "still"])
def test_a_device_learns_what_the_cpu_learns(colour: Any, background: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcdnet.training.loop.REPORT_SECONDS", 0)
    monkeypatch.setattr("pcdnet.training.loop.FIRST_RESET", 1)
    model = dataclasses.replace(SMALL.model, colour=colour, background=background)
    train = dataclasses.replace(SMALL.train, steps=STEPS, batch=4, validate_every=2, reset_every=2)
    config = dataclasses.replace(SMALL, model=model, train=train)
    with compiled.reference():
        expected, weights = trained(config, "cpu")
    with pretended() as device:
        losses, there = trained(config, "cuda")
        assert all(device.has(value) for value in there.values() if value.ndim)
        assert device.count <= (STEPS + 3) * WAITS_A_STEP, device.waits  # two validations, each of them as a step
    assert losses == pytest.approx(expected, rel=1e-4)
    for name, value in weights.items():
        torch.testing.assert_close(there[name], value, rtol=1e-3, atol=1e-4)
