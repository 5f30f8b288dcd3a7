"""Prototypes of like sizes share a frame."""

from __future__ import annotations

from pcdnet.model.geometry import Box
from pcdnet.model.sizes import Size, like_sizes


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
