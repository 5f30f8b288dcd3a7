"""Laws of the benchmark of labelling: a box that is off by two pixels, or has another name, does not count."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.labelling import scored

from pcdnet.scene import Boxes, Scenes


@pytest.mark.parametrize(("off", "near"), [(0, 1.0), (1, 1.0), (-2, 0.0)])
@pytest.mark.parametrize(("name", "named"), [("alien 2", True), ("alien 2 red", True), ("alien 1", False)])
def test_aliens_count_that_have_a_box_of_their_name_within_a_pixel(
    off: int, near: float, name: str, named: bool
) -> None:
    boxes = [Boxes.from_rows([(5, 7, 10, 8, 1), (50, 60, 10, 8, 2)])]  # the second is no alien
    kinds = ("alien 1", "alien 2", "shield")
    scenes = Scenes(images=np.zeros((1, 90, 90, 3), np.uint8), boxes=boxes, kinds=kinds)
    figures = scored(scenes, {"0000.png": [(name, (7, 5 + off, 8, 10)), ("shield", (60, 50, 8, 10))]})
    assert figures["aliens"] == 1
    assert figures["within_a_pixel"] == near
    assert figures["within_a_pixel_and_named"] == (near if named else 0)
    assert scored(scenes, {})["within_a_pixel"] == 0
