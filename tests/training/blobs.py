"""Scenes of two shapes, and blobs as they would be found in them."""

from __future__ import annotations

import numpy as np

from pcdnet.training.foreground import Blob

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


def blob(image: int, top: int, left: int, shape: np.ndarray) -> Blob:
    """A white blob of that shape."""
    mask = shape.astype(bool)
    return Blob(image, top, left, mask, mask, np.where(mask, 1, 0).astype(np.float32), float(mask.sum()), False)
