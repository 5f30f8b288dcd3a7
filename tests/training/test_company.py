"""Two things that happened to touch are two objects; two that always stand together are one."""

from __future__ import annotations

import numpy as np
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.company import happen_to_touch
from pcdnet.training.settling import settle

ONE = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
TWO = np.array([[0, 1, 1, 1, 0], [1, 1, 0, 1, 1], [1, 0, 0, 0, 1], [1, 1, 0, 1, 1], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]])
BOTH = np.concatenate([ONE, TWO], axis=1)
AREAS = np.array([float(shape.sum()) for shape in (ONE, TWO, BOTH)])


def bank_of(*shapes: np.ndarray) -> PCDNet:
    """A model of white shapes, that fills its frames from the top left."""
    prototypes = torch.zeros(len(shapes), 8, 12)
    for prototype, shape in zip(prototypes, shapes, strict=True):
        prototype[1 : 1 + shape.shape[0], 1 : 1 + shape.shape[1]] = torch.from_numpy(shape)
    config = ModelConfig(
        num_prototypes=len(shapes),
        prototype_size=(8, 12),
        channels=1,
        max_objects=8,
        peaks_per_prototype=8,
        min_error_reduction=2.0,
        localization="error_reduction",
    )
    return PCDNet.from_bank(PrototypeBank(prototypes, prototypes.clone()), config)


def pictures(touching: float, count: int = 24) -> np.ndarray:
    """Both shapes in every picture, in some of them side by side."""
    rng = np.random.default_rng(0)
    images = np.zeros((count, 40, 50, 1), np.uint8)
    for n, image in enumerate(images):
        if n < touching * count:
            row, column = rng.integers(2, 30, 2)
            image[row : row + 6, column : column + 10, 0] = 255 * BOTH
        else:
            for shape, left in ((ONE, 2), (TWO, 28)):
                row, column = rng.integers(2, 30), left + rng.integers(0, 14)
                image[row : row + 6, column : column + 5, 0] = 255 * shape
    return images


def decided(touching: float) -> bool:
    """Whether the shape of both is two that happened to touch."""
    images = pictures(touching)
    found, without = bank_of(ONE, TWO, BOTH).decompose_all(images), bank_of(ONE, TWO).decompose_all(images)
    assert any((image.prototype_ids == 2).any() for image in found)
    return happen_to_touch(2, found, without, AREAS)


def test_two_that_mostly_stand_apart_happened_to_touch() -> None:
    assert decided(0.3)


def test_two_that_mostly_stand_together_are_one_object() -> None:
    assert not decided(0.8)


def test_what_no_two_others_explain_is_an_object() -> None:
    images = pictures(0.3)
    found = bank_of(ONE, TWO, BOTH).decompose_all(images)
    assert not happen_to_touch(2, found, bank_of(ONE, np.ones((2, 2))).decompose_all(images), AREAS)


def test_settling_leaves_out_what_happened_to_touch() -> None:
    assert settle(bank_of(ONE, TWO, BOTH), pictures(0.4), 0.0).config.num_prototypes == 2


def test_two_of_a_kind_that_mostly_stand_together_are_one_object() -> None:
    rng, images = np.random.default_rng(0), np.zeros((24, 40, 50, 1), np.uint8)
    dash, long = np.ones((1, 4)), np.ones((1, 8))
    shades = (255, 240)  # the brighter half is found first, and that is left or right
    for n, image in enumerate(images):
        width = 4 if n % 3 == 0 else 8
        row, column = rng.integers(2, 36), rng.integers(2, 40)
        image[row, column : column + 4] = shades[n % 2]
        image[row, column + width - 4 : column + width] = shades[(n + 1) % 2]
    found, without = bank_of(dash, long).decompose_all(images), bank_of(dash).decompose_all(images)
    assert sum(int((image.prototype_ids == 1).sum()) for image in found) == 16
    assert not happen_to_touch(1, found, without, np.array([4.0, 8.0]))
