"""Laws of data set files: what is written is what was generated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.data.tetrominoes import generate, render
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes


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
    images, labels = render(held["shapes"], held["colours"], held["rows"], held["columns"])
    np.testing.assert_array_equal(held["image"], images)
    np.testing.assert_array_equal(held["labels"], labels)
    np.testing.assert_array_equal(held["mask"].argmax(axis=1), labels)
    assert (held["mask"].sum(axis=1, dtype=int) == 255).all()


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    target = tmp_path / "a.npz"
    target.write_bytes(b"precious")
    with pytest.raises(PcdnetError, match="exists already; use --force"):
        save_scenes(generate(1, seed=0), target)
    assert target.read_bytes() == b"precious"
    save_scenes(generate(1, seed=0), target, force=True)
    assert len(np.load(target)["image"]) == 1


def test_another_suffix_is_refused_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"use .*a\.npz"):
        save_scenes(generate(1, seed=0), tmp_path / "a.txt")
