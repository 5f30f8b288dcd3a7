"""The compiled depth order beside the tensors that are its reference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("numba", reason="loops are compiled by Numba, the extra `fast`")

from pcdnet.config import Background, ColourModule, ModelConfig
from pcdnet.model import compiled
from pcdnet.model.compiled.depth import consistent_order
from pcdnet.model.compiled.overlap import middle
from pcdnet.model.depth import consistent_order as reference_order
from pcdnet.model.depth import in_depth_order
from pcdnet.model.network import PCDNet
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from tests.model.models import random_model, tetromino_batch, true_model
from tests.oracle.scenes import random_bank, random_scene

COLOURS: list[ColourModule] = ["least_squares", "network", "none"]


def crowd(objects: int, channels: int, images: int = 6, **fields: Any) -> tuple[PCDNet, Tensor]:
    """A model of random prototypes, and noisy images that are crowded with them."""
    rng = torch.Generator().manual_seed(objects + channels)
    bank = random_bank(rng, 4, (12, 10), None, torch.float64)
    scenes = torch.stack([random_scene(rng, bank, (48, 40), channels, objects, 0.02) for _ in range(images)])
    config = ModelConfig(
        num_prototypes=4, prototype_size=(12, 10), max_objects=objects, channels=channels, min_error_reduction=0.1
    )
    return PCDNet.from_bank(bank, dataclasses.replace(config, **fields)).double().eval(), scenes


def greedy(model: PCDNet, images: Tensor) -> Placement:
    return model.explain(images, None, training=False, refined=False).placement


def shuffled(placement: Placement, seed: int) -> Placement:
    """The same objects in a random order, with gaps between them."""
    rng = torch.Generator().manual_seed(seed)
    order = torch.rand(placement.exists.shape, generator=rng).argsort(dim=1)
    image = torch.arange(len(order))[:, None]
    return Placement(*(getattr(placement, field.name)[image, order] for field in dataclasses.fields(Placement)))


def agree(model: PCDNet, images: Tensor, placement: Placement) -> int:
    """Both ways find the same; in how many images another order."""
    own = model.own_backgrounds(images)
    plan = model.plan((images.shape[2], images.shape[3]))
    behind = (plan.bank.behind(images[0])[None] if own is None else own).expand_as(images)
    with compiled.reference():
        expected = in_depth_order(images, behind, plan, placement)
    found = in_depth_order(images, behind, plan, placement)
    for name in ("prototype", "row", "column"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    for name in ("colour", "error_reduction", "advantage"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))
    return int((found.row != placement.row).any(dim=1).sum())


@torch.no_grad()
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("channels", [1, 3])
def test_crowds_come_into_the_order_of_the_reference(colour: ColourModule, channels: int) -> None:
    for objects in (4, 16):
        model, images = crowd(objects, channels, colour=colour)
        placement = greedy(crowd(objects, channels)[0], images)  # in colours that fit: an untrained network places none
        agree(model, images, placement)
        assert agree(model, images, shuffled(placement, objects)) > 0


@torch.no_grad()
@pytest.mark.parametrize("background", ["black", "still", "plain"])
@pytest.mark.parametrize("colour", COLOURS)
def test_so_do_objects_over_a_background(background: Background, colour: ColourModule) -> None:
    changed = 0
    for seed in range(3):
        model, images = random_model(seed, background=background, images=20, max_objects=6, colour=colour)
        model, images = model.double().eval(), images.double()
        placement = greedy(model, images)
        changed += agree(model, images, placement) + agree(model, images, shuffled(placement, seed))
    assert changed > 0


@torch.no_grad()
@pytest.mark.parametrize("max_colour", [0.5, 2.0])
def test_so_do_colours_within_any_limit(max_colour: float) -> None:
    model, images = crowd(8, 3, max_colour=max_colour)
    assert agree(model, images, shuffled(greedy(model, images), 1)) > 0


@torch.no_grad()
def test_so_do_tetrominoes() -> None:
    """In single precision: all pixels of theirs have one value, and medians fall between equal weights."""
    model, images = true_model().eval(), tetromino_batch(24, seed=3)
    placement = greedy(model, images)
    agree(model, images, placement)
    agree(model, images, shuffled(placement, 0))


@torch.no_grad()
def test_what_always_hides_objects_says_nothing() -> None:
    model, images = crowd(8, 3)
    shown = torch.ones(1, 1, *images.shape[2:], dtype=torch.float64)
    shown[..., 20:30, 8:32] = 0
    images = images * shown
    plan = SearchPlan.derive(model.weights().clamped(), (images.shape[2], images.shape[3]), model.config, shown)
    start = shuffled(greedy(model, images), 2)
    with compiled.reference():
        expected = in_depth_order(images, torch.zeros_like(images), plan, start)
    found = in_depth_order(images, torch.zeros_like(images), plan, start)
    assert torch.equal(found.row, expected.row)
    torch.testing.assert_close(found.colour, expected.colour)
    assert not torch.equal(found.row, start.row)


def test_edges_make_the_order_of_the_reference() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        slots = np.sort(rng.choice(9, rng.integers(1, 9), replace=False))
        pairs = [(a, b) for a in slots for b in slots if a < b and rng.random() < 0.6]
        edges = np.array([pair[:: rng.choice([-1, 1])] for pair in pairs], np.int64).reshape(-1, 2)
        strength = rng.integers(0, 4, len(edges)).astype(np.float64)
        known = [(int(front), int(back), float(by)) for (front, back), by in zip(edges, strength, strict=True)]
        elsewhere = np.concatenate([edges, [[10, 9], [9, 10]]])  # another group's
        found = consistent_order(slots, elsewhere, np.append(strength, [1.0, 2.0]))
        assert found.tolist() == reference_order(slots.tolist(), known)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_weighted_median_is_the_first_value_up_to_which_lies_half_of_the_weight(kind: type[np.floating]) -> None:
    rng = np.random.default_rng(1)
    for count in [1, 2, 3, 4, 10, 101, 400]:
        for distinct in (2, 5, 1000):
            values = rng.integers(0, distinct, count).astype(kind)
            weights = rng.integers(1, 4, count).astype(kind)
            order = np.argsort(values)
            expected = values[order][np.searchsorted(weights[order].cumsum(), weights.sum() / 2)]
            assert middle(values.copy(), weights.copy(), count) == expected
