"""Prototypes that only patch what others leave are found by that."""

from __future__ import annotations

import numpy as np
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.fillers import fillers, stand_alone

SHIP = np.array([[0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]], np.float32)
BAR = np.array([[1, 1]], np.float32)


def model_of(*shapes: np.ndarray) -> PCDNet:
    """A model of these white shapes over black."""
    masks = np.zeros((len(shapes), 6, 8), np.float32)
    for mask, shape in zip(masks, shapes, strict=True):
        mask[1 : 1 + shape.shape[0], 1 : 1 + shape.shape[1]] = shape
    bank = PrototypeBank(torch.from_numpy(masks), torch.from_numpy(masks))
    config = ModelConfig(
        num_prototypes=len(shapes),
        prototype_size=(6, 8),
        channels=1,
        max_objects=8,
        peaks_per_prototype=6,
        localization="error_reduction",
        min_error_reduction=0.5,
    )
    return PCDNet.from_bank(bank, config)


def scenes(*, mast: bool) -> np.ndarray:
    """Ships, some with a mast that no prototype has."""
    images = np.zeros((20, 24, 40, 1), np.uint8)
    for n, image in enumerate(images):
        for column in (3, 22):
            row = 6 + n % 9
            image[row : row + 4, column + n % 7 : column + n % 7 + 6][SHIP > 0] = 200
            if mast:
                image[row - 1, column + n % 7 + 2 : column + n % 7 + 4] = 200
    return images


def test_what_only_patches_others_is_a_filler_and_what_stands_alone_is_none() -> None:
    images = scenes(mast=True)
    model = model_of(SHIP, BAR)
    found = model.decompose_all(images)
    assert {*np.concatenate([one.prototype_ids for one in found]).tolist()} == {0, 1}
    assert fillers(model, images, found, 0.04).tolist() == [False, True]
    images[:, 1, 1:3] = 200  # now a bar is also seen on its own
    assert not fillers(model, images, model.decompose_all(images), 0.04).any()


def test_prototypes_that_are_not_used_are_no_fillers() -> None:
    images = scenes(mast=False)
    model = model_of(SHIP, BAR)
    assert not fillers(model, images, model.decompose_all(images), 0.04).any()


def test_an_object_stands_alone_if_it_is_all_of_a_blob() -> None:
    model, images = model_of(SHIP, BAR), scenes(mast=True)[:1]
    one = model.decompose_all(images)[0]
    alone = stand_alone(one, images[0, ..., 0] > 0)
    assert alone.tolist() == (one.prototype_ids == 0).tolist()


def test_an_object_of_several_parts_stands_alone_too() -> None:
    colon = np.array([[1, 1], [1, 1], [0, 0], [1, 1], [1, 1]], np.float32)
    images = np.zeros((10, 24, 40, 1), np.uint8)
    for n, image in enumerate(images):
        image[3 + n : 8 + n, 5 + 2 * n : 7 + 2 * n][colon > 0] = 200
        image[2:6, 30:36][SHIP > 0] = 200
    model = model_of(SHIP, colon)
    found = model.decompose_all(images)
    assert {len(one) for one in found} == {2}
    assert all(stand_alone(one, image[..., 0] > 0).all() for one, image in zip(found, images, strict=True))
    assert not fillers(model, images, found, 0.04).any()
