"""Parts: blobs that always stand together at one offset are one object."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

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
    counts = Counter(kind_of.values())
    offsets: Counter[tuple[int, int, int, int]] = Counter()
    for together in images.values():
        for one, two, *offset in _neighbours(together, frame):
            offsets[kind_of[id(one)], kind_of[id(two)], *offset] += 1
    bound = {rule: n for rule, n in offsets.items() if n >= TOGETHER * counts[rule[0]] and n >= SUPPORT}
    held: Counter[int] = Counter()
    for (_, part, _, _), n in bound.items():
        held[part] += n
    rules = {rule for rule in bound if held[rule[1]] >= TOGETHER * counts[rule[1]]}
    result = [blob for blob in blobs if id(blob) not in kind_of]
    for together in images.values():
        group = {id(blob): [blob] for blob in together}
        for one, two, *offset in _neighbours(together, frame):
            if (kind_of[id(one)], kind_of[id(two)], *offset) in rules and group[id(one)] is not group[id(two)]:
                both = [*group[id(one)], *group[id(two)]]
                for blob in both:
                    group[id(blob)] = both
        result += [joined(parts) for parts in {id(parts): parts for parts in group.values()}.values()]
    return result


def _neighbours(blobs: list[Blob], frame: tuple[int, int]) -> Iterator[tuple[Blob, Blob, int, int]]:
    """Pairs of blobs of one image that would fit into one frame, with their offset."""
    for one, two in itertools.permutations(blobs, 2):
        bottom = max(one.top + one.mask.shape[0], two.top + two.mask.shape[0]) - min(one.top, two.top)
        right = max(one.left + one.mask.shape[1], two.left + two.mask.shape[1]) - min(one.left, two.left)
        if bottom <= frame[0] and right <= frame[1]:
            yield one, two, two.top - one.top, two.left - one.left
