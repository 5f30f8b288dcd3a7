"""Laws of data by name: each name opens what it says, and training never sees what it is validated on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.data import source
from pcdnet.data.source import open_data, training_data
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenes.npz"
    save_scenes(generate(40, seed=1), path)
    return path


def test_tetrominoes_are_generated_by_seed() -> None:
    scenes = open_data("tetrominoes", count=3, seed=7)
    truth = generate(3, seed=7)
    np.testing.assert_array_equal(scenes.images, truth.images)
    np.testing.assert_array_equal(scenes.labels, truth.labels)
    assert "seed 7" in scenes.name


def test_an_npz_file_gives_what_was_saved(file: Path) -> None:
    scenes = open_data(str(file), count=5, seed=0)
    truth = generate(40, seed=1)
    np.testing.assert_array_equal(scenes.images, truth.images[:5])
    np.testing.assert_array_equal(scenes.labels, truth.labels[:5])


@pytest.mark.parametrize("suffix", [".tfrecords", ".tfrecord", ".TFRECORDS"])
def test_records_are_read_as_tetrominoes(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=f"missing{suffix} does not exist"):
        open_data(str(tmp_path / f"missing{suffix}"), count=5, seed=0)


def test_genuine_records_come_with_their_truth(shared: Path) -> None:
    paths = sorted(shared.rglob("*.tfrecords"))
    if not paths:
        pytest.skip("needs a genuine .tfrecords file")
    scenes = open_data(str(paths[0]), count=4, seed=0)
    assert scenes.images.shape == (len(scenes), 35, 35, 3)
    assert scenes.labels is not None
    assert scenes.labels.max() == 3


@pytest.mark.parametrize("name", ["tetris", "folder", "a.txt", "", "space-invaders"])
def test_other_names_are_told_what_can_be_used(name: str) -> None:
    with pytest.raises(PcdnetError, match="use tetrominoes .generated., a .tfrecords file .* or an .npz file"):
        open_data(name, count=1, seed=0)


def test_nothing_asked_for_is_refused(file: Path) -> None:
    for name in ("tetrominoes", str(file)):
        with pytest.raises(PcdnetError, match="0 scenes were asked for"):
            open_data(name, count=0, seed=0)


def test_of_a_file_the_last_scenes_are_kept_for_validation(file: Path) -> None:
    train, valid = training_data(str(file), seed=0)
    truth = generate(40, seed=1)
    np.testing.assert_array_equal(np.concatenate([train.images, valid.images]), truth.images)
    assert valid.labels is not None
    np.testing.assert_array_equal(valid.labels, truth.labels[36:])
    assert len(valid) == 4


def test_generated_training_and_validation_share_no_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "TRAINING_SCENES", 300)
    train, valid = training_data("tetrominoes", seed=0)
    assert (len(train), len(valid)) == (300, 320)
    assert not {image.tobytes() for image in train.images} & {image.tobytes() for image in valid.images}
    other, _ = training_data("tetrominoes", seed=1)
    assert not np.array_equal(train.images, other.images)


def test_too_few_scenes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.npz"
    save_scenes(generate(9, seed=1), path)
    with pytest.raises(PcdnetError, match="holds 9 scenes, too few to learn from; give at least 10"):
        training_data(str(path), seed=0)
