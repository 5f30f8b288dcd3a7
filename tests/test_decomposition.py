"""Laws of decompositions: the objects are what the label map shows."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from pcdnet.decomposition import FORMAT, Decomposition
from pcdnet.errors import PcdnetError


@st.composite
def decompositions(draw: st.DrawFn) -> Decomposition:
    """Some objects, seen or hidden."""
    count = draw(st.integers(0, 5))
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=9))
    return Decomposition(
        prototype_ids=draw(arrays(np.int32, count, elements=st.integers(0, 30))),
        positions=draw(arrays(np.int32, (count, 2), elements=st.integers(-20, 40))),
        colours=draw(arrays(np.float32, (count, 3), elements=st.floats(0, 1, width=32))),
        error_reductions=draw(arrays(np.float32, count, elements=st.floats(0, 100, width=32))),
        instances=draw(arrays(np.int32, shape, elements=st.integers(0, count))),
        reconstruction=np.zeros((*shape, 3), np.float32),
        error=draw(st.floats(0, 1e6)),
        name=draw(st.text(max_size=5)),
    )


@given(decompositions())
def test_visible_masks_are_disjoint_and_cover_the_foreground(found: Decomposition) -> None:
    covered = np.zeros(found.instances.shape, int)
    for thing in found.objects:
        covered += thing.mask
    np.testing.assert_array_equal(covered, found.instances > 0)


@given(decompositions())
def test_boxes_are_tight_and_missing_only_where_nothing_is_seen(found: Decomposition) -> None:
    for thing in found.objects:
        if thing.box is None:
            assert not thing.mask.any()
            continue
        top, left, height, width = thing.box
        inside = thing.mask[top : top + height, left : left + width]
        assert inside.sum() == thing.mask.sum()
        assert all(edge.any() for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]))


@given(decompositions())
def test_objects_come_front_to_back_as_the_arrays_say(found: Decomposition) -> None:
    assert len(found.objects) == len(found)
    for n, thing in enumerate(found.objects):
        assert thing.depth == n
        assert thing.prototype == found.prototype_ids[n]
        assert thing.position == tuple(found.positions[n])
        assert thing.colour == tuple(found.colours[n])
        assert thing.error_reduction == found.error_reductions[n]


@given(decompositions())
def test_semantics_name_the_prototype_that_is_seen(found: Decomposition) -> None:
    semantics = found.semantics
    assert semantics.dtype == np.int32
    assert (semantics[found.instances == 0] == 0).all()
    for thing in found.objects:
        assert (semantics[thing.mask] == thing.prototype + 1).all()


@given(decompositions())
def test_the_dictionary_survives_json(found: Decomposition) -> None:
    record = found.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["format"] == FORMAT
    assert record["size"] == list(found.instances.shape)
    assert [thing["pixels"] for thing in record["objects"]] == [int(thing.mask.sum()) for thing in found.objects]


@given(decompositions())
def test_the_dictionary_gives_back_all_but_the_pixels(found: Decomposition) -> None:
    copy = Decomposition.from_dict(found.to_dict())
    for name in ("prototype_ids", "positions", "colours", "error_reductions"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(found, name))
    assert (copy.error, copy.name, copy.instances.shape) == (found.error, found.name, found.instances.shape)
    assert not copy.instances.any()
    assert not copy.reconstruction.any()


@st.composite
def posed_decompositions(draw: st.DrawFn) -> Decomposition:
    """The same in any poses."""
    found = draw(decompositions())
    count, number = len(found), st.floats(0, 30, width=32)
    angles = draw(arrays(np.float32, count, elements=st.floats(0, 359, width=32)))
    scales = draw(arrays(np.float32, count, elements=st.floats(0.25, 8, width=32)))
    mirrored = draw(arrays(bool, count))
    positions = draw(arrays(np.float32, (count, 2), elements=number))
    return dataclasses.replace(found, positions=positions, angles=angles, scales=scales, mirrored=mirrored)


@given(posed_decompositions())
def test_poses_survive_json_and_say_the_same_everywhere(found: Decomposition) -> None:
    record = json.loads(json.dumps(found.to_dict()))
    copy = Decomposition.from_dict(record)
    np.testing.assert_array_equal(copy.positions, found.positions)
    np.testing.assert_array_equal(copy.poses, found.poses)
    assert copy.posed == (len(found) > 0)
    for thing, words in zip(found.objects, record["objects"], strict=True):
        assert (thing.angle, thing.scale, thing.mirrored) == (words["angle"], words["scale"], words["mirrored"])
        assert thing.position == tuple(words["position"])
        assert all(type(at) is (int if at == int(at) else float) for at in words["position"])


@given(posed_decompositions(), st.sets(st.integers(0, 30)))
def test_what_is_left_out_takes_its_pose_along(found: Decomposition, hidden: set[int]) -> None:
    kept = ~np.isin(found.prototype_ids, list(hidden))
    left = found.without(hidden)
    np.testing.assert_array_equal(left.poses, found.poses[kept])
    np.testing.assert_array_equal(left.positions, found.positions[kept])
    assert left.posed


@given(decompositions())
def test_without_poses_nothing_speaks_of_them(found: Decomposition) -> None:
    assert not found.posed
    for words in found.to_dict()["objects"]:
        assert list(words) == ["prototype", "position", "colour", "depth", "gain", "box", "pixels"]
        assert all(type(at) is int for at in words["position"])
    assert Decomposition.from_dict(found.to_dict()).positions.dtype == np.int32
    assert all((thing.angle, thing.scale, thing.mirrored) == (0, 1, False) for thing in found.objects)


def test_a_record_may_turn_some_of_its_objects() -> None:
    things = [
        THING,
        {**THING, "angle": -90},
        {**THING, "scale": 0.5, "position": [1.5, 2]},
        {**THING, "mirrored": True},
    ]
    found = Decomposition.from_dict({"size": [4, 6], "objects": things})
    assert found.poses.tolist() == [[0, 1, 0], [270, 1, 0], [0, 0.5, 0], [0, 1, 1]]
    assert [thing.position for thing in found.objects] == [(0, 0), (0, 0), (1.5, 2), (0, 0)]


def test_a_record_without_objects_has_the_channels_that_are_given() -> None:
    empty = {"size": [4, 6], "objects": []}
    assert Decomposition.from_dict(empty).reconstruction.shape == (4, 6, 3)
    assert Decomposition.from_dict(empty, channels=1).reconstruction.shape == (4, 6, 1)


THING = {"prototype": 0, "position": [0, 0], "colour": [1.0]}


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"objects": [], "size": [4]},
        {"objects": [], "size": [-1, 4]},
        {"objects": 3, "size": [4, 6]},
        {"objects": [3], "size": [4, 6]},
        *(
            {"size": [4, 6], "objects": [THING, {**THING, **change}]}
            for change in (
                {"prototype": "L"},
                {"prototype": [1, 2]},
                {"prototype": 2**40},
                {"position": [1]},
                {"position": [1, 2, 3, 4]},
                {"colour": [1.0, 1.0, 1.0]},
                {"gain": "much"},
                {"position": [1.5, float("nan")]},
                {"position": [1.5, 1e40]},
                {"angle": float("inf")},
                {"angle": "north"},
                {"scale": 0},
                {"scale": -1.0},
                {"scale": 1e300},
                {"mirrored": 1},
                {"mirrored": None},
            )
        ),
        {"size": [4, 6], "objects": [{**THING, "position": [1, 2, 3, 4]}]},
        {"size": [4, 6], "objects": [{**THING, "position": [1]}] * 2},
    ],
)
def test_what_is_no_record_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(PcdnetError, match=r"this is no record of a decomposition \(.*\); give what `to_dict` made"):
        Decomposition.from_dict(record)


@pytest.mark.parametrize(
    ("prototypes", "words"),
    [
        ([], "no object"),
        ([11], "1 object of prototype 11"),
        ([2, 1, 2], "3 objects: 1 of prototype 1, 2 of prototype 2"),
    ],
)
def test_a_decomposition_is_one_readable_line(prototypes: list[int], words: str) -> None:
    things = [{**THING, "prototype": prototype} for prototype in prototypes]
    record = {"name": "a.png", "size": [4, 6], "error": 0.25, "objects": things}
    assert repr(Decomposition.from_dict(record)) == f"Decomposition(a.png: {words}, squared error 0.25)"


def test_in_a_notebook_it_is_a_picture_of_what_was_found() -> None:
    found = dataclasses.replace(some(), name="<b>")
    page = found._repr_html_()
    assert "&lt;b&gt;: 1 object of prototype 7" in page
    assert "<b>" not in page
    content = base64.b64decode(page.partition("base64,")[2].partition('"')[0])
    picture = np.asarray(Image.open(io.BytesIO(content)))
    assert picture.shape == (4, 2 * 6, 3)
    np.testing.assert_array_equal(picture[:, 6:].any(axis=2), found.instances > 0)


def some() -> Decomposition:
    """One object, which fills two rows of three pixels."""
    instances = np.zeros((4, 6), np.int32)
    instances[1:3, 2:5] = 1
    return Decomposition(
        prototype_ids=np.array([7], np.int32),
        positions=np.array([[-1, 2]], np.int32),
        colours=np.array([[1, 0, 0.5]], np.float32),
        error_reductions=np.array([3], np.float32),
        instances=instances,
        reconstruction=np.zeros((4, 6, 3), np.float32),
        error=0.25,
        name="scene-1",
    )


def test_a_saved_decomposition_is_its_dictionary(tmp_path: Path) -> None:
    some().save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {
        "format": "pcdnet-decomposition-1",
        "name": "scene-1",
        "size": [4, 6],
        "error": 0.25,
        "objects": [
            {
                "prototype": 7,
                "position": [-1, 2],
                "colour": [1.0, 0.0, 0.5],
                "depth": 0,
                "gain": 3.0,
                "box": [1, 2, 2, 3],
                "pixels": 6,
            }
        ],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"cannot write .*a\.json.*choose another place"):
        some().save(tmp_path / "missing" / "a.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PcdnetError, match="cannot write"):
        some().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
