"""Things that never move but look like things that do are no part of the background."""

from __future__ import annotations

import numpy as np

from pcdnet.training.foreground import still_background
from pcdnet.training.standing import find_standing, first_background
from tests.training.blobs import SHAPES, frames

RAGGED = np.array([[0, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1], [0, 1, 0, 1, 0], [1, 1, 0, 1, 1]])


def films(*, standing: bool) -> np.ndarray:
    """A ragged shape that moves over a road with a lane; another one may stand on the lane all the time."""
    rng = np.random.default_rng(0)
    images = np.full((40, 40, 60, 3), 90, np.uint8)
    images[:, 28:36] = 140
    images[:, 31:33, 5:20] = 230  # a bar is no thing that moves
    for image in images:
        row, column = rng.integers(1, 22), rng.integers(1, 54)
        image[row : row + 5, column : column + 5][RAGGED > 0] = (250, 220, 30)
        if standing:
            image[29:34, 40:45][RAGGED > 0] = (30, 220, 60)
    return images


def test_what_stands_on_a_lane_gives_way_to_the_lane() -> None:
    with_thing, without = films(standing=True), films(standing=False)
    background = first_background("still", with_thing, (9, 9))
    assert background is not None
    np.testing.assert_allclose(background, still_background(without, (9, 9)), atol=1e-3)
    assert np.abs(still_background(with_thing, (9, 9)) - background).max() > 0.2  # else there was nothing to do


def test_a_background_without_such_things_stays_as_it_is() -> None:
    for images in (films(standing=False), frames(60)):
        np.testing.assert_array_equal(first_background("still", images, (9, 9)), still_background(images, (9, 9)))


def test_a_shape_is_found_in_any_colour_but_not_inside_of_a_larger_one() -> None:
    picture = np.full((30, 30, 3), 0.4, np.float32)
    shape = RAGGED > 0
    picture[4:9, 3:8][shape] = (0.1, 0.9, 0.2)
    picture[12:28, 12:28] = 0.9  # flat, and larger than the shape
    found = find_standing(picture, np.ones((5, 5), np.float32), shape)
    assert found.tolist() == [[4, 3]]


def test_a_black_shape_is_found_too() -> None:
    picture = np.full((20, 20, 1), 0.5, np.float32)
    picture[4:9, 3:8][RAGGED > 0] = 0
    assert find_standing(picture, np.zeros((5, 5), np.float32), RAGGED > 0).tolist() == [[4, 3]]


def test_shapes_that_do_not_fit_into_the_picture_are_not_found() -> None:
    assert len(find_standing(np.zeros((4, 4, 1), np.float32), np.ones((3, 5), np.float32), SHAPES[1] > 0)) == 0
