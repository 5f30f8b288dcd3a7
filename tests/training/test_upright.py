"""Upright follows from the shape."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.training.upright import harmonics, upright
from tests.training.posed_blobs import Shape, ellipse, heart, hook, posed_blob, square, triangle


def mask(shape: Shape, angle: float) -> np.ndarray:
    made: np.ndarray = posed_blob(shape, angle, 14, np.random.default_rng(0)).mask.astype(np.float32)
    return made


@pytest.mark.parametrize(("shape", "symmetry"), [(heart, 1), (hook, 1), (triangle, 1), (ellipse, 2), (square, 4)])
def test_a_shape_that_is_turned_is_turned_back_to_the_same(shape: Shape, symmetry: int) -> None:
    still, _ = upright(mask(shape, 0))
    for angle in (17.0, 90.0, 133.0, 301.0):
        away = (upright(mask(shape, angle))[0] - (still - angle)) % (360 / symmetry)
        assert min(away, 360 / symmetry - away) < 3


def test_a_disc_is_upright_as_it_is() -> None:
    rows, columns = np.indices((31, 31)) - 15
    assert upright((rows**2 + columns**2 < 150).astype(np.float32)) == (0.0, ())


def test_turning_by_a_quarter_turns_the_phases() -> None:
    picture = mask(hook, 20)
    one, two = harmonics(picture), harmonics(np.rot90(picture))
    orders = np.arange(2, 2 + len(one))
    assert np.allclose(two, one * np.exp(0.5j * np.pi * orders))
