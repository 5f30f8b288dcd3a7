"""What stands out from the background falls into blobs; what is too large for an object is clutter."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.training.foreground import find_foreground, joined, still_background
from tests.training.blobs import frames


def test_the_still_background_is_what_is_there_most_of_the_time() -> None:
    images = frames(80, noise=0)
    ground = np.random.default_rng(0).integers(60, 90, (40, 50, 3))
    np.testing.assert_allclose(still_background(images, (9, 9)) * 255, ground, atol=0.5)


def test_what_stands_still_but_comes_and_goes_is_no_background() -> None:
    images = np.full((40, 30, 30, 1), 20, np.uint8)
    images[:, 25:] = 90  # the ground, always there
    images[:, 4:7, 20:24] = 200  # a mark on the background, always there
    images[:30, 10:16, 8:14] = 150  # a thing that is mostly there
    background = still_background(images, (8, 8))[..., 0] * 255
    assert background[12, 10] == pytest.approx(20)
    assert background[5, 22] == pytest.approx(200)
    assert background[27, 3] == pytest.approx(90)


def test_faint_and_small_things_stand_out_where_there_is_no_noise() -> None:
    images = np.full((12, 40, 40, 3), 100, np.uint8)
    for n, image in enumerate(images):
        image[3:5, 3 * n : 3 * n + 2] = 255  # a ball of four pixels
        image[20:26, 2 * n : 2 * n + 9] = 115  # pale
    found = find_foreground(images, still_background(images, (12, 12))[None], (12, 12))
    assert len(found.blobs) == 24
    assert not found.clutter.any()


def test_noise_alone_is_no_foreground() -> None:
    noise = np.random.default_rng(0).normal(100, 12, (20, 40, 40, 1))
    images = noise.round().clip(0, 255).astype(np.uint8)
    assert len(find_foreground(images, still_background(images, (12, 12))[None], (12, 12)).blobs) < 5


def test_ripples_as_wide_as_the_image_are_clutter_and_no_blobs() -> None:
    images = np.full((20, 40, 60, 3), 30, np.uint8)
    for n, image in enumerate(images):
        image[10 + n % 2] = 90
        image[30:34, n : n + 5] = 200
    found = find_foreground(images, np.full((1, 40, 60, 3), 30 / 255, np.float32), (12, 18))
    assert found.clutter[10].all()
    assert not found.clutter[25:].any()
    assert {blob.top for blob in found.clear()} == {30}


def test_joined_blobs_cover_what_each_of_them_covers() -> None:
    images = np.zeros((1, 20, 20, 1), np.uint8)
    images[0, 2:5, 3:6] = 255
    images[0, 9:12, 4:8] = 128
    blobs = find_foreground(images, np.zeros((1, 20, 20, 1), np.float32), (15, 15)).blobs
    both = joined(blobs)
    assert (both.top, both.left, *both.mask.shape) == (2, 3, 10, 5)
    assert both.mask.sum() == 9 + 12
    assert both.energy == pytest.approx(sum(blob.energy for blob in blobs))
