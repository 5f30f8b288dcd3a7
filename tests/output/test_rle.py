"""Laws of run-length encoding: COCO's own tools read the masks that went in."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pcdnet.output.rle import corners, decode, encode

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' own
masks = pytest.importorskip("pycocotools.mask")


def by_coco(mask: np.ndarray) -> str:
    """The string that COCO's own tools make of a mask."""
    counts: bytes = importlib.import_module("pycocotools.mask").encode(np.asfortranarray(mask.astype(np.uint8)))[
        "counts"
    ]
    return counts.decode()


@given(st.data(), array_shapes(min_dims=3, max_dims=3, max_side=12), st.integers(0, 4))
def test_strings_are_those_of_coco(data: st.DataObject, shape: tuple[int, ...], objects: int) -> None:
    labels = data.draw(arrays(np.int32, shape, elements=st.integers(0, objects)))
    expected = [[by_coco(image == n + 1) for n in range(objects)] for image in labels]
    assert encode(labels, [objects] * len(labels)) == expected


@pytest.mark.parametrize("size", [(1, 1), (3, 70_000), (70_000, 3), (600, 900)])
def test_long_runs_are_those_of_coco_too(size: tuple[int, int]) -> None:
    labels = np.zeros((2, *size), np.int32)
    labels[0, : size[0] // 2, : size[1] // 3] = 1
    labels[0, size[0] // 2 :, size[1] // 3 :] = 2
    labels[1, -1, -1] = 1
    assert encode(labels, [2, 1]) == [[by_coco(labels[0] == 1), by_coco(labels[0] == 2)], [by_coco(labels[1] == 1)]]


def test_images_may_have_different_numbers_of_objects_and_hidden_ones_have_empty_masks() -> None:
    labels = np.array([[[0, 2]], [[0, 0]], [[1, 1]]], np.int32)
    strings = encode(labels, [3, 0, 1])
    assert [len(image) for image in strings] == [3, 0, 1]
    decoded = [[masks.decode({"size": [1, 2], "counts": text}).tolist() for text in image] for image in strings]
    assert decoded == [[[[0, 0]], [[0, 1]], [[0, 0]]], [], [[[1, 1]]]]


def test_no_image_gives_no_masks() -> None:
    assert encode(np.zeros((0, 4, 4), np.int32), []) == []
    assert encode(np.zeros((2, 4, 4), np.int32), [0, 0]) == [[], []]


@given(st.data(), array_shapes(min_dims=3, max_dims=3, max_side=12), st.integers(0, 4))
def test_strings_are_read_back_as_the_masks_that_they_were(
    data: st.DataObject, shape: tuple[int, ...], objects: int
) -> None:
    labels = data.draw(arrays(np.int32, shape, elements=st.integers(0, objects)))
    for image, words in zip(labels, encode(labels, [objects] * len(labels)), strict=True):
        for n, word in enumerate(words):
            np.testing.assert_array_equal(decode(word, (shape[1], shape[2])), image == n + 1)


@given(st.data(), array_shapes(min_dims=2, max_dims=2, max_side=9))
def test_all_pixels_lie_between_the_corners(data: st.DataObject, shape: tuple[int, int]) -> None:
    mask = data.draw(arrays(np.int32, shape, elements=st.integers(0, 1)))
    pixels, found = np.argwhere(mask), corners(encode(mask[None], [1])[0][0], shape)
    assert set(map(tuple, found.tolist())) <= set(map(tuple, pixels.tolist()))
    assert len(found) > 0 or len(pixels) == 0
    for angle in np.linspace(0, 2 * np.pi, 17) if len(pixels) else ():
        way = np.array([np.cos(angle), np.sin(angle)])
        assert (found @ way).max() == pytest.approx((pixels @ way).max())


@pytest.mark.parametrize("size", [(3, 70_000), (70_000, 3)])
def test_long_runs_are_read_back_too(size: tuple[int, int]) -> None:
    labels = np.zeros((1, *size), np.int32)
    labels[0, : size[0] // 2 + 1, : size[1] // 3] = 1
    labels[0, -1, -1] = 1
    np.testing.assert_array_equal(decode(encode(labels, [1])[0][0], size), labels[0] == 1)


@given(st.text(alphabet=[chr(c) for c in range(40, 120)], max_size=12))
def test_other_strings_are_refused_or_are_masks(word: str) -> None:
    try:
        mask = decode(word, (3, 4))
    except ValueError:
        return
    assert mask.shape == (3, 4)
