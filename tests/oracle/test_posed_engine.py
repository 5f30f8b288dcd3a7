"""The engine finds objects in poses as the literal equations find them."""

from __future__ import annotations

import dataclasses
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
from tests.oracle.poses import posed, posed_bank
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
