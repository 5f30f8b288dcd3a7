"""The engine finds objects in poses as the literal equations find them."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import reference
from pcdnet.model.engine import Layers
from pcdnet.model.network import PCDNet
from pcdnet.model.poses.sprites import upright_positions
from tests.oracle.equations import Oracle
from tests.oracle.poses import Bank, Posed, painted, posed, posed_bank, refined
from tests.oracle.scenes import random_bank, random_scene

SIZE, FRAME = (22, 20), (7, 6)
ROUNDING = 1e-9
"""What is turned by a quarter has traces of the next pixels."""
POSES: list[dict[str, Any]] = [
    {"rotations": 4},
    {"rotations": 3, "mirror": True},
    {"scales": 2, "scale_range": (0.8, 1.3)},
    {"mirror": True},
    {"rotations": 3, "rotation_range": (-40.0, 25.0), "scales": 2, "scale_range": (1.0, 1.4)},
    {"rotations": 2, "scales": 2, "scale_range": (0.7, 1.0), "mirror": True},
]


@lru_cache
def banks(kind: int) -> tuple[PrototypeBank, PrototypeBank]:
    """A bank, and the literal one of all its prototypes in all poses."""
    config = ModelConfig(num_prototypes=2, prototype_size=FRAME, fine_poses=False, **POSES[kind])
    bank = random_bank(torch.Generator().manual_seed(kind), 2, FRAME, None, torch.float64)
    prototypes, masks = posed_bank(bank.prototypes, bank.masks, config)
    return bank, PrototypeBank(prototypes, masks.where(masks > ROUNDING, 0))


def objects(layers: Layers, config: ModelConfig) -> list[tuple[int, list[float], float, float]]:
    """Prototypes, poses and places of the upright frames of what was found in an image."""
    where, places = layers.placement, upright_positions(layers.placement, config)[0]
    things = zip(where.prototype[0].tolist(), where.pose[0].tolist(), places.tolist(), strict=True)
    return [(p, pose, *place) for p, pose, place in things if p >= 0]


def compare(seed: int, restarts: int) -> tuple[int, bool]:
    """Explain a random scene by compiled loops, by tensors and by the equations; how many objects are found, and
    whether refinement matters."""
    rng = torch.Generator().manual_seed(seed)
    channels, kind = 1 if seed % 2 else 3, seed % len(POSES)
    upright, literal = banks(kind)
    if seed // 2 % 2 == 1:
        behind = random_bank(rng, 1, FRAME, (channels, *SIZE), torch.float64).background
        upright, literal = (dataclasses.replace(bank, background=behind) for bank in (upright, literal))
    image = random_scene(rng, literal, SIZE, channels, int(torch.randint(1, 4, (), generator=rng)), noise=0.01)
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=FRAME,
        max_objects=3,
        peaks_per_prototype=1,
        channels=channels,
        background="black" if upright.background is None else "still",
        min_error_reduction=0.05,
        restarts=restarts,
        fine_poses=False,
        **POSES[kind],
    )
    model = PCDNet.from_bank(upright, config)
    with torch.no_grad():
        explained = [model(image[None])]
        with reference():
            explained.append(model(image[None]))
        tight, offset = literal.tight()
        oracle = Oracle(image, tight.prototypes, tight.masks, tight.background, config)
        variants, picture = oracle.explain()
    expected = [literally(thing, offset, config) for thing in variants]
    for layers in explained:
        assert objects(layers, config) == [thing[:4] for thing in expected], f"scene {seed}"
        torch.testing.assert_close(layers.reconstruction[0], picture, atol=1e-8, rtol=0)
        colours = [thing[4] for thing in expected]
        torch.testing.assert_close(layers.colour[0, : len(colours)], torch.stack(colours), atol=1e-8, rtol=0)
    return len(expected), [thing[:3] for thing in variants] != [thing[:3] for thing in oracle.unrefined]


def literally(
    thing: tuple[int, int, int, Tensor], offset: Tensor, config: ModelConfig
) -> tuple[int, list[float], float, float, Tensor]:
    """A variant that the oracle found in its tight frame as prototype, pose, place of the upright frame, and colour."""
    number, row, column, colour = thing
    top, left = offset[number].tolist()
    prototype, pose, row, column, _ = posed((number, row - top, column - left, colour), FRAME, config)
    return prototype, pose, row, column, colour


def test_the_engine_finds_variants_as_the_literal_equations_do() -> None:
    """60 scenes, grey and RGB, with and without background: the same objects in the same poses and order."""
    found = [compare(seed, restarts=2 * (seed % 3 == 0)) for seed in range(60)]
    assert sum(count for count, _ in found) > 80, "too few objects are found for this to mean anything"
    assert sum(refined for _, refined in found) > 5, "too few scenes reach refinement for this to mean anything"


# --- poses between the coarse ones ------------------------------------------------------------------------

FINE, WIDE = (17, 15), (44, 48)
TURNING: list[dict[str, Any]] = [
    {"rotations": 24},
    {"rotations": 16, "mirror": True},
    {"rotations": 12, "scales": 3, "scale_range": (0.8, 1.25)},
    {"rotations": 7, "rotation_range": (-45.0, 45.0)},
    {"scales": 4, "scale_range": (0.75, 1.3)},
]


def smooth_bank(rng: torch.Generator) -> PrototypeBank:
    """Two prototypes with soft shapes and smooth texture: what pixels of noise look like turned is anybody's guess."""
    made = random_bank(rng, 2, FINE, None, torch.float64)
    texture = torch.rand(2, 1, 5, 5, generator=rng, dtype=torch.float64)
    smooth = torch.nn.functional.interpolate(texture, FINE, mode="bicubic", align_corners=True)[:, 0].clamp(0, 1)
    masks = torch.nn.functional.avg_pool2d(made.masks[:, None], 3, 1, 1)[:, 0]
    return PrototypeBank(0.25 + 0.75 * smooth, masks)


def drawn(rng: torch.Generator, config: ModelConfig, count: int, apart: int) -> list[Posed]:
    """Objects in any pose that a configuration allows, whose middles are so many pixels apart."""
    things: list[Posed] = []
    (low, high), (small, large) = config.rotation_range, config.scale_range
    while len(things) < count:
        turn, size, down, right, flip, p = torch.rand(6, generator=rng, dtype=torch.float64).tolist()
        middle = 9 + down * (WIDE[0] - 19), 9 + right * (WIDE[1] - 19)
        if all(math.dist(middle, other.middle) > apart for other in things):
            angle = low + (high - low) * turn if config.rotations > 1 else 0.0
            scale = small * (large / small) ** size if config.scales > 1 else 1.0
            colour = 0.5 + 0.5 * torch.rand(config.channels, generator=rng, dtype=torch.float64)
            mirrored = config.mirror and flip > 0.5
            things.append(Posed(int(2 * p), middle, angle, math.log(scale), mirrored, colour))
    return things


def as_things(layers: Layers, config: ModelConfig) -> list[Posed]:
    """What the engine found in an image, as the oracle has it."""
    colours = layers.colour[0]
    found = []
    for n, (p, pose, row, column) in enumerate(objects(layers, config)):
        (h, w), (angle, scale, mirrored, *_) = FINE, pose
        middle = row + (h - 1) / 2, column + (w - 1) / 2
        found.append(Posed(p, middle, angle, math.log(scale), mirrored > 0, colours[n]))
    return found


@dataclasses.dataclass(frozen=True)
class Fine:
    """A scene of objects in any pose, and what was found in it."""

    true: list[Posed]
    found: list[Posed]
    config: ModelConfig
    left: float
    """The error that the engine leaves."""
    least: float
    """The error that a descent leaves which begins where the engine ends."""


def fine_scene(seed: int, apart: int = 13) -> Fine:
    """One to three objects, a little noise, and what the engine makes of them."""
    rng = torch.Generator().manual_seed(seed)
    channels = 1 if seed % 2 else 3
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=FINE,
        max_objects=4,
        channels=channels,
        localization="error_reduction",
        min_error_reduction=2.0,
        subpixel=True,
        **TURNING[seed % len(TURNING)],
    )
    bank = smooth_bank(rng)
    painter = Bank(bank.prototypes, bank.masks, torch.zeros(channels, *WIDE, dtype=torch.float64))
    true = drawn(rng, config, 1 + seed % 3, apart)
    numbers = torch.tensor([thing.numbers for thing in true], dtype=torch.float64)
    image = painted(numbers, true, painter)
    image = (image + 0.02 * torch.randn(image.shape, generator=rng, dtype=torch.float64)).clamp(0, 1)
    model = PCDNet.from_bank(bank, config)
    with torch.no_grad():
        layers = model(image[None])
    found = as_things(layers, config)
    left = float((image - layers.reconstruction[0]).square().sum())
    return Fine(true, found, config, left, refined(image, found, painter, config)[1])


def check_fine(seed: int, apart: int = 13) -> None:
    """Nothing is left to descend on, and everything is found in its true pose."""
    scene = fine_scene(seed, apart)
    assert scene.left <= 1.01 * scene.least + 1e-3, f"scene {seed}"
    assert len(scene.found) == len(scene.true), f"scene {seed}"
    for thing in scene.true:
        near = min(scene.found, key=lambda other: math.dist(thing.middle, other.middle))
        assert (near.prototype, near.mirrored) == (thing.prototype, thing.mirrored), f"scene {seed}"
        assert math.dist(thing.middle, near.middle) < 0.15, f"scene {seed}"
        assert abs((thing.angle - near.angle + 180) % 360 - 180) < 3, f"scene {seed}"
        assert abs(thing.log_scale - near.log_scale) < 0.03, f"scene {seed}"
        low, high = scene.config.rotation_range
        assert (near.angle - low) % 360 <= high - low + 1e-6, f"scene {seed}"


def test_no_descent_improves_poses_that_the_engine_found() -> None:
    """20 scenes in which objects turn, grow, are mirrored, and lie at fractions of a pixel."""
    for seed in range(20):
        check_fine(seed)


def test_poses_are_found_by_tensors_alone() -> None:
    with reference():
        for seed in range(5):
            check_fine(seed)


def test_frames_follow_objects_that_move_far_while_they_are_polished() -> None:
    scene = fine_scene(29, apart=9)
    assert scene.left <= 1.01 * scene.least + 1e-3
