"""Laws of charts: everything stays within its picture, more is further along, and words are escaped."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists

from pcdnet.output.charts import HEIGHT, WIDTH, Frame, bars, drawable, wide

NUMBERS = lists(floats(1e-9, 1e9), min_size=1, max_size=9)


@given(xs=NUMBERS, ys=NUMBERS)
@pytest.mark.parametrize("log", [False, True])
def test_every_point_is_within_the_picture_and_more_is_further_along(
    xs: list[float], ys: list[float], log: bool
) -> None:
    frame = Frame(xs, ys, log_x=log, log_y=log)
    places = [(frame.across(x), frame.up(y)) for x, y in zip(sorted(xs), sorted(ys), strict=False)]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    words = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', frame.picture())
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in words)


@given(numbers=lists(floats(), min_size=1, max_size=9))
@pytest.mark.parametrize("log", [False, True])
def test_whatever_numbers_there_are_those_that_have_a_place_can_be_drawn(numbers: list[float], log: bool) -> None:
    points = drawable([(x, x) for x in numbers], log_x=log, log_y=log)
    if points:
        frame = Frame([x for x, _ in points], [y for _, y in points], log_x=log, log_y=log)
        assert "nan" not in frame.picture(frame.path(points), frame.dots(points))


def test_names_stand_below_their_points_and_are_escaped() -> None:
    frame = Frame((0, 1), (1, 2), names=["<b>", "other"])
    picture = frame.picture(frame.dots([(1, 1.5)]))
    assert "&lt;b&gt;" in picture
    assert f'<text x="{frame.across(1):.1f}"' in picture
    assert f'<circle cx="{frame.across(1):.1f}"' in picture


def test_bars_are_as_long_as_their_shares() -> None:
    picture = bars({"train.<lr>": 0.75, "loss.tv": 0.25})
    long, short = (float(width) for width in re.findall(r'width="([\d.]+)"', picture))
    assert long == pytest.approx(3 * short, abs=0.1)
    assert "train.&lt;lr&gt;" in picture
    assert "75 %" in picture
    assert bars({}) == bars({})


def test_what_has_no_place_is_left_out() -> None:
    points = [(1, 1.0), (2, float("nan")), (0, 1.0), (3, 0.0), (float("inf"), 1.0)]
    assert drawable(points) == [(1, 1.0), (0, 1.0), (3, 0.0)]
    assert drawable(points, log_x=True, log_y=True) == [(1, 1.0)]
    assert [wide(values) for values in ([1, 10], [1, 9], [0, 9])] == [True, False, False]
