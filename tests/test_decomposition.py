"""Laws of decompositions: the objects are what the label map shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pcdnet.decomposition import FORMAT, Decomposition
from pcdnet.errors import PcdnetError


@st.composite
def decompositions(draw: st.DrawFn) -> Decomposition:
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
    told = found.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["format"] == FORMAT
    assert told["size"] == list(found.instances.shape)
    assert [thing["pixels"] for thing in told["objects"]] == [int(thing.mask.sum()) for thing in found.objects]


def some() -> Decomposition:
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
