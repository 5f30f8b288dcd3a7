"""Laws of strips: pictures are those of the files, read when they are asked for; damage is that of one picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.data.strip import GENERATED_PICTURES, open_strip
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError


def images(folder: Path, count: int) -> np.ndarray:
    """Pictures in a folder, and as an array."""
    folder.mkdir(parents=True, exist_ok=True)
    made = np.random.default_rng(0).integers(0, 256, (count, 12, 20, 3), np.uint8)
    for number, image in enumerate(made):
        Image.fromarray(image).save(folder / f"p{number}.png")
    return made


def test_pictures_of_a_folder_are_those_of_its_files_in_natural_order(tmp_path: Path) -> None:
    made = images(tmp_path, 12)
    strip = open_strip(tmp_path)
    assert len(strip) == 12
    assert [strip.name(n) for n in (1, 2, 10)] == ["p1.png", "p2.png", "p10.png"]
    assert strip.size(10) == (12, 20)
    np.testing.assert_array_equal(strip.pixels(10), made[10])


def test_a_picture_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    images(tmp_path, 3)
    strip = open_strip(tmp_path)
    other = np.full((30, 40, 3), 7, np.uint8)
    Image.fromarray(other).save(tmp_path / "p1.png")
    np.testing.assert_array_equal(strip.pixels(1), other)
    (tmp_path / "p1.png").unlink()
    with pytest.raises(PcdnetError, match="does not exist"):
        strip.pixels(1)


def test_a_damaged_picture_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    made = images(tmp_path, 3)
    (tmp_path / "p1.png").write_bytes(b"no picture")
    (tmp_path / "p2.png").write_bytes((tmp_path / "p2.png").read_bytes()[:-40])
    strip = open_strip(tmp_path)
    assert len(strip) == 3
    for broken in (strip.size, strip.pixels):
        with pytest.raises(PcdnetError, match=r"p1\.png"):
            broken(1)
    with pytest.raises(PcdnetError):
        strip.pixels(2)
    np.testing.assert_array_equal(strip.pixels(0), made[0])


def test_they_are_looked_at_as_the_view_says_but_whole_and_all_of_them(tmp_path: Path) -> None:
    made = images(tmp_path, 5)
    view = View(crop=(1, 2, 10, 16), grey=True, stride=2, tiles=32)
    strip = open_strip(tmp_path, view)
    assert [strip.name(n) for n in range(len(strip))] == ["p0.png", "p2.png", "p4.png"]
    assert strip.size(1) == (10, 16)
    np.testing.assert_array_equal(strip.pixels(1), View(crop=(1, 2, 10, 16), grey=True).image(made[2]))


def test_parts_of_a_data_set_are_all_shown(tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        images(tmp_path / part, 2)
    strip = open_strip(tmp_path)
    assert [strip.name(n) for n in range(len(strip))] == [
        f"{part}/p{n}.png" for part in ("test", "train", "val") for n in (0, 1)
    ]


def test_generated_scenes_are_few_and_files_of_many_are_all(tmp_path: Path) -> None:
    assert len(open_strip("tetrominoes")) == GENERATED_PICTURES
    many = np.random.default_rng(1).integers(0, 256, (40, 9, 9, 3), np.uint8)
    np.savez(tmp_path / "many.npz", image=many)
    strip = open_strip(tmp_path / "many.npz")
    assert (len(strip), strip.name(39)) == (40, "many.npz#39")
    np.testing.assert_array_equal(strip.pixels(39), many[39])
