"""Laws of edits: they follow their picture, are whole or not there, and are never believed when damaged."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from pcdnet.decomposition import Decomposition
from pcdnet.edits import Edited, Edits, Placed, digest_of
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json

PICTURE = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
THINGS = (Placed(3, (-2, 5), (0.5, 1.0, 0.25)), Placed(0, (1, 1), (1.0, 1.0, 1.0)))


def edited(name: str = "a.png", digest: str | None = None) -> Edited:
    """The edits of a picture."""
    return Edited(name, digest or digest_of(PICTURE), (3, 4), THINGS)


def test_what_is_kept_comes_back_until_it_is_discarded(tmp_path: Path) -> None:
    edits = Edits(tmp_path / "edits")
    assert list(edits) == []
    edits.keep(edited())
    edits.keep(edited("b.png"))
    assert edits.of("a.png", digest_of(PICTURE)) == edited()
    assert Edits.is_among("a.png", edits.marks())
    edits.discard("a.png")
    assert edits.of("a.png", digest_of(PICTURE)) is None
    assert [each.name for each in edits] == ["b.png"]
    edits.discard_all()
    assert not (tmp_path / "edits").exists()


def test_edits_are_of_the_picture_and_not_of_the_name_alone(tmp_path: Path) -> None:
    edits = Edits(tmp_path)
    edits.keep(edited())
    assert edits.of("a.png", digest_of(PICTURE + 1)) is None
    assert edits.of("other.png", digest_of(PICTURE)) is None
    assert digest_of(PICTURE) != digest_of(PICTURE.reshape(4, 3, 3))


@pytest.mark.parametrize("place", range(0, 250, 13))
def test_a_damaged_file_is_reported_and_never_believed(place: int, tmp_path: Path) -> None:
    edits = Edits(tmp_path)
    edits.keep(edited())
    path = next(tmp_path.glob("*.json"))
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(PcdnetError, match="cannot be used"):
        edits.of("a.png", digest_of(PICTURE))
    assert list(edits) == []
    assert len(edits.damaged()) == 1
    edits.discard("a.png")
    assert edits.damaged() == []


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"prototype":3', '"prototype":-1'),
        ('"prototype":3', '"prototype":true'),
        ("[-2,5]", "[-2,5,6]"),
        ("[-2,5]", "[-2,1e9]"),
        ("[0.5,1.0,0.25]", "[0.5,99]"),
        ("[0.5,1.0,0.25]", "[NaN,1.0,0.25]"),
        ('"size":[3,4]', '"size":[0,4]'),
        ('"pcdnet-edits-1"', '"pcdnet-edits-9"'),
    ],
)
def test_a_checksum_alone_makes_no_edits(part: str, other: str, tmp_path: Path) -> None:
    edits = Edits(tmp_path)
    edits.keep(edited())
    path = next(tmp_path.glob("*.json"))
    text = "{" + path.read_text(encoding="utf-8").partition(",")[2]
    assert part in text
    path.write_text(sealed_json(text.replace(part, other)), encoding="utf-8")
    with pytest.raises(PcdnetError, match="cannot be used"):
        edits.of("a.png", digest_of(PICTURE))


def test_poses_are_kept_and_upright_objects_are_written_as_ever(tmp_path: Path) -> None:
    turned = Placed(1, (1.25, -3), (1.0,), angle=33.5, scale=0.5, mirrored=True)
    edits, scene = Edits(tmp_path), dataclasses.replace(edited(), objects=(*THINGS, turned))
    edits.keep(scene)
    assert edits.of("a.png", digest_of(PICTURE)) == scene
    assert all(list(thing.to_dict()) == ["prototype", "position", "colour"] for thing in THINGS)
    again = Decomposition.from_dict({"size": (3, 4), "objects": [turned.to_dict()]}).objects[0]
    assert (again.position, again.angle, again.scale, again.mirrored) == ((1.25, -3), 33.5, 0.5, True)


@pytest.mark.parametrize(
    "pose", ['"angle":1e9', '"angle":null', '"scale":0', '"scale":17', '"mirrored":1', '"angel":3', '"angle":NaN']
)
def test_a_pose_that_is_none_makes_no_edits(pose: str, tmp_path: Path) -> None:
    edits = Edits(tmp_path)
    edits.keep(edited())
    path = next(tmp_path.glob("*.json"))
    text = "{" + path.read_text(encoding="utf-8").partition(",")[2]
    path.write_text(sealed_json(text.replace('"prototype":3', f'"prototype":3,{pose}')), encoding="utf-8")
    with pytest.raises(PcdnetError, match="cannot be used"):
        edits.of("a.png", digest_of(PICTURE))


def test_edits_of_another_model_are_refused() -> None:
    assert edited().checked(4, 3) == edited()
    with pytest.raises(PcdnetError, match="which this model has not"):
        edited().checked(3, 3)
    with pytest.raises(PcdnetError, match="which this model has not"):
        edited().checked(4, 1)


def test_edits_follow_a_bank_whose_prototypes_have_other_numbers(tmp_path: Path) -> None:
    edits = Edits(tmp_path / "old")
    edits.keep(edited())
    edits.renumbered({3: 1}, (-2, -3), tmp_path / "new")
    found = Edits(tmp_path / "new").of("a.png", digest_of(PICTURE))
    assert found is not None
    assert found.objects == (Placed(1, (-4, 2), (0.5, 1.0, 0.25)),)
    assert edits.of("a.png", digest_of(PICTURE)) == edited()
