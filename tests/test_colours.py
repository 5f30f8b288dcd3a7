"""Laws of colours: people can tell them apart, the colour-blind too, and pictures keep their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pcdnet.colours import (
    PALETTE,
    as_hex,
    as_rgb,
    colour_words,
    coloured,
    comparable,
    instance_colours,
    prototype_colours,
)


def test_no_two_colours_of_the_palette_are_alike() -> None:
    for colours in (PALETTE, instance_colours(12)):
        everything = np.concatenate([colours, [[0, 0, 0]]]).astype(float)
        distance = np.linalg.norm(everything[:, None] - everything[None], axis=-1)
        assert distance[~np.eye(len(everything), dtype=bool)].min() > 32


@pytest.mark.parametrize(
    "sight",
    [
        # How people without red and without green receptors see linear RGB (Machado, Oliveira and Fernandes, 2009).
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    ],
)
def test_the_colour_blind_can_tell_prototypes_apart(sight: list[list[float]]) -> None:
    linear = ((PALETTE / 255 + 0.055) / 1.055) ** 2.4
    seen = 255 * np.clip(linear @ np.array(sight).T, 0, 1) ** (1 / 2.4)
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + 999 * np.eye(len(seen))
    assert distance[:7, :7].min() > 30
    assert distance.min() > 12


@given(arrays(np.int64, array_shapes(), elements=st.integers(0, 31)))
def test_prototypes_have_the_colours_of_the_palette_over_and_over(kinds: np.ndarray) -> None:
    colours = prototype_colours(kinds)
    assert colours.shape == (*kinds.shape, 3)
    for index in np.ndindex(kinds.shape):
        assert (colours[index] == PALETTE[kinds[index]]).all()
    np.testing.assert_array_equal(prototype_colours(kinds + 32), colours)


@given(st.integers(0, 40), st.integers(0, 40))
def test_an_object_keeps_its_colour_whatever_comes_behind_it(count: int, more: int) -> None:
    np.testing.assert_array_equal(instance_colours(count + more)[:count], instance_colours(count))


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2), elements=st.integers(0, 255)), st.sampled_from([1, 3]))
def test_pictures_of_fractions_keep_their_eight_bits(values: np.ndarray, channels: int) -> None:
    picture = np.repeat(values[..., None], channels, axis=2)
    np.testing.assert_array_equal(as_rgb(picture.astype(np.float32) / 255), np.repeat(values[..., None], 3, axis=2))


def test_what_is_brighter_than_white_is_white() -> None:
    assert as_rgb(np.array([[[-0.5], [1.5]]], np.float32)).tolist() == [[[0, 0, 0], [255, 255, 255]]]


@given(arrays(np.int32, array_shapes(min_dims=2, max_dims=2), elements=st.integers(0, 5)))
def test_labels_have_their_colours_and_the_background_is_black(labels: np.ndarray) -> None:
    picture = coloured(labels, PALETTE[:5])
    assert not picture[labels == 0].any()
    for label in range(1, 6):
        assert (picture[labels == label] == PALETTE[label - 1]).all()


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_a_colour_as_html_has_it_is_the_colour(colour: tuple[int, int, int]) -> None:
    text = as_hex(np.array(colour, np.uint8))
    assert text[0] == "#"
    assert tuple(bytes.fromhex(text[1:])) == colour


def test_every_basic_colour_has_its_word() -> None:
    colours = {
        "black": (0.05, 0.0, 0.1),
        "grey": (0.5, 0.5, 0.5),
        "white": (1.0, 1.0, 0.95),
        "red": (0.9, 0.1, 0.1),
        "orange": (1.0, 0.6, 0.0),
        "brown": (0.45, 0.25, 0.1),
        "yellow": (0.9, 0.9, 0.1),
        "green": (0.1, 0.7, 0.2),
        "cyan": (0.1, 0.9, 0.9),
        "blue": (0.1, 0.2, 0.9),
        "purple": (0.6, 0.1, 0.9),
        "pink": (1.0, 0.2, 0.7),
    }
    assert colour_words(list(colours.values())) == list(colours)


def test_colours_of_one_word_are_told_apart_by_brightness() -> None:
    assert colour_words([(0.9, 0.2, 0.2), (0.4, 0.1, 0.1), (0.0, 0.0, 1.0)]) == ["light red", "dark red", "blue"]
    assert colour_words([(0.6,), (0.3,), (0.45,)]) == ["grey 3", "grey 1", "grey 2"]


@given(st.lists(st.tuples(*[st.floats(-1, 2)] * 3), max_size=6))
def test_no_word_stands_for_two_colours(colours: list[tuple[float, float, float]]) -> None:
    assert len(set(colour_words(colours))) == len(colours)


@given(st.tuples(*[st.floats(0.5, 1)] * 3), st.floats(0.6, 1))
def test_darker_is_less_different_than_it_is_in_rgb(colour: tuple[float, float, float], dark: float) -> None:
    pair = np.array([colour, [dark * value for value in colour]])
    assert np.linalg.norm(np.subtract(*comparable(pair))) <= 0.5 * np.linalg.norm(np.subtract(*pair)) + 1e-9


def test_hues_are_as_different_as_they_are_in_rgb_and_grey_is_as_it_is() -> None:
    pair = np.eye(3)[:2]
    assert np.linalg.norm(np.subtract(*comparable(pair))) == np.linalg.norm(np.subtract(*pair))
    grey = np.array([[0.2], [0.7]])
    np.testing.assert_array_equal(comparable(grey), grey)
