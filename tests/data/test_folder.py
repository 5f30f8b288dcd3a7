"""Laws of folders: images come in the order of their names, with their ground truth, and damage is reported."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.data import folder
from pcdnet.data.decoding import pixels_of
from pcdnet.data.folder import names, natural_order, read
from pcdnet.data.intake import Header
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.pixels import PixelStore
from tests.data.stacks import break_page, write_stack

COLOURS = np.random.default_rng(0).integers(0, 256, (40, 8, 12, 3), dtype=np.uint8)


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was reported since it was asked last."""
    return capsys.readouterr().err.splitlines()


def filled(place: Path, count: int = 12, size: tuple[int, int] = (8, 12)) -> Path:
    """A folder of images a0.png, a1.png, ... with known pixels."""
    place.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        Image.fromarray(COLOURS[index, : size[0], : size[1]]).save(place / f"a{index}.png")
    return place


def annotated(path: Path, files: list[str], **image: Any) -> None:
    """One box in each file, one further to the right each time."""
    images = [{"id": index, "file_name": name, **image} for index, name in enumerate(files)]
    boxes = [{"image_id": index, "category_id": 1, "bbox": [index % 6, 2, 4, 3]} for index in range(len(files))]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "car"}]}
    path.write_text(json.dumps(content))


def test_images_come_in_natural_order_with_their_names(tmp_path: Path) -> None:
    scenes = read(filled(tmp_path))
    np.testing.assert_array_equal(scenes.images, COLOURS[:12])
    assert scenes.names == tuple(f"a{index}.png" for index in range(12))
    assert scenes.boxes is None
    assert scenes.images.flags.writeable


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    ordered = ["1.png", "2.PNG", "10.png", "a1b2.png", "a1b10.png", "a02.png", "b.png"]
    for name in [*ordered, ".hidden.png", "notes.txt"]:
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert names(tmp_path) == ordered


def test_numbers_of_any_length_can_be_ordered() -> None:
    ordered = ["a2", "a10", f"a{'9' * 4999}", f"a1{'0' * 4999}"]
    mixed = [ordered[n] for n in (3, 1, 2, 0)]
    assert sorted(mixed, key=natural_order) == ordered


@pytest.mark.parametrize(("limit", "stride"), [(5, 1), (None, 3), (2, 5), (100, 1)])
def test_fewer_images_are_the_first_of_every_so_many(limit: int | None, stride: int, tmp_path: Path) -> None:
    scenes = read(filled(tmp_path), limit=limit, view=View(stride=stride))
    np.testing.assert_array_equal(scenes.images, COLOURS[:12:stride][:limit])


def test_grey_images_have_one_channel_until_one_has_colours(tmp_path: Path) -> None:
    for index in range(3):
        Image.fromarray(COLOURS[index, ..., 0]).save(tmp_path / f"{index}.png")
    np.testing.assert_array_equal(read(tmp_path).images, COLOURS[:3, ..., :1])
    Image.fromarray(COLOURS[3]).save(tmp_path / "3.png")
    scenes = read(tmp_path)
    assert scenes.images.shape == (4, 8, 12, 3)
    np.testing.assert_array_equal(scenes.images[0], COLOURS[0, ..., :1].repeat(3, axis=2))
    assert read(tmp_path, view=View(grey=True)).images.shape == (4, 8, 12, 1)


def test_a_folder_of_folders_gives_their_images(tmp_path: Path) -> None:
    filled(tmp_path / "s2", 2)
    filled(tmp_path / "s10", 1)
    filled(tmp_path / "s2" / "deep", 3)
    assert read(tmp_path).names == ("s2/a0.png", "s2/a1.png", "s10/a0.png")


def test_a_few_damaged_images_are_skipped_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path, 22)
    (tmp_path / "a3.png").write_bytes(b"")
    whole = (tmp_path / "a7.png").read_bytes()
    (tmp_path / "a7.png").write_bytes(whole[: len(whole) // 2])
    annotated(tmp_path / "annotations.json", [f"a{index}.png" for index in range(22)])
    scenes = read(tmp_path)
    kept = [index for index in range(22) if index not in (3, 7)]
    np.testing.assert_array_equal(scenes.images, COLOURS[kept])
    assert scenes.names == tuple(f"a{index}.png" for index in kept)
    assert scenes.boxes is not None
    assert [boxes.corners[0, 1] for boxes in scenes.boxes] == [index % 6 for index in kept]
    assert notes(capsys) == [f"note: skipped 2 of 22 images of {tmp_path} that cannot be read: a3.png, a7.png"]


def test_many_damaged_images_are_a_mistake(tmp_path: Path) -> None:
    filled(tmp_path, 12)
    for index in (1, 2):
        (tmp_path / f"a{index}.png").write_bytes(b"")
    with pytest.raises(PcdnetError, match="2 of 12 images .* cannot be read .a1.png, a2.png: .* is empty.; fix"):
        read(tmp_path)
    for index in range(12):
        whole = (tmp_path / "a0.png").read_bytes()
        (tmp_path / f"a{index}.png").write_bytes(whole[:-30])
    with pytest.raises(PcdnetError, match="12 of 12 images .* cannot be read"):
        read(tmp_path)


def test_images_of_different_sizes_are_named_and_can_be_brought_to_one(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    for index in (1, 3):
        Image.fromarray(COLOURS[index, :6, :9]).save(tmp_path / f"a{index}.png")
    with pytest.raises(
        PcdnetError, match="most are 8x12, but not a1.png .6x9., a3.png .6x9.; use resize=.8, 12., or crop for"
    ):
        read(tmp_path)
    assert read(tmp_path, view=View(resize=(8, 12))).images.shape == (5, 8, 12, 3)
    np.testing.assert_array_equal(read(tmp_path, view=View(crop=(1, 2, 5, 7))).images, COLOURS[:5, 1:6, 2:9])
    with pytest.raises(PcdnetError, match="leaves .*a1.png of 6x9; give top, left, height and width"):
        read(tmp_path, view=View(crop=(1, 2, 6, 7)))


def test_exif_that_turns_one_image_is_seen(tmp_path: Path) -> None:
    filled(tmp_path, 12)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(COLOURS[2]).save(tmp_path / "a2.png", exif=exif)
    with pytest.raises(PcdnetError, match="most are 8x12, but not a2.png .12x8."):
        read(tmp_path)


def test_images_for_which_there_is_no_room_are_refused_before_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path, 5)
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4 * COLOURS[0].size))
    monkeypatch.setattr(folder, "pixels_of", None)
    with pytest.raises(PcdnetError, match="takes .* GiB on the disk, and .* are free in .*; make room, or set .*CACHE"):
        read(tmp_path)


def test_images_that_would_fill_the_memory_are_the_same_from_a_file_and_so_are_names_and_boxes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = filled(tmp_path / "photos", 25)
    (place / "a3.png").write_bytes((place / "a3.png").read_bytes()[:-40])  # its header is sound
    annotated(place / "annotations.json", [f"a{index}.png" for index in range(25)], height=8, width=12)
    view = View(crop=(0, 2, 8, 8), stride=2, grey=True)
    for look in (View(), view):
        expected = read(place, view=look)
        with monkeypatch.context() as change:
            change.setenv("PCDNET_MAX_MEMORY", "0")
            change.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
            for attempt in range(2):
                found = read(place, view=look)
                assert isinstance(found.images, PixelStore)
                assert np.array_equal(np.asarray(found.images), np.asarray(expected.images))
                assert found.names == expected.names
                assert [each.corners.tolist() for each in found.boxes or ()] == [
                    each.corners.tolist() for each in expected.boxes or ()
                ]
                said = capsys.readouterr().err
                assert ("is decoded once, into" in said) == (attempt == 0)
                assert ("skipped 1 of 25 images" in said) == (look != view)
                change.setattr(folder, "pixels_of", None)  # what is kept is not decoded again
            change.setattr(folder, "pixels_of", pixels_of)
            (place / "a4.png").touch()
            read(place, view=look)
            assert "is decoded once, into" in capsys.readouterr().err


@pytest.mark.parametrize("beside", [False, True])
def test_annotations_are_the_ground_truth_and_follow_the_view(
    beside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = filled(tmp_path / "test", 3)
    files = [f"{'test/' if beside else ''}a{index}.png" for index in range(3)]
    annotated((tmp_path if beside else place) / "annotations.json", files, height=8, width=12)
    scenes = read(place)
    assert scenes.kinds == ("car",)
    assert scenes.boxes is not None
    assert [boxes.corners.tolist() for boxes in scenes.boxes] == [[[2, index, 3, 4]] for index in range(3)]
    assert scenes.first(1).boxes is not None
    halved = read(place, view=View(crop=(2, 2, 6, 10), resize=(12, 20))).boxes
    assert halved is not None
    assert [boxes.corners.tolist() for boxes in halved] == [[[0, 0, 6, 4]], [[0, 0, 6, 6]], [[0, 0, 6, 8]]]
    assert notes(capsys) == []


def test_where_annotations_and_images_do_not_meet_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(tmp_path, 4)
    annotated(tmp_path / "annotations.json", ["a0.png", "a1.png", "b.png", "c.png", "d.png", "e.png"])
    scenes = read(tmp_path)
    assert scenes.boxes is not None
    assert [len(boxes) for boxes in scenes.boxes] == [1, 1, 0, 0]
    lost, bare = notes(capsys)
    assert "names 4 images that are not there: b.png, c.png, d.png and 1 more" in lost
    assert "lacks 2 of the images, which count as empty: a2.png, a3.png" in bare


def test_annotations_of_nothing_here_are_refused_inside_and_reported_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = filled(tmp_path / "train", 3)
    annotated(tmp_path / "annotations.json", ["test/a0.png"])
    assert read(place).boxes is None
    assert "names no image of" in notes(capsys)[0]
    annotated(place / "annotations.json", ["x.png"])
    with pytest.raises(PcdnetError, match="names no image of .*its first is x.png.*; write the files' names"):
        read(place)
    (place / "annotations.json").write_text("{")
    with pytest.raises(PcdnetError, match="is no sound annotation file in COCO form"):
        read(place)


def test_annotations_of_another_size_are_refused(tmp_path: Path) -> None:
    annotated(filled(tmp_path, 1) / "annotations.json", ["a0.png"], height=16, width=24)
    with pytest.raises(PcdnetError, match="says that a0.png is 16x24, but it is 8x12; annotate"):
        read(tmp_path)


def test_what_is_no_folder_of_images_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="holds no images; give a folder of png, jpg"):
        read(tmp_path)
    with pytest.raises(PcdnetError, match="does not exist; give the path of a folder of images"):
        read(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(PcdnetError, match="cannot be read .*; give a folder"):
        read(tmp_path / "file")
    filled(tmp_path)
    with pytest.raises(PcdnetError, match="the limit is 0 scenes; give"):
        read(tmp_path, limit=0)


@pytest.mark.parametrize(("camera", "vehicles"), [("us101-a", 1340), ("us101-b", 1069)])
def test_genuine_traffic_is_read_with_its_boxes(camera: str, vehicles: int, shared: Path) -> None:
    place = shared / "data" / "ngsim" / camera / "test"
    if not place.is_dir():
        pytest.skip("needs genuine traffic frames")
    scenes = read(place)
    assert scenes.images.shape == (150, 98, 194, 3)
    assert scenes.boxes is not None
    assert sum(map(len, scenes.boxes)) == vehicles
    assert scenes.kinds == ("vehicle",)


def test_every_page_of_a_stack_is_an_image(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    write_stack(tmp_path / "a1s.tif", [COLOURS[9], COLOURS[8]])
    Image.fromarray(COLOURS[7]).save(tmp_path / "b.tif")
    scenes = read(tmp_path)
    assert scenes.names == ("a0.png", "a1.png", "a1s.tif#0", "a1s.tif#1", "a2.png", "b.tif")
    np.testing.assert_array_equal(scenes.images, COLOURS[[0, 1, 9, 8, 2, 7]])
    np.testing.assert_array_equal(read(tmp_path, limit=2, view=View(stride=3)).images, COLOURS[[0, 8]])
    assert folder.count(tmp_path) == 6
    assert [number for number, _ in folder.images(tmp_path, stride=2)] == [0, 2, 4]
    assert folder.headers(tmp_path) == dict.fromkeys(range(6), Header(size=(8, 12), channels=3, deep=False))


def test_a_broken_page_is_skipped_like_a_broken_image(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    filled(tmp_path, 10)
    break_page(write_stack(tmp_path / "b.tif", [*COLOURS[10:13]]), 1)
    assert read(tmp_path).names[-2:] == ("b.tif#0", "b.tif#2")
    assert f"skipped 1 of 13 images of {tmp_path} that cannot be read: b.tif#1" in capfd.readouterr().err


def test_images_of_several_sizes_are_cut_into_tiles_with_their_boxes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for n in range(10):
        Image.fromarray(rng.integers(0, 256, (100 + 10 * n, 150 - 5 * n, 3), dtype=np.uint8)).save(
            tmp_path / f"a{n}.png"
        )
    content = {"images": [{"id": 0, "file_name": "a4.png"}], "categories": [{"id": 1, "name": "car"}]}
    boxes = [{"image_id": 0, "category_id": 1, "bbox": [40, 50, 8, 6]}]
    (tmp_path / "annotations.json").write_text(json.dumps({**content, "annotations": boxes}))
    scenes = read(tmp_path, view=View(tiles=96))
    assert scenes.images.shape[1:] == (96, 96, 3)
    assert {name.partition("@")[0] for name in scenes.names} == {f"a{n}.png" for n in range(10)}
    assert scenes.places is not None
    assert scenes.boxes is not None
    for seen, (number, top, left) in zip(scenes.boxes, scenes.places, strict=True):
        assert seen.corners.tolist() == ([[50 - top, 40 - left, 6, 8]] if number == 4 else [])


def test_deep_images_of_a_folder_are_scaled_alike_and_others_stay(tmp_path: Path) -> None:
    deep = np.array([[200, 650], [1100, 2000]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.tif")
    Image.fromarray(deep).save(tmp_path / "b.png")
    Image.fromarray(deep.astype(np.float32)).save(tmp_path / "c.tif")
    Image.fromarray((deep % 256).astype(np.uint8)).save(tmp_path / "d.png")
    found = read(tmp_path, view=View(values=(200, 1100))).images[..., 0]
    assert [image.tolist() for image in found] == [[[0, 128], [255, 255]]] * 3 + [(deep % 256).tolist()]
