"""Laws of the records: a record is its decomposition with masks, and is one again; as JSON lines they have names."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.decomposition import Decomposition
from pcdnet.kinds import Kinds
from pcdnet.output.record import check_record, records, write_json_lines
from tests.output.found import COLOURS, NAMES, random_records, results

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' own


def test_a_record_is_its_decomposition_with_masks_and_a_name() -> None:
    found, made = random_records(8)
    for n, (one, record) in enumerate(zip(found, made, strict=True)):
        masks = [thing.pop("mask") for thing in record["objects"]]
        assert record == {**one.to_dict(), "name": f"image-{n}"}
        assert all(mask["size"] == record["size"] for mask in masks)


def test_a_record_survives_json_and_is_a_decomposition_again() -> None:
    for one, record in zip(*random_records(8), strict=True):
        again = Decomposition.from_dict(json.loads(json.dumps(record)))
        np.testing.assert_array_equal(again.prototype_ids, one.prototype_ids)
        np.testing.assert_array_equal(again.positions, one.positions)
        np.testing.assert_array_equal(again.colours, one.colours)
        assert again.error == one.error


def test_no_image_makes_no_record() -> None:
    assert records([], []) == []


@pytest.mark.parametrize("change", [{"box": ...}, {"colour": [10**400, 0, 0]}, {"gain": 10**400}, {"gain": math.nan}])
def test_what_a_format_cannot_write_is_no_record(change: dict[str, Any]) -> None:
    _, made = random_records(3)
    record = next(record for record in made if record["objects"])
    check_record(record)
    thing = {**record["objects"][0], **change}
    record["objects"][0] = {name: value for name, value in thing.items() if value is not ...}
    with pytest.raises(ValueError, match="has an object that is none"):
        check_record(record)


@pytest.mark.parametrize(
    "change",
    [
        {"angle": math.nan},
        {"scale": 0.0},
        {"mirrored": 1},
        {"scale": ...},
        {"position": [0.5, 1e12]},
        {"position": [0.5]},
    ],
)
def test_what_is_in_no_pose_is_no_record(change: dict[str, Any]) -> None:
    _, made = random_records(3, poses=True)
    record = next(record for record in made if record["objects"])
    check_record(record)
    thing = {**record["objects"][0], **change}
    record["objects"][0] = {name: value for name, value in thing.items() if value is not ...}
    with pytest.raises(ValueError, match="has an object that is none"):
        check_record(record)


def test_a_line_is_a_decomposition_with_masks_and_names(tmp_path: Path) -> None:
    pytest.importorskip("pycocotools")
    decode = importlib.import_module("pycocotools.mask").decode
    found, made = random_records(10)
    assert write_json_lines(results(made), tmp_path) == [tmp_path / "decompositions.jsonl"]
    lines = (tmp_path / "decompositions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 10
    for n, (one, line) in enumerate(zip(found, lines, strict=True)):
        read = json.loads(line)
        for thing, expected in zip(read["objects"], one.objects, strict=True):
            np.testing.assert_array_equal(decode(thing.pop("mask")), expected.mask)
            assert thing.pop("name") == NAMES[expected.prototype]
            assert thing.pop("kind") == expected.prototype
        assert read == {**one.to_dict(), "name": f"image-{n}"}


def test_objects_of_one_name_are_one_kind_and_those_of_two_colours_two(tmp_path: Path) -> None:
    found, made = random_records(10)
    write_json_lines(results(made, kinds=COLOURS), tmp_path)
    lines = (tmp_path / "decompositions.jsonl").read_text(encoding="utf-8").splitlines()
    seen = set()
    for one, line in zip(found, lines, strict=True):
        kinds = COLOURS.ids(one.prototype_ids, one.colours).tolist()
        for thing, kind in zip(json.loads(line)["objects"], kinds, strict=True):
            assert (thing["kind"], thing["name"]) == (kind, COLOURS[kind].name)
            seen.add((thing["prototype"], thing["name"]))
    names = [(0, "L"), (1, "prototype 1 blue"), (1, "prototype 1 red"), (2, "L"), (3, "prototype 3")]
    assert sorted(seen) == names


def test_lines_are_read_back_with_and_without_kinds(tmp_path: Path) -> None:
    found, made = random_records(4)
    without = [json.loads(json.dumps(record)) for record in made]
    write_json_lines(results(made, kinds=COLOURS), tmp_path)
    written = map(json.loads, (tmp_path / "decompositions.jsonl").read_text(encoding="utf-8").splitlines())
    for one, *lines in zip(found, without, written, strict=True):
        for line in lines:
            np.testing.assert_array_equal(Decomposition.from_dict(line).prototype_ids, one.prototype_ids)


def test_objects_of_hidden_prototypes_are_in_no_output_and_stay_in_what_is_kept(tmp_path: Path) -> None:
    found, made = random_records(8)
    kinds = Kinds(NAMES.hiding([1, 3]))
    text = write_json_lines(results(made, kinds=kinds), tmp_path)[0].read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    for one, line, record in zip(found, lines, made, strict=True):
        kept = [p for p in one.prototype_ids.tolist() if p not in (1, 3)]
        assert [thing["prototype"] for thing in line["objects"]] == kept
        assert len(record["objects"]) == len(one)
        shown = one.without({1, 3})
        assert shown.prototype_ids.tolist() == kept
        hidden = np.isin(np.concatenate([[0], one.prototype_ids + 1])[one.instances], [2, 4])
        np.testing.assert_array_equal(shown.instances[hidden], 0)
        np.testing.assert_array_equal(shown.semantics[~hidden], one.semantics[~hidden])
