"""Laws of intake: an image becomes what a model takes, and nothing that it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pcdnet.data.intake import LIMIT, fitted, in_eight_bits, most_pixels, resized
from pcdnet.errors import PcdnetError, Setting

RGB = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)


def test_images_get_the_channels_and_the_size_of_the_model() -> None:
    grey = RGB[..., :1]
    assert fitted(RGB, channels=3) is RGB
    np.testing.assert_array_equal(fitted(grey, channels=3, size=(6, 8)), grey.repeat(3, axis=2))
    np.testing.assert_array_equal(fitted(RGB, channels=1)[..., 0], np.asarray(Image.fromarray(RGB).convert("L")))
    assert fitted(RGB, channels=1, size=(3, 4), resize=True).shape == (3, 4, 1)


def test_an_image_of_another_size_is_refused_with_a_cure() -> None:
    problem = "6x8 pixels do not fit the model's background of 3x4; "
    with pytest.raises(PcdnetError, match=f"{problem}use resize=True$") as caught:
        fitted(RGB, channels=3, size=(3, 4))
    assert caught.value.settings == (Setting("resize", True),)
    with pytest.raises(PcdnetError, match=f"{problem}send another$"):
        fitted(RGB, channels=3, size=(3, 4), cure=("send another",))


@given(st.lists(st.integers(0, 255), min_size=1))
def test_eight_bits_survive_as_fractions(values: list[int]) -> None:
    assert in_eight_bits(np.array(values) / 255).tolist() == values
    eight = np.array(values, np.uint8)
    assert in_eight_bits(eight, (100, 200)) is eight  # 8 bits stay as they are, whatever the range


@given(value=st.integers(0, 65535))
def test_sixteen_bits_are_rounded_to_eight(value: int) -> None:
    assert in_eight_bits(np.array([value], np.uint16)) == round(value / 257)


@given(st.lists(st.floats(-2000, 2000), min_size=1), st.sampled_from([np.uint16, np.int32, np.float32, np.float64]))
def test_a_range_of_values_becomes_black_to_white_and_what_is_beyond_is_cut(values: list[float], dtype: type) -> None:
    given = np.abs(values).astype(dtype) if dtype is np.uint16 else np.array(values, dtype)
    found = in_eight_bits(given, (200, 1100))
    assert found.dtype == np.uint8
    exact = ((given.astype(float) - 200) / 900 * 255).clip(0, 255)
    assert np.abs(found - exact).max() <= 0.501


def test_what_is_no_number_becomes_black() -> None:
    assert in_eight_bits(np.array([np.nan, -np.inf, np.inf, 1100]), (200, 1100)).tolist() == [0, 0, 255, 255]


def test_the_limit_on_pixels_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    assert most_pixels() == 8192**2
    monkeypatch.setenv(LIMIT, "2500000000")
    assert most_pixels() == 50_000**2
    monkeypatch.setenv(LIMIT, "2.5e9")
    with pytest.raises(PcdnetError, match="PCDNET_MAX_PIXELS is '2.5e9'; set it to a number of pixels"):
        most_pixels()


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, np.inf])
def test_values_that_are_no_fractions_are_refused(value: float) -> None:
    with pytest.raises(
        PcdnetError, match="it has values from .*; give 8 bits, values of 0 to 1, or those that are .* as values$"
    ):
        in_eight_bits(np.array([0.5, value]), None, "it")


@given(height=st.integers(1, 20), width=st.integers(1, 20), value=st.integers(0, 255), channels=st.sampled_from([1, 3]))
def test_resizing_keeps_what_is_even(height: int, width: int, value: int, channels: int) -> None:
    image = np.full((7, 11, channels), value, np.uint8)
    found = resized(image, (height, width))
    assert found.shape == (height, width, channels)
    assert (found == value).all()


def test_shrinking_averages_and_leaves_no_halo() -> None:
    image = np.zeros((60, 60, 1), np.uint8)
    image[::2] = 200
    assert np.abs(resized(image, (10, 10))[2:-2].astype(int) - 100).max() <= 6
    step = np.full((60, 60, 1), 50, np.uint8)
    step[:, 30:] = 200
    found = resized(step, (20, 20))
    assert (found.min(), found.max()) == (50, 200)


@pytest.mark.parametrize("size", [(0, 3), (3, -1), (10**6, 10**6)])
def test_a_size_that_is_none_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(PcdnetError, match="cannot be resized to .*; give a height and a width from 1, .*, as resize"):
        resized(RGB, size)
