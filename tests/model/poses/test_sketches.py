"""Laws of sketches: in small pictures a pose is found again from afar, the right one of many, and each but once."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.fitting import Freedom
from pcdnet.model.poses.polishing import reach_of
from pcdnet.model.poses.pose import ANGLE, DOWN, RIGHT, SCALE, CoarsePoses, pose_frame
from pcdnet.model.poses.sketches import Sketchbook
from tests.model.poses.smooth import FRAME, scene, smooth_bank, thing

SIZE = (48, 52)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=FRAME,
    channels=1,
    localization="error_reduction",
    rotations=12,
    scales=3,
    scale_range=(0.8, 1.25),
    subpixel=True,
)
ANGLES, MIDDLE = (40.0, 200.0), (23.3, 27.8)


def pictures(bank: PrototypeBank) -> Tensor:
    """An object of each prototype, each in a picture of its own."""
    return torch.stack([scene(bank, [thing(p, MIDDLE, angle, 1.1)], SIZE) for p, angle in enumerate(ANGLES)])


def book(bank: PrototypeBank, shown: Tensor, clear: Tensor | None = None) -> Sketchbook:
    """That of pictures over black."""
    behind = torch.zeros_like(shown[:1])
    return Sketchbook.of(shown, behind, clear, bank, CONFIG, pose_frame(FRAME, CONFIG), reach_of(bank))


def every_pose(bank: PrototypeBank, off: int = 2) -> PosedCandidates:
    """Both prototypes in all coarse poses in each of two pictures, so many pixels beside the object."""
    coarse, frame = CoarsePoses.of(CONFIG, bank.masks).values, pose_frame(FRAME, CONFIG)
    n, R = torch.arange(4 * len(coarse)), len(coarse)
    row, column = (round(middle - (side - 1) / 2) + off for middle, side in zip(MIDDLE, frame, strict=True))
    places = torch.full_like(n, row), torch.full_like(n, column)
    return PosedCandidates(n // (2 * R), n // R % 2, *places, coarse.repeat(4, 1))


def test_of_all_poses_the_true_one_explains_most(rng: torch.Generator) -> None:
    bank = smooth_bank(rng)
    things = every_pose(bank)
    found, origin = book(bank, pictures(bank)).best(things, Freedom.of(CONFIG), 1)
    assert found.image.tolist() == found.prototype.tolist() == [0, 1]
    assert torch.equal(things.prototype[origin], found.prototype)
    off = (found.pose[:, ANGLE] - found.pose.new_tensor(ANGLES) + 180).remainder(360) - 180
    assert off.abs().max() < 4
    assert (found.pose[:, SCALE] / 1.1).log().abs().max() < 0.05
    h, w = pose_frame(FRAME, CONFIG)
    assert (found.row + found.pose[:, DOWN] + (h - 1) / 2 - MIDDLE[0]).abs().max() < 0.3
    assert (found.column + found.pose[:, RIGHT] + (w - 1) / 2 - MIDDLE[1]).abs().max() < 0.3
    assert found.pose[:, [DOWN, RIGHT]].abs().max() <= 0.5


def test_candidates_that_come_to_one_pose_count_once(rng: torch.Generator) -> None:
    bank = smooth_bank(rng)
    near = every_pose(bank)
    near = near.part((near.image == 0) & (near.prototype == 0) & (near.pose[:, ANGLE] % 60 == 30))
    twice = near.and_(dataclasses.replace(near, row=near.row - 1))
    found, origin = book(bank, pictures(bank)[:1]).best(twice, Freedom.of(CONFIG))
    assert len(found) < len(twice)
    assert len(set(origin.tolist())) == len(origin)
    best = found.part(torch.tensor([0]))
    same = (found.pose[:, ANGLE] - best.pose[:, ANGLE]).abs() < 1
    assert same.sum() == 1


@pytest.mark.parametrize("known", [True, False])
def test_what_is_hidden_tells_nothing(known: bool, rng: torch.Generator) -> None:
    """Where something lies over an object, its pose is told by the rest, if it is known where."""
    bank = smooth_bank(rng)
    shown, clear = pictures(bank), torch.ones(2, 1, *SIZE, dtype=torch.float64)
    clear[:, :, :22] = 0
    covered = shown * clear + 0.6 * (1 - clear)
    found, _ = book(bank, covered, clear if known else None).best(every_pose(bank, 0), Freedom.of(CONFIG), 1)
    off = ((found.pose[:, ANGLE] - found.pose.new_tensor(ANGLES) + 180).remainder(360) - 180).abs().max()
    right = found.prototype.tolist() == [0, 1] and off < 8
    assert right == known


def test_no_candidates_are_no_candidates(rng: torch.Generator) -> None:
    bank = smooth_bank(rng)
    none = every_pose(bank).part(slice(0))
    found, origin = book(bank, pictures(bank)).best(none, Freedom.of(CONFIG), 3)
    assert len(found) == len(origin) == 0


def test_sizes_stay_within_their_range(rng: torch.Generator) -> None:
    bank = smooth_bank(rng)
    shown = scene(bank, [thing(0, MIDDLE, 0.0, 1.6)], SIZE)[None]
    things = every_pose(bank).part(every_pose(bank).image == 0)
    found, _ = book(bank, shown).best(things, Freedom.of(CONFIG))
    low, high = map(math.log, CONFIG.scale_range)
    sizes = found.pose[:, SCALE].log()
    assert sizes.min() >= low - 1e-9
    assert sizes.max() <= high + 1e-9
