"""Laws of the pictures: programs read the labels back, and people see every object."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.colours import as_rgb, instance_colours, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.output.pictures import overlay, picture_files, write_pictures
from tests.output.found import COLOURS, KINDS, NAMES, random_decomposition


def two_squares(prototypes: int = 4) -> Decomposition:
    """Two squares that touch, of the last two prototypes."""
    instances = np.zeros((12, 20), np.int32)
    instances[2:8, 3:9] = 1
    instances[2:8, 9:15] = 2
    return Decomposition(
        prototype_ids=np.array([prototypes - 2, prototypes - 1], np.int32),
        positions=np.zeros((2, 2), np.int32),
        colours=np.ones((2, 3), np.float32),
        error_reductions=np.ones(2, np.float32),
        instances=instances,
        reconstruction=(instances[..., None] > 0).repeat(3, axis=2).astype(np.float32),
        error=0.0,
    )


def loaded(path: Path) -> Image.Image:
    """The picture of a file."""
    with Image.open(path) as picture:
        picture.load()
        return picture


def test_label_maps_are_read_back_as_they_are_with_their_colours(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(6):
        found = random_decomposition(rng, channels=1 + number % 2 * 2)
        image = rng.integers(0, 256, found.reconstruction.shape, dtype=np.uint8)
        write_pictures(image, found, KINDS, tmp_path / "deep" / str(number))
        instances, semantics = [loaded(path) for path in picture_files(tmp_path / "deep" / str(number))[1:3]]
        assert (instances.mode, semantics.mode) == ("P", "P")
        np.testing.assert_array_equal(np.asarray(instances), found.instances)
        np.testing.assert_array_equal(np.asarray(semantics), found.semantics)
        black = np.zeros((1, 3), np.uint8)
        shown = np.concatenate([black, instance_colours(len(found))])[found.instances]
        np.testing.assert_array_equal(np.asarray(instances.convert("RGB")), shown)
        shown = np.concatenate([black, prototype_colours(found.prototype_ids)])[found.instances]
        np.testing.assert_array_equal(np.asarray(semantics.convert("RGB")), shown)


def test_the_reconstruction_is_what_the_objects_make_and_no_other_file_is_left(tmp_path: Path) -> None:
    found = random_decomposition(np.random.default_rng(1))
    write_pictures(np.zeros((9, 12, 3), np.uint8), found, KINDS, tmp_path / "a.b")
    np.testing.assert_array_equal(np.asarray(loaded(tmp_path / "a.b.reconstruction.png")), as_rgb(found.reconstruction))
    assert sorted(tmp_path.iterdir()) == sorted(picture_files(tmp_path / "a.b"))


def test_the_semantic_map_carries_the_names(tmp_path: Path) -> None:
    write_pictures(np.zeros((12, 20, 3), np.uint8), two_squares(), KINDS, tmp_path / "a")
    words = json.loads(loaded(tmp_path / "a.semantics.png").info["names"])
    assert words == {str(p + 1): name for p, name in enumerate(NAMES)}


def test_prototypes_of_one_name_have_the_label_and_the_colour_of_the_first(tmp_path: Path) -> None:
    found, image = two_squares(), np.zeros((12, 20, 3), np.uint8)
    write_pictures(image, found, COLOURS, tmp_path / "a")  # 2 is an L, as 0 is
    semantics = loaded(tmp_path / "a.semantics.png")
    np.testing.assert_array_equal(np.asarray(semantics), np.array([0, 1, 4])[found.instances])
    assert json.loads(semantics.info["names"]) == {"1": "L", "2": "prototype 1", "4": "prototype 3"}
    first, own = (prototype_colours(np.array(p)) for p in (0, 2))
    drawn = overlay(image, found, COLOURS)
    assert (drawn == first).all(axis=2).any()
    assert not (drawn == own).all(axis=2).any()


def test_a_colour_is_written_beside_the_name() -> None:
    found = dataclasses.replace(two_squares(), prototype_ids=np.array([1, 1], np.int32))
    drawn = [
        overlay(
            np.zeros((12, 20, 3), np.uint8), dataclasses.replace(found, colours=np.array(colours, np.float32)), COLOURS
        )
        for colours in ([[0.9, 0.1, 0.1]] * 2, [[0.8, 0.2, 0.1]] * 2, [[0.1, 0.2, 0.9]] * 2)
    ]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()


def test_more_prototypes_than_a_palette_has_colours_are_kept_apart(tmp_path: Path) -> None:
    found = two_squares(prototypes=700)
    write_pictures(np.zeros((12, 20, 3), np.uint8), found, Kinds(Names(count=700)), tmp_path / "a")
    np.testing.assert_array_equal(np.asarray(loaded(tmp_path / "a.semantics.png")), found.semantics)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_overlay_is_the_enlarged_image_outside_outlines_and_plates(channels: int) -> None:
    image = np.random.default_rng(2).integers(0, 256, (12, 20, channels), dtype=np.uint8)
    found = two_squares()
    drawn = overlay(image, found, KINDS)
    scale = len(drawn) // 12
    assert scale > 4
    plain = np.broadcast_to(image, (12, 20, 3)).repeat(scale, axis=0).repeat(scale, axis=1)
    outside = (found.instances == 0).repeat(scale, axis=0).repeat(scale, axis=1)
    np.testing.assert_array_equal(drawn[outside], plain[outside])
    for thing in found.objects:
        inside = thing.mask.repeat(scale, axis=0).repeat(scale, axis=1)
        coloured = (drawn == prototype_colours(np.array(thing.prototype))).all(axis=2)
        assert coloured[inside].any()
        assert not coloured[outside].all()
        bottom = np.zeros_like(inside)
        bottom[8 * scale - 1] = inside[8 * scale - 1]
        assert coloured[bottom].all()  # the outline is closed there
        middle = np.s_[6 * scale, (thing.box[1] + 3) * scale] if thing.box else None
        assert (drawn[middle] == plain[middle]).all()


def test_names_are_written_where_there_is_room() -> None:
    image = np.zeros((12, 20, 3), np.uint8)
    unnamed, named = (overlay(image, two_squares(), kinds) for kinds in (Kinds(Names(count=4)), KINDS))
    assert (unnamed != named).any()


def test_large_images_are_not_enlarged() -> None:
    found = random_decomposition(np.random.default_rng(0), size=(20, 900))
    assert overlay(np.zeros((20, 900, 3), np.uint8), found, KINDS).shape == (20, 900, 3)
