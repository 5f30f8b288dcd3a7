"""Laws of scenes: a part of them keeps all that is known of it, and what does not fit together is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scene, Scenes

places = st.none() | st.integers(-9, 9)
slices = st.builds(slice, places, places, st.sampled_from([None, 1, 2, 3]))


def made(count: int = 6) -> Scenes:
    """Scenes of which everything is known, and everything tells which of them it is of."""
    numbers = np.arange(count)
    return Scenes(
        images=np.broadcast_to(numbers[:, None, None, None], (count, 4, 5, 3)).astype(np.uint8),
        labels=np.broadcast_to(numbers[:, None, None], (count, 4, 5)).astype(np.int32),
        boxes=[Boxes(corners=np.ones((n, 4), np.float32), kinds=np.zeros(n, np.int32)) for n in range(count)],
        kinds=("car", "cone"),
        scored=("car",),
        names=tuple(f"scene {n}" for n in range(count)),
        name="made",
    )


@given(slices)
def test_a_part_of_scenes_keeps_all_that_is_known_of_it(which: slice) -> None:
    part, numbers = made().part(which), [*range(6)][which]
    assert part.labels is not None
    assert part.boxes is not None
    assert part.images[:, 0, 0, 0].tolist() == part.labels[:, 0, 0].tolist() == [*map(len, part.boxes)] == numbers
    assert part.names == tuple(f"scene {n}" for n in numbers)
    assert (part.kinds, part.scored, part.name) == (("car", "cone"), ("car",), "made")
    assert len(part) == len(numbers)


@given(st.integers(0, 12))
def test_the_first_scenes_are_those_of_the_slice(count: int) -> None:
    first = made().first(count)
    assert first.names == made().part(slice(count)).names
    assert len(first) == min(count, 6)


def test_what_is_not_known_stays_so_in_a_part() -> None:
    part = Scenes(images=made().images).part(slice(2, None), "the rest")
    assert (part.labels, part.boxes, part.names, part.kinds, part.name) == (None, None, (), (), "the rest")


def test_scenes_say_in_one_line_what_they_are() -> None:
    assert repr(made()) == "Scenes(6 images of 4x5x3 with labels and boxes: made)"
    assert repr(Scenes(images=np.zeros((12_345, 1, 2, 1), np.uint8))) == "Scenes(12,345 images of 1x2x1)"


@pytest.mark.parametrize(
    ("image", "labels", "complaint"),
    [
        ((4, 5), None, "'a' has an image of shape (4, 5); give height x width x 1 or 3 channels"),
        ((4, 5, 2), None, "'a' has an image of shape (4, 5, 2); give height x width x 1 or 3 channels"),
        ((4, 5, 3), (5, 4), "'a' has labels of shape (5, 4) for an image of (4, 5); give one label per pixel"),
    ],
)
def test_a_scene_of_no_image_or_of_labels_that_do_not_fit_is_refused(
    image: tuple[int, ...], labels: tuple[int, ...] | None, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # as for users
    given = None if labels is None else np.zeros(labels, np.int32)
    with pytest.raises(PcdnetError) as caught:
        Scene(image=np.zeros(image, np.float32), labels=given, name="a")
    assert complaint in str(caught.value)


@given(st.lists(st.booleans(), min_size=6, max_size=6))
def test_any_choice_of_scenes_keeps_all_that_is_known_of_it(which: list[bool]) -> None:
    places = np.arange(18, dtype=np.int32).reshape(6, 3)
    part = dataclasses.replace(made(), places=places).part(np.array(which))
    numbers = [n for n in range(6) if which[n]]
    assert part.boxes is not None
    assert part.places is not None
    assert part.images[:, 0, 0, 0].tolist() == [*map(len, part.boxes)] == (part.places[:, 0] // 3).tolist() == numbers
    assert part.names == tuple(f"scene {n}" for n in numbers)


def test_boxes_are_cut_at_the_border_of_a_part_and_count_if_half_of_them_is_inside() -> None:
    boxes = Boxes.from_rows([[10, 10, 4, 4, 0], [8, 10, 4, 4, 1], [7, 10, 4, 4, 2], [10, 18, 4, 5, 3]])
    found = boxes.within((10, 10, 10, 10))
    assert found.corners.tolist() == [[0, 0, 4, 4], [0, 0, 2, 4]]
    assert found.kinds.tolist() == [0, 1]


def test_poses_go_with_their_boxes_into_parts() -> None:
    rows = [[10, 10, 4, 4, 0], [8, 10, 4, 4, 1], [7, 10, 4, 4, 2]]
    boxes = Boxes.from_rows(rows, [[11.5, 11.5, 30, 1, 0], [9.5, 11.5, 60, 2, 1], [8.5, 11.5, 90, 3, 0]])
    found = boxes.within((10, 10, 10, 10)).poses
    assert found is not None
    assert found.tolist() == [[1.5, 1.5, 30, 1, 0], [-0.5, 1.5, 60, 2, 1]]
    some = boxes.those(np.array([False, False, True]))
    assert some.kinds.tolist() == [2]
    assert some.poses is not None
    assert some.poses.tolist() == [[8.5, 11.5, 90, 3, 0]]
    scenes = dataclasses.replace(made(2), boxes=[boxes, boxes]).part(slice(1, None))
    assert scenes.boxes is not None
    assert scenes.boxes[0].poses is boxes.poses


def test_poses_grow_with_the_image_and_are_unknown_where_it_is_stretched() -> None:
    boxes = Boxes.from_rows([[0, 0, 2, 2, 0]], [[0.5, 2.5, 30, 1, 1]])  # the centre of a box lies between its pixels
    larger = boxes.resized(2, 2)
    assert larger.corners.tolist() == [[0, 0, 4, 4]]
    assert larger.poses is not None
    assert larger.poses.tolist() == [[1.5, 5.5, 30, 2, 1]]
    assert boxes.resized(2, 3).poses is None
    assert boxes.resized(2, 3).corners.tolist() == [[0, 0, 4, 6]]
    assert Boxes.from_rows([[0, 0, 2, 2, 0]]).resized(2, 2).poses is None
