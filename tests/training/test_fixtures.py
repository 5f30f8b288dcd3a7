"""What is drawn at fixed places, one shape after the other, is a counter and no object."""

from __future__ import annotations

import numpy as np

from pcdnet.training.fixtures import counters
from pcdnet.training.foreground import Blob
from pcdnet.training.shapes import Seeds, choose_seeds
from tests.training.blobs import SHAPES, blob

DIGITS = [np.array(shape) for shape in ([[1, 1, 1]] * 5, [[1, 1, 1], [1, 0, 1]] * 3, [[1, 0, 0]] * 6 + [[1, 1, 1]])]
SIZE = (60, 60)


def seeds_of(blobs: list[Blob]) -> Seeds:
    """The shapes of blobs."""
    return choose_seeds(blobs, 6, (12, 12), np.random.default_rng(0))


def movers() -> list[Blob]:
    """One moving thing in each of 30 images."""
    return [blob(n, 5 + n, 4 + n % 11, SHAPES[1]) for n in range(30)]


def test_a_counter_is_where_one_shape_after_the_other_is_drawn() -> None:
    region = counters(seeds_of([blob(n, 3, 30, DIGITS[n % 3]) for n in range(30)] + movers()), SIZE)
    expected = np.zeros(SIZE, bool)
    expected[3:10, 30:33] = True
    np.testing.assert_array_equal(region, expected)


def test_a_shape_of_one_counter_belongs_to_the_other_counter_too() -> None:
    blobs = [blob(n, 3, 30, DIGITS[n % 3]) for n in range(30)] + [blob(n, 3, 50, DIGITS[0]) for n in range(30)]
    assert counters(seeds_of(blobs + movers()), SIZE)[3:8, 50:53].all()


def test_one_shape_that_stands_still_is_no_counter() -> None:
    assert not counters(seeds_of([blob(n, 3, 30, DIGITS[0]) for n in range(30)] + movers()), SIZE).any()


def test_where_things_come_by_there_is_no_counter() -> None:
    blobs = [blob(n, 3, 30, DIGITS[n % 3]) for n in range(30)] + movers()
    blobs += [blob(n, 1 + n % 5, 26 + n % 6, SHAPES[0]) for n in range(60)]
    assert not counters(seeds_of(blobs), SIZE).any()
