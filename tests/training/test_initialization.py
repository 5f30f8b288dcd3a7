"""Shapes that stand out again and again are what learning starts from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pcdnet.config import Config, ModelConfig, TrainConfig
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.fit import fit
from pcdnet.training.foreground import still_background
from pcdnet.training.initialization import init_from_images
from tests.training.blobs import frames
from tests.training.posed_blobs import hook, posed_blob


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
    init_from_images(model, images, still_background(images, (9, 9)), seed=0)
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


def test_a_model_with_poses_starts_from_one_prototype_for_every_turn_of_a_shape() -> None:
    rng, images = np.random.default_rng(0), np.zeros((60, 40, 40, 1), np.uint8)
    for image in images:
        for corner in (5, 22):
            shape = posed_blob(hook, rng.uniform(0, 360), 6, rng).mask
            image[corner : corner + len(shape), corner : corner + shape.shape[1]][shape] = 200
    config = ModelConfig(num_prototypes=2, prototype_size=(17, 17), channels=1, rotations=24)
    for every_shape in (True, False):
        model = PCDNet(config)
        init_from_images(model, images, None, seed=0, every_shape=every_shape)
        one, other = model.bank().masks.detach().clamp(0, 1)
        assert (one > 0.5).sum().item() == pytest.approx(np.mean((images > 0).sum(axis=(1, 2, 3))) / 2, rel=0.1)
        assert (one - other).abs().mean() < 0.2  # the spare prototype is a noisy copy
