"""Company: whether a prototype shows one object, or two that happened to touch.

Two letters that touch now and then make a shape that comes again and again. Each of them is mostly seen without the
other, though, whereas the dot of an i is always seen above its stem: those are one object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from pcdnet.decomposition import Decomposition

MOSTLY = 0.5
"""Two prototypes belong together if one of them is seen with the other in this share of its places."""
WHOLE = 0.75
"""Share of its area in which an object must be seen, and lie where the one was that it replaces: two that hide much of
each other can make any shape."""
NEAR = 1.5
"""Pixels by which the way from one to the other may differ."""


def happen_to_touch(
    p: int, found: Sequence[Decomposition], without: Sequence[Decomposition], areas: Float[np.ndarray, "P"]
) -> bool:
    """Whether the objects of a prototype are mostly two others, side by side, that are mostly seen without each other.

    `found` are decompositions with the prototype, `without` those of the same images without it; `areas` are how many
    pixels the prototypes have.
    """
    times = sum(int((image.prototype_ids == p).sum()) for image in found)
    ways: dict[tuple[int, int], list[Float[np.ndarray, "2"]]] = defaultdict(list)
    for before, after in zip(found, without, strict=True):
        for n in np.flatnonzero(before.prototype_ids == p).tolist():
            pair = _in_place_of(n, before, after, areas)
            if len(pair) == 2:
                # Two of a kind in the order of their places, so that the ways of all such pairs can be compared.
                one, two = sorted(pair.tolist(), key=lambda m: (after.prototype_ids[m], *after.positions[m]))
                kinds = int(after.prototype_ids[one]), int(after.prototype_ids[two])
                ways[kinds].append(after.positions[two] - after.positions[one].astype(float))
    if sum(map(len, ways.values())) < MOSTLY * max(1, times):
        return False
    (one, two), most = max(ways.items(), key=lambda item: len(item[1]))
    way = np.median(most, axis=0)
    return max(_share(without, one, two, way), _share(without, two, one, -way)) < MOSTLY


def _in_place_of(
    n: int, before: Decomposition, after: Decomposition, areas: Float[np.ndarray, "P"]
) -> Int[np.ndarray, "m"]:
    """Which objects are seen whole where an object was before."""
    inside = np.bincount(after.instances[before.instances == n + 1], minlength=len(after) + 1)[1:]
    return np.flatnonzero(inside >= WHOLE * areas[after.prototype_ids])


def _share(found: Sequence[Decomposition], one: int, two: int, way: Float[np.ndarray, "2"]) -> float:
    """In which share of the places of a prototype another one is seen on the way from it.

    Of two of the same prototype, each has the other, on the way there or back.
    """
    together = times = 0
    ways = np.stack([way, -way] if one == two else [way])
    for image in found:
        here, there = (image.positions[image.prototype_ids == p].astype(float) for p in (one, two))
        away = np.abs(there[None] - here[:, None] - ways[:, None, None]).max(axis=-1)
        times += len(here)
        together += int((away <= NEAR).any(axis=(0, 2)).sum())
    return together / max(1, times)
