"""Laws of proposals: every object is proposed near where and how it lies, and few things beside it."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE, CoarsePoses, pose_frame
from pcdnet.model.poses.proposals import MODES, Proposer
from tests.model.poses.smooth import FRAME, scene, smooth_bank, thing
from tests.oracle.poses import Posed

SIZE = (46, 50)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=FRAME,
    channels=1,
    rotations=12,
    scales=2,
    scale_range=(0.9, 1.2),
    mirror=True,
    localization="error_reduction",
    min_error_reduction=2.0,
    subpixel=True,
)
THINGS = [thing(0, (14.3, 14.6), 40, 0.95), thing(1, (30.8, 33.2), 200, 1.1, True)]


def near(things: PosedCandidates, true: Posed, config: ModelConfig, image: int = 0) -> Tensor:
    """Which things are the true one, in the coarse pose next to its own."""
    Y, X = pose_frame(FRAME, config)
    place = torch.stack([things.row + (Y - 1) / 2, things.column + (X - 1) / 2], dim=-1)
    away = (place - torch.tensor(true.middle)).norm(dim=1)
    turned = (things.pose[:, ANGLE] - true.angle + 180).remainder(360) - 180
    grown = (things.pose[:, SCALE].log() - true.log_scale).abs()
    coarse = CoarsePoses.of(config, torch.zeros(()))
    those: Tensor = (
        (things.image == image)
        & (things.prototype == true.prototype)
        & (away < 3)
        & (turned.abs() <= 0.8 * coarse.turn)
        & (grown <= 0.8 * coarse.growth)
        & (things.pose[:, MIRRORED] == float(true.mirrored))
    )
    return those


@pytest.fixture
def bank(rng: torch.Generator) -> PrototypeBank:
    """Two prototypes large enough to be searched for at half of their size."""
    return smooth_bank(rng)


@pytest.mark.parametrize("shrunk", [1, 2])
def test_objects_are_proposed_near_their_poses(
    shrunk: int, bank: PrototypeBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcdnet.model.poses.proposals.HALVED", 1 if shrunk == 2 else 1000)
    images = torch.stack([scene(bank, THINGS, SIZE), scene(bank, THINGS[:1], SIZE)])
    proposer = Proposer.derive(bank, SIZE, CONFIG, None)
    assert proposer.shrunk == shrunk
    things = proposer.propose(images, None, CONFIG.peaks_per_prototype)
    for true in THINGS:
        assert near(things, true, CONFIG).any()
    assert near(things, THINGS[0], CONFIG, image=1).any()
    assert not near(things, THINGS[1], CONFIG, image=1).any()


def test_few_things_are_proposed_and_no_two_alike(bank: PrototypeBank) -> None:
    proposer, images = Proposer.derive(bank, SIZE, CONFIG, None), scene(bank, THINGS, SIZE)[None]
    things = proposer.propose(images, None, 2)
    coarse = CoarsePoses.of(CONFIG, images)
    known = (things.pose[:, None] == coarse.values).all(-1)
    assert known.any(1).all()
    number = known.long().argmax(1)
    for p in range(2):
        mine = (things.prototype == p).nonzero()[:, 0].tolist()
        assert 0 < len(mine) <= 2 * MODES
        for i in mine:
            for j in mine[: mine.index(i)]:
                apart = max(abs(int(things.row[i] - things.row[j])), abs(int(things.column[i] - things.column[j])))
                alike = bool(coarse.near(number[i], number[j]))
                assert apart > 1 or not alike


def test_nothing_is_proposed_where_nothing_is(bank: PrototypeBank) -> None:
    proposer = Proposer.derive(bank, SIZE, CONFIG, None)
    assert len(proposer.propose(torch.zeros(2, 1, *SIZE).double(), None, 4)) == 0
    behind = torch.full((2, 1, *SIZE), 0.4).double()
    assert len(proposer.propose(behind, behind, 4)) == 0


def test_objects_are_proposed_over_backgrounds_of_their_images(bank: PrototypeBank, rng: torch.Generator) -> None:
    ramp = torch.linspace(0.1, 0.3, SIZE[1], dtype=torch.float64).expand(1, 1, *SIZE)
    image = scene(bank, THINGS, SIZE)[None]
    seen = scene(PrototypeBank(torch.ones_like(bank.masks), bank.masks), THINGS, SIZE)[None] / 0.8
    proposer = Proposer.derive(bank, SIZE, CONFIG, None)
    things = proposer.propose(image + (1 - seen) * ramp, ramp, 4)
    assert all(near(things, true, CONFIG).any() for true in THINGS)


def test_what_is_always_hidden_is_not_proposed(bank: PrototypeBank) -> None:
    seen = torch.ones(1, 1, *SIZE, dtype=torch.float64)
    seen[..., 23:, :] = 0
    image = scene(bank, THINGS, SIZE)[None] * seen
    things = Proposer.derive(bank, SIZE, CONFIG, seen).propose(image, None, 4)
    assert near(things, THINGS[0], CONFIG).any()
    Y = pose_frame(FRAME, CONFIG)[0]
    assert (things.row + (Y - 1) / 2 < 30).all()


def test_phase_correlation_proposes_them_too(bank: PrototypeBank) -> None:
    config = dataclasses.replace(CONFIG, localization="phase", rotations=16)
    proposer = Proposer.derive(bank, SIZE, config, None)
    true = thing(0, (20.0, 22.0), 22.5, 0.9)
    things = proposer.propose(scene(bank, [true], SIZE)[None], None, 4)
    assert near(things, true, config).any()


def test_what_lies_behind_found_objects_is_proposed_by_what_is_seen_of_it(bank: PrototypeBank) -> None:
    front, back = thing(0, (22.0, 20.0), 30), thing(1, (22.0, 28.0), 90)
    image = scene(bank, [front, back], SIZE)[None]
    white = PrototypeBank(torch.ones_like(bank.masks), bank.masks)
    clear = (scene(white, [front], SIZE)[None] / 0.8 < 0.5).double()
    proposer = Proposer.derive(bank, SIZE, CONFIG, None)
    things = proposer.propose_behind(image, torch.zeros_like(image), clear, 4)
    assert near(things, back, CONFIG).any()


def test_poses_in_which_a_prototype_looks_the_same_are_searched_for_once() -> None:
    """A square after a quarter turn, a bar after half a turn, and a hook never."""
    masks = torch.zeros(3, 15, 15, dtype=torch.float64)
    masks[0, 3:12, 3:12], masks[1, 5:10, 1:14] = 1, 1
    masks[2, 2:13, 4:7], masks[2, 10:13, 7:12] = 1, 1
    upright = {"num_prototypes": 3, "prototype_size": (15, 15), "scales": 1, "scale_range": (1.0, 1.0), "mirror": False}
    config = dataclasses.replace(CONFIG, rotations=8, **upright)  # type: ignore[arg-type]
    proposer = Proposer.derive(PrototypeBank(torch.ones_like(masks), masks), SIZE, config, None)
    assert proposer.stands_for.tolist() == [0, 1, *range(8, 12), *range(16, 24)]
    assert proposer.looks_like.tolist() == [0, 1] * 4 + [2, 3, 4, 5] * 2 + list(range(6, 14))
    assert len(proposer.plan.boxes) == len(proposer.corner) == 14
