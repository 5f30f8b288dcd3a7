"""Laws of results as supervision's detections: what is seen, where and of which kind, and nothing made up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.record import Results
from pcdnet.output.yolo import write
from tests.output.found import COLOURS, KINDS, NAMES, random_decomposition, random_records


def neighbour() -> Any:
    """The package, or a test that is left out."""
    return pytest.importorskip("supervision", reason="needs supervision")


def test_every_visible_object_is_a_detection_with_its_box_mask_and_kind() -> None:
    neighbour()
    rng, hidden = np.random.default_rng(0), 0
    for _ in range(20):
        found = random_decomposition(rng)
        seen = [thing for thing in found.objects if thing.box is not None]
        hidden += len(found) - len(seen)
        detections: Any = found.to_supervision(KINDS)
        assert len(detections) == len(seen)
        for n, thing in enumerate(seen):
            assert thing.box is not None
            top, left, height, width = thing.box
            assert detections.xyxy[n].tolist() == [left, top, left + width, top + height]
            np.testing.assert_array_equal(detections.mask[n], thing.mask)
            assert detections.data["class_name"][n] == NAMES[thing.prototype]
            assert detections.data["depth"][n] == thing.depth
            assert detections.data["error_reduction"][n] == np.float32(thing.error_reduction)
        assert detections.confidence is None
    assert hidden > 0


def test_classes_are_kinds_and_without_kinds_prototypes() -> None:
    neighbour()
    found = random_decomposition(np.random.default_rng(3))
    prototypes, colours = found.prototype_ids, found.colours
    seen = [n for n, thing in enumerate(found.objects) if thing.box is not None]
    assert len(seen) > 1
    sorted_by_colour: Any = found.to_supervision(COLOURS)
    assert sorted_by_colour.class_id.tolist() == COLOURS.ids(prototypes, colours)[seen].tolist()
    plain: Any = found.to_supervision(masks=False)
    assert plain.class_id.tolist() == prototypes[seen].tolist()
    assert plain.data["class_name"].tolist() == [f"prototype {p}" for p in prototypes[seen]]
    assert plain.mask is None


def test_supervision_s_own_tools_take_them() -> None:
    sv, found = neighbour(), random_decomposition(np.random.default_rng(3))
    detections: Any = found.to_supervision(KINDS)
    kept = detections[detections.data["prototype"] == found.prototype_ids[0]]
    assert 0 < len(kept) <= len(detections)
    merged = sv.Detections.merge([detections, detections])
    assert len(merged) == 2 * len(detections)
    assert sv.MaskAnnotator().annotate(np.zeros((9, 12, 3), np.uint8), detections).any()


def test_no_object_makes_detections_of_none() -> None:
    neighbour()
    rng = np.random.default_rng(0)
    empty = next(found for found in (random_decomposition(rng) for _ in range(100)) if len(found) == 0)
    assert len(empty.to_supervision(KINDS)) == 0


def test_without_supervision_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", None)
    with pytest.raises(PcdnetError, match=r"pip install 'pcdnet\[supervision\]'"):
        random_decomposition(np.random.default_rng(0)).to_supervision()


def test_supervision_s_own_reader_of_yolo_finds_the_same_boxes(tmp_path: Path) -> None:
    from PIL import Image

    sv, (found, made) = neighbour(), random_records(6)
    write(Results([{**record, "name": f"{n}.png"} for n, record in enumerate(made)], KINDS, 3), tmp_path)
    (tmp_path / "yolo" / "images").mkdir()
    for n, one in enumerate(found):
        H, W = one.instances.shape
        Image.new("RGB", (W, H)).save(tmp_path / "yolo" / "images" / f"{n}.png")
    places = [str(tmp_path / "yolo" / name) for name in ("images", "labels", "data.yaml")]
    read = sv.DetectionDataset.from_yolo(*places)
    assert read.classes == list(NAMES)
    assert len(read) == 6
    for path, _, detections in read:
        expected: Any = found[int(Path(path).stem)].to_supervision(KINDS)
        np.testing.assert_allclose(detections.xyxy, expected.xyxy, atol=1e-3)
        assert detections.class_id.tolist() == expected.class_id.tolist()
