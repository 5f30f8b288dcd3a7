"""Icons: symbols in random colours on plain paper."""

from __future__ import annotations

import colorsys

import numpy as np

from benchmarks.own.pictures import Colour, GroundTruth, Pictures, Thing, compose, scatter, sign

SYMBOLS = "♚♛♜♝♞♟♠♣★"
SIZE, HEIGHT, WIDTH = 32, 160, 200
PAPER = (244.0, 240.0, 228.0)
CONTRAST = 100
"""Least distance, in RGB, of a symbol's colour from the paper's, and of two that overlap."""


def make(count: int, seed: int) -> Pictures:
    """Pictures of four to eight icons that keep apart."""
    made = [picture(np.random.default_rng([seed, n])) for n in range(count)]
    return Pictures(images=[image for image, _ in made], ground_truth=[true for _, true in made], kinds=tuple(SYMBOLS))


def picture(rng: np.random.Generator) -> tuple[np.ndarray, GroundTruth]:
    """One picture."""
    return painted(apart(rng, SYMBOLS, int(rng.integers(4, 9)), SIZE, (HEIGHT, WIDTH)))


def apart(rng: np.random.Generator, symbols: str, count: int, size: int, within: tuple[int, int]) -> list[Thing]:
    """So many of some symbols that keep apart, as far as there is room for them in a picture."""
    kinds = rng.integers(len(symbols), size=count).tolist()
    shapes = [sign(symbols[kind], size).alpha for kind in kinds]
    places = scatter(rng, [(alpha.shape[0], alpha.shape[1]) for alpha in shapes], within, gap=2)
    return [
        Thing(kind, alpha, row, column, colour(rng))
        for kind, alpha, (row, column) in zip(kinds, shapes, places, strict=False)
    ]


def painted(things: list[Thing], size: tuple[int, int] = (HEIGHT, WIDTH)) -> tuple[np.ndarray, GroundTruth]:
    """Things on paper, in 8 bits."""
    image, true = compose(np.full((*size, 3), PAPER), things)
    return image.round().astype(np.uint8), true


def colour(rng: np.random.Generator, *others: Colour) -> Colour:
    """A random colour that stands out from the paper and from other colours."""
    while True:
        found = tuple(255 * v for v in colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.3, 1), rng.uniform(0.2, 0.9)))
        if all(np.linalg.norm(np.subtract(found, other)) >= CONTRAST for other in (PAPER, *others)):
            return found
