"""Looks that a still background has by turns are no foreground, and what moves in front of them is."""

from __future__ import annotations

import numpy as np
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.network import PCDNet
from pcdnet.training.flicker import find_steady_foreground, other_looks, steadied
from pcdnet.training.foreground import find_foreground
from pcdnet.training.initialization import init_from_images

GROUND = np.full((40, 60, 3), 0.3, np.float32)
FRAME = (10, 12)


def rippled(count: int = 60) -> np.ndarray:
    """Three rows of ripples, each bright or dark from image to image, and a thing that moves across them."""
    rng = np.random.default_rng(0)
    images = np.broadcast_to((GROUND * 255).round().astype(np.uint8), (count, *GROUND.shape)).copy()
    for image in images:
        for line in (12, 14, 16):
            image[line] = (40, 90, 160) if rng.random() < 0.5 else (20, 50, 120)
        row, column = int(rng.integers(6, 16)), int(rng.integers(2, 50))
        image[row : row + 6, column : column + 7] = (240, 220, 40)
        image[row + 1 : row + 3, column + 2 : column + 4] = (20, 20, 20)
    return images


def test_ripples_are_looks_and_the_thing_in_front_of_them_is_whole() -> None:
    images = rippled()
    raw = find_foreground(images, GROUND[None], FRAME)
    found, looks = find_steady_foreground("still", images, GROUND[None], FRAME)
    assert raw.clutter.any()
    assert looks is not None
    assert not found.clutter.any()
    assert sorted({blob.mask.shape for blob in found.blobs}) == [(6, 7)]
    assert len(found.blobs) == len(images)


def test_a_look_is_a_value_that_is_there_and_no_mixture() -> None:
    images = rippled()
    unsteady = np.zeros((40, 60), bool)
    unsteady[12] = True
    looks = other_looks(images, GROUND, unsteady, FRAME)
    assert {tuple(value) for value in looks[:, 12, 5].tolist()} == {(40, 90, 160), (20, 50, 120)}
    assert (looks[:, 20] == (GROUND[20] * 255).round()).all()


def test_other_backgrounds_and_steady_ones_have_no_looks() -> None:
    images = rippled()
    assert find_steady_foreground("plain", images, np.repeat(GROUND[None], len(images), 0), FRAME)[1] is None
    images[:, 12:17] = 76
    assert find_steady_foreground("still", images, GROUND[None], FRAME)[1] is None


def test_a_model_sees_images_as_training_does() -> None:
    images = rippled()
    config = ModelConfig(num_prototypes=2, prototype_size=FRAME, background="still", localization="error_reduction")
    model = PCDNet(config, (40, 60))
    init_from_images(model, images, GROUND, seed=0)
    _, looks = find_steady_foreground("still", images, GROUND[None], FRAME)
    assert looks is not None
    batch = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    seen = model.seen(batch).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(seen, steadied(images, looks, GROUND) / 255, atol=0.003)
    assert np.abs(seen - images / 255).max() > 0.1  # else nothing was done
