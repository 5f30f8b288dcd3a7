"""Laws of matching: found objects are given to true ones by score, one to one, and what does not count is free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.metrics import box_iou, found_objects, mask_iou, match, match_scene

SIDE = 9


@st.composite
def box(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """A box inside of a small image."""
    top, left = draw(st.integers(0, SIDE - 1)), draw(st.integers(0, SIDE - 1))
    return top, left, draw(st.integers(1, SIDE - top)), draw(st.integers(1, SIDE - left))


def boxes(*corners: tuple[float, float, float, float]) -> np.ndarray:
    """Boxes as an array."""
    return np.array(corners, dtype=np.float32).reshape(-1, 4)


def painted(corners: tuple[int, int, int, int]) -> np.ndarray:
    """A label map in which a box is the only object."""
    top, left, height, width = corners
    labels = np.zeros((SIDE, SIDE), dtype=np.int32)
    labels[top : top + height, left : left + width] = 1
    return labels


@given(box(), box())
def test_the_iou_of_boxes_is_that_of_their_pixels(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    pixels = mask_iou(painted(one), painted(other))  # type: ignore[arg-type]
    assert box_iou(boxes(one), boxes(other)) == pytest.approx(pixels, abs=1e-12)  # type: ignore[arg-type]


def test_the_iou_of_boxes_goes_by_fractions_of_pixels() -> None:
    iou = box_iou(boxes((0, 0, 2, 2)), boxes((0, 0, 2, 2), (0, 0.5, 2, 2), (0, 2, 2, 2), (0, 0, 0, 0)))
    assert iou[0].tolist() == pytest.approx([1, 0.6, 0, 0])
    assert box_iou(boxes((1, 1, 0, 0)), boxes((1, 1, 0, 0))).tolist() == [[0.0]]
    assert box_iou(boxes(), boxes((0, 0, 1, 1))).shape == (0, 1)


@given(*(arrays(np.int32, (6, 5), elements=st.integers(0, 4)) for _ in range(2)))
def test_the_iou_of_masks_is_that_of_every_pair(target: np.ndarray, prediction: np.ndarray) -> None:
    true, predicted = ([labels == n for n in range(1, 5) if (labels == n).any()] for labels in (target, prediction))
    expected = [[(t & p).sum() / (t | p).sum() for p in predicted] for t in true]
    iou = mask_iou(target, prediction)
    assert iou.shape == (len(true), len(predicted))
    assert iou.ravel().tolist() == pytest.approx(np.ravel(expected).tolist())


def test_masks_of_different_images_are_refused() -> None:
    with pytest.raises(PcdnetError, match="give one label for every pixel"):
        mask_iou(np.zeros((2, 3), int), np.zeros((3, 2), int))


@given(arrays(np.int32, (6, 7), elements=st.integers(0, 5)))
def test_found_objects_are_those_of_the_decomposition_that_are_seen(instances: np.ndarray) -> None:
    scene = Decomposition(
        prototype_ids=np.arange(5, dtype=np.int32) * 2,
        positions=np.zeros((5, 2), np.int32),
        colours=np.zeros((5, 1), np.float32),
        error_reductions=np.arange(5, dtype=np.float32),
        instances=instances,
        reconstruction=np.zeros((6, 7, 1), np.float32),
        error=0.0,
    )
    found = found_objects(instances, scene.prototype_ids, scene.error_reductions)
    seen = [thing for thing in scene.objects if thing.box is not None]
    assert found.boxes.tolist() == [list(thing.box or ()) for thing in seen]
    assert found.prototype_ids.tolist() == [thing.prototype for thing in seen]
    assert found.scores.tolist() == [thing.error_reduction for thing in seen]
    assert len(found) == len(mask_iou(instances, instances))


@st.composite
def overlaps(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """IoUs with many equal ones, scores, and which true objects count."""
    n, m = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    iou = draw(arrays(np.float64, (n, m), elements=st.sampled_from([0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1])))
    scores = draw(arrays(np.float32, n, elements=st.integers(0, 3).map(float)))
    return iou, scores, draw(arrays(np.bool_, m))


@given(overlaps())
def test_matching_is_one_to_one_and_leaves_nothing_that_fits(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    iou, scores, counted = case
    partners = match(iou, scores, counted, 0.5)
    given_away = partners[partners >= 0]
    assert len(set(given_away)) == len(given_away)
    free = ~np.isin(np.arange(iou.shape[1]), given_away)
    for n, partner in enumerate(partners):
        if partner < 0:
            assert not (iou[n, free] >= 0.5).any()
        else:
            assert iou[n, partner] >= 0.5
            rivals = free & counted if counted[partner] else free
            assert not (iou[n, rivals] > iou[n, partner]).any()
            assert counted[partner] or not (iou[n, free & counted] >= 0.5).any()


def test_the_higher_score_is_served_first() -> None:
    iou = np.array([[0.9], [0.6]])
    assert match(iou, np.array([1.0, 2.0]), np.array([True])).tolist() == [-1, 0]
    assert match(iou, np.array([2.0, 1.0]), np.array([True])).tolist() == [0, -1]
    assert match(iou, np.array([1.0, 1.0]), np.array([True])).tolist() == [0, -1]


def test_of_equal_overlaps_the_last_is_taken_as_coco_does() -> None:
    assert match(np.array([[0.6, 0.7, 0.7, 0.5]]), np.ones(1), np.ones(4, bool)).tolist() == [2]


def test_what_does_not_count_is_only_taken_where_nothing_else_is_left() -> None:
    iou = np.array([[0.6, 1.0], [0.6, 0.7]])
    assert match(iou, np.array([2.0, 1.0]), np.array([True, False])).tolist() == [0, 1]
    assert match(iou, np.array([2.0, 1.0]), np.array([True, True])).tolist() == [1, 0]


def test_a_scene_is_matched_at_two_overlaps() -> None:
    found = found_objects(painted((0, 0, 2, 4)), np.zeros(1, np.int32), np.ones(1, np.float32))
    matches = match_scene(found, box_iou(found.boxes, boxes((0, 2, 2, 4), (5, 5, 2, 2))))
    assert (matches.partners.tolist(), matches.loose.tolist()) == ([-1], [0])
    assert matches.counted.tolist() == [True, True]
    assert matches.kinds.tolist() == [0, 0]
