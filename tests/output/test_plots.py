"""Laws of the plots: every value is in one column, every object under one dot, and everything stays in its picture."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.kinds import Kind
from pcdnet.output.census import Census, Counted, Poses
from pcdnet.output.charts import HEIGHT, WIDTH
from pcdnet.output.plots import (
    BINS,
    MOST_DOTS,
    ROSE,
    binned,
    histogram,
    large_rose,
    plots,
    roses,
    size_sparks,
    sizes,
    sparks,
)

VALUES = st.lists(st.integers(0, 5000), max_size=40).map(lambda values: np.array(values, np.int64))


def census_of(objects: np.ndarray, kinds: int = 1) -> Census:
    """A census in which objects of such sizes are of the kinds by turns, all in one image."""
    every = [
        Counted(
            kind=Kind(id=k, name=f"kind {k}", group="", prototypes=(k,), colour=None),
            counts=np.array([len(objects[k::kinds])]),
            sizes=objects[k::kinds],
            areas=objects[k::kinds].prod(axis=1),
        )
        for k in range(kinds)
    ]
    total = Counted(kind=None, counts=np.array([len(objects)]), sizes=objects, areas=objects.prod(axis=1))
    return Census(images=1, everything=total, kinds=tuple(every))


@given(values=VALUES)
def test_every_value_is_in_one_range(values: np.ndarray) -> None:
    counts, ranges = binned(values, BINS)
    assert sum(counts) == len(values)
    assert len(counts) == len(ranges) <= BINS
    for count, words in zip(counts, ranges, strict=True):
        low, _, high = words.partition("-")
        assert count == ((values >= int(low)) & (values <= int(high or low))).sum()


@given(values=VALUES)
def test_columns_stay_within_their_picture_and_are_as_high_as_their_counts(values: np.ndarray) -> None:
    counts, _ = binned(values, BINS)
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', histogram(values, "words"))
    assert len(bars) == sum(count > 0 for count in counts)
    for x, y, width, height in (tuple(map(float, bar)) for bar in bars):
        assert 0 <= x <= x + width <= WIDTH
        assert 0 <= y <= y + height <= HEIGHT
    shown = [float(bar[3]) for bar in bars]
    assert np.argmax(shown) == np.argmax([count for count in counts if count] or [0]) if bars else not sum(counts)


def test_thousands_of_objects_are_few_dots_and_none_is_lost_from_the_range() -> None:
    objects = np.random.default_rng(0).integers(1, 3000, (5000, 2))
    picture = sizes(census_of(objects, 3), np.zeros((3, 3), np.uint8))
    dots = re.findall(r'<circle class="size" [^>]*cx="([\d.]+)" cy="([\d.]+)"', picture)
    assert 10 < len(dots) <= MOST_DOTS
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in dots)
    assert len(picture) < 40_000


def test_equal_sizes_are_one_dot_a_kind_in_its_colour() -> None:
    picture = sizes(census_of(np.full((6, 2), 7), 2), np.array([[255, 0, 0], [0, 0, 255]], np.uint8))
    assert sorted(re.findall(r"fill: (#\w+)", picture)) == ["#0000ff", "#ff0000"]


def test_without_an_object_there_are_no_sizes_to_plot() -> None:
    nothing = census_of(np.zeros((0, 2), np.int64))
    assert [name for name, *_ in plots(nothing, np.zeros((1, 3), np.uint8))] == ["objects in an image"]
    assert "0: 1" in sparks(nothing)[0]
    named = [name for name, *_ in plots(census_of(np.full((2, 2), 3)), np.zeros((1, 3), np.uint8))]
    assert named == ["objects in an image", "height over width", "area"]


def test_small_histograms_of_all_kinds_have_the_same_columns() -> None:
    few, many = (
        Counted(kind=None, counts=np.array(c), sizes=np.zeros((0, 2), np.int64), areas=np.zeros(0, np.int64))
        for c in ([0, 1, 1], [0, 0, 3])
    )
    both = Census(images=3, everything=many, kinds=(few, many))
    places = [re.findall(r'<rect x="([\d.]+)"', picture) for picture in sparks(both)]
    assert places == [["0.0", "18.0"], ["0.0", "54.0"]]
    assert "0: 1, 1: 2" in sparks(both)[0]


def posed_census(angles: Sequence[float], scales: Sequence[float]) -> Census:
    """A census of objects of one kind in such poses."""
    found, count = census_of(np.full((len(angles), 2), 4)), len(angles)
    poses = Poses(angles=np.array(angles, float), scales=np.array(scales, float), mirrored=np.zeros(count, bool))
    kinds = tuple(dataclasses.replace(one, poses=poses) for one in found.kinds)
    return dataclasses.replace(found, everything=dataclasses.replace(found.everything, poses=poses), kinds=kinds)


COLOUR = np.array([[255, 0, 0]], np.uint8)


def test_roses_and_sizes_are_drawn_only_where_something_is_turned_or_scaled() -> None:
    for angles, scales, names in (
        ([0, 0], [1, 1], set()),
        ([0, 90], [1, 1], {"angle"}),
        ([0, 0], [1, 2], {"scale"}),
        ([10, 0], [1, 2], {"angle", "scale"}),
    ):
        drawn = {name for name, *_ in plots(posed_census(angles, scales), COLOUR)}
        assert drawn - {"objects in an image", "height over width", "area"} == names
        assert bool(roses(posed_census(angles, scales))) == ("angle" in names)
        assert bool(size_sparks(posed_census(angles, scales))) == ("scale" in names)
    assert roses(census_of(np.full((2, 2), 4))) == size_sparks(census_of(np.full((2, 2), 4))) == []


@given(angles=st.lists(st.floats(0, 359.9), min_size=1, max_size=50))
def test_petals_point_where_objects_do_and_their_areas_are_their_numbers(angles: list[float]) -> None:
    counts = np.bincount(np.round(np.array(angles) / 15).astype(int) % 24, minlength=24)
    petals = re.findall(r'd="M0 0L(\S+) (\S+)A(\S+) \S+ 0 0 0 (\S+) (\S+)Z"', large_rose(counts))
    assert len(petals) == np.count_nonzero(counts)
    for at, petal in zip(np.flatnonzero(counts), petals, strict=True):
        x, y, length, right, down = map(float, petal)
        assert length**2 / (HEIGHT / 2 - ROSE) ** 2 == pytest.approx(counts[at] / counts.max(), abs=0.02)
        way = np.array([x + right, y + down])
        wanted = [math.cos(math.radians(15 * at)), -math.sin(math.radians(15 * at))]
        np.testing.assert_allclose(way / np.linalg.norm(way), wanted, atol=0.05)
