"""Laws of scoring poses: errors go the shorter way round, and what is a convention is taken off before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.metrics import angle_errors, typical_ratio, upright

degrees = st.floats(-720, 720)
symmetries = st.integers(1, 6)


@given(st.lists(st.tuples(degrees, degrees), max_size=9), symmetries, degrees)
def test_errors_are_those_of_directions(pairs: list[tuple[float, float]], symmetry: int, turn: float) -> None:
    found, true = np.array(pairs, np.float64).reshape(-1, 2).T
    errors = angle_errors(found, true, symmetry)
    # The same from points on a circle that is gone round `symmetry` times.
    points = np.exp(1j * np.radians(found - true) * symmetry)
    assert errors == pytest.approx(np.degrees(np.abs(np.angle(points))) / symmetry, abs=1e-5)
    assert angle_errors(true, found, symmetry) == pytest.approx(errors, abs=1e-9)
    assert angle_errors(found + turn, true + turn, symmetry) == pytest.approx(errors, abs=1e-9)
    assert angle_errors(found + 360 / symmetry, true, symmetry) == pytest.approx(errors, abs=1e-9)


@given(st.lists(degrees, min_size=1, max_size=15), symmetries)
def test_no_other_difference_is_nearer_to_all_than_the_upright(differences: list[float], symmetry: int) -> None:
    found, true = np.array(differences), np.zeros(len(differences))
    turn = upright(found, true, symmetry)
    far = [angle_errors(found, np.full(len(found), other), symmetry).sum() for other in (turn, *differences)]
    assert far[0] == pytest.approx(min(far), abs=1e-6)
    assert 0 <= turn <= 360 / symmetry


@pytest.mark.parametrize("symmetry", [1, 2, 4])
@pytest.mark.parametrize("turn", [0.0, 0.5, 44.0, 89.9])
def test_the_upright_is_found_among_a_third_of_wrong_angles(turn: float, symmetry: int) -> None:
    rng = np.random.default_rng(0)
    true = rng.uniform(0, 360, 300)
    found = true + turn + rng.normal(0, 1, 300) + 360 / symmetry * rng.integers(0, symmetry, 300)
    found[::3] = rng.uniform(0, 360, 100)
    off = angle_errors(np.array([upright(found, true, symmetry)]), np.array([turn]), symmetry)
    assert off[0] < 1
    assert np.mean(angle_errors(found - turn, true, symmetry) < 4) > 0.65


def test_the_typical_ratio_is_that_of_most() -> None:
    true = np.array([0.5, 0.7, 1.0, 0.9, 0.6])
    assert typical_ratio(np.array([1.0, 1.4, 2.0, 9.0, 0.1]), true) == pytest.approx(2)
    assert typical_ratio(true, true * 4) == pytest.approx(0.25)


def test_what_says_nothing_is_refused() -> None:
    none, one = np.zeros(0), np.ones(1)
    with pytest.raises(PcdnetError, match="0 angles to find the upright of; give"):
        upright(none, none)
    with pytest.raises(PcdnetError, match="0 scales to compare; give"):
        typical_ratio(none, none)
    with pytest.raises(PcdnetError, match="a symmetry of 0 is none; give 1"):
        angle_errors(one, one, 0)
    with pytest.raises(PcdnetError, match="angles are no numbers; give degrees"):
        angle_errors(one * np.nan, one)
    with pytest.raises(PcdnetError, match="scales go from 0.0 to 1.0; give finite ones above 0"):
        typical_ratio(one, one * 0)
    assert angle_errors(none, none).shape == (0,)
