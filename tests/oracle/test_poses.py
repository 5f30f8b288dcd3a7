"""The oracle of poses agrees with itself, with the resampling, and with what was painted."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import ANGLE, SCALE, CoarsePoses, pose_frame
from pcdnet.model.poses.resampling import resampled
from tests.oracle.equations import Oracle
from tests.oracle.poses import (
    Bank,
    Posed,
    derivatives,
    error,
    on_canvas,
    painted,
    picture_in_pose,
    posed,
    posed_bank,
    refined,
)
from tests.oracle.scenes import random_bank

CONFIGS = [
    ModelConfig(rotations=5, scales=2, scale_range=(0.7, 1.3), mirror=True),
    ModelConfig(rotations=4, rotation_range=(-30.0, 45.0), fine_poses=False),
    ModelConfig(mirror=True, fine_poses=False),
    ModelConfig(rotations=3, scales=3, scale_range=(0.5, 2.0), subpixel=True, fine_poses=False),
]
FREE = ModelConfig(channels=1, rotations=12, scales=3, scale_range=(0.7, 1.4))
SIZE = (31, 33)


@pytest.mark.parametrize("config", CONFIGS)
def test_the_literal_bank_agrees_with_the_resampling(config: ModelConfig, rng: torch.Generator) -> None:
    prototypes, masks = torch.rand(2, 2, 6, 5, generator=rng, dtype=torch.float64)
    poses, frame = CoarsePoses.of(config, masks).values, pose_frame((6, 5), config)
    for bank, variants in zip((prototypes, masks), posed_bank(prototypes, masks, config), strict=True):
        assert variants.shape == (2 * len(poses), *frame)
        for p in range(2):
            made = resampled(bank[p].expand(len(poses), 1, 6, 5), poses, frame)[:, 0]
            torch.testing.assert_close(variants[p * len(poses) : (p + 1) * len(poses)], made, atol=1e-12, rtol=0)


def test_pictures_in_any_pose_agree_with_the_resampling(rng: torch.Generator) -> None:
    pictures = torch.rand(30, 1, 7, 4, generator=rng, dtype=torch.float64)
    poses = torch.rand(30, 5, generator=rng, dtype=torch.float64) * torch.tensor([360, 1.5, 0, 4, 4])
    poses = poses.double() + torch.tensor([0, 0.3, 0, -2, -2])
    poses[::2, 2] = 1
    made = resampled(pictures, poses, (13, 14))[:, 0]
    literal = [picture_in_pose(x[0], pose, (13, 14)) for x, pose in zip(pictures, poses.tolist(), strict=True)]
    torch.testing.assert_close(torch.stack(literal), made, atol=1e-12, rtol=0)


def test_the_differentiable_canvas_agrees_with_the_loops(rng: torch.Generator) -> None:
    picture = torch.rand(6, 5, generator=rng, dtype=torch.float64)
    for mirrored in (False, True):
        thing = Posed(0, (10.3, 7.6), 37.0, math.log(1.3), mirrored, torch.ones(1))
        made = on_canvas(picture, thing, torch.tensor(thing.numbers, dtype=torch.float64), (21, 15))
        literal = picture_in_pose(picture, [37.0, 1.3, float(mirrored), 0.3, 0.6], (21, 15))
        torch.testing.assert_close(made, literal, atol=1e-12, rtol=0)


def scene(things: list[Posed], rng: torch.Generator) -> tuple[Tensor, Bank]:
    """The image that objects make, and what it is painted with."""
    bank = random_bank(rng, 2, (13, 11), None, torch.float64)
    # Smooth texture: between pixels of noise there is nothing to descend on.
    smooth = torch.nn.functional.avg_pool2d(bank.prototypes[:, None], 3, 1, 1, count_include_pad=False)[:, 0]
    painter = Bank(smooth, bank.masks, torch.full((1, *SIZE), 0.1, dtype=torch.float64))
    numbers = torch.tensor([thing.numbers for thing in things], dtype=torch.float64)
    return painted(numbers, things, painter), painter


def colour(value: float) -> Tensor:
    """Of a grey image."""
    return torch.tensor([value], dtype=torch.float64)


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_turned_scaled_and_moved_prototype_is_found_again(mirrored: bool, rng: torch.Generator) -> None:
    true = Posed(0, (15.3, 16.3), 7.0, math.log(1.05), mirrored, colour(0.8))
    image, bank = scene([true], rng)
    start = replace(true, middle=(15.0, 16.0), angle=0.0, log_scale=0.0, colour=colour(1.0))
    before = error(image, [start], bank)
    (found,), left = refined(image, [start], bank, FREE)
    assert left < 1e-6 * before
    assert found.numbers == pytest.approx(true.numbers, abs=1e-3)
    assert float(found.colour) == pytest.approx(0.8, abs=1e-4)


def test_objects_over_each_other_are_found_again(rng: torch.Generator) -> None:
    true = [
        Posed(0, (13.3, 13.8), 33.0, math.log(0.95), False, colour(0.9)),
        Posed(1, (17.6, 19.2), 124.0, math.log(1.1), True, colour(0.6)),
    ]
    image, bank = scene(true, rng)
    start = [
        replace(true[0], middle=(13.0, 14.0), angle=30.0, log_scale=0.0, colour=colour(1.0)),
        replace(true[1], middle=(18.0, 19.0), angle=120.0, log_scale=0.0, colour=colour(1.0)),
    ]
    found, left = refined(image, start, bank, FREE)
    assert left < 1e-6 * error(image, start, bank)
    for one, other in zip(found, true, strict=True):
        assert one.numbers == pytest.approx(other.numbers, abs=1e-2)


def test_what_may_not_turn_or_grow_only_moves(rng: torch.Generator) -> None:
    true = Posed(0, (15.3, 16.3), 0.0, 0.0, True, colour(0.8))
    image, bank = scene([true], rng)
    start = replace(true, middle=(15.0, 16.0))
    (found,), left = refined(image, [start], bank, ModelConfig(channels=1, mirror=True))
    assert found.numbers == pytest.approx(true.numbers, abs=1e-3)
    assert left < 1e-6 * error(image, [start], bank)
    (found,), _ = refined(
        image, [replace(start, angle=3.0, log_scale=0.02)], bank, ModelConfig(channels=1, mirror=True)
    )
    assert (found.angle, found.log_scale) == (3.0, 0.02)


def test_poses_stay_within_their_ranges(rng: torch.Generator) -> None:
    true = Posed(0, (15.3, 16.3), 7.0, math.log(1.05), False, colour(0.8))
    image, bank = scene([true], rng)
    start = replace(true, middle=(15.0, 16.0), angle=0.0, log_scale=0.0)
    narrow = replace(FREE, rotation_range=(-5.0, 5.0), scale_range=(0.8, 1.02))
    (found,), left = refined(image, [start], bank, narrow)
    assert 2 < found.angle <= 5
    assert math.exp(found.log_scale) <= 1.02 + 1e-9
    assert left < error(image, [start], bank)


def test_the_oracle_finds_variants_as_prototypes_in_poses(rng: torch.Generator) -> None:
    """Two objects in coarse poses: the equations, given all variants, name prototype, pose and place."""
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(7, 7),
        max_objects=2,
        peaks_per_prototype=1,
        channels=1,
        rotations=4,
        fine_poses=False,
        restarts=0,
        localization="error_reduction",
    )
    bank = random_bank(rng, 2, (7, 7), None, torch.float64)
    prototypes, masks = posed_bank(bank.prototypes, bank.masks, config)
    image, chosen = torch.zeros(1, 14, 18, dtype=torch.float64), ((1, 3, 2, 0.9), (0, 1, 9, 0.7))
    Y, X = masks.shape[-2:]
    for (p, r, column, value), row in zip(chosen, (3, 4), strict=True):
        window = image[:, row : row + Y, column : column + X]
        window += masks[p * 4 + r] * (value * prototypes[p * 4 + r] - window)
    oracle = Oracle(image, prototypes, masks, None, config)
    variants, picture = oracle.explain(refine=False)
    found = [posed(thing, (7, 7), config) for thing in variants]
    assert sorted((p, pose[ANGLE], pose[SCALE], row, column) for p, pose, row, column, _ in found) == [
        (0, 90.0, 1.0, 4 + (Y - 7) // 2, 9 + (X - 7) // 2),
        (1, 270.0, 1.0, 3 + (Y - 7) // 2, 2 + (X - 7) // 2),
    ]
    things = [Posed.of(thing, (7, 7)) for thing in found]
    assert error(picture, things, Bank(bank.prototypes, bank.masks, torch.zeros_like(image))) < 1e-20


def test_derivatives_are_those_of_plain_differentiation(rng: torch.Generator) -> None:
    thing = Posed(0, (15.3, 16.3), 7.0, math.log(1.05), False, colour(0.8))
    image, bank = scene([thing], rng)
    numbers = torch.tensor([thing.numbers], dtype=torch.float64)

    def values(numbers: Tensor) -> Tensor:
        return (image - painted(numbers, [thing], bank))[:, 10:14].flatten()

    theirs: Tensor = torch.autograd.functional.jacobian(values, numbers)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(derivatives(values, numbers), theirs.flatten(1))


def test_an_image_without_objects_is_its_background(rng: torch.Generator) -> None:
    image, bank = scene([], rng)
    assert refined(image, [], bank, FREE) == ([], 0)
