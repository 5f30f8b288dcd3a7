"""Laws of inputs: paths name the images that people mean, each once and in order, and mistakes are reported at once."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.data import inputs
from pcdnet.data.inputs import Input, find_inputs
from pcdnet.data.notes import noted
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from tests.data.records import write_tetrominoes
from tests.data.stacks import break_page, write_stack

RGB = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
STACK = np.random.default_rng(1).integers(0, 256, (3, 6, 8, 3), dtype=np.uint8)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of pictures, with other things in it."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for name in ("a10.png", "a2.png", "a1.bmp", "more/b.png"):
        Image.fromarray(RGB).save(folder / name)
    np.savez(folder / "s.npz", allow_pickle=True, image=STACK)
    (folder / "notes.txt").touch()
    return folder


def names(found: list[Input], folder: Path) -> list[str]:
    """The files that were found, as seen from a folder."""
    return [one.path.relative_to(folder).as_posix() for one in found]


def test_a_folder_stands_for_its_pictures_in_natural_order(photos: Path) -> None:
    found = find_inputs([str(photos)])
    assert names(found, photos) == ["a1.bmp", "a2.png", "a10.png"]
    assert [one.name for one in found] == [f"{photos.as_posix()}/{name}" for name in ("a1.bmp", "a2.png", "a10.png")]


def test_patterns_are_expanded_to_all_that_is_usable(photos: Path) -> None:
    assert names(find_inputs([f"{photos}/*"]), photos) == ["a1.bmp", "a2.png", "a10.png", "s.npz"]
    assert names(find_inputs([f"{photos}/**/*.png"]), photos) == ["a2.png", "a10.png", "more/b.png"]
    assert names(find_inputs([f"{photos}/a?.*"]), photos) == ["a1.bmp", "a2.png"]


def test_a_file_that_looks_like_a_pattern_is_a_file(photos: Path) -> None:
    Image.fromarray(RGB).save(photos / "a[1].png")
    assert names(find_inputs([f"{photos}/a[1].png"]), photos) == ["a[1].png"]


def test_a_file_that_is_named_twice_counts_once_where_it_was_first(photos: Path) -> None:
    found = find_inputs([f"{photos}/a2.png", f"{photos}/more/../a10.png", str(photos)])
    assert [one.path.name for one in found] == ["a2.png", "a10.png", "a1.bmp"]


def test_results_are_no_inputs(photos: Path) -> None:
    found = find_inputs([f"{photos}/**/*.png"], without=photos / "more")
    assert names(found, photos) == ["a2.png", "a10.png"]
    with pytest.raises(PcdnetError, match="lies inside .*more; give images that are no results"):
        find_inputs([f"{photos}/more/b.png"], without=photos / "more")


def test_images_come_with_their_names_and_titles(photos: Path) -> None:
    picture, stack = find_inputs([f"{photos}/a2.png", f"{photos}/s.npz"])
    ((number, image),) = picture.images()
    np.testing.assert_array_equal(image, RGB)
    assert (picture.image_name(number), picture.image_title(number)) == (f"{photos}/a2.png", "a2")
    numbers, images = zip(*stack.images(), strict=True)
    np.testing.assert_array_equal(np.stack(images), STACK)
    assert [stack.image_name(n) for n in numbers] == [f"{photos}/s.npz#{n}" for n in range(3)]
    assert stack.image_title(2) == "s/000002"
    assert (picture.count(), stack.count()) == (1, 3)


def test_titles_are_unique_and_plain(tmp_path: Path) -> None:
    paths = []
    for name in ("x/a.png", "y/a.png", "y/A.bmp", "y/b c;$(d).png", "z/" + "é" * 90 + ".png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(RGB).save(path)
        paths.append(str(path))
    titles = [one.title for one in find_inputs(paths)]
    assert len({title.casefold() for title in titles}) == len(titles)
    assert all(title[:2].lower() == "a-" for title in titles[:3])
    assert titles[3:] == ["b_c___d_", "é" * inputs.LONGEST_TITLE]


def test_every_third_frame_of_a_video_has_its_own_number(tmp_path: Path) -> None:
    av: Any = pytest.importorskip("av")
    with av.open(str(tmp_path / "film.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "bgr0"
        for n in range(8):
            frame = av.VideoFrame.from_ndarray(np.full((16, 16, 3), 30 * n, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    (film,) = find_inputs([str(tmp_path / "film.mkv")])
    assert [(number, int(image[0, 0, 0])) for number, image in film.images(3)] == [(0, 0), (3, 90), (6, 180)]
    assert film.count(3) == 3
    assert film.image_name(6) == f"{tmp_path}/film.mkv#6"


def test_a_file_of_records_is_streamed(tmp_path: Path) -> None:
    scenes = generate(3, seed=1)
    (records,) = find_inputs([str(write_tetrominoes(tmp_path / "a.tfrecords", scenes))])
    numbers, images = zip(*records.images(2), strict=True)  # strides are for videos
    assert numbers == (0, 1, 2)
    np.testing.assert_array_equal(np.stack(images), scenes.images)
    assert (records.count(), records.image_name(2)) == (3, f"{tmp_path}/a.tfrecords#2")


def test_one_picture_may_come_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    Image.fromarray(RGB).save(content, format="PNG")

    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    given(content.getvalue())
    (one,) = find_inputs(["-"])
    ((_, image),) = one.images()
    np.testing.assert_array_equal(image, RGB)
    assert (one.name, one.title, one.count()) == ("stdin", "stdin", 1)
    given(content.getvalue()[:-20] + b"x" * 20)
    assert find_inputs(["-"])[0].stamp != one.stamp
    given(b"")
    with pytest.raises(PcdnetError, match="standard input is empty"):
        find_inputs(["-"])
    monkeypatch.setattr(inputs, "MOST_STDIN", 10)
    given(b"x" * 11)
    with pytest.raises(PcdnetError, match="standard input holds more than"):
        find_inputs(["-"])


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        (
            "missing.png",
            "does not exist; give a folder of images, .* a pattern of them, or - for a picture on standard input$",
        ),
        ("*.tif", "names nothing that images are read from; give a folder"),
        ("notes.txt", "names nothing that images are read from"),
        ("empty", "holds no picture"),
        ("a\0.png", "cannot be read|does not exist"),
        ("x" * 5000, "cannot be read|does not exist"),
    ],
)
def test_a_path_that_names_nothing_is_refused_in_one_sentence(path: str, complaint: str, photos: Path) -> None:
    (photos / "empty").mkdir()
    with pytest.raises(PcdnetError, match=complaint) as caught:
        find_inputs([f"{photos}/a2.png", f"{photos}/{path}"])
    assert "\n" not in str(caught.value)


def test_no_path_is_refused() -> None:
    with pytest.raises(PcdnetError, match="no image was named"):
        find_inputs([])


def test_a_broken_file_counts_as_one_image_until_it_is_read(photos: Path) -> None:
    for name in ("bad.npz", "bad.mp4", "bad.png"):
        (photos / name).write_bytes(b"nonsense")
        (one,) = find_inputs([str(photos / name)])
        assert one.count() == 1
        with pytest.raises(PcdnetError, match=name):
            list(one.images())


def test_a_file_that_changes_has_another_stamp(photos: Path) -> None:
    path = photos / "a2.png"
    before = find_inputs([str(path)])[0].stamp
    assert find_inputs([str(path)])[0].stamp == before
    Image.fromarray(RGB[:3]).save(path)
    assert find_inputs([str(path)])[0].stamp != before


def test_the_pages_of_a_stack_come_one_by_one_in_their_own_values(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pages = [np.random.default_rng(n).integers(200, 1101, (20, 30)).astype(np.uint16) for n in range(4)]
    write_stack(tmp_path / "stack.tif", pages)
    write_stack(tmp_path / "one.tif", pages[:1])
    for path in (tmp_path / "*.tif", tmp_path):
        one, stack = find_inputs([str(path)])
        assert (one.count(), [one.image_name(n) for n, _ in one.images()]) == (1, [f"{tmp_path}/one.tif"])
        assert (stack.count(), stack.image_title(3)) == (4, "stack/000003")
        numbers, found = zip(*stack.images(2), strict=True)  # strides are for videos
        assert [stack.image_name(n) for n in numbers] == [f"{tmp_path}/stack.tif#{n}" for n in range(4)]
        np.testing.assert_array_equal(np.stack(found)[..., 0], pages)
    assert capfd.readouterr().err == ""
    break_page(tmp_path / "stack.tif", 2)
    assert [number for number, _ in noted(find_inputs([f"{tmp_path}/stack.tif"])[0].images())] == [0, 1, 3]
    assert f"note: 1 pages of {tmp_path}/stack.tif cannot be read (2); fix" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("path", "file"), [("letters", "letters.npz"), ("symbols:any", "symbols-any.npz"), ("atari:pong", "atari-pong.npz")]
)
def test_data_that_is_made_is_no_file_and_the_command_that_makes_one_is_named(
    path: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PcdnetError, match=f"{path} is made, not a file; .* `pcdnet data {path} --out {file}`$"):
        find_inputs([path])
