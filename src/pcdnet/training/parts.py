"""Parts: blobs that always stand together at one offset are one object."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from pcdnet.training.foreground import Blob, joined
from pcdnet.training.shapes import SUPPORT, Seeds

TOGETHER = 0.8
"""Parts belong together if they do so in this share of the cases."""


def join_parts(seeds: Seeds, blobs: list[Blob], frame: tuple[int, int]) -> list[Blob]:
    """The blobs with those joined that always stand together: the dot of an i and its stem, the digits of a "50".

    Where a shape nearly always has another beside it at one offset, and the other nearly always stands beside such a
    shape, both are parts of one object.
    """
    kind_of = {id(blob): kind for blob, kind in zip(seeds.blobs, seeds.kinds.tolist(), strict=True) if kind >= 0}
    images: dict[int, list[Blob]] = {}
    for blob in blobs:
        if id(blob) in kind_of:
            images.setdefault(blob.image, []).append(blob)
    pairs = [
        (one, two, (kind_of[id(two)], two.top - one.top, two.left - one.left))
        for together in images.values()
        for one, two in neighbours(together, frame)
    ]
    known = [blob for together in images.values() for blob in together]
    return [blob for blob in blobs if id(blob) not in kind_of] + join_bound(known, kind_of, pairs)


def join_bound(blobs: list[Blob], kind_of: dict[int, int], pairs: Sequence[tuple[Blob, Blob, Hashable]]) -> list[Blob]:
    """The blobs, each of a kind, with those joined that are bound to each other.

    `pairs` are neighbours, both ways round, and the way in which the second completes the first. They are bound where
    blobs of the first one's kind are nearly always completed in this way, and those of the second one's kind nearly
    always complete something in such a way.
    """
    counts = Counter(kind_of.values())
    seen = {(id(one), kind_of[id(one)], kind_of[id(two)], way) for one, two, way in pairs}
    completed = Counter((kind, way) for _, kind, way in {(one, kind, way) for one, kind, _, way in seen})
    often = {rule for rule, n in completed.items() if n >= TOGETHER * counts[rule[0]] and n >= SUPPORT}
    held = Counter(part for _, kind, part, way in seen if (kind, way) in often)
    group = {id(blob): [blob] for blob in blobs}
    for one, two, way in pairs:
        kind, part = kind_of[id(one)], kind_of[id(two)]
        if (kind, way) not in often or held[part] < TOGETHER * counts[part] or group[id(one)] is group[id(two)]:
            continue
        both = [*group[id(one)], *group[id(two)]]
        for blob in both:
            group[id(blob)] = both
    return [joined(parts) for parts in {id(parts): parts for parts in group.values()}.values()]


def neighbours(blobs: list[Blob], frame: tuple[int, int]) -> Iterator[tuple[Blob, Blob]]:
    """Pairs of blobs of one image, both ways round, that would fit into one frame."""
    for one, two in itertools.permutations(blobs, 2):
        bottom = max(one.top + one.mask.shape[0], two.top + two.mask.shape[0]) - min(one.top, two.top)
        right = max(one.left + one.mask.shape[1], two.left + two.mask.shape[1]) - min(one.left, two.left)
        if bottom <= frame[0] and right <= frame[1]:
            yield one, two
