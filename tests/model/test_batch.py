"""What the model takes as images, and what it says to the rest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pcdnet.errors import PcdnetError
from pcdnet.model.batch import check_batch, to_batch


def test_bytes_and_floats_mean_the_same_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 6, 3), dtype=np.uint8)
    torch.testing.assert_close(to_batch(pixels, 3), to_batch(pixels.astype(np.float32) / 255, 3))
    torch.testing.assert_close(to_batch(pixels, 3).double(), to_batch(pixels / 255, 3), atol=1e-7, rtol=0)


def test_one_image_is_a_batch_of_one() -> None:
    assert to_batch(np.zeros((5, 6, 3), np.uint8), 3).shape == (1, 3, 5, 6)
    assert to_batch(np.zeros((5, 6), np.uint8), 1).shape == (1, 1, 5, 6)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 5, 6, 3), np.int64), "dtype int64; give uint8"),
        (np.zeros((2, 5, 6, 3), bool), "dtype bool; give uint8"),
        (np.array([["a"]]), "dtype <U1; give uint8"),
        (np.full((5, 6, 3), 255.0), "from 255 to 255; divide by 255"),
        (np.full((5, 6, 3), -0.5), "from -0.5 to -0.5; scale them"),
        (np.full((5, 6, 3), np.nan), "hold NaN; replace"),
        (np.full((5, 6, 3), np.inf), "to inf; "),
        (np.zeros((5, 6, 4), np.uint8), "4 channels, but the model wants 3; convert them to RGB"),
        (np.zeros((5, 6), np.uint8), "1 channels, but the model wants 3"),
        (np.zeros((1, 1, 5, 6, 3), np.uint8), "shape .1, 1, 5, 6, 3.; give height x width x channels"),
        (np.zeros((0, 5, 6, 3), np.uint8), "holds no pixel; give at least one image"),
        (np.zeros((2, 0, 6, 3), np.uint8), "holds no pixel; give at least one image"),
    ],
)
def test_what_cannot_be_an_image_is_refused_with_the_value_and_the_cure(images: np.ndarray, words: str) -> None:
    with pytest.raises(PcdnetError, match=words):
        to_batch(images, 3)


def test_a_tensor_with_its_axes_in_the_wrong_order_is_refused() -> None:
    with pytest.raises(PcdnetError, match="images x 3 channels x height x width"):
        check_batch(torch.zeros(2, 5, 6, 3), 3)


def test_a_tensor_of_whole_numbers_is_refused() -> None:
    with pytest.raises(PcdnetError, match=r"torch.uint8 was given; convert it to floats"):
        check_batch(torch.zeros(2, 3, 5, 6, dtype=torch.uint8), 3)
