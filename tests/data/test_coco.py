"""Laws of COCO files: boxes come to the images that they are of, and no JSON can crash the reader."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.data import coco
from pcdnet.data.coco import read
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes

SOUND: dict[str, Any] = {
    "images": [
        {"id": 7, "file_name": "a.png", "height": 20, "width": 30},
        {"id": 9, "file_name": "b.png"},
    ],
    "categories": [{"id": 3, "name": "car"}, {"id": 1, "name": "bus"}],
    "annotations": [
        {"id": 1, "image_id": 9, "category_id": 1, "bbox": [1, 2, 3.5, 4], "iscrowd": 0},
        {"id": 2, "image_id": 7, "category_id": 3, "bbox": [5, 6, 7, 8]},
        {"id": 3, "image_id": 9, "category_id": 3, "bbox": [9, 10, 11, 12], "segmentation": [[1, 2]]},
        {"id": 4, "image_id": 9, "category_id": 3, "bbox": [0, 0, 30, 20], "iscrowd": 1},
        {"id": 5, "image_id": 9, "category_id": 3, "bbox": [4, 4, 0, 5]},
    ],
}


def saved(folder: Path, content: object) -> Path:
    """A file of this JSON, or of this text."""
    path = folder / "annotations.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def changed(*where: str | int, to: object) -> dict[str, Any]:
    """The sound file with one value replaced, or taken out."""
    whole: Any = copy.deepcopy(SOUND)
    place = whole
    for step in where[:-1]:
        place = place[step]
    if to is None:
        del place[where[-1]]
    else:
        place[where[-1]] = to
    return dict(whole)


def test_boxes_come_to_their_images_as_rows_and_columns(tmp_path: Path) -> None:
    found = read(saved(tmp_path, SOUND))
    a, b = found.entries
    assert (a.name, a.size, b.name, b.size) == ("a.png", (20, 30), "b.png", None)
    np.testing.assert_array_equal(a.boxes.corners, np.float32([[6, 5, 8, 7]]))  # type: ignore[arg-type]
    assert b.boxes.corners.tolist() == [[2, 1, 4, 3.5], [10, 9, 12, 11]]
    assert [found.kinds[kind] for kind in b.boxes.kinds] == ["bus", "car"]
    assert found.strays == 0


def test_annotations_of_images_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    found = read(saved(tmp_path, changed("annotations", 1, "image_id", to=100)))
    assert found.strays == 1
    assert [len(entry.boxes) for entry in found.entries] == [0, 2]


def entries(*names: str) -> coco.Annotations:
    """A file of images without objects."""
    boxes = Boxes.from_rows([])
    every = tuple(coco.Entry(name=name, size=None, boxes=boxes) for name in names)
    return coco.Annotations(entries=every, kinds=(), strays=0)


@pytest.mark.parametrize(
    ("written", "there", "within", "matched"),
    [
        (["a.png"], ["a.png", "b.png"], None, {"a.png": "a.png"}),
        (["./x\\a.png"], ["x/a.png"], None, {"x/a.png": "./x\\a.png"}),
        (["C:\\pictures\\a.png"], ["a.png"], None, {"a.png": "C:\\pictures\\a.png"}),
        (["e\u0301.png"], ["\xe9.png"], None, {"\xe9.png": "e\u0301.png"}),
        (["x/a.png", "y/a.png"], ["a.png"], None, {}),
        (["a.png"], ["x/a.png", "y/a.png"], None, {}),
        (["train/a.png", "test/a.png"], ["a.png"], "test", {"a.png": "test/a.png"}),
        (["train/a.png"], ["a.png"], "test", {}),
        (["a.png"], ["a.png"], "test", {"a.png": "a.png"}),
    ],
)
def test_entries_are_matched_by_name_and_never_by_guess(
    written: list[str], there: list[str], within: str | None, matched: dict[str, str]
) -> None:
    found = entries(*written).matched(there, within)
    assert {name: entry.name for name, entry in found.items()} == matched


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "Expecting value"),
        ("{", "Expecting"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "recursion"),
        ('{"categories": [], "images": NaN}', "no list 'images'"),
        ('{"images": ' + "9" * 5000 + "}", "digits"),
        (changed("images", to=None), "no list 'images'"),
        (changed("categories", to={}), "no list 'categories'"),
        (changed("annotations", 1, to="x"), "entry 1 of 'annotations' is no JSON object"),
        (changed("images", 0, "id", to=[1]), "image 0 has no 'id'"),
        (changed("images", 0, "id", to=9), "has the id 9 of another image"),
        (changed("images", 0, "file_name", to="./b.png"), "two images have the same file_name"),
        (changed("images", 0, "file_name", to=5), "image 0 has no 'file_name' that is a text"),
        (changed("images", 0, "height", to=-20), "no height and width"),
        (changed("images", 0, "width", to=1e30), "no height and width"),
        (changed("categories", 0, "name", to=None), "category 0 has no 'name'"),
        (changed("annotations", 0, "bbox", to=None), "annotation 0 has no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, 2, 3]), "no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, 2, 3, True]), "no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, 2, 3, float("nan")]), "no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, float("-inf"), 3, 4]), "no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, 2, 3, 10**400]), "no 'bbox' of four numbers"),
        (changed("annotations", 0, "bbox", to=[1, 2, 3, -4]), "a 'bbox' of -4x3"),
        (changed("annotations", 0, "category_id", to=50), "category_id 50, which no category has"),
        (changed("annotations", 0, "image_id", to=1.5), "annotation 0 has no 'image_id'"),
    ],
)
def test_files_that_are_no_coco_are_refused_with_the_entry(content: object, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=f"is no sound annotation file in COCO form .*{complaint}.*; export it again"):
        read(saved(tmp_path, content))


def test_what_is_no_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PcdnetError, match="does not exist; give"):
        read(tmp_path / "missing.json")
    with pytest.raises(PcdnetError, match="cannot be read .*; give"):
        read(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'{"\xff": 1}')
    with pytest.raises(PcdnetError, match="is no sound annotation file"):
        read(tmp_path / "latin.json")
    monkeypatch.setattr(coco, "MOST_BYTES", 10)
    with pytest.raises(PcdnetError, match="more than the limit of 0 MiB; split it"):
        read(saved(tmp_path, SOUND))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(
    where=st.sampled_from(
        [(key, index, field) for key in SOUND for index, entry in enumerate(SOUND[key]) for field in entry]
    ),
    value=JSON,
)
@settings(max_examples=150)
def test_no_value_crashes_the_reader(
    where: tuple[str, int, str], value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = saved(tmp_path_factory.mktemp("any"), changed(*where, to=value))
    try:
        found = read(path)
    except PcdnetError as error:
        assert "export it again" in str(error)  # noqa: PT017
    else:
        for entry in found.entries:
            assert np.isfinite(entry.boxes.corners).all()
            assert (entry.boxes.kinds < len(found.kinds)).all()
