"""Blobs that always stand together at one offset are one object."""

from __future__ import annotations

import numpy as np

from pcdnet.training.parts import join_parts
from pcdnet.training.shapes import choose_seeds
from tests.training.blobs import blob


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
