"""Outlines: shapes by the distance to their edge, drawn at any place, turned and scaled, with smooth edges.

A shape is a function of points in its upright frame, x to the right and y upwards in pixels from its centre, which is
negative inside. So it is drawn anew for every pose, and no picture of it is resampled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil, cos, floor, radians, sin

import numpy as np
from jaxtyping import Float, Float32

Outline = Callable[[Float[np.ndarray, "h w"], Float[np.ndarray, "h w"]], Float[np.ndarray, "h w"]]
"""From x and y to the distance from the edge, negative inside."""
Point = tuple[float, float]
"""x and y."""


def drawn(
    outline: Outline, reach: float, *, centre: tuple[float, float] = (0.0, 0.0), angle: float = 0.0, scale: float = 1.0
) -> tuple[Float32[np.ndarray, "h w"], int, int]:
    """How much of every pixel a shape covers, and the row and the column at which this cut-out begins.

    No point of the upright shape is farther than `reach` from its centre. `centre` is a row and a column, `angle` in
    degrees, counter-clockwise as one looks at the picture.
    """
    top, left = (ceil(middle - reach * scale - 1) for middle in centre)
    height, width = (
        floor(middle + reach * scale + 1) - start + 1 for middle, start in zip(centre, (top, left), strict=True)
    )
    right = np.arange(left, left + width, dtype=np.float32)[None] - np.float32(centre[1])
    up = np.float32(centre[0]) - np.arange(top, top + height, dtype=np.float32)[:, None]
    c, s = cos(radians(angle)) / scale, sin(radians(angle)) / scale
    distance = outline(c * right + s * up, c * up - s * right)
    return np.clip(0.5 - distance * scale, 0, 1).astype(np.float32), top, left


def disc(radius: float, middle: Point = (0.0, 0.0)) -> Outline:
    """A filled circle."""
    return lambda x, y: np.hypot(x - middle[0], y - middle[1]) - radius


def ellipse(across: float, up: float) -> Outline:
    """An ellipse by its half axes; away from its edge distances are approximate."""

    def distance(x: Float[np.ndarray, "h w"], y: Float[np.ndarray, "h w"]) -> Float[np.ndarray, "h w"]:
        level = np.hypot(x / across, y / up)
        slope = np.hypot(x / across**2, y / up**2)
        return np.where(slope > 0, level * (level - 1) / np.maximum(slope, 1e-9), -min(across, up))

    return distance


def polygon(*corners: Point) -> Outline:
    """A filled polygon."""
    edges = [*zip(corners, corners[1:] + corners[:1], strict=True)]

    def distance(x: Float[np.ndarray, "h w"], y: Float[np.ndarray, "h w"]) -> Float[np.ndarray, "h w"]:
        inside = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
        for (ax, ay), (bx, by) in edges:
            if ay != by:
                inside ^= ((y < ay) != (y < by)) & (x < ax + (y - ay) * ((bx - ax) / (by - ay)))
        away = np.min([_from_line(x, y, start, end) for start, end in edges], axis=0)
        signed: Float[np.ndarray, "h w"] = np.where(inside, -away, away)
        return signed

    return distance


def stroke(width: float, *points: Point) -> Outline:
    """A line through points, round at its ends and corners."""
    return lambda x, y: np.min([_from_line(x, y, *ends) for ends in pairwise(points)], axis=0) - width / 2


def ring(width: float, outline: Outline) -> Outline:
    """A line along the edge of a shape."""
    return lambda x, y: np.abs(outline(x, y)) - width / 2


def joined(*outlines: Outline) -> Outline:
    """All that is in any of some shapes."""
    return lambda x, y: np.min([outline(x, y) for outline in outlines], axis=0)


def shifted(outline: Outline, right: float, up: float) -> Outline:
    """A shape that is moved within its frame."""
    return lambda x, y: outline(x - right, y - up)


def _from_line(
    x: Float[np.ndarray, "h w"], y: Float[np.ndarray, "h w"], start: Point, end: Point
) -> Float[np.ndarray, "h w"]:
    """The distance from a line between two points."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    along = np.clip(((x - start[0]) * dx + (y - start[1]) * dy) / (dx * dx + dy * dy), 0, 1)
    return np.hypot(x - start[0] - along * dx, y - start[1] - along * dy)
