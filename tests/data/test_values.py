"""Laws of values: the range holds what is in the images, and outliers do not decide it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data.intake import in_eight_bits
from pcdnet.data.values import value_range


def noisy(low: int, high: int, seed: int = 0, size: tuple[int, int] = (96, 80)) -> np.ndarray:
    """A 16-bit image in which all values of a range are."""
    return np.random.default_rng(seed).integers(low, high + 1, (*size, 1)).astype(np.uint16)


@given(low=st.integers(0, 30_000), span=st.integers(1, 30_000))
def test_the_range_of_many_values_is_found(low: int, span: int) -> None:
    found = value_range(noisy(low, low + span, seed) for seed in range(4))
    assert low <= found[0] <= low + 0.02 * span + 1
    assert low + 0.98 * span - 1 <= found[1] <= low + span


def test_a_single_hot_or_dead_pixel_changes_nothing() -> None:
    images = [noisy(200, 1100, seed) for seed in range(3)]
    expected = value_range(images)
    for image in images:
        image[20, 30], image[50, 70] = 65535, 0
    assert value_range(images) == expected


def test_one_small_thing_in_a_dark_picture_is_not_cut_off() -> None:
    images = [noisy(200, 220, seed, (256, 256)) for seed in range(20)]
    for n, image in enumerate(images):
        image[8 * n + 3 : 8 * n + 6, 40:43] = 1000  # 9 of 65,536 pixels, beyond the 99.9th percentile of pixels
    low, high = value_range(images)
    assert (low, high) == (200, 1000)  # as one of 1,024 blocks
    assert in_eight_bits(images[0], (low, high))[:3].max() <= 7  # so the noise is not blown up


@given(st.floats(-1e6, 1e6), st.sampled_from([np.uint16, np.int32, np.float32, np.float64]))
def test_images_in_which_nothing_differs_have_a_range_too(value: float, dtype: Any) -> None:
    low, high = value_range([np.full((16, 16, 1), abs(value) % 65535, dtype)])
    assert low < high


def test_what_is_no_number_does_not_count() -> None:
    image = np.linspace(-3, 5, 64 * 64).reshape(64, 64, 1)
    image[:8], image[30, 30] = np.nan, np.inf
    low, high = value_range([image])
    assert -3 < low < -1.9
    assert 4.9 < high <= 5
    assert value_range([np.full((9, 9, 1), np.nan)]) == (0, 1)


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (5, 3), (4000, 3000)])
def test_images_of_any_size_have_a_range(size: tuple[int, int]) -> None:
    assert value_range([np.full((*size, 1), 7, np.uint16)]) == (7, 8)
    assert value_range([np.full((*size, 3), 7.5)]) == (7.5, 8.5)


def test_colours_share_one_range() -> None:
    colours = np.concatenate([noisy(100, 200), noisy(300, 400), noisy(500, 600)], axis=2)
    assert value_range([colours]) == (100, 600)
