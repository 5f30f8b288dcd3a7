"""Laws of outlines: areas, turns and sizes are those of geometry, wherever a shape lies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.data.outlines import Outline, disc, drawn, ellipse, joined, polygon, ring, shifted, stroke

TRIANGLE = polygon((-6.0, -5.0), (6.0, -5.0), (-6.0, 7.0))
REACH = 10.0
SHAPES: dict[str, tuple[Callable[[], Outline], float]] = {
    "disc": (lambda: disc(7), np.pi * 49),
    "ellipse": (lambda: ellipse(9, 5), np.pi * 45),
    "triangle": (lambda: TRIANGLE, 72),
    "stroke": (lambda: stroke(3, (-6, 0), (6, 0)), 36 + np.pi * 2.25),
    "ring": (lambda: ring(2, disc(7)), np.pi * (64 - 36)),
    "two": (lambda: joined(disc(4, (-5, 0)), disc(4, (5, 0))), np.pi * 32),
}


@pytest.mark.parametrize("shape", list(SHAPES))
@settings(max_examples=15)
@given(st.tuples(*[st.floats(-20, 20)] * 2), st.floats(0, 360), st.floats(0.7, 2))
def test_the_area_is_that_of_the_shape_wherever_it_lies(
    shape: str, centre: tuple[float, float], angle: float, scale: float
) -> None:
    outline, area = SHAPES[shape][0](), SHAPES[shape][1]
    alpha, top, left = drawn(outline, REACH, centre=centre, angle=angle, scale=scale)
    assert alpha.sum() == pytest.approx(area * scale**2, rel=0.04)
    assert 0 == alpha.min() <= alpha.max() == 1
    assert max(alpha[[0, -1]].max(), alpha[:, [0, -1]].max()) == 0  # nothing is cut off
    assert top <= centre[0] <= top + alpha.shape[0]
    assert left <= centre[1] <= left + alpha.shape[1]


@pytest.mark.parametrize("turns", range(4))
def test_quarter_turns_are_counter_clockwise_and_whole_shifts_move_all(turns: int) -> None:
    upright, top, left = drawn(TRIANGLE, REACH)
    turned, *corner = drawn(TRIANGLE, REACH, centre=(5, -40), angle=90.0 * turns)
    assert turned == pytest.approx(np.rot90(upright, turns), abs=1e-4)
    assert corner == [top + 5, left - 40]


def test_x_goes_to_the_right_and_y_upwards() -> None:
    alpha, top, left = drawn(disc(1, (6, 3)), REACH)
    row, column = np.argwhere(alpha == alpha.max()).mean(axis=0)
    assert (top + row, left + column) == pytest.approx((-3, 6))
    moved, *corner = drawn(shifted(disc(1), 6, 3), REACH)
    assert corner == [top, left]
    assert moved == pytest.approx(alpha)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_centre_may_lie_between_pixels(row: float, column: float) -> None:
    alpha, top, left = drawn(disc(6), REACH, centre=(row, column))
    rows, columns = np.indices(alpha.shape)
    middle = (alpha * rows).sum() / alpha.sum() + top, (alpha * columns).sum() / alpha.sum() + left
    assert middle == pytest.approx((row, column), abs=0.02)
