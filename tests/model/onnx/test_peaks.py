"""A file tries the places that the model tries."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers

from pcdnet.config import Localization, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx.graph import FLOAT, Graph
from pcdnet.model.onnx.peaks import propose
from pcdnet.model.peaks import top_peaks
from tests.model.onnx.models import FRAME, SIZE, agree, evaluate, random_model
from tests.oracle.scenes import random_bank, random_scene


@settings(max_examples=10, deadline=None, derandomize=True)  # a near tie, one day, would mean nothing
@given(down=integers(-3, 3), right=integers(-2, 2), seed=integers(0, 1000))
def test_prototypes_may_lie_anywhere_in_their_frames(down: int, right: int, seed: int) -> None:
    model, scenes = random_model(seed, 1)
    bank = model.bank()
    shifts = [(down, right), (0, 0), (-down, right), (down, -right)]
    # The masks' rims are cut, so that moving them wraps nothing around.
    inner = torch.zeros(FRAME)
    inner[3:-3, 2:-2] = 1
    moved = [
        torch.stack([torch.roll(x * inner, shift, (0, 1)) for x, shift in zip(part, shifts, strict=True)])
        for part in (bank.prototypes.detach(), bank.masks.detach())
    ]
    agree(PCDNet.from_bank(PrototypeBank(*moved), model.config), torch.stack(scenes[:5]))


@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
def test_more_peaks_than_places_are_no_harm(localization: Localization) -> None:
    rng = torch.Generator().manual_seed(0)
    bank = random_bank(rng, 2, (8, 8), None, torch.float32)
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(8, 8),
        max_objects=60,
        peaks_per_prototype=100,
        channels=1,
        overhang=0,
        localization=localization,
    )
    model = PCDNet.from_bank(bank, dataclasses.replace(config, restarts=0, depth_order=False))
    agree(model, torch.stack([random_scene(rng, bank, (9, 10), 1, 2, 0.02) for _ in range(3)]))


@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
def test_the_peaks_of_maps_are_those_of_the_model(localization: Localization, rng: torch.Generator) -> None:
    model, _ = random_model(0, localization=localization)
    plan = model.plan(SIZE)
    maps = torch.rand(2, 4, *plan.geometry.positions, generator=rng)
    graph = Graph()
    places = propose(graph.value(FLOAT, "maps"), 2, plan)
    row, column, exists = evaluate(graph, [places.row, places.column, places.exists], maps=maps.numpy())
    assert plan.localizer is not None
    height, *where = top_peaks(maps, 3, plan.localizer.reach)
    assert np.array_equal(exists, (height > -torch.inf).flatten(1))
    for ours, theirs in zip((row, column), where, strict=True):
        assert np.array_equal(ours[exists], theirs.flatten(1)[torch.from_numpy(exists)])
