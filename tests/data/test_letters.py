"""Laws of the generated letters: the ground truth fits the ink, and a seed always gives the same pages."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.data.letters import HEIGHT, KINDS, WIDTH, generate
from pcdnet.data.opening import open_data
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes, visible_boxes


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    """A few pages."""
    return generate(60, seed=5)


def labels_of(scenes: Scenes) -> np.ndarray:
    """The label maps, which there are."""
    assert scenes.labels is not None
    return np.asarray(scenes.labels)


def boxes_of(scenes: Scenes) -> list[Boxes]:
    """The boxes, which there are."""
    assert scenes.boxes is not None
    return list(scenes.boxes)


def test_more_images_of_a_seed_begin_with_the_fewer_and_other_seeds_give_others(scenes: Scenes) -> None:
    fewer = open_data("letters", count=7, seed=5)
    assert np.array_equal(fewer.images, scenes.images[:7])
    assert np.array_equal(labels_of(fewer), labels_of(scenes)[:7])
    assert not np.array_equal(generate(7, seed=6).images, fewer.images)


def test_boxes_are_tight_around_labels_of_the_same_order(scenes: Scenes) -> None:
    for labels, boxes in zip(labels_of(scenes), boxes_of(scenes), strict=True):
        corners = visible_boxes(labels.astype(np.int32), len(boxes))
        assert np.array_equal(np.array(corners), boxes.corners)
        assert labels.max() == len(boxes)


def test_ink_is_darker_than_the_paper_around_it(scenes: Scenes) -> None:
    for image, labels in zip(scenes.images[..., 0], labels_of(scenes), strict=True):
        assert np.percentile(image[labels > 0], 90) < image[labels == 0].mean() - 50


def test_all_kinds_come_and_each_has_one_shape(scenes: Scenes) -> None:
    shapes: dict[int, set[bytes]] = {}
    for labels, boxes in zip(labels_of(scenes), boxes_of(scenes), strict=True):
        for n, (corners, kind) in enumerate(zip(boxes.corners.astype(int), boxes.kinds, strict=True), start=1):
            top, left, height, width = corners
            cut = labels[top : top + height, left : left + width] == n
            shapes.setdefault(int(kind), set()).add(bytes([height, width]) + cut.tobytes())
    assert sorted(shapes) == list(range(len(KINDS)))
    assert {len(seen) for seen in shapes.values()} == {1}
    assert len(set.union(*shapes.values())) == len(KINDS)  # no two kinds look the same


def test_letters_stand_inside_the_image_and_apart(scenes: Scenes) -> None:
    assert scenes.images.shape[1:] == (HEIGHT, WIDTH, 1)
    for boxes in boxes_of(scenes):
        top, left, height, width = boxes.corners.astype(int).T
        assert min(top.min(), left.min()) >= 0
        assert (top + height).max() <= HEIGHT
        assert (left + width).max() <= WIDTH
        covered = np.zeros((HEIGHT, WIDTH), int)
        for row, column, h, w in zip(top, left, height, width, strict=True):
            covered[row : row + h, column : column + w] += 1
        assert covered.max() == 1


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_counts_beyond_all_measure_are_refused(count: int) -> None:
    with pytest.raises(PcdnetError, match=f"{count} images of letters were asked for; give a count of 1 to"):
        generate(count, seed=0)
