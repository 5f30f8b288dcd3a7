"""Spots: 16-bit pictures of a microscope, with round spots and rods of four orientations over an uneven offset."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from benchmarks.own.pictures import GroundTruth, Pictures, bounds, scatter

SIDE = 256
KINDS = ("spot", "rod -", "rod |", "rod /", "rod \\")
DIRECTIONS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (-(0.5**0.5), 0.5**0.5), (0.5**0.5, 0.5**0.5))
"""Where a rod points, in rows and columns."""
SPOT_SIGMA, ROD_SIGMA, REACH = 2.6, 2.0, 7.0
"""Widths of the profiles, and half the length of a rod's axis, in pixels."""
FRAME = 36
"""Side of the square in which an object is drawn."""
BIAS, GAIN, READ_NOISE, LARGEST = 200, 2.0, 4.0, 1_100
"""Value without light, counts per photon, noise of the camera, and the largest value."""


def make(count: int, seed: int) -> Pictures:
    """Pictures of up to 30 objects that keep apart.

    The box of a soft spot is a matter of taste: here it holds the pixels of half its height or more.
    """
    made = [_picture(np.random.default_rng([seed, n])) for n in range(count)]
    return Pictures(images=[image for image, _ in made], ground_truth=[true for _, true in made], kinds=KINDS)


def profile(kind: int, row: float, column: float) -> Float64[np.ndarray, "h w"]:
    """An object of height 1 whose centre lies at a point of its square: a Gaussian across its axis."""
    rows, columns = np.mgrid[:FRAME, :FRAME] - np.array([row, column])[:, None, None]
    down, right = DIRECTIONS[kind]
    along = np.clip(down * rows + right * columns, -REACH, REACH)
    distance = np.hypot(rows - along * down, columns - along * right)
    height: np.ndarray = np.exp(-((distance / (ROD_SIGMA if kind else SPOT_SIGMA)) ** 2) / 2)
    return height


def _picture(rng: np.random.Generator) -> tuple[np.ndarray, GroundTruth]:
    kinds = rng.integers(len(KINDS), size=rng.integers(15, 31))
    heights = [profile(kind, *(FRAME / 2 + rng.uniform(-0.5, 0.5, 2))) for kind in kinds.tolist()]
    frames = [bounds(height >= 0.5) for height in heights]
    places = scatter(rng, [(box[2], box[3]) for box in frames], (SIDE, SIDE), gap=7)
    light, boxes = np.pad(_offset(rng), FRAME), []
    for height, (top, left, *size), (row, column) in zip(heights, frames, places, strict=False):
        window = (slice(row - top + FRAME, row - top + 2 * FRAME), slice(column - left + FRAME, None))
        light[window][:, :FRAME] += rng.uniform(200, 600) * height
        boxes.append((row, column, *size))
    light = light[FRAME:-FRAME, FRAME:-FRAME]
    image = BIAS + GAIN * rng.poisson(light / GAIN) + rng.normal(0, READ_NOISE, light.shape)
    count = len(boxes)
    true = GroundTruth(
        boxes=np.array(boxes, dtype=float),
        whole=np.array(boxes, dtype=float),
        kinds=kinds[:count].astype(np.int64),
        depths=np.arange(count),
        counted=np.ones(count, dtype=bool),
    )
    return image.clip(BIAS, LARGEST).round().astype(np.uint16), true


def _offset(rng: np.random.Generator) -> Float64[np.ndarray, "H W"]:
    """Stray light that changes slowly over the picture."""
    rows, columns = np.linspace(-1, 1, SIDE)[:, None], np.linspace(-1, 1, SIDE)[None]
    slope, bend = rng.uniform(-20, 20, 2), rng.uniform(0, 30)
    offset: np.ndarray = 80 + slope[0] * rows + slope[1] * columns - bend * (rows**2 + columns**2) / 2
    return offset
