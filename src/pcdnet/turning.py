"""Turning: where places on a prototype lie in a picture by the pose of its object, and boxes that turn with it.

Angles are degrees counter-clockwise as one looks at the picture, where rows run down.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer


class OrientedBox(NamedTuple):
    """A box that is turned around its middle; pixels reach from one whole number to the next."""

    x: float
    """How far its middle is from the left border of the picture."""
    y: float
    """How far it is from the upper one."""
    width: float
    """Its sides before it is turned."""
    height: float
    angle: float

    @property
    def corner(self) -> tuple[float, float]:
        """x and y of what is its upper left corner before it is turned."""
        (down, right), *_ = turned(np.array([[-self.height / 2, -self.width / 2]]), self.angle).tolist()
        return self.x + right, self.y + down


def turned(
    offsets: Float[np.ndarray, "n 2"], angle: float, scale: float = 1.0, *, mirrored: bool = False
) -> Float[np.ndarray, "n 2"]:
    """Rows and columns from the middle of an object, given as those from the middle of its prototype."""
    cosine, sine = scale * math.cos(math.radians(angle)), scale * math.sin(math.radians(angle))
    y, x = offsets[:, 0], -offsets[:, 1] if mirrored else offsets[:, 1]
    return np.stack([cosine * y - sine * x, sine * y + cosine * x], axis=1)


def oriented_box(pixels: Integer[np.ndarray, "n 2"], angle: float) -> OrientedBox:
    """The smallest box at an angle that holds the middles of pixels, and half a pixel around them; there is one."""
    upright = turned(pixels + 0.5, -angle)
    low, high = upright.min(axis=0), upright.max(axis=0)
    (y, x), *_ = turned((low + high)[None] / 2, angle).tolist()
    height, width = (high - low + 1).tolist()
    return OrientedBox(x, y, width, height, angle)
