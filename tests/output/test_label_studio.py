"""Laws of the Label Studio files: tasks whose predictions fit the interface beside them, and boxes that follow."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks.labelling import converted

from pcdnet.output.label_studio import write
from tests.output.found import NAMES, random_records, results


def tasks(folder: Path, count: int = 12) -> tuple[Any, list[dict[str, Any]]]:
    """Random decompositions, and the tasks that they make."""
    found, made = random_records(count)
    assert [path.name for path in write(results(made), folder)] == ["label_studio.json", "label_studio.xml"]
    return found, json.loads((folder / "label_studio.json").read_text(encoding="utf-8"))


def test_every_visible_object_is_a_region_from_which_its_box_follows(tmp_path: Path) -> None:
    found, made = tasks(tmp_path)
    assert [task["data"] for task in made] == [{"image": f"image-{n}"} for n in range(12)]
    regions = [region for task in made for region in task["predictions"][0]["result"]]
    assert len({region["id"] for region in regions}) == len(regions) < sum(len(one) for one in found)
    for one, task in zip(found, made, strict=True):
        seen = [thing for thing in one.objects if thing.box is not None]
        for thing, region in zip(seen, task["predictions"][0]["result"], strict=True):
            H, W = region["original_height"], region["original_width"]
            value = region["value"]
            box = (value["y"] * H, value["x"] * W, value["height"] * H, value["width"] * W)
            assert one.instances.shape == (H, W)
            assert [round(side / 100, 6) for side in box] == list(thing.box)
            assert value["rectanglelabels"] == [NAMES[thing.prototype]]


def test_turned_objects_are_rectangles_that_turn_around_their_corner(tmp_path: Path) -> None:
    """As Label Studio reads it: from the upper left corner along both sides, clockwise by the rotation."""
    found, made = random_records(6, poses=True)
    write(results(made), tmp_path)
    checked = 0
    for one, task in zip(found, json.loads((tmp_path / "label_studio.json").read_text()), strict=True):
        seen = [thing for thing in one.objects if thing.box is not None]
        for thing, region in zip(seen, task["predictions"][0]["result"], strict=True):
            value, (H, W) = region["value"], one.instances.shape
            assert value["rotation"] == pytest.approx(-thing.angle % 360)
            turn = np.radians(value["rotation"])
            along = np.array([np.cos(turn), np.sin(turn)])  # x and y
            across = np.array([-np.sin(turn), np.cos(turn)])
            corner = np.array([value["x"] * W, value["y"] * H]) / 100
            pixels = np.argwhere(thing.mask)[:, ::-1] + 0.5 - corner
            for way, side in ((along, value["width"] * W / 100), (across, value["height"] * H / 100)):
                assert (pixels @ way).min() == pytest.approx(0.5, abs=1e-6)
                assert (pixels @ way).max() == pytest.approx(side - 0.5, abs=1e-6)
            checked += 1
    assert checked > 5


def test_the_interface_has_every_kind_and_what_regions_refer_to(tmp_path: Path) -> None:
    _, made = tasks(tmp_path)
    view = ElementTree.parse(tmp_path / "label_studio.xml").getroot()
    labels, image = view.find("RectangleLabels"), view.find("Image")
    assert labels is not None
    assert image is not None
    assert [label.get("value") for label in labels] == list(NAMES)
    assert image.get("value") == "$image"
    regions = [region for task in made for region in task["predictions"][0]["result"]]
    assert {(one["from_name"], one["to_name"], one["type"]) for one in regions} == {
        (labels.get("name"), image.get("name"), labels.tag.lower())
    }


@pytest.mark.filterwarnings("ignore")  # of the neighbour's own
def test_label_studio_s_own_reader_takes_interface_and_predictions(tmp_path: Path) -> None:
    pytest.importorskip("label_studio_sdk", reason="needs label-studio-sdk")
    reader = import_module("label_studio_sdk.label_interface").LabelInterface
    _, made = tasks(tmp_path)
    interface = reader((tmp_path / "label_studio.xml").read_text(encoding="utf-8"))
    assert all(interface.validate_prediction(task["predictions"][0]) for task in made)
    wrong = {"value": {}, "type": "rectanglelabels", "from_name": "other", "to_name": "image"}
    assert not interface.validate_prediction({"model_version": "pcdnet", "result": [wrong]})


@pytest.mark.filterwarnings("ignore")  # of the neighbour's own
def test_label_studio_s_own_converter_finds_the_boxes_of_accepted_predictions(tmp_path: Path) -> None:
    pytest.importorskip("label_studio_sdk", reason="needs label-studio-sdk")
    found, _ = tasks(tmp_path)
    boxes = converted(tmp_path / "label_studio.json", tmp_path / "label_studio.xml", tmp_path)
    for number, one in enumerate(found):
        seen = [thing for thing in one.objects if thing.box is not None]
        read = [(name, tuple(round(side, 6) for side in box)) for name, box in boxes.get(f"image-{number}", [])]
        expected = [
            (NAMES[thing.prototype], (left, top, width, height))
            for thing in seen
            if thing.box is not None
            for top, left, height, width in [thing.box]
        ]
        assert read == expected
