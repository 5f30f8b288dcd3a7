"""Laws of correction: what is drawn becomes a prototype that finds its like, and limits grow to hold it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pcdnet.corrections import Drawn
from pcdnet.errors import PcdnetError
from pcdnet.training.correction import correct, thing_in
from tests.training.corrected import BAR, CONFIG, CROSS, TALL, model, picture

SCENE = picture((CROSS, 3, 4, 1.0), (TALL, 15, 20, 0.9), (BAR, 5, 25, 0.8))
OTHER = picture((TALL, 2, 30, 0.7), (CROSS, 25, 10, 0.8), (TALL, 20, 3, 1.0), (BAR, 3, 3, 1.0))


def test_a_drawn_thing_is_found_elsewhere_and_the_others_as_before() -> None:
    former = model()
    correction = correct(former, [Drawn(SCENE, (14, 18, 18, 9), "tall")], [], np.stack([SCENE, OTHER]))
    made = correction.model
    assert list(made.names) == ["cross", "bar", "tall"]
    assert made.config.prototype_size == (19, 9)
    assert made.config.max_objects >= 4
    assert correction.numbers == {0: 0, 1: 1}
    assert correction.shift == (-5, 0)
    found = made.decompose(OTHER)
    assert sorted(found.prototype_ids.tolist()) == [0, 1, 2, 2]
    boxes = {thing.prototype: thing.box for thing in found.objects if thing.box and thing.box[:2] != (20, 3)}
    assert boxes == {0: (25, 10, 7, 7), 1: (5, 3, 3, 7), 2: (2, 30, 15, 5)}
    assert found.error < 0.05 * former.decompose(OTHER).error


def test_positions_follow_the_larger_frame() -> None:
    former = model()
    correction = correct(former, [Drawn(SCENE, (14, 18, 18, 9))], [], SCENE[None])
    one = former.decompose(picture((CROSS, 3, 4, 1.0)))
    two = correction.model.decompose(picture((CROSS, 3, 4, 1.0)))
    assert (one.positions + correction.shift).tolist() == two.positions.tolist()


def test_a_removed_prototype_is_gone_and_the_others_move_up() -> None:
    correction = correct(model(), [], [0], SCENE[None])
    assert list(correction.model.names) == ["bar"]
    assert correction.numbers == {1: 0}
    assert 0 < len(correction.model.decompose(OTHER)) == (correction.model.decompose(OTHER).prototype_ids == 0).sum()
    with pytest.raises(PcdnetError, match="there is no prototype 2"):
        correct(model(), [], [2], SCENE[None])
    with pytest.raises(PcdnetError, match="leave a prototype, or draw a box"):
        correct(model(), [], [0, 1], SCENE[None])


def test_a_faint_thing_lowers_what_counts_as_an_object() -> None:
    faint = picture((TALL, 15, 20, 0.1))
    correction = correct(model(), [Drawn(faint, (13, 18, 19, 9))], [], faint[None])
    assert correction.model.config.min_error_reduction < CONFIG.min_error_reduction
    assert len(model().decompose(faint)) == 0
    assert correction.model.decompose(faint).prototype_ids.tolist() == [2]


def test_boxes_of_one_name_and_shape_are_one_prototype_and_others_are_not() -> None:
    boxes = [Drawn(OTHER, (1, 28, 17, 9), "tall"), Drawn(OTHER, (19, 1, 17, 9), "tall")]
    assert list(correct(model(), boxes, [], OTHER[None]).model.names) == ["cross", "bar", "tall"]
    boxes[1] = dataclasses.replace(boxes[1], name="")
    assert correct(model(), boxes, [], OTHER[None]).model.config.num_prototypes == 4


def test_a_box_takes_what_lies_in_it_and_leaves_its_neighbours() -> None:
    crowded = picture((TALL, 15, 20, 0.9), (CROSS, 15, 26, 0.9))
    blob = thing_in(model(), Drawn(crowded, (14, 18, 18, 10)))
    assert (blob.top, blob.left, *blob.mask.shape) == (15, 20, 15, 5)


def test_a_box_around_nothing_is_refused() -> None:
    with pytest.raises(PcdnetError, match="nothing stands out"):
        thing_in(model(), Drawn(SCENE, (30, 0, 8, 8)))


def test_where_objects_turn_the_things_of_one_name_are_one_prototype_in_its_poses() -> None:
    former = model()
    former.config = dataclasses.replace(former.config, rotations=4)
    lying = picture((np.ascontiguousarray(TALL.T[:, :12]), 20, 10, 0.9), (TALL, 3, 30, 0.9))
    boxes = [Drawn(lying, (18, 8, 9, 17), "tall"), Drawn(lying, (1, 28, 19, 9), "tall")]
    made = correct(former, boxes, [], lying[None]).model
    assert list(made.names) == ["cross", "bar", "tall"]
    assert int((made.masks[2] > 0.5).sum()) == TALL.size
    assert (made.decompose(lying).prototype_ids == 2).sum() == 2
    assert correct(model(), boxes, [], lying[None]).model.config.num_prototypes == 4
