"""Laws of views: images, labels and boxes are cropped, resized and made grey together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes

Corners = tuple[int, int, int, int]
RGB = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)


def boxes(*corners: Corners) -> Boxes:
    """Boxes of as many kinds."""
    values = np.array(corners, np.float32).reshape(-1, 4)
    return Boxes(corners=values, kinds=np.arange(len(values), dtype=np.int32))


def scene_of(box: Corners, size: tuple[int, int] = (24, 36)) -> Scenes:
    """A white rectangle on black, with all that can be known of it."""
    top, left, height, width = box
    labels = np.zeros((1, *size), np.int32)
    labels[0, top : top + height, left : left + width] = 1
    images = np.repeat((labels * 255).astype(np.uint8)[..., None], 3, axis=3)
    return Scenes(images=images, labels=labels, boxes=[boxes(box)], kinds=("thing",), names=("one",), name="made")


def many(count: int) -> Scenes:
    """Tiny black images."""
    return Scenes(images=np.zeros((count, 2, 2, 3), np.uint8))


def extent(mask: np.ndarray) -> list[int]:
    """Top, left, height and width of what is set."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return [int(rows[0]), int(columns[0]), len(rows), len(columns)]


@st.composite
def parts(draw: st.DrawFn, size: tuple[int, int] = (24, 36)) -> Corners:
    """A part of an image, of at least 4 x 4 pixels."""
    top, left = draw(st.integers(0, size[0] - 4)), draw(st.integers(0, size[1] - 4))
    return top, left, draw(st.integers(4, size[0] - top)), draw(st.integers(4, size[1] - left))


@given(box=parts(), crop=parts(), factor=st.sampled_from([1, 2, 3]))
@settings(max_examples=200)
def test_the_ground_truth_stays_on_the_pixels(box: Corners, crop: Corners, factor: int) -> None:
    view = View(crop=crop, resize=(crop[2] * factor, crop[3] * factor), grey=True)
    seen = view.scenes(scene_of(box))
    assert seen.images.shape == (1, crop[2] * factor, crop[3] * factor, 1)
    assert seen.labels is not None
    assert seen.boxes is not None
    pixels = int(seen.labels.sum()) / factor**2
    if pixels >= 0.5 * box[2] * box[3]:
        assert seen.boxes[0].corners.tolist() == [extent(seen.labels[0])]
    else:
        assert len(seen.boxes[0]) == 0
    if factor == 1:
        np.testing.assert_array_equal(seen.images[..., 0], seen.labels * 255)
    assert (seen.kinds, seen.names, seen.name) == (("thing",), ("one",), "made")


def test_shrunken_boxes_and_labels_cover_the_shrunken_object() -> None:
    seen = View(resize=(8, 9)).scenes(scene_of((6, 8, 9, 12)))
    assert seen.boxes is not None
    assert seen.labels is not None
    assert seen.boxes[0].corners.tolist() == [[2, 2, 3, 3]] == [extent(seen.labels[0])]
    assert extent(seen.images[0, ..., 0] > 127) == [2, 2, 3, 3]


def test_boxes_are_cut_where_the_image_ends_and_kept_to_their_kinds() -> None:
    given = boxes((-2, -2, 6, 6), (-9, 0, 10, 4), (20, 30, 4, 6), (50, 50, 4, 4))
    seen = UNCHANGED.boxes(given, (24, 36))
    assert seen.corners.tolist() == [[20, 30, 4, 6]]
    assert seen.kinds.tolist() == [2]
    assert View().boxes(boxes((-1, -1, 6, 6)), (24, 36)).corners.tolist() == [[0, 0, 5, 5]]


def test_grey_is_the_luma_of_the_standard() -> None:
    colours = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [90, 90, 90]]], np.uint8)
    assert View(grey=True).image(colours)[..., 0].tolist() == [[76, 150, 29, 90]]


def test_an_unchanged_view_changes_nothing() -> None:
    scenes = scene_of((1, 2, 3, 4))
    assert UNCHANGED.scenes(scenes) is scenes
    grey = Scenes(images=scenes.images[..., :1])
    assert View(grey=True).scenes(grey) is grey


def test_every_nth_scene_is_seen_and_as_many_are_read_as_that_takes() -> None:
    scenes = Scenes(images=np.arange(10, dtype=np.uint8).reshape(10, 1, 1, 1))
    for stride, limit in ((1, None), (3, None), (3, 2), (1, 4), (4, 99)):
        view = View(stride=stride)
        assert view.scenes(scenes).images.ravel().tolist() == [*range(0, 10, stride)]
        read = view.scenes(scenes.first(view.chosen(limit).stop or len(scenes)))
        assert read.images.ravel().tolist() == [*range(10)][view.chosen(limit)] == [*range(0, 10, stride)][:limit]
    with pytest.raises(PcdnetError, match="the limit is 0 scenes; give at least 1"):
        View().chosen(0)


@given(data=st.data())
def test_a_crop_is_the_slice(data: st.DataObject) -> None:
    top, left = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 8))
    height, width = data.draw(st.integers(1, 6 - top)), data.draw(st.integers(1, 9 - left))
    found = View(crop=(top, left, height, width)).image(RGB)
    np.testing.assert_array_equal(found, RGB[top : top + height, left : left + width])


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (lambda: View(stride=0), "the stride is 0; give 1"),
        (
            lambda: View(crop=(0, -1, 5, 5)),
            "column -1 is empty or begins outside of images; give top, left, height and width of a part",
        ),
        (lambda: View(crop=(0, 0, 5, 0)), "5x0 at row 0, column 0 is empty"),
        (lambda: View(resize=(0, 5)), "resized to 0x5; give a height and a width from 1, .*, as resize$"),
        (lambda: View(resize=(10**5, 10**5)), "at most 67,108,864 pixels together"),
        (
            lambda: View(resize=(8000, 8000)).scenes(many(60)),
            "60 images of 8000x8000 take 10.7 GiB, more than the limit of 8 GiB; use resize, crop or stride, or fewer",
        ),
        *(
            (lambda crop=crop: View(crop=crop).image(RGB), "leaves images of 6x9")
            for crop in ((0, 0, 7, 9), (6, 0, 1, 1))
        ),
        (
            lambda: View(crop=(0, 0, 25, 5)).scenes(scene_of((1, 2, 3, 4))),
            "leaves images of 24x36; give top, left, .* as crop$",
        ),
    ],
)
def test_views_that_are_none_are_refused(attempt: object, complaint: str) -> None:
    assert callable(attempt)
    with pytest.raises(PcdnetError, match=complaint):
        attempt()
