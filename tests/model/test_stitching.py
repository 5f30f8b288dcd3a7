"""Laws of stitching: one object for every one that there is, in an order that all tiles agree with."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.model.stitching import Found, Stamps, _front_to_back, painted, stitch

SIDE = 8
SIZE = (40, 60)
SEAMS: tuple[list[float], list[float]] = ([], [30.0])
"""Two tiles side by side."""
STAMPS = Stamps(
    np.ones((2, SIDE, SIDE), np.float32), np.ones((2, SIDE, SIDE), np.float32), np.array([[0, 0, SIDE, SIDE]] * 2)
)


def objects(*rows: tuple[int, int, int, float, int, int]) -> Found:
    """Objects of which each is row, column, prototype, colour, tile and rank; bright ones explain more."""
    row, column, prototype, colour, tile, rank = map(np.array, zip(*rows, strict=True))
    values = colour.astype(np.float32)
    return Found(prototype, np.stack([row, column], axis=1), values[:, None], 64 * values, tile, rank)


def stitched(found: Found, image: np.ndarray, least: float = 1.0) -> list[tuple[int, ...]]:
    """Row and column of the objects of an image over black, front to back."""
    kept = stitch(
        found,
        STAMPS,
        SEAMS,
        lambda row, column, size: image[row : row + size[0], column : column + size[1]],
        lambda _, __, size: np.zeros((*size, 1), np.float32),
        SIZE,
        least,
    )
    return [tuple(row) for row in kept.position.tolist()]


def image_of(found: Found) -> np.ndarray:
    """What objects look like, the first in front."""
    picture = np.zeros((*SIZE, 1), np.float32)
    painted(found, STAMPS, picture, np.zeros(SIZE, np.int32))
    return picture


def test_every_object_is_that_of_the_tile_in_which_its_middle_lies() -> None:
    found = objects((5, 10, 0, 0.5, 0, 0), (20, 27, 1, 0.6, 0, 1), (20, 27, 1, 0.6, 1, 0), (5, 50, 0, 0.7, 1, 1))
    image = image_of(found.part(np.array([0, 2, 3])))
    assert sorted(stitched(found, image)) == [(5, 10), (5, 50), (20, 27)]


@pytest.mark.parametrize("better", [26, 25])
def test_what_each_tile_takes_for_its_own_stays_once_where_it_fits_better(better: int) -> None:
    """The left tile sees the middle left of the seam, the right tile right of it."""
    found = objects((9, 25, 0, 0.6, 0, 0), (9, 26, 0, 0.6, 1, 0))
    assert stitched(found, image_of(objects((9, better, 0, 0.6, 0, 0)))) == [(9, better)]


def test_what_each_tile_takes_for_the_others_is_not_lost() -> None:
    found = objects((9, 27, 0, 0.6, 0, 0), (9, 25, 0, 0.6, 1, 0))
    assert stitched(found, image_of(objects((9, 27, 0, 0.6, 0, 0)))) == [(9, 27)]


def test_what_is_misread_behind_the_seam_is_not_taken() -> None:
    """The left tile misreads what it sees cut off, far behind the seam; nothing is there in truth."""
    found = objects((9, 10, 0, 0.6, 0, 0), (9, 40, 0, 0.9, 0, 1))
    assert stitched(found, image_of(objects((9, 10, 0, 0.6, 0, 0), (9, 40, 0, 0.9, 0, 1)))) == [(9, 10)]


def test_objects_that_overlap_across_a_seam_both_stay_in_the_order_of_the_tiles() -> None:
    """Both tiles see both, the darker in front."""
    pair = ((9, 24, 0, 0.5, 0, 0), (12, 28, 1, 0.9, 0, 1))
    found = objects(*pair, *((*thing[:4], 1, rank) for rank, thing in enumerate(pair)))
    assert stitched(found, image_of(objects(*pair))) == [(9, 24), (12, 28)]


def test_objects_that_do_not_overlap_come_by_what_they_explain() -> None:
    found = objects((5, 5, 0, 0.2, 0, 0), (25, 5, 0, 0.8, 0, 1), (5, 45, 0, 0.9, 1, 0), (25, 45, 0, 0.5, 1, 1))
    assert stitched(found, image_of(found)) == [(5, 45), (25, 5), (25, 45), (5, 5)]


def test_an_order_that_goes_in_a_circle_is_an_order_all_the_same() -> None:
    """It is opened at what explains most, and all that is not in the circle keeps its place."""
    found = objects(*((9, 20, 0, colour, 0, 0) for colour in (0.5, 0.6, 0.7, 0.4)))
    assert _front_to_back(found, np.arange(4), {0: [1], 1: [2], 2: [0, 3]}) == [2, 0, 1, 3]


def test_nothing_found_is_nothing_stitched() -> None:
    assert stitched(Found.room(0, 1), np.zeros((*SIZE, 1), np.float32)) == []


def test_labels_are_those_of_the_front_and_parts_outside_are_left_out() -> None:
    found, labels = (
        objects((-4, -4, 0, 0.5, 0, 0), (0, 0, 1, 0.9, 0, 1), (36, 57, 0, 0.7, 0, 2)),
        np.zeros(SIZE, np.int32),
    )
    picture = np.zeros((*SIZE, 1), np.float32)
    painted(found, STAMPS, picture, labels)
    assert (labels[:4, :4] == 1).all()
    assert (labels[4:8, :8] == 2).all()
    assert np.bincount(labels.ravel()).tolist() == [SIZE[0] * SIZE[1] - 64 - 12, 16, 48, 12]
    assert picture[3, 3, 0] == np.float32(0.5)
