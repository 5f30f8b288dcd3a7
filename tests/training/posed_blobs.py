"""Blobs of shapes at any angle, in any size, as they would be found in pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import ndimage

from pcdnet.training.foreground import Blob

Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Whether points, right of and above the middle, are in a shape about two wide."""


def heart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = (x**2 + (1.2 * y - np.sqrt(np.abs(x)) * 0.8 + 0.2) ** 2) < 1
    return inside


def square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = np.maximum(np.abs(x), np.abs(y)) < 0.8
    return inside


def ellipse(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = x**2 + (2 * y) ** 2 < 1.1
    return inside


def triangle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = (y > -0.5) & (y < 1 - 2.4 * np.abs(x))
    return inside


def hook(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """An L: another one in the mirror."""
    stem, foot = (np.abs(x + 0.4) < 0.3) & (np.abs(y) < 1), (np.abs(x - 0.2) < 0.6) & (np.abs(y + 0.7) < 0.3)
    inside: np.ndarray = stem | foot
    return inside


def posed_blob(
    shape: Shape,
    angle: float,
    size: float,
    rng: np.random.Generator,
    *,
    mirrored: bool = False,
    image: int = 0,
    noise: float = 0.03,
) -> Blob:
    """A shape mirrored, then turned counter-clockwise by degrees, half of whose width is about so many pixels."""
    side = int(4 * size) + 4
    rows, columns = np.indices((side, side)) - (side - 1) / 2 + rng.uniform(-0.5, 0.5, 2)[:, None, None]
    turn = np.exp(-1j * np.radians(angle)) * (columns - 1j * rows) / size
    mask = shape(-turn.real if mirrored else turn.real, turn.imag)
    mask = mask[ndimage.find_objects(mask.astype(int))[0]]
    grey = np.where(mask, 0.8, 0.2) + rng.normal(0, noise, mask.shape)
    return Blob(image, 0, 0, mask, mask, grey.astype(np.float32), 0.36 * float(mask.sum()), False)
