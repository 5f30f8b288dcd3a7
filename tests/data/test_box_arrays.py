"""Laws of box arrays: every box comes to its scene, and arrays that cannot be boxes are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.data.npz import read
from pcdnet.errors import PcdnetError

IMAGES = np.zeros((5, 4, 6, 3), np.uint8)
LABELS = np.zeros((5, 4, 6), np.int32)
BOXES = {
    "boxes": np.array([[1, 2, 2, 3], [0, 0, 1, 1], [0.5, 1, 2, 2]], np.float32),
    "box_scene": np.array([3, 0, 3], np.int32),
    "box_kind": np.array([1, 0, 2], np.int32),
    "kinds": np.array(["car", "bus", "tree"]),
    "scored": np.array(["car", "bus"]),
}


def saved(folder: Path, **arrays: np.ndarray) -> Path:
    """A file of images with these arrays."""
    np.savez_compressed(folder / "scenes.npz", allow_pickle=True, image=IMAGES, **arrays)
    return folder / "scenes.npz"


@pytest.mark.parametrize("limit", [None, 4, 1, 99])
def test_boxes_come_to_their_scenes(limit: int | None, tmp_path: Path) -> None:
    scenes = read(saved(tmp_path, **BOXES), limit=limit)
    assert scenes.boxes is not None
    assert len(scenes.boxes) == len(scenes.images)
    found = [(boxes.corners.tolist(), boxes.kinds.tolist()) for boxes in scenes.boxes]
    none: tuple[list[float], list[int]] = ([], [])
    every = [([[0, 0, 1, 1]], [0]), none, none, ([[1, 2, 2, 3], [0.5, 1, 2, 2]], [1, 2]), none]
    assert found == every[:limit]
    assert (scenes.kinds, scenes.scored) == (("car", "bus", "tree"), ("car", "bus"))


def test_boxes_may_be_without_kinds_and_none_at_all(tmp_path: Path) -> None:
    bare = {name: BOXES[name] for name in ("boxes", "box_scene")}
    scenes = read(saved(tmp_path, **bare))
    assert scenes.kinds == ("object",)
    assert scenes.boxes is not None
    assert [len(boxes) for boxes in scenes.boxes] == [1, 0, 0, 2, 0]
    empty = {name: values[:0] for name, values in BOXES.items()}
    scenes = read(saved(tmp_path, **empty, labels=LABELS))
    assert scenes.boxes is not None
    assert [len(boxes) for boxes in scenes.boxes] == [0] * 5
    assert scenes.labels is not None
    unowned = {name: BOXES[name] for name in ("kinds", "scored")}
    assert read(saved(tmp_path, **unowned)).boxes is None


@pytest.mark.parametrize(
    ("name", "values", "complaint"),
    [
        (
            "boxes",
            np.zeros((3, 5), np.float32),
            "'boxes' .* has shape .3, 5., which does not fit 3 boxes; save boxes x 4",
        ),
        ("boxes", np.array("x"), "'boxes' .* is of type <U1; save numbers"),
        ("boxes", np.array(1.0), "'boxes' .* does not fit"),
        ("boxes", BOXES["boxes"] * np.nan, "sides that are no pixels"),
        ("boxes", BOXES["boxes"] * -1, "sides above 0"),
        ("box_scene", np.array([3, 0], np.int32), "'box_scene' .* does not fit 3 boxes; save boxes"),
        ("box_scene", np.array([3, 0, 1.5]), "'box_scene' .* is of type float64; save integers"),
        ("box_scene", np.array([3, 0, 5]), "'box_scene' .* goes from 0 to 5, and there are 5 images; save"),
        ("box_scene", None, "the array 'boxes' but not 'box_scene'; save both"),
        ("box_kind", np.array([-1, 0, 1]), "'box_kind' .* goes from -1 to 1, and there are 3 kinds"),
        ("box_kind", None, "the array 'kinds' but not 'box_kind'"),
        ("kinds", None, "the array 'box_kind' but not 'kinds'"),
        ("kinds", np.array([1, 2, 3]), "'kinds' .* is of type int64; save names of at most 200"),
        ("kinds", np.array([None, "a"], object), "'kinds' .* is of type object"),
        ("kinds", np.array([], object), "'kinds' .* is of type object"),
        ("kinds", np.array([["car"]]), "'kinds' .* has shape .1, 1.; save a list"),
        (
            "kinds",
            np.full(3, 0x110000, np.uint32).view("=U1"),
            "'kinds' .* has letters that do not exist; save it again",
        ),
        ("kinds", np.array(["x" * 201]), "names of at most 200 characters"),
        ("scored", np.array(["van"]), "'scored' .* has .'van'.; save names that 'kinds' has"),
    ],
)
def test_arrays_that_are_no_boxes_are_refused(
    name: str, values: np.ndarray | None, complaint: str, tmp_path: Path
) -> None:
    arrays = {**BOXES, name: values}
    given = {name: values for name, values in arrays.items() if values is not None}
    with pytest.raises(PcdnetError, match=complaint):
        read(saved(tmp_path, **given))
