"""Assembling: parts that turn together are one object.

Where objects turn, the offset of two parts turns with them, so what repeats is not an offset (`parts`) but the shape of
both together, up to pose. Things that merely lie near each other lie in another way every time.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from jaxtyping import Int64

from pcdnet.config import ModelConfig
from pcdnet.training.aligning import align
from pcdnet.training.foreground import Blob, joined
from pcdnet.training.looks import Looks, between_poses
from pcdnet.training.parts import TOGETHER, join_bound, neighbours
from pcdnet.training.turned import MOST_BLOBS, STEP, TIGHT, posed_size, repeated

ROUNDS = 3
"""How often pairs are joined at most: an object of three parts may need two."""


def join_turned_parts(
    blobs: list[Blob], count: int, frame: tuple[int, int], rng: np.random.Generator, config: ModelConfig
) -> list[Blob]:
    """The blobs with those joined that always lie to each other in one way, in any pose of a model.

    At most `count` shapes are distinguished, and frames of this size hold all upright objects.
    """
    room = posed_size(config, frame)
    for _ in range(ROUNDS):
        fewer = _join_pairs(blobs, count, room, rng, config)
        if len(fewer) == len(blobs):
            break
        blobs = fewer
    return blobs


def _join_pairs(
    blobs: list[Blob], count: int, room: tuple[int, int], rng: np.random.Generator, config: ModelConfig
) -> list[Blob]:
    """Once: two parts, or chains of them."""
    whole = [blob for blob in blobs if blob.fits(room)]
    kinds = _kinds(whole, count, rng, config).tolist()
    kind_of = {id(blob): kind for blob, kind in zip(whole, kinds, strict=True) if kind >= 0}
    known = [blob for blob in whole if id(blob) in kind_of]
    pairs = _often_near(known, kind_of, room)
    wholes = _kinds([joined([one, two]) for one, two in pairs], count, rng, config).tolist()
    found = [(one, two, whole) for (one, two), whole in zip(pairs, wholes, strict=True) if whole >= 0]
    both_ways = [*found, *((two, one, whole) for one, two, whole in found)]
    return [blob for blob in blobs if id(blob) not in kind_of] + join_bound(known, kind_of, both_ways)


def _often_near(blobs: list[Blob], kind_of: dict[int, int], room: tuple[int, int]) -> list[tuple[Blob, Blob]]:
    """Pairs of neighbours, each once, of kinds of which one is nearly always near to the other."""
    images: dict[int, list[Blob]] = {}
    for blob in blobs:
        images.setdefault(blob.image, []).append(blob)
    pairs = [pair for together in images.values() for pair in neighbours(together, room)]
    counts = Counter(kind_of[id(blob)] for blob in blobs)
    near = Counter((one, two) for _, one, two in {(id(a), kind_of[id(a)], kind_of[id(b)]) for a, b in pairs})
    often = {kinds for kinds, n in near.items() if n >= TOGETHER * counts[kinds[0]]}
    often |= {(two, one) for one, two in often}
    place = {id(blob): n for n, blob in enumerate(blobs)}
    return [
        (one, two)
        for one, two in pairs
        if place[id(one)] < place[id(two)] and (kind_of[id(one)], kind_of[id(two)]) in often
    ]


def _kinds(blobs: list[Blob], count: int, rng: np.random.Generator, config: ModelConfig) -> Int64[np.ndarray, "n"]:
    """Which shape every blob is in some pose; -1 where it is none that repeats."""
    if not blobs:
        return np.zeros(0, np.int64)
    looks, chosen = Looks.of(blobs, config), np.zeros(len(blobs), bool)
    chosen[rng.choice(len(blobs), min(MOST_BLOBS, len(blobs)), replace=False)] = True
    shapes = repeated(looks.some(chosen), count, config)
    return align(looks, shapes, between_poses(config, STEP), TIGHT).kinds
