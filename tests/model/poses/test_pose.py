"""Laws of coarse poses and of the frames that hold them."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import ANGLE, DOWN, MARGIN, MIRRORED, RIGHT, SCALE, CoarsePoses, pose_frame
from pcdnet.model.poses.resampling import resampled

DOUBLE = torch.zeros((), dtype=torch.float64)
OPAQUE = 0.5


@st.composite
def posed(draw: st.DrawFn) -> ModelConfig:
    """Configurations of prototypes of any small size in any poses, not all of them turned or scaled."""
    rotations, scales = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    low, small = draw(st.integers(-360, 360)), draw(st.floats(0.3, 2))
    turned = low, low + draw(st.just(360) | st.integers(1, 359))
    sizes = (small, small * draw(st.floats(1.01, 2))) if scales > 1 else (1.0, 1.0)
    return ModelConfig(
        prototype_size=(draw(st.integers(2, 14)), draw(st.integers(2, 14))),
        rotations=rotations,
        rotation_range=(float(turned[0]), float(turned[1])) if rotations > 1 else (0.0, 360.0),
        scales=scales,
        scale_range=sizes,
        mirror=draw(st.booleans()),
        fine_poses=draw(st.booleans()),
        subpixel=draw(st.booleans()),
    )


@given(posed())
def test_every_pose_is_tried_once(config: ModelConfig) -> None:
    poses = CoarsePoses.of(config, DOUBLE)
    assert len(poses) == config.poses
    assert len({tuple(round(x, 9) for x in pose) for pose in poses.values.tolist()}) == config.poses
    assert not poses.values[:, [DOWN, RIGHT]].any()
    for value, count in ((ANGLE, config.rotations), (SCALE, config.scales), (MIRRORED, 1 + config.mirror)):
        assert len(set(poses.values[:, value].tolist())) == count


@given(posed())
def test_poses_are_evenly_spread_between_their_ends(config: ModelConfig) -> None:
    poses, n = CoarsePoses.of(config, DOUBLE), config.rotations
    angles, sizes = poses.values[:n, ANGLE], poses.values[: n * config.scales : n, SCALE]
    (low, high), (small, large) = config.rotation_range, config.scale_range
    steps = n if high - low == 360 else n - 1
    if n > 1:
        assert poses.turn == pytest.approx((high - low) / steps)
        turned = torch.arange(n) * poses.turn + low
        assert (angles - turned).deg2rad().cos().numpy() == pytest.approx(1)
        assert angles.min() >= 0
        assert angles.max() < 360
    if config.scales > 1:
        assert sizes[[0, -1]].tolist() == pytest.approx([small, large])
        assert sizes.log().diff().numpy() == pytest.approx(poses.growth)


def test_a_model_without_poses_has_the_upright_one() -> None:
    poses = CoarsePoses.of(ModelConfig(), DOUBLE)
    assert poses.values.tolist() == [[0, 1, 0, 0, 0]]
    assert (poses.turn, poses.growth) == (0, 0)


@pytest.mark.parametrize("low", [0.0, 0.1, -77.7, 152.1, 201.3])
def test_the_ends_of_a_full_turn_are_one_angle(low: float) -> None:
    """The difference of two angles is not always 360 in floats, though the second is 360 more."""
    config = ModelConfig(rotations=8, rotation_range=(low, low + 360))
    assert CoarsePoses.of(config, DOUBLE).turn == pytest.approx(45)


@given(posed())
def test_near_are_the_neighbours_in_angle_and_size_of_the_same_hand(config: ModelConfig) -> None:
    poses, n = CoarsePoses.of(config, DOUBLE), config.rotations
    whole = config.rotation_range[1] - config.rotation_range[0] == 360
    around = n if whole else round(360 / poses.turn, 9) if poses.turn else 1
    numbers = torch.arange(len(poses))
    near = poses.near(numbers[:, None], numbers)
    for one, other in itertools.product(range(len(poses)), repeat=2):
        (a, size, hand), (b, other_size, other_hand) = (
            (number % n, number // n % config.scales, number // n // config.scales) for number in (one, other)
        )
        between = min(abs(a - b), around - abs(a - b))
        if 1.4 < between < 1.6:  # the ends of nearly a full turn
            continue
        assert bool(near[one, other]) == (between <= 1.5 and abs(size - other_size) <= 1 and hand == other_hand)


@given(posed(), st.integers(0, 2**31))
@example(ModelConfig(prototype_size=(2, 40), rotations=3, rotation_range=(0.0, 180.0), fine_poses=False), 0)
@settings(max_examples=100)
def test_a_frame_holds_what_is_opaque_in_every_pose(config: ModelConfig, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    frame = pose_frame(config.prototype_size, config)
    assert all((side - own) % 2 == 0 for side, own in zip(frame, config.prototype_size, strict=True))
    poses = CoarsePoses.of(config, DOUBLE).values
    count, drawn = 20, torch.rand(2, 20, generator=rng, dtype=torch.float64)
    (low, high), (small, large) = config.rotation_range, config.scale_range
    if config.fine_poses and config.poses > 1:  # any in between
        poses = poses[torch.randint(len(poses), (count,), generator=rng)]
        if config.rotations > 1:
            poses[:, ANGLE] = low + (high - low) * drawn[0]
        if config.scales > 1:
            poses[:, SCALE] = small * (large / small) ** drawn[1]
    if config.subpixel or (config.fine_poses and config.poses > 1):
        ends = (2 * torch.rand(len(poses), 2, generator=rng, dtype=torch.float64) - 1) * MARGIN
        poses[:, [DOWN, RIGHT]] = ends
    around = 20
    wide = frame[0] + 2 * around, frame[1] + 2 * around
    masks = torch.ones(len(poses), 1, *config.prototype_size, dtype=torch.float64)
    made = resampled(masks, poses, wide)[:, 0]
    made[:, around:-around, around:-around] = 0
    assert made.max() <= OPAQUE + 1e-9


def test_the_frame_of_a_model_without_poses_is_its_own() -> None:
    assert pose_frame((7, 12), ModelConfig(prototype_size=(7, 12))) == (7, 12)
    mirrored = ModelConfig(prototype_size=(7, 12), mirror=True, fine_poses=False)
    assert pose_frame((7, 12), mirrored) == (7, 12)
