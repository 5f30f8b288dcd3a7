"""Laws of re-created Multi-dSprites: the ground truth is what is seen, and a seed always gives the same scenes."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.data.multi_dsprites import ANGLES, CONTRAST, KINDS, SCALES, SIZE, SYMMETRIES, VISIBLE, generate
from pcdnet.data.opening import open_data
from pcdnet.errors import PcdnetError
from pcdnet.metrics import angle_errors
from pcdnet.scene import Boxes, Scenes, visible_boxes


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    """Some scenes."""
    return generate(200, seed=5)


def known(scenes: Scenes) -> list[tuple[np.ndarray, np.ndarray, Boxes, np.ndarray]]:
    """Image, labels, boxes and poses of every scene."""
    assert scenes.labels is not None
    assert scenes.boxes is not None
    poses = [boxes.poses for boxes in scenes.boxes if boxes.poses is not None]
    return [*zip(scenes.images, scenes.labels, scenes.boxes, poses, strict=True)]


def test_more_images_of_a_seed_begin_with_the_fewer_and_other_seeds_give_others(scenes: Scenes) -> None:
    fewer = open_data("multi-dsprites", count=7, seed=5)
    assert np.array_equal(fewer.images, scenes.images[:7])
    for one, other in zip(known(fewer), known(scenes), strict=False):
        assert np.array_equal(one[1], other[1])
        assert np.array_equal(one[3], other[3])
    assert not np.array_equal(generate(7, seed=6).images, fewer.images)


def test_every_sprite_is_seen_and_has_its_box_in_the_order_of_labels(scenes: Scenes) -> None:
    counts = set()
    for _, labels, boxes, _ in known(scenes):
        pixels = np.bincount(labels.ravel(), minlength=len(boxes) + 1)
        assert len(pixels) == len(boxes) + 1
        assert pixels[1:].min() >= VISIBLE
        corners = visible_boxes(labels.astype(np.int32), len(boxes))
        assert np.array_equal(np.array(corners), boxes.corners)
        counts.add(len(boxes))
    assert counts == {2, 3, 4, 5}


def test_inside_each_sprite_is_one_colour_and_around_them_one_grey(scenes: Scenes) -> None:
    assert scenes.images.shape[1:] == (SIZE, SIZE, 3)
    for image, labels, boxes, _ in known(scenes):
        grey = image[0, 0].astype(int)
        assert np.ptp(grey) == 0
        assert np.bincount(np.abs(image[labels == 0].astype(int) - grey).max(axis=1) > 0).argmax() == 0
        for n in range(1, len(boxes) + 1):
            colours, times = np.unique(image[labels == n], axis=0, return_counts=True)
            usual = colours[times.argmax()].astype(int)
            if times.max() > 0.5 * times.sum():  # of a sprite that is hardly seen only the edge may be left
                assert np.abs(usual - grey).max() >= CONTRAST


def test_poses_are_of_the_grid_and_all_of_it_is_used(scenes: Scenes) -> None:
    poses = np.concatenate([poses for *_, poses in known(scenes)])
    assert set(np.unique(poses[:, 2]).tolist()) == {360 / ANGLES * n for n in range(ANGLES)}
    assert np.unique(poses[:, 3]).tolist() == pytest.approx(SCALES)
    for column in (0, 1):
        assert set(np.unique(poses[:, column]).tolist()) == set(range(16, 48))
    assert not poses[:, 4].any()
    assert set(np.concatenate([boxes.kinds for _, _, boxes, _ in known(scenes)]).tolist()) == {0, 1, 2}


def in_front(scenes: Scenes, kind: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pixels of sprites that nothing covers, and their poses."""
    alone = []
    for _, labels, boxes, poses in known(scenes):
        last = len(boxes)
        if boxes.kinds[-1] == kind:
            alone.append((np.argwhere(labels == last), poses[-1]))
    return alone


@pytest.mark.parametrize("kind", range(3))
def test_centres_are_where_the_pixels_are_and_areas_go_with_the_scale(scenes: Scenes, kind: int) -> None:
    whole = {0: 22.2**2, 1: np.pi * 13.2 * 7.6, 2: 15.2**2 * (1 + np.pi / 4)}[kind]
    for pixels, pose in in_front(scenes, kind):
        assert pixels.mean(axis=0) == pytest.approx(pose[:2], abs=0.3)
        assert len(pixels) == pytest.approx(whole * pose[3] ** 2, rel=0.12)


@pytest.mark.parametrize("kind", range(3))
def test_angles_are_those_of_the_pixels(scenes: Scenes, kind: int) -> None:
    """Moments turn with a shape: of a square the fourth, of an ellipse the second, of a heart the third."""
    order = {"square": 4, "ellipse": 2, "heart": 3}[KINDS[kind]]
    seen, true = [], []
    for pixels, pose in in_front(scenes, kind):
        up, right = (pixels - pixels.mean(axis=0)).T * [[-1], [1]]
        seen.append(np.degrees(np.angle(np.sum((right + 1j * up) ** order))) / order)
        true.append(pose[2])
    # Of the square the corners, of the ellipse the ends and of the heart its point show where these moments do.
    offset = {"square": 45.0, "ellipse": 0.0, "heart": -90.0}[KINDS[kind]]
    errors = angle_errors(np.array(seen), np.array(true) + offset, order)
    assert len(errors) > 20
    assert np.median(errors) < 3
    assert errors.max() < 15
    assert SYMMETRIES == (4, 2, 1)


def test_the_point_of_a_heart_is_below_before_it_is_turned_counter_clockwise(scenes: Scenes) -> None:
    for pixels, pose in in_front(scenes, KINDS.index("heart")):
        up = np.radians(pose[2] + 90)
        height = (pixels - pixels.mean(axis=0)) @ [-np.sin(up), np.cos(up)]
        assert np.mean(height**3) < 0  # few pixels far below, many a little above


@pytest.mark.parametrize(
    ("count", "seed", "cure"), [(0, 0, "give a count of 1 to"), (1, -1, "0 or a positive integer")]
)
def test_numbers_of_which_nothing_can_be_made_are_refused(count: int, seed: int, cure: str) -> None:
    with pytest.raises(PcdnetError, match=cure):
        generate(count, seed)
