"""Laws of the curves: they stay within their picture, higher is higher up, and what is not known is left out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pcdnet.output.curves import MOST_POINTS, curve, learning_curves


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values",
    [[1.0], [0.5, 0.5], [0.0, 1.0], [1e-6, 1e3], [float("nan"), 1.0], [-1.0, 2.0], list(np.linspace(1, 2, 999))],
)
def test_a_curve_stays_within_its_picture(values: list[float], log: bool) -> None:
    svg = curve(list(enumerate(values)), log=log)
    path = re.search(r'class="curve" d="M([^"]*)"', svg)
    assert path is not None
    points = [tuple(map(float, point.split())) for point in path[1].split("L")]
    assert 1 <= len(points) <= MOST_POINTS
    assert all(0 <= x <= 360 and 0 <= y <= 200 for x, y in points)


def test_a_curve_of_nothing_is_nothing() -> None:
    assert curve([]) == ""
    assert curve([(1, 0.0)], log=True) == ""


def test_higher_is_higher_up() -> None:
    for log in (False, True):
        path = re.search(r'class="curve" d="M([^"]*)"', curve([(0, 1.0), (1, 2.0), (2, 4.0)], log=log))
        assert path is not None
        heights = [float(point.split()[1]) for point in path[1].split("L")]
        assert heights == sorted(heights, reverse=True)


def names(validation: dict[str, float | None]) -> list[str]:
    """The curves of a run with such a validation."""
    lines: list[dict[str, Any]] = [{"step": 1, "loss": 0.1, "in_use": 3}, {"step": 1, "validation": validation}]
    return [name for name, *_ in learning_curves(lines, 4)]


def test_quality_is_fg_ari_or_else_f1_or_else_left_out() -> None:
    assert names({"fg_ari": 0.9, "f1": 0.8, "mse": 0.1}) == ["loss", "FG-ARI", "MSE", "prototypes in use"]
    assert names({"fg_ari": None, "f1": 0.8, "mse": 0.1}) == ["loss", "F1", "MSE", "prototypes in use"]
    assert names({"fg_ari": None, "f1": None, "mse": 0.1}) == ["loss", "MSE", "prototypes in use"]
    assert learning_curves([], 4) == []


def test_the_last_value_is_written_out() -> None:
    lines = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.0123}]
    assert [last for *_, last, _ in learning_curves(lines, 4)] == ["0.012"]


def test_a_curve_without_finite_values_is_left_out() -> None:
    assert learning_curves([{"step": 1, "loss": float("nan")}], 4) == []
