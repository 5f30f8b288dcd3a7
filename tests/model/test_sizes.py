"""Prototypes of like sizes share a frame."""

from __future__ import annotations

import random

from pcdnet.model.geometry import Box
from pcdnet.model.sizes import WORTH, Size, like_sizes


def test_prototypes_of_one_size_stay_together() -> None:
    boxes = [Box(0, 0, 8, 8), Box(0, 1, 8, 7), Box(1, 0, 7, 8)]
    (size,) = like_sizes(boxes)
    assert sorted(size.prototypes) == [0, 1, 2]
    assert size.box == Box(0, 0, 8, 8)


def test_small_prototypes_have_a_frame_of_their_own() -> None:
    boxes = [Box(0, 0, 20, 20), Box(9, 9, 2, 3), Box(8, 10, 3, 2)]
    assert like_sizes(boxes) == [Size((1, 2), Box(8, 9, 3, 3)), Size((0,), Box(0, 0, 20, 20))]


def test_a_single_prototype_is_a_group() -> None:
    assert like_sizes([Box(1, 2, 3, 4)]) == [Size((0,), Box(1, 2, 3, 4))]


def test_groups_are_split_where_that_saves_most_area() -> None:
    """As it is said, box by box."""

    def around(boxes: list[Box]) -> Box:
        top, left = min(box.top for box in boxes), min(box.left for box in boxes)
        bottom, right = max(box.top + box.height for box in boxes), max(box.left + box.width for box in boxes)
        return Box(top, left, bottom - top, right - left)

    def split(some: list[int], worth: float) -> list[Size]:
        def area(part: list[int]) -> int:
            box = around([boxes[n] for n in part])
            return len(part) * box.height * box.width

        saved = [area(some) - area(some[:n]) - area(some[n:]) for n in range(1, len(some))]
        if not saved or max(saved) < worth:
            return [Size(tuple(some), around([boxes[n] for n in some]))]
        n = saved.index(max(saved)) + 1
        return split(some[:n], worth) + split(some[n:], worth)

    groups = 0
    for seed in range(200):
        rng = random.Random(seed)
        most = rng.choice((4, 30))
        boxes = [
            Box(rng.randint(0, 9), rng.randint(0, 9), rng.randint(1, most), rng.randint(1, most))
            for _ in range(rng.randint(1, 25))
        ]
        everything = sorted(range(len(boxes)), key=lambda n: boxes[n].height * boxes[n].width)
        whole = around(boxes)
        expected = split(everything, WORTH * len(boxes) * whole.height * whole.width)
        assert like_sizes(boxes) == expected
        groups += len(expected) > 1
    assert groups > 50
