"""Laws of data set files: what is written is what was generated or recorded."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data import npz
from pcdnet.data.tetrominoes import generate, render
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes
from pcdnet.scene import Boxes, Scenes


def test_the_file_holds_images_masks_labels_and_factors_that_agree(tmp_path: Path) -> None:
    save_scenes(generate(5, seed=3), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        held = dict(file)
    assert {name: (array.shape, array.dtype.name) for name, array in held.items()} == {
        "image": ((5, 35, 35, 3), "uint8"),
        "mask": ((5, 4, 35, 35), "uint8"),
        "labels": ((5, 35, 35), "uint8"),
        "shapes": ((5, 3), "int64"),
        "colours": ((5, 3, 3), "uint8"),
        "rows": ((5, 3), "int64"),
        "columns": ((5, 3), "int64"),
    }
    rendered = render(held["shapes"], held["colours"], held["rows"], held["columns"])
    np.testing.assert_array_equal(held["image"], rendered.images)
    np.testing.assert_array_equal(held["labels"], rendered.labels)
    np.testing.assert_array_equal(held["mask"].argmax(axis=1), rendered.labels)
    assert (held["mask"].sum(axis=1, dtype=int) == 255).all()


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "a.npz"
    target.write_bytes(b"precious")
    with pytest.raises(PcdnetError, match="exists already; use force=True"):
        save_scenes(generate(1, seed=0), target)
    assert target.read_bytes() == b"precious"
    save_scenes(generate(1, seed=0), target, force=True)
    assert len(np.load(target)["image"]) == 1


def test_another_suffix_is_refused_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"use .*a\.npz"):
        save_scenes(generate(1, seed=0), tmp_path / "a.txt")


def boxed(*counts: int) -> Scenes:
    """Scenes with so many boxes each."""
    rng = np.random.default_rng(0)
    boxes = [
        Boxes(corners=rng.uniform(1, 9, (n, 4)).astype(np.float32), kinds=rng.integers(0, 2, n, dtype=np.int32))
        for n in counts
    ]
    images = rng.integers(0, 256, (len(counts), 6, 5, 3), dtype=np.uint8)
    return Scenes(images=images, boxes=boxes, kinds=("alien", "ball"), scored=("ball",))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_boxes_are_read_back_as_they_were(counts: list[int]) -> None:
    scenes = boxed(*counts)
    with TemporaryDirectory() as folder:
        save_scenes(scenes, Path(folder) / "a.npz")
        again = npz.read(Path(folder) / "a.npz")
    np.testing.assert_array_equal(again.images, scenes.images)
    assert (again.kinds, again.scored) == (scenes.kinds, scenes.scored)
    for one, other in zip(again.boxes or (), scenes.boxes or (), strict=True):
        np.testing.assert_array_equal(one.corners, other.corners)
        np.testing.assert_array_equal(one.kinds, other.kinds)


def test_boxes_are_flat_arrays_that_need_no_pickle(tmp_path: Path) -> None:
    save_scenes(boxed(2, 0, 1), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        held = dict(file)
    assert {name: (array.shape, array.dtype.str[1:]) for name, array in held.items()} == {
        "image": ((3, 6, 5, 3), "u1"),
        "boxes": ((3, 4), "f4"),
        "box_scene": ((3,), "i4"),
        "box_kind": ((3,), "i4"),
        "kinds": ((2,), "U5"),
        "scored": ((1,), "U4"),
    }
    assert held["box_scene"].tolist() == [0, 0, 2]


def test_what_is_not_known_is_not_in_the_file(tmp_path: Path) -> None:
    images = np.zeros((2, 4, 3, 1), np.uint8)
    save_scenes(Scenes(images=images), tmp_path / "a.npz")
    save_scenes(Scenes(images=images, labels=images[..., 0]), tmp_path / "b.npz")
    assert set(np.load(tmp_path / "a.npz")) == {"image"}
    assert set(np.load(tmp_path / "b.npz")) == {"image", "labels"}
