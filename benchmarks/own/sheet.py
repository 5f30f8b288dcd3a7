"""Sheet: one large picture of symbols, black on white."""

from __future__ import annotations

import numpy as np

from benchmarks.own.icons import SYMBOLS
from benchmarks.own.pictures import Pictures, Thing, compose, scatter, sign

SIDE, SIZE, COUNT = 2_000, 48, 500


def make(seed: int, side: int = SIDE, count: int = COUNT) -> Pictures:
    """One picture."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(SYMBOLS), size=count).tolist()
    shapes = [sign(SYMBOLS[kind], SIZE).alpha for kind in kinds]
    places = scatter(rng, [(alpha.shape[0], alpha.shape[1]) for alpha in shapes], (side, side), gap=4)
    things = [
        Thing(kind, alpha, row, column, (0.0,))
        for kind, alpha, (row, column) in zip(kinds, shapes, places, strict=False)
    ]
    image, true = compose(np.full((side, side, 1), 255.0), things)
    return Pictures(images=[image[..., 0].round().astype(np.uint8)], ground_truth=[true], kinds=tuple(SYMBOLS))
