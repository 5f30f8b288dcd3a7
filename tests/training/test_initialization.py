"""Shapes that stand out again and again are what learning starts from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pcdnet.config import Config, ModelConfig, TrainConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.fit import fit
from pcdnet.training.initialization import choose_seeds, find_blobs, init_from_images, still_background

SHAPES = (
    np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]),
    np.array([[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
)


def frames(count: int, noise: int = 4, seed: int = 0) -> np.ndarray:
    """Two shapes at random places over a textured ground, sometimes touching, sometimes cut off."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(60, 90, (40, 50, 3))
    images = ground[None] + rng.integers(-noise, noise + 1, (count, 40, 50, 3))
    for image in images:
        for shape in SHAPES * 2:
            h, w = shape.shape
            y, x = rng.integers(-2, 40 - h + 3), rng.integers(-2, 50 - w + 3)
            for v, u in np.argwhere(shape):
                if 0 <= y + v < 40 and 0 <= x + u < 50:
                    image[y + v, x + u] = (230, 200, 40)
    clipped: np.ndarray = np.clip(images, 0, 255).astype(np.uint8)
    return clipped


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


def test_the_seeds_are_the_shapes_that_repeat() -> None:
    images = frames(80)
    blobs = find_blobs(images, still_background(images, (9, 9)))
    seeds = choose_seeds(blobs, 2, (9, 9), np.random.default_rng(0))
    masks = seeds.masks
    assert seeds.prototypes.shape == masks.shape == (2, 9, 9)
    assert set(seeds.kinds.tolist()) <= {-1, 0, 1}
    found = sorted((masks > 0.5).sum(axis=(1, 2)).tolist())
    assert found == sorted(int(shape.sum()) for shape in SHAPES)
    for mask in masks > 0.5:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert any(np.array_equal(box, shape.astype(bool)) for shape in SHAPES)


def test_a_model_that_starts_from_images_finds_the_shapes_before_any_training() -> None:
    images = frames(80)
    config = ModelConfig(
        num_prototypes=3,
        prototype_size=(9, 9),
        max_objects=6,
        background="still",
        localization="error_reduction",
        restarts=0,
        min_error_reduction=0.3,
    )
    model = PCDNet(config, (40, 50))
    init_from_images(model, images, seed=0)
    found = model.eval().decompose_all(images[:10])
    assert isinstance(found, list)
    assert np.mean([len(thing) for thing in found]) > 2.5
    bare = np.square(images[:10] / 255 - still_background(images, (9, 9))).sum(axis=(1, 2, 3))
    assert np.mean([thing.error for thing in found]) < 0.35 * bare.mean()


def test_learning_from_the_images_own_shapes_lowers_the_error() -> None:
    images = frames(80)
    config = Config(
        model=ModelConfig(
            num_prototypes=2,
            prototype_size=(9, 9),
            max_objects=6,
            background="still",
            localization="error_reduction",
            restarts=0,
        ),
        train=TrainConfig(init="images", steps=20, batch=8, noise_steps=0, reset_every=0, validate_every=1),
    )
    errors: list[float] = []
    fit(
        Scenes(images=images),
        config,
        quiet=True,
        validation=Scenes(images=images[:16]),
        watch=lambda progress: errors.append(progress.validation.mse if progress.validation else torch.nan),
    )
    assert errors[-1] < errors[0]


def test_images_without_anything_to_see_are_refused_with_the_cure() -> None:
    with pytest.raises(PcdnetError, match="stands out"):
        choose_seeds([], 2, (9, 9), np.random.default_rng(0))
