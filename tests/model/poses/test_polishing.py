"""Laws of polishing: objects placed together come to lie as they were painted, and no image is explained worse."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import reference
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.fitting import Freedom
from pcdnet.model.poses.polishing import _Scene, polished
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE, pose_frame
from pcdnet.model.poses.sprites import upright_positions
from pcdnet.model.selection import EMPTY
from tests.model.poses.smooth import FRAME, scene, smooth_bank, thing
from tests.oracle.poses import Posed

SIZE = (44, 48)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=FRAME,
    max_objects=3,
    channels=1,
    rotations=12,
    scales=3,
    scale_range=(0.7, 1.4),
    mirror=True,
    subpixel=True,
)
FRONT, BACK = thing(0, (20.2, 18.4), 37, 1.05), thing(1, (23.7, 27.1), 124, 0.95, True)


def placed(images: list[list[Posed]], config: ModelConfig = CONFIG) -> Placement:
    """Objects front to back, their frames where they lie nearest."""
    B, N, frame = len(images), config.max_objects, pose_frame(FRAME, config)
    prototype, corner = torch.full((B, N), EMPTY), torch.zeros(B, N, 2, dtype=torch.long)
    pose, zeros = torch.zeros(B, N, 5, dtype=torch.float64), torch.zeros(B, N, dtype=torch.float64)
    for b, things in enumerate(images):
        for n, one in enumerate(things):
            top = torch.tensor([m - (side - 1) / 2 for m, side in zip(one.middle, frame, strict=True)]).double()
            corner[b, n] = top.round().long()
            turned = [one.angle, math.exp(one.log_scale), float(one.mirrored)]
            pose[b, n] = torch.tensor([*turned, *(top - top.round()).tolist()])
            prototype[b, n] = one.prototype
    colour = 0.8 * torch.ones(B, N, 1, dtype=torch.float64)
    return Placement(prototype, corner[..., 0], corner[..., 1], colour, zeros, zeros, pose)


def beside(one: Posed, down: float, right: float, turned: float, grown: float) -> Posed:
    """The same a little off."""
    middle = one.middle[0] + down, one.middle[1] + right
    return dataclasses.replace(one, middle=middle, angle=one.angle + turned, log_scale=one.log_scale + grown)


STARTS = [beside(FRONT, 0.8, -0.7, 4, -0.05), beside(BACK, -0.5, 0.9, -5, 0.04)]


@pytest.fixture(params=["compiled", "reference"], autouse=True)
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """By compiled loops, and by tensors."""
    if request.param == "compiled":
        yield
        return
    with reference():
        yield


@pytest.fixture
def bank(rng: torch.Generator) -> PrototypeBank:
    """Two prototypes that look different in every pose."""
    return smooth_bank(rng)


def polish(
    bank: PrototypeBank, images: Tensor, found: Placement, config: ModelConfig = CONFIG, steps: int = 12
) -> Placement:
    """The objects of images over black."""
    plan, freedom = SearchPlan.derive(bank, SIZE, config), Freedom.of(config, moving=config.subpixel)
    behind = torch.zeros(1, 1, *SIZE, dtype=torch.float64)
    return polished(images, behind, plan, pose_frame(FRAME, config), found, freedom, steps)


def errors(bank: PrototypeBank, images: Tensor, found: Placement, config: ModelConfig = CONFIG) -> Tensor:
    """What objects leave of images."""
    plan, behind = SearchPlan.derive(bank, SIZE, config), torch.zeros(1, 1, *SIZE, dtype=torch.float64)
    error: Tensor = _Scene(images, behind, plan, pose_frame(FRAME, config)).look(found).error
    return error


def test_objects_over_each_other_come_to_lie_as_they_were_painted(bank: PrototypeBank) -> None:
    images = scene(bank, [FRONT, BACK], SIZE)[None]
    found = polish(bank, images, placed([STARTS]))
    assert errors(bank, images, found)[0] < 1e-3 * errors(bank, images, placed([STARTS]))[0]
    places = upright_positions(found, CONFIG)[0].double()
    for n, true in enumerate((FRONT, BACK)):
        middle = places[n] + torch.tensor([(side - 1) / 2 for side in FRAME])
        torch.testing.assert_close(middle, torch.tensor(true.middle).double(), atol=0.05, rtol=0)
        assert abs(float(found.pose[0, n, ANGLE]) - true.angle) < 0.5
        assert float(found.pose[0, n, SCALE].log()) == pytest.approx(true.log_scale, abs=0.005)
        assert float(found.pose[0, n, MIRRORED]) == float(true.mirrored)


def test_frames_follow_what_moves_away(bank: PrototypeBank) -> None:
    """An object three pixels off, which is further than there is room in its frame."""
    images, far = scene(bank, [FRONT], SIZE)[None], [beside(FRONT, 2.6, -1.5, 3, 0.02)]
    found = polish(bank, images, placed([far]), steps=16)
    assert (found.pose[..., 3:].abs() <= 0.5).all()
    assert errors(bank, images, found)[0] < 1e-3 * errors(bank, images, placed([far]))[0]


def test_no_image_is_explained_worse(bank: PrototypeBank, rng: torch.Generator) -> None:
    images = torch.rand(6, 1, *SIZE, generator=rng, dtype=torch.float64)
    given = placed([STARTS, [FRONT], [BACK, FRONT], [], [BACK], [*STARTS, FRONT]])
    before, after = errors(bank, images, given), errors(bank, images, polish(bank, images, given))
    assert (after <= before + 1e-9).all()
    assert (after < before - 1e-3).sum() >= 4


def test_a_batch_is_polished_as_its_images_are_one_by_one(bank: PrototypeBank) -> None:
    images = torch.stack([scene(bank, things, SIZE) for things in ([FRONT, BACK], [FRONT], [BACK])])
    starts = [STARTS, STARTS[:1], []]
    together = polish(bank, images, placed(starts))
    for b, start in enumerate(starts):
        alone = polish(bank, images[b : b + 1], placed([start]))
        torch.testing.assert_close(together.pose[b], alone.pose[0], atol=1e-7, rtol=0)
        assert torch.equal(together.row[b], alone.row[0])
    assert not together.exists[2].any()
    assert not together.pose[2].any()


def test_without_subpixel_objects_turn_where_they_are(bank: PrototypeBank) -> None:
    config = dataclasses.replace(CONFIG, subpixel=False)
    true = dataclasses.replace(FRONT, middle=(20.0, 18.0))
    images, start = scene(bank, [true], SIZE)[None], placed([[beside(true, 0, 0, 4, 0.03)]], config)
    found = polish(bank, images, start, config)
    assert (int(found.row[0, 0]), int(found.column[0, 0])) == (int(start.row[0, 0]), int(start.column[0, 0]))
    assert not found.pose[0, 0, 3:].any()
    assert abs(float(found.pose[0, 0, ANGLE]) - true.angle) < 0.5
