"""Small decompositions for the tests of the formats."""

from __future__ import annotations

import dataclasses

import numpy as np

from pcdnet.decomposition import Decomposition
from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.output.record import Record, Results, records

NAMES = Names(count=4, given={1: "L", 3: 'odd, "<b>" été'})
KINDS = Kinds(NAMES)
COLOURS = Kinds(Names(count=4, given={0: "L", 2: "L"}, colours={1: ((0.9, 0.1, 0.1), (0.1, 0.2, 0.9))}))
"""Three kinds of four prototypes: two have one name, one comes in red and blue."""


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


def posed(found: Decomposition, rng: np.random.Generator) -> Decomposition:
    """The same objects in any poses, at whole pixels and at fractions of them."""
    count = len(found)
    poses = np.stack([rng.uniform(0, 360, count), rng.uniform(0.5, 2, count), rng.integers(0, 2, count)], axis=1)
    moved = found.positions + rng.integers(0, 4, (count, 2)) / 4
    return dataclasses.replace(found, positions=moved.astype(np.float32)).with_poses(poses.astype(np.float32))


def random_records(
    count: int, seed: int = 0, channels: int = 3, *, poses: bool = False
) -> tuple[list[Decomposition], list[Record]]:
    """Some decompositions with the records that they make."""
    rng = np.random.default_rng(seed)
    found = [random_decomposition(rng, channels=channels) for _ in range(count)]
    if poses:
        found = [posed(one, rng) for one in found]
    return found, records(found, [f"image-{n}" for n in range(count)])


def results(made: list[Record], channels: int = 3, kinds: Kinds = KINDS) -> Results:
    """Records with the kinds of their objects, as formats take them."""
    return Results(made, kinds, channels)
