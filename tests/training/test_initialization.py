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
from pcdnet.training.foreground import Blob, find_foreground, still_background
from pcdnet.training.initialization import choose_seeds, find_seeds, init_from_images, join_parts, without_counters

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


def test_the_seeds_are_the_shapes_that_repeat() -> None:
    images = frames(80)
    blobs = find_foreground(images, still_background(images, (9, 9))[None], (9, 9)).blobs
    seeds = find_seeds(blobs, 2, (9, 9), np.random.default_rng(0))
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


def test_images_without_anything_to_see_are_refused_with_the_cure() -> None:
    with pytest.raises(PcdnetError, match="stands out"):
        choose_seeds([], 2, (9, 9), np.random.default_rng(0))


def blob(image: int, top: int, left: int, shape: np.ndarray) -> Blob:
    """A white blob of that shape."""
    mask = shape.astype(bool)
    return Blob(image, top, left, mask, np.where(mask, 1, 0).astype(np.float32), float(mask.sum()), False)


def test_parts_that_always_stand_together_are_one() -> None:
    stem, dot, bar = np.ones((6, 2)), np.ones((2, 2)), np.ones((2, 6))
    blobs = []
    for n in range(20):
        blobs += [blob(n, 10 + n, 5, stem), blob(n, 6 + n, 5, dot), blob(n, 10, 20 + n % 7, bar)]
    seeds = choose_seeds(blobs, 5, (20, 20), np.random.default_rng(0))
    sizes = sorted({each.mask.shape for each in join_parts(seeds, blobs, (20, 20))})
    assert sizes == [(2, 6), (10, 2)]


def test_parts_that_also_stand_alone_stay_apart() -> None:
    stem, dot = np.ones((6, 2)), np.ones((2, 2))
    blobs = [blob(n, 10, 5 + n, stem) for n in range(20)]
    blobs += [blob(n, 6 if n < 6 else 2, 5 + n, dot) for n in range(20)]
    blobs += [blob(n, 20, 2 * n, dot) for n in range(20)]
    seeds = choose_seeds(blobs, 5, (20, 20), np.random.default_rng(0))
    assert {each.mask.shape for each in join_parts(seeds, blobs, (12, 12))} == {(6, 2), (2, 2)}


def test_a_counter_is_no_object() -> None:
    digits = [np.array(shape) for shape in ([[1, 1, 1]] * 5, [[1, 1, 1], [1, 0, 1]] * 3, [[1, 0, 0]] * 6 + [[1, 1, 1]])]
    blobs = [blob(n, 3, 30, digits[n % 3]) for n in range(30)]
    blobs += [blob(n, 5 + n, 4 + n % 11, SHAPES[1]) for n in range(30)]
    left = without_counters(choose_seeds(blobs, 6, (12, 12), np.random.default_rng(0)), blobs)
    assert {each.mask.shape for each in left} == {SHAPES[1].shape}
