"""Poses are proposed only where images held out pay for them."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.data import tetrominoes
from pcdnet.training.foreground import Blob, find_foreground
from pcdnet.training.paying import poses_that_pay
from tests.training.posed_blobs import Shape, ellipse, heart, hook, posed_blob, square, triangle
from tests.training.test_assembling import ANY, exclamation, scenes, stairs

FRAME = 40, 40


def disc(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = x**2 + y**2 < 0.9
    return inside


def flag(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    staff, cloth = (np.abs(x + 0.5) < 0.2) & (np.abs(y) < 1), (np.abs(y - 0.5) < 0.4) & (np.abs(x) < 0.6)
    inside: np.ndarray = staff | cloth
    return inside


def sample(shapes: tuple[Shape, ...], step: int, sizes: tuple[float, float] = (8, 8), count: int = 400) -> list[Blob]:
    """Blobs in many images, four in each, turned by some number of steps."""
    rng = np.random.default_rng(0)
    return [
        posed_blob(
            shapes[n % len(shapes)], float(step * rng.integers(360 // step)), rng.uniform(*sizes), rng, image=n // 4
        )
        for n in range(count)
    ]


def paid(blobs: list[Blob]) -> tuple[object, ...] | None:
    found = poses_that_pay(blobs, 60, FRAME, np.random.default_rng(0))
    if found is None:
        return None
    assert "held out" in found.reason
    return found.config.rotations, found.config.fine_poses, found.config.scales > 1, found.config.mirror


SYMBOLS = heart, hook, triangle, flag


def test_quarter_turns_pay_for_symbols_in_four_turns() -> None:
    assert paid(sample(SYMBOLS, 90)) == (4, False, False, False)


def test_any_angle_pays_for_symbols_at_all_angles() -> None:
    assert paid(sample(SYMBOLS, 1)) == (24, True, False, False)


def test_sizes_pay_on_top_and_are_those_of_the_blobs() -> None:
    found = poses_that_pay(sample(SYMBOLS, 1, sizes=(6, 12)), 60, FRAME, np.random.default_rng(0))
    assert found is not None
    assert found.config.scales > 1
    assert found.config.scale_range[0] == pytest.approx(0.5, abs=0.08)
    assert found.reason.startswith("4 shapes at any angle and in any size explain")


def test_poses_pay_for_whole_objects_and_not_for_their_parts() -> None:
    found = poses_that_pay(scenes((exclamation, stairs, heart, hook), ANY, 60), 60, FRAME, np.random.default_rng(0))
    assert found is not None
    assert found.reason.startswith("4 shapes at any angle explain")


@pytest.mark.parametrize(
    "blobs",
    [
        sample(SYMBOLS, 360),
        sample((square, ellipse), 180, sizes=(6, 12)),
        sample((disc,), 1, sizes=(6, 12)),
        sample((hook, lambda x, y: hook(-x, -y), flag, triangle, square, disc, ellipse), 360),
    ],
    ids=["upright", "upright in all sizes", "discs in all sizes", "one that is another upside down"],
)
def test_none_pay_for_what_does_not_turn(blobs: list[Blob]) -> None:
    assert paid(blobs) is None


def test_none_pay_for_tetrominoes() -> None:
    images = tetrominoes.generate(300, 0).images
    blobs = find_foreground(images, np.zeros((1, 35, 35, 3), np.float32), (24, 24)).blobs
    assert paid(blobs) is None
