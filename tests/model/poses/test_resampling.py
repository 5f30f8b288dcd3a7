"""Laws of resampling: what is exact, what is close, and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import ANGLE, DOWN, MIRRORED, RIGHT, SCALE
from pcdnet.model.poses.resampling import moved, resampled, sprites

sides = st.integers(1, 9)
TURNED = ModelConfig(rotations=8)
MOVED = ModelConfig(subpixel=True)


def pose(
    angle: float = 0.0, scale: float = 1.0, mirrored: float = 0.0, down: float = 0.0, right: float = 0.0
) -> Tensor:
    """One pose as a batch."""
    return torch.tensor([[angle, scale, mirrored, down, right]], dtype=torch.float64)


def noise(*size: int, seed: int = 0) -> Tensor:
    """Pictures of random pixels from 0 to 1."""
    return torch.rand(size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def middle(picture: Tensor, frame: tuple[int, int]) -> Tensor:
    """The picture in the middle of a larger black frame."""
    (h, w), (y, x) = picture.shape[-2:], frame
    framed = picture.new_zeros(*picture.shape[:-2], y, x)
    framed[..., (y - h) // 2 : (y + h) // 2, (x - w) // 2 : (x + w) // 2] = picture
    return framed


def close(one: Tensor, other: Tensor, tolerance: float = 1e-9) -> None:
    """Assert that two pictures agree."""
    torch.testing.assert_close(one, other, atol=tolerance, rtol=0)


@given(sides, sides, st.integers(0, 3), st.integers(0, 3))
def test_an_object_without_a_pose_is_the_prototype_in_the_middle(h: int, w: int, more: int, wider: int) -> None:
    picture, frame = noise(1, 2, h, w), (h + 2 * more, w + 2 * wider)
    close(resampled(picture, pose(), frame), middle(picture, frame))
    close(moved(picture, pose(), frame), middle(picture, frame))


@given(sides, sides, st.integers(-4, 4))
def test_quarter_turns_are_exact(h: int, w: int, quarters: int) -> None:
    """Counter-clockwise, as of NumPy, where no side gets half a pixel."""
    w += (h + w) % 2
    picture, frame = noise(1, 2, h, w), (max(h, w), max(h, w))
    turned = resampled(picture, pose(90.0 * quarters), frame)
    close(turned, torch.from_numpy(np.rot90(middle(picture, frame), quarters, (-2, -1)).copy()))


@given(sides, sides, st.integers(0, 3))
def test_mirror_images_are_exact(h: int, w: int, quarters: int) -> None:
    """Left to right, and only then turned."""
    w += (h + w) % 2
    picture, frame = noise(1, 1, h, w), (max(h, w), max(h, w))
    made = resampled(picture, pose(90.0 * quarters, mirrored=1), frame)
    close(made, middle(picture, frame).flip(-1).rot90(quarters, (-2, -1)))


@given(sides, sides, st.integers(-2, 2), st.integers(-2, 2))
def test_whole_pixels_are_a_roll(h: int, w: int, down: int, right: int) -> None:
    picture, frame = noise(1, 2, h, w), (h + 4, w + 4)
    rolled = middle(picture, frame).roll((down, right), (-2, -1))
    close(moved(picture, pose(down=down, right=right), frame), rolled)
    close(resampled(picture, pose(down=down, right=right), frame), rolled)


def test_a_line_turns_counter_clockwise() -> None:
    """From the right upwards, as in a sheet of paper and not as rows are counted."""
    picture = torch.zeros(1, 1, 9, 9, dtype=torch.float64)
    picture[..., 4, 8] = 1
    row, column = divmod(int(resampled(picture, pose(45), (9, 9)).argmax()), 9)
    assert row < 4 < column


def blob(y: Tensor, x: Tensor) -> Tensor:
    """A smooth hill that is nearly nothing beyond 12 pixels from its top."""
    return torch.exp(-(y.square() + x.square()) / (2 * 2.0**2)) * (1 + 0.3 * torch.sin(0.4 * x) * torch.cos(0.3 * y))


def grid(size: int) -> tuple[Tensor, Tensor]:
    """Rows and columns from the middle."""
    ends = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    return ends[:, None], ends[None, :]


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_a_smooth_picture_moves_exactly(down: float, right: float) -> None:
    y, x = grid(33)
    made = moved(blob(*grid(29))[None, None], pose(down=down, right=right), (33, 33))
    close(made[0, 0], blob(y - down, x - right), 1e-6)


@given(st.floats(0, 360), st.floats(0.5, 2), st.booleans(), st.floats(-2, 2), st.floats(-2, 2))
def test_a_smooth_picture_is_turned_scaled_and_moved_in_this_order(
    angle: float, scale: float, mirrored: bool, down: float, right: float
) -> None:
    """As close as lines between pixels come to it; a point is found by what the pose does to it."""
    made = resampled(blob(*grid(41))[None, None], pose(angle, scale, mirrored, down, right), (81, 81))
    to_right = torch.exp(1j * torch.deg2rad(torch.tensor(angle, dtype=torch.float64)))  # up is the imaginary axis
    y, x = grid(81)
    point = ((x - right) - 1j * (y - down)) / (to_right * scale)
    close(made[0, 0], blob(-point.imag, point.real * (1 - 2 * mirrored)), 0.07)


def test_twice_as_large_means_four_times_the_area() -> None:
    picture = blob(*grid(29))[None, None]
    assert float(resampled(picture, pose(scale=2), (61, 61)).sum() / picture.sum()) == pytest.approx(4, rel=1e-3)


def test_objects_without_poses_are_painted_from_0_to_1() -> None:
    """Shifted edges overshoot in the Fourier domain."""
    edges = torch.ones(1, 2, 5, 5, dtype=torch.float64)
    half = pose(down=0.5, right=0.25)
    assert moved(edges, half, (9, 9)).max() > 1.01
    made = sprites(edges, half, (9, 9), MOVED)
    assert made.min() > -1e-12
    assert made.max() < 1 + 1e-12


def test_all_that_may_turn_is_resampled_and_all_else_moved() -> None:
    picture, poses = noise(1, 2, 5, 5), pose(30, 1.2, 0, 0.3, 0.2)
    close(sprites(picture, poses, (11, 11), TURNED), resampled(picture, poses, (11, 11)), 0)
    close(sprites(picture, poses, (11, 11), MOVED), moved(picture, poses, (11, 11)).clamp(0, 1))


def test_each_picture_has_its_own_pose() -> None:
    poses = torch.cat([pose(20, 1.1, 0, 0.3, 0), pose(200, 0.8, 1, 0, -0.4), pose()])
    pictures = noise(3, 2, 5, 6)
    for paint in (resampled, moved):
        alone = [paint(pictures[n : n + 1], poses[n : n + 1], (11, 12)) for n in range(3)]
        close(paint(pictures, poses, (11, 12)), torch.cat(alone))


@pytest.mark.parametrize("kind", ["resampled", "moved", "turned", "subpixel"])
def test_gradients_for_pictures_and_poses_are_right(kind: str) -> None:
    """Away from whole pixels, on which lines between pixels have a corner; mirror images have no gradient."""
    base = torch.cat([pose(23.7, 1.13, 0, 0.37, -0.21), pose(211.3, 0.83, 1, -0.43, 0.29)])
    free = [ANGLE, SCALE, DOWN, RIGHT]

    def painted(pictures: Tensor, values: Tensor) -> Tensor:
        poses = base.clone()
        poses[:, free] = values
        assert poses[:, MIRRORED].tolist() == [0, 1]
        if kind in ("resampled", "moved"):
            return {"resampled": resampled, "moved": moved}[kind](pictures, poses, (9, 8))
        return sprites(pictures, poses, (9, 8), TURNED if kind == "turned" else MOVED)

    pictures = 0.45 + 0.1 * noise(2, 2, 9, 8)
    if kind != "subpixel":  # elsewhere nothing is clamped
        pictures = noise(2, 2, 5, 4)
    values = base[:, free].clone()
    assert torch.autograd.gradcheck(painted, (pictures.requires_grad_(), values.requires_grad_()), eps=1e-7, atol=1e-5)


def test_what_is_clamped_still_learns() -> None:
    """The gradient of the clamp would leave those pixels as they are that overshoot."""
    edges = torch.ones(1, 1, 5, 5, dtype=torch.float64, requires_grad=True)
    half, weights = pose(down=0.5, right=0.25), noise(1, 1, 9, 9)
    ours, theirs = (
        torch.autograd.grad((weights * painted).sum(), edges)[0]
        for painted in (sprites(edges, half, (9, 9), MOVED), moved(edges, half, (9, 9)))
    )
    close(ours, theirs)
