"""The background that images have is told from the images, on those that it was not made from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from pcdnet.config import Background
from pcdnet.errors import PcdnetError
from pcdnet.training.backdrop import behind_images, choose_background, learned_picture
from tests.training.blobs import frames

FRAME = (14, 14)


def with_things(grounds: np.ndarray, seed: int = 0) -> np.ndarray:
    """Pictures with three dark squares each."""
    rng, images = np.random.default_rng(seed), grounds.copy()
    for image in images:
        for _ in range(3):
            y, x = rng.integers(0, image.shape[0] - 8), rng.integers(0, image.shape[1] - 8)
            image[y : y + 7, x : x + 7] = 0.02
    return np.round(255 * images.clip(0, 1)).astype(np.uint8)


def papers(count: int = 30) -> np.ndarray:
    """Pictures of paper, each lit from another side."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:60, 0:80] / 80
    slopes = rng.uniform(-0.3, 0.3, (count, 2, 1, 1))
    return with_things((0.6 + slopes[:, 0] * y + slopes[:, 1] * x)[..., None])


def film(count: int = 40) -> np.ndarray:
    """Views of a camera that moves over a textured ground."""
    rng = np.random.default_rng(2)
    ground = ndimage.gaussian_filter(rng.normal(size=(160, 200)), 2)
    ground = 0.5 + 0.35 * ground / np.abs(ground).max()
    places = np.cumsum(rng.integers(-4, 5, (count, 2)), axis=0)
    places = (places - places.min(axis=0)).clip(0, (99, 119))
    return with_things(np.stack([ground[r : r + 60, c : c + 80] for r, c in places])[..., None])


@pytest.mark.parametrize(
    ("kind", "images"),
    [
        ("black", np.where(frames(30) > 200, 255, 0).astype(np.uint8)),
        ("still", frames(40, noise=2)),
        ("plain", papers()),
        ("moving", film()),
    ],
)
def test_the_background_is_what_it_is(kind: Background, images: np.ndarray) -> None:
    chosen = choose_background(images, FRAME)
    assert chosen.kind == kind
    assert "pixels left to objects" in chosen.reason
    behind = behind_images(kind, images, learned_picture(kind, images, FRAME))
    away = np.abs(images / 255 - behind).max(axis=-1)
    assert np.median(away) < 0.04
    assert (away > 0.15).mean() < 0.15


def test_tiles_of_a_larger_picture_neither_stand_still_nor_move() -> None:
    assert choose_background(film(), FRAME, tiles=True).kind in ("black", "plain")


def test_images_that_do_not_fit_together_are_refused_as_views_of_one_picture() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 40, 40, 1)).astype(np.uint8)
    with pytest.raises(PcdnetError, match="do not fit together.*choose another background"):
        learned_picture("moving", images, FRAME)
