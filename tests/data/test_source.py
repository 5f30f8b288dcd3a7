"""Laws of data by name: each name opens what it says, and training never sees what it is validated on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.data import source
from pcdnet.data.source import open_data, training_data
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes
from pcdnet.scene import Scenes


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


@pytest.mark.parametrize("name", ["tetris", "unheard", "a", ""])
def test_other_names_are_told_what_can_be_used(name: str) -> None:
    for attempt in (lambda: open_data(name, count=1, seed=0), lambda: training_data(name, seed=0)):
        with pytest.raises(PcdnetError, match="no data known here; use tetrominoes .generated., .* or an .npz file"):
            attempt()


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
        ("x" * 5000, "cannot be looked up .*; use tetrominoes"),
        ("zero\0", "no data known here; use tetrominoes"),
        ("one.png", "'one.png' is one picture, not many; use the folder"),
    ],
)
def test_names_that_open_nothing_are_told_why(name: str, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=complaint.replace("?", "[?]")):
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


def pictures(folder: Path, first: int, count: int, channels: int = 3) -> Path:
    """A folder of small images, each of one brightness."""
    folder.mkdir(parents=True)
    for index in range(first, first + count):
        values = np.full((8, 10, 3), index, np.uint8)
        Image.fromarray(values if channels == 3 else values[..., 0]).save(folder / f"{index}.png")
    return folder


def numbers(scenes: Scenes) -> list[int]:
    return [int(image[0, 0, 0]) for image in scenes.images]


def test_a_folder_of_images_is_split_like_a_file(tmp_path: Path) -> None:
    name = str(pictures(tmp_path / "some", 0, 25))
    train, valid = training_data(name, seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(23)], [23, 24])
    assert valid.names == ("23.png", "24.png")
    assert valid.name == f"the last 2 of {name}"
    assert numbers(open_data(name, count=3, seed=0)) == [0, 1, 2]


def test_a_folder_with_train_val_and_test_keeps_them_apart(tmp_path: Path) -> None:
    heard: list[str] = []
    pictures(tmp_path / "train", 0, 12)
    train, valid = training_data(str(tmp_path), seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(11)], [11])
    assert numbers(open_data(str(tmp_path), count=2, seed=0, note=heard.append)) == [0, 1]
    assert "neither a folder test nor val" in heard[0]
    pictures(tmp_path / "val", 50, 3)
    train, valid = training_data(str(tmp_path), seed=0)
    assert (numbers(train), numbers(valid)) == ([*range(12)], [50, 51, 52])
    assert numbers(open_data(str(tmp_path), count=2, seed=0)) == [50, 51]
    pictures(tmp_path / "test", 70, 4)
    assert numbers(open_data(str(tmp_path), count=9, seed=0)) == [70, 71, 72, 73]
    assert numbers(open_data(str(tmp_path / "train"), count=2, seed=0)) == [0, 1]
    assert numbers(training_data(str(tmp_path), seed=0)[0]) == [*range(12)]


def test_parts_that_no_model_can_share_are_refused(tmp_path: Path) -> None:
    pictures(tmp_path / "train", 0, 12)
    pictures(tmp_path / "val", 0, 3, channels=1)
    with pytest.raises(PcdnetError, match="train are 8x10x3 .*, those of .*val 8x10x1; use --resize .* --grey"):
        training_data(str(tmp_path), seed=0)
    assert training_data(str(tmp_path), 0, View(grey=True))[0].images.shape == (12, 8, 10, 1)
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
        train, valid = training_data(str(tmp_path / name), 0, View(grey=True))
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
    monkeypatch.setattr("pcdnet.data.space_invaders.record", played)
    monkeypatch.setattr("pcdnet.data.atari.scenes", played)
    assert source.is_generated(name)
    assert open_data(name, count=3, seed=5, view=View(grey=True)).images.shape == (3, 20, 16, 1)
    training_data(name, seed=5)
    game = () if name == "space-invaders" else ("pong",)
    assert asked == [(*game, 3, 5), (*game, 3_000, 1_000_005), (*game, 100, 2_000_005)]
    with pytest.raises(PcdnetError, match="0 scenes were asked for; give"):
        open_data(name, count=0, seed=0)


def test_generated_scenes_have_no_stride() -> None:
    with pytest.raises(PcdnetError, match="made by seed, so a stride of 2 skips nothing; leave out --stride"):
        open_data("tetrominoes", count=3, seed=7, view=View(stride=2))
    assert open_data("tetrominoes", count=3, seed=7, view=View(grey=True)).images.shape == (3, 35, 35, 1)
