"""Small decompositions for the tests of the formats."""

from __future__ import annotations

import numpy as np

from pcdnet.decomposition import Decomposition
from pcdnet.names import Names
from pcdnet.output.record import Record, Results, records

NAMES = Names(count=4, given={1: "L", 3: 'odd, "<b>" été'})


def random_decomposition(rng: np.random.Generator, size: tuple[int, int] = (9, 12), channels: int = 3) -> Decomposition:
    """Up to five objects in random pixels; the last is hidden if there are any."""
    count = int(rng.integers(0, 6))
    return Decomposition(
        prototype_ids=rng.integers(0, 4, count).astype(np.int32),
        positions=rng.integers(-3, 9, (count, 2)).astype(np.int32),
        colours=rng.random((count, channels)).astype(np.float32),
        error_reductions=rng.random(count).astype(np.float32),
        instances=rng.integers(0, max(1, count), size).astype(np.int32),
        reconstruction=rng.random((*size, channels)).astype(np.float32),
        error=float(rng.random()),
    )


def random_records(count: int, seed: int = 0, channels: int = 3) -> tuple[list[Decomposition], list[Record]]:
    """Some decompositions with the records that they make."""
    rng = np.random.default_rng(seed)
    found = [random_decomposition(rng, channels=channels) for _ in range(count)]
    return found, records(found, [f"image-{n}" for n in range(count)])


def results(made: list[Record], channels: int = 3) -> Results:
    """Records with the names of their prototypes, as formats take them."""
    return Results(made, NAMES, channels)
