"""Laws of instances: posed candidates are chosen from as prototypes are."""

from __future__ import annotations

import dataclasses

import torch

from pcdnet.config import ModelConfig
from pcdnet.model.colour import Palette
from pcdnet.model.placement import to_placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.instances import Instances
from pcdnet.model.poses.pose import pose_frame
from pcdnet.model.selection import SelectionInput, select
from tests.model.poses.smooth import FRAME, smooth_bank
from tests.oracle.poses import picture_in_pose

SIZE = (40, 44)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=FRAME,
    max_objects=2,
    channels=1,
    rotations=12,
    mirror=True,
    subpixel=True,
    restarts=0,
    min_error_reduction=0.5,
)
POSES = [[33.0, 1.0, 0.0, 0.3, -0.2], [210.0, 1.0, 1.0, -0.4, 0.1], [80.0, 1.0, 0.0, 0.0, 0.0]]


def candidates(images: list[int]) -> PosedCandidates:
    """Three candidates, each in one of the images."""
    return PosedCandidates(
        torch.tensor(images),
        torch.tensor([0, 1, 1]),
        torch.tensor([2, 14, 5]),
        torch.tensor([3, 16, -4]),
        torch.tensor(POSES, dtype=torch.float64),
    )


def test_instances_are_chosen_where_they_were_painted(rng: torch.Generator) -> None:
    bank, frame = smooth_bank(rng), pose_frame(FRAME, CONFIG)
    (Y, X), (H, W) = frame, SIZE
    things = candidates([0, 0, 1])
    images = torch.zeros(2, 1, H + 2 * Y, W + 2 * X, dtype=torch.float64)
    for image, p, row, column, pose in zip(*(x.tolist() for x in vars_of(things)), strict=True):
        paint, mask = (picture_in_pose(x[p], pose, frame) for x in (bank.prototypes, bank.masks))
        window = images[image, 0, row + Y : row + 2 * Y, column + X : column + 2 * X]
        window += mask * (0.7 * paint - window)
    images = images[..., Y : Y + H, X : X + W]
    instances = Instances.of(things, bank, frame, SearchPlan.derive(bank, SIZE, CONFIG))
    found = instances.candidates(images, None)
    assert found.exists.tolist() == [[True, True, False], [False, False, True]]
    given = SelectionInput(images, instances.plan, found, Palette(1.0), instances.plan.min_visible_area(found), None)
    where = instances.things.among(to_placement(given, select(given)))
    assert where.exists.sum(1).tolist() == [2, 1]
    for b, n in where.exists.nonzero().tolist():
        number = next(k for k, pose in enumerate(POSES) if pose == where.pose[b, n].tolist())
        assert int(things.image[number]) == b
        assert int(where.prototype[b, n]) == int(things.prototype[number])
        assert (int(where.row[b, n]), int(where.column[b, n])) == (int(things.row[number]), int(things.column[number]))
        torch.testing.assert_close(where.colour[b, n], torch.tensor([0.7]).double(), atol=0.02, rtol=0)


def vars_of(things: PosedCandidates) -> list[torch.Tensor]:
    """The tensors of candidates."""
    return [things.image, things.prototype, things.row, things.column, things.pose]


def test_what_is_outside_does_not_exist(rng: torch.Generator) -> None:
    bank, frame = smooth_bank(rng), pose_frame(FRAME, CONFIG)
    things = candidates([0, 0, 0])
    away = dataclasses.replace(things, row=things.row + torch.tensor([0, 100, -100]))
    instances = Instances.of(away, bank, frame, SearchPlan.derive(bank, SIZE, CONFIG))
    image = torch.rand(1, 1, *SIZE, generator=rng, dtype=torch.float64)
    assert instances.candidates(image, None).exists.tolist() == [[True, False, False]]


def test_of_nothing_nothing_is_chosen(rng: torch.Generator) -> None:
    bank, frame = smooth_bank(rng), pose_frame(FRAME, CONFIG)
    none = candidates([0, 0, 0]).part(torch.zeros(3, dtype=torch.bool))
    instances = Instances.of(none, bank, frame, SearchPlan.derive(bank, SIZE, CONFIG))
    given_image = torch.zeros(1, 1, *SIZE, dtype=torch.float64)
    found = instances.candidates(given_image, None)
    given = SelectionInput(
        given_image, instances.plan, found, Palette(1.0), instances.plan.min_visible_area(found), None
    )
    where = instances.things.among(to_placement(given, select(given)))
    assert not where.exists.any()
    assert where.pose.shape == (1, 2, 5)


def test_frames_settle_where_objects_lie() -> None:
    things = candidates([0, 0, 0])
    moved = dataclasses.replace(things, pose=things.pose + torch.tensor([0, 0, 0, 1.4, -2.3]))
    still, whole = moved.settled(subpixel=True), moved.settled(subpixel=False)
    before, after = (x.row + x.pose[:, 3] for x in (moved, still))
    torch.testing.assert_close(before, after)
    assert (still.pose[:, 3:].abs() <= 0.5).all()
    assert not whole.pose[:, 3:].any()
    assert torch.equal(whole.row, still.row)
