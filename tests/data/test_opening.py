"""Laws of opening: each name opens what it says, and training never sees what a model is validated or scored on."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.data import sources
from pcdnet.data.opening import GENERATED_SCENES, held_out_data, open_data, to_scenes, training_data
from pcdnet.data.sources import SOURCES, TEST_SEED, is_generated, usable
from pcdnet.data.tetrominoes import TetrominoScenes, generate
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes
from pcdnet.scene import Scenes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An .npz file of 40 scenes."""
    path = tmp_path / "scenes.npz"
    save_scenes(generate(40, seed=1), path)
    return path


def test_tetrominoes_are_generated_by_seed() -> None:
    scenes = open_data("tetrominoes", count=3, seed=7)
    expected = generate(3, seed=7)
    np.testing.assert_array_equal(scenes.images, expected.images)
    np.testing.assert_array_equal(scenes.labels, expected.labels)
    assert "seed 7" in scenes.name
    assert isinstance(scenes, TetrominoScenes)
    grey = open_data("tetrominoes", count=3, seed=7, view=View(crop=(0, 0, 20, 20), grey=True))
    assert type(grey) is Scenes  # the factors would be about images that are gone
    assert grey.images.shape == (3, 20, 20, 1)


def test_an_npz_file_gives_what_was_saved(file: Path) -> None:
    scenes = open_data(str(file), count=5, seed=0)
    expected = generate(40, seed=1)
    np.testing.assert_array_equal(scenes.images, expected.images[:5])
    np.testing.assert_array_equal(scenes.labels, expected.labels[:5])


@pytest.mark.parametrize("suffix", [".tfrecords", ".tfrecord", ".TFRECORDS"])
def test_records_are_read_as_tetrominoes(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=f"missing{suffix} does not exist"):
        open_data(str(tmp_path / f"missing{suffix}"), count=5, seed=0)


def test_genuine_records_come_with_their_ground_truth(shared: Path) -> None:
    paths = sorted(shared.rglob("*.tfrecords"))
    if not paths:
        pytest.skip("needs a genuine .tfrecords file")
    scenes = open_data(str(paths[0]), count=4, seed=0)
    assert scenes.images.shape == (len(scenes), 35, 35, 3)
    assert scenes.labels is not None
    assert scenes.labels.max() == 3


@pytest.mark.parametrize("name", ["tetris", "unheard", "a", ""])
def test_other_names_are_refused_with_all_that_can_be_used(name: str) -> None:
    for attempt in (
        lambda: open_data(name, count=1, seed=0),
        lambda: training_data(name, seed=0),
        lambda: held_out_data(name, count=1, seed=0),
        lambda: to_scenes(name),
    ):
        with pytest.raises(PcdnetError, match="no data known here; use ") as caught:
            attempt()
        assert str(caught.value).endswith(usable())


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("tetrominos", "did you mean tetrominoes?"),
        ("Tetrominoes", "did you mean tetrominoes?"),
        ("space_invaders", "did you mean space-invaders?"),
        ("spaceinvaders", "did you mean space-invaders?"),
        ("missing/folder", "'missing/folder' does not exist; use tetrominoes"),
        ("missing.txt", "'missing.txt' does not exist; use tetrominoes"),
        ("missing.npz", "missing.npz does not exist; give the path of an .npz file"),
        ("missing.mp4", "missing.mp4 does not exist; give the path of a video"),
        ("x" * 5000, "^'x{200}' is no data known here; use tetrominoes"),
        ("zero\0", "no data known here; use tetrominoes"),
        ("missing.png", "missing.png does not exist; give the path of a picture"),
    ],
)
def test_names_that_open_nothing_are_refused_with_the_reason(name: str, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=complaint.replace("?", "[?]")):
        open_data(name, count=1, seed=0)


def test_nothing_asked_for_is_refused(file: Path) -> None:
    for name in ("tetrominoes", str(file)):
        with pytest.raises(PcdnetError, match="0 scenes were asked for"):
            open_data(name, count=0, seed=0)


def test_of_a_file_the_last_scenes_are_kept_for_validation(file: Path) -> None:
    train, valid = training_data(str(file), seed=0)
    expected = generate(40, seed=1)
    np.testing.assert_array_equal(np.concatenate([train.images, valid.images]), expected.images)
    np.testing.assert_array_equal(valid.labels, expected.labels[36:])
    assert len(valid) == 4


def test_generated_training_validation_and_test_share_no_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SOURCES", [dataclasses.replace(SOURCES[0], training=(300, 320))])
    train, valid = training_data("tetrominoes", seed=0)
    test = held_out_data("tetrominoes", count=310, seed=TEST_SEED)
    assert (len(train), len(valid), len(test)) == (300, 320, 310)
    distinct = {image.tobytes() for scenes in (train, valid, test) for image in scenes.images}
    assert len(distinct) == 300 + 320 + 310
    other, _ = training_data("tetrominoes", seed=1)
    assert not np.array_equal(train.images, other.images)


def test_too_few_scenes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "few.npz"
    save_scenes(generate(9, seed=1), path)
    with pytest.raises(PcdnetError, match="holds too few scenes to learn from, 9; give at least 10"):
        training_data(str(path), seed=0)


def pictures(folder: Path, first: int, count: int, channels: int = 3) -> Path:
    """A folder of small images, each of one brightness."""
    folder.mkdir(parents=True)
    for index in range(first, first + count):
        values = np.full((8, 10, 3), index, np.uint8)
        Image.fromarray(values if channels == 3 else values[..., 0]).save(folder / f"{index}.png")
    return folder


def numbers(scenes: Scenes) -> list[int]:
    """The brightness of every image."""
    return [int(image[0, 0, 0]) for image in scenes.images]


def test_a_folder_of_images_is_split_like_a_file(tmp_path: Path) -> None:
    name = str(pictures(tmp_path / "some", 0, 25))
    train, valid = training_data(name, seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(23)], [23, 24])
    assert valid.names == ("23.png", "24.png")
    assert valid.name == f"the last 2 of {name}"
    assert numbers(open_data(name, count=3, seed=0)) == [0, 1, 2]


def test_a_folder_with_train_val_and_test_keeps_them_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures(tmp_path / "train", 0, 12)
    train, valid = training_data(str(tmp_path), seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(11)], [11])
    assert numbers(open_data(str(tmp_path), count=2, seed=0)) == [0, 1]
    assert "neither a folder test nor val" in capsys.readouterr().err
    pictures(tmp_path / "val", 50, 3)
    train, valid = training_data(str(tmp_path), seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(12)], [50, 51, 52])
    assert numbers(open_data(str(tmp_path), count=2, seed=0)) == [50, 51]
    pictures(tmp_path / "test", 70, 4)
    assert numbers(open_data(str(tmp_path), count=9, seed=0)) == [70, 71, 72, 73]
    assert numbers(open_data(str(tmp_path / "train"), count=2, seed=0)) == [0, 1]
    assert numbers(training_data(str(tmp_path), seed=0)[0]) == [*range(12)]


@pytest.mark.parametrize("kind", ["folder", "file", "train"])
def test_scenes_held_out_of_plain_data_are_those_of_validation(kind: str, tmp_path: Path, file: Path) -> None:
    pictures(tmp_path / ("some/train" if kind == "train" else "some"), 0, 25)
    name = file if kind == "file" else tmp_path / "some"
    train, valid = training_data(name, seed=4)
    scenes = held_out_data(name, count=1000, seed=TEST_SEED)
    np.testing.assert_array_equal(scenes.images, valid.images)
    assert (scenes.name, scenes.names) == (valid.name, valid.names)
    assert not {image.tobytes() for image in train.images} & {image.tobytes() for image in scenes.images}
    np.testing.assert_array_equal(held_out_data(name, count=1, seed=0).images, valid.images[:1])
    with pytest.raises(PcdnetError, match="the limit is 0 scenes; give"):
        held_out_data(name, count=0, seed=0)


def test_scenes_held_out_of_a_folder_with_parts_are_its_test_or_else_its_val(tmp_path: Path) -> None:
    pictures(tmp_path / "train", 0, 12)
    pictures(tmp_path / "val", 50, 3)
    assert numbers(held_out_data(tmp_path, count=9, seed=0)) == [50, 51, 52]
    pictures(tmp_path / "test", 70, 4)
    assert numbers(held_out_data(tmp_path, count=3, seed=0)) == [70, 71, 72]


def test_a_picture_is_one_scene_and_too_few_to_learn_from(tmp_path: Path) -> None:
    pictures(tmp_path / "some", 7, 1)
    scenes = open_data(tmp_path / "some" / "7.png", count=5, seed=0, view=View(grey=True))
    assert (scenes.images.shape, numbers(scenes), scenes.names) == ((1, 8, 10, 1), [7], ("7.png",))
    with pytest.raises(PcdnetError, match="too few scenes to learn from, 1; give at least 10"):
        training_data(tmp_path / "some" / "7.png", seed=0)


STACK = np.random.default_rng(0).integers(0, 256, (6, 8, 9, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (STACK, STACK),
        (STACK[..., :1], STACK[..., :1]),
        (STACK[..., 0], STACK[..., :1]),
        (STACK / 255, STACK),
        ((STACK / 255).astype(np.float32), STACK),
        (Scenes(images=STACK), STACK),
    ],
)
def test_arrays_and_scenes_are_scenes(given: Any, expected: np.ndarray) -> None:
    scenes = to_scenes(given)
    assert scenes.images.dtype == np.uint8
    np.testing.assert_array_equal(scenes.images, expected)
    np.testing.assert_array_equal(to_scenes(given, count=2, view=View(stride=2)).images, expected[:4:2])
    assert to_scenes(given, view=View(crop=(1, 2, 3, 4), grey=True)).images.shape == (6, 3, 4, 1)


def test_names_and_paths_are_opened(file: Path) -> None:
    expected = generate(40, seed=1).images
    for name in (file, str(file)):
        np.testing.assert_array_equal(to_scenes(name).images, expected)
        np.testing.assert_array_equal(to_scenes(name, count=2).images, expected[:2])
    np.testing.assert_array_equal(to_scenes("tetrominoes", count=40, seed=1).images, expected)
    assert len(to_scenes("tetrominoes")) == GENERATED_SCENES


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (STACK[0], "shape .8, 9, 3., which looks like one image; give a stack, array.None."),
        (STACK[0, 0], "shape .9, 3.; give at least one image, as images x height"),
        (STACK[..., :2], "shape .6, 8, 9, 2.; give at least"),
        (STACK[:0], "shape .0, 8, 9, 3.; give at least"),
        (STACK.astype(np.int64), "of type int64; give uint8 of 0 to 255, or floats of 0 to 1"),
        (STACK.astype(np.float32), "values from 0 to 255; give 8 bits, or values of 0 to 1$"),
        (np.full((2, 8, 8), np.nan), "values from nan to nan; give 8 bits"),
        (STACK.tolist(), "images of type list were given; give a NumPy array, Scenes, or tetrominoes"),
        (None, "images of type NoneType were given"),
    ],
)
def test_what_cannot_be_scenes_is_refused(given: Any, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        inspect.unwrap(to_scenes)(given)  # without the types that are checked in tests alone


def test_parts_that_no_model_can_share_are_refused(tmp_path: Path) -> None:
    pictures(tmp_path / "train", 0, 12)
    pictures(tmp_path / "val", 0, 3, channels=1)
    with pytest.raises(
        PcdnetError, match="train are 8x10x3 .*, those of .*val 8x10x1; use resize, crop or grey=True to make"
    ):
        training_data(str(tmp_path), seed=0)
    assert training_data(str(tmp_path), seed=0, view=View(grey=True))[0].images.shape == (12, 8, 10, 1)
    pictures(tmp_path / "other" / "test", 0, 12)
    with pytest.raises(PcdnetError, match="other has no folder train to learn from; name the folder"):
        training_data(str(tmp_path / "other"), seed=0)


def test_views_are_the_same_for_every_source(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="videos need the extra video")
    images = np.repeat(np.arange(12, dtype=np.uint8)[:, None, None, None] * 15, 3, axis=3) + np.zeros(
        (16, 32, 1), np.uint8
    )
    np.savez(tmp_path / "a.npz", image=images)
    (tmp_path / "some").mkdir()
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "bgr0"
        for index, image in enumerate(images):
            Image.fromarray(image).save(tmp_path / "some" / f"{index}.png")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    view = View(crop=(2, 4, 10, 20), resize=(5, 10), stride=2, grey=True)
    for name in ("a.npz", "some", "a.mkv"):
        scenes = open_data(str(tmp_path / name), count=4, seed=0, view=view)
        assert scenes.images.shape == (4, 5, 10, 1)
        assert numbers(scenes) == [0, 30, 60, 90]
        train, valid = training_data(tmp_path / name, seed=0, view=View(grey=True))
        assert numbers(train) + numbers(valid) == [15 * index for index in range(12)]


def test_boxes_of_files_follow_the_view_and_the_parts(tmp_path: Path) -> None:
    boxes = np.tile(np.array([2, 4, 4, 4], np.float32), (20, 1))
    path = tmp_path / "a.npz"
    np.savez(path, image=np.zeros((20, 16, 16, 3), np.uint8), boxes=boxes, box_scene=np.arange(20))
    scenes = open_data(str(path), count=20, seed=0, view=View(crop=(2, 2, 8, 8), resize=(4, 16), stride=3))
    assert scenes.boxes is not None
    assert [one.corners.tolist() for one in scenes.boxes] == [[[0, 4, 2, 8]]] * 7
    _, valid = training_data(str(path), seed=0)
    assert valid.boxes is not None
    assert [len(one) for one in valid.boxes] == [1, 1]


@pytest.mark.parametrize("name", ["space-invaders", "atari:pong"])
def test_games_are_recorded_by_seed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def played(*given: object) -> Scenes:
        asked.append(given)
        return Scenes(images=np.full((3, 20, 16, 3), 9, np.uint8))

    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr("pcdnet.data.space_invaders.generate", played)
    monkeypatch.setattr("pcdnet.data.atari.generate", played)
    assert is_generated(name)
    assert open_data(name, count=3, seed=5, view=View(grey=True)).images.shape == (3, 20, 16, 1)
    training_data(name, seed=5)
    game = () if name == "space-invaders" else ("pong",)
    assert asked == [(3, 5, *game), (3_000, 1_000_005, *game), (100, 2_000_005, *game)]
    with pytest.raises(PcdnetError, match="0 scenes were asked for; give"):
        open_data(name, count=0, seed=0)


def test_generated_scenes_have_no_stride() -> None:
    with pytest.raises(PcdnetError, match="made by seed, so no scene can be skipped; leave out stride$"):
        open_data("tetrominoes", count=3, seed=7, view=View(stride=2))
    assert open_data("tetrominoes", count=3, seed=7, view=View(grey=True)).images.shape == (3, 35, 35, 1)
