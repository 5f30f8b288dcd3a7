"""Laws of the COCO files: COCO's own tools read them, and find in them what was found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.path import Path as Polygon
from matplotlib.transforms import Affine2D

from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate, true_prototypes
from pcdnet.decomposition import Decomposition
from pcdnet.kinds import Kinds
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.coco import write
from pcdnet.output.record import Results, records
from pcdnet.output.rle import encode
from tests.output.found import COLOURS, NAMES, random_records, results

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' own
THING = {"colour": [1.0, 1.0, 1.0], "angle": 25.0, "scale": 1.5, "mirrored": True}
coco: Any = pytest.importorskip("pycocotools.coco")
evaluation: Any = pytest.importorskip("pycocotools.cocoeval")


def test_coco_reads_back_every_visible_object(tmp_path: Path) -> None:
    found, made = random_records(12)
    assert [path.name for path in write(results(made), tmp_path)] == ["coco.json", "coco_results.json"]
    read = coco.COCO(str(tmp_path / "coco.json"))
    assert [image["file_name"] for image in read.loadImgs(read.getImgIds())] == [f"image-{n}" for n in range(12)]
    assert [kind["name"] for kind in read.loadCats(read.getCatIds())] == list(NAMES)
    for number, one in enumerate(found, start=1):
        seen = [thing for thing in one.objects if thing.box is not None]
        annotations = read.loadAnns(read.getAnnIds(imgIds=[number]))
        assert len(annotations) == len(seen)
        for thing, annotation in zip(seen, annotations, strict=True):
            np.testing.assert_array_equal(read.annToMask(annotation), thing.mask)
            assert thing.box is not None
            top, left, height, width = thing.box
            assert annotation["bbox"] == [left, top, width, height]
            assert annotation["area"] == thing.mask.sum()
            assert annotation["category_id"] == thing.prototype + 1
            assert annotation["score"] == thing.error_reduction
    assert sum(len(one) for one in found) > len(read.getAnnIds())  # some were hidden


def test_a_box_turns_with_its_object(tmp_path: Path) -> None:
    """Of a rectangle that another program turned, it has the middle, the sides and the angle."""
    polygon = Polygon(Affine2D().rotate_deg_around(40, 30, -25).transform([(25, 24), (55, 24), (55, 36), (25, 36)]))
    rows, columns = np.mgrid[:60, :80] + 0.5
    inside = polygon.contains_points(np.stack([columns.ravel(), rows.ravel()], axis=1))
    labels = inside.reshape(60, 80).astype(np.int32)
    one = Decomposition.from_dict({"size": [60, 80], "objects": [{"prototype": 1, "position": [1.5, 2], **THING}]})
    write(results(records([dataclasses.replace(one, instances=labels)], ["a"])), tmp_path)
    (annotation,) = json.loads((tmp_path / "coco.json").read_text())["annotations"]
    assert (annotation["angle"], annotation["scale"], annotation["mirrored"]) == (25, 1.5, True)
    np.testing.assert_allclose(annotation["oriented_box"], [40, 30, 30, 12, 25], atol=1.2)


def test_the_box_of_what_is_not_turned_is_its_box(tmp_path: Path) -> None:
    found, _ = random_records(12, poses=True)
    upright = [one.with_poses(one.poses * np.array([0, 1, 1], np.float32)) for one in found]
    write(results(records(upright, [f"image-{n}" for n in range(12)])), tmp_path)
    annotations = json.loads((tmp_path / "coco.json").read_text())["annotations"]
    assert len(annotations) > 10
    for one in annotations:
        left, top, width, height = one["bbox"]
        assert one["oriented_box"] == [left + width / 2, top + height / 2, width, height, 0]
    assert not any("angle" in one for one in json.loads((tmp_path / "coco_results.json").read_text()))


def test_categories_are_the_kinds(tmp_path: Path) -> None:
    found, made = random_records(12)
    write(results(made, kinds=COLOURS), tmp_path)
    read = json.loads((tmp_path / "coco.json").read_text(encoding="utf-8"))
    assert [(kind["id"], kind["name"], kind["supercategory"]) for kind in read["categories"]] == [
        (1, "L", "L"),
        (2, "prototype 1 red", "prototype 1"),
        (3, "prototype 1 blue", "prototype 1"),
        (4, "prototype 3", "prototype 3"),
    ]
    seen = [[thing.box is not None for thing in one.objects] for one in found]
    kinds = [COLOURS.ids(one.prototype_ids, one.colours)[which] for one, which in zip(found, seen, strict=True)]
    assert [one["category_id"] for one in read["annotations"]] == (np.concatenate(kinds) + 1).tolist()


def test_results_are_loaded_against_a_ground_truth(tmp_path: Path) -> None:
    _, made = random_records(5)
    write(results(made), tmp_path)
    ground_truth = coco.COCO(str(tmp_path / "coco.json"))
    loaded = ground_truth.loadRes(str(tmp_path / "coco_results.json"))
    assert len(loaded.getAnnIds()) == len(ground_truth.getAnnIds()) > 0


def test_images_without_objects_make_valid_files(tmp_path: Path) -> None:
    _, made = random_records(2)
    empty = [{**record, "objects": []} for record in made]
    write(results(empty), tmp_path)
    assert len(json.loads((tmp_path / "coco.json").read_text())["images"]) == 2
    assert json.loads((tmp_path / "coco_results.json").read_text()) == []


@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_the_true_prototypes_find_all_tetrominoes_by_cocos_own_measure(kind: str, tmp_path: Path) -> None:
    scenes = generate(96, seed=4)
    prototypes, masks = true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    found = PCDNet.from_bank(bank, Config.preset("tetrominoes").model).decompose_all(scenes.images)
    write(Results(records(found, [str(n) for n in range(96)]), Kinds(Names(count=19)), 3), tmp_path)
    scorer = evaluation.COCOeval(ground_truth_of(scenes.labels.astype(np.int32)), iouType=kind)
    scorer.cocoDt = scorer.cocoGt.loadRes(str(tmp_path / "coco_results.json"))
    scorer.params.useCats = 0
    scorer.params.catIds = list(range(1, 20))  # which kinds are looked at, even where kinds do not count
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()
    assert scorer.stats[1] >= 0.99


def ground_truth_of(labels: np.ndarray) -> Any:
    """The true objects as COCO has them."""
    count = int(labels.max())
    strings = encode(labels, [count] * len(labels))
    annotations: list[dict[str, Any]] = []
    for image, (seen, words) in enumerate(zip(labels, strings, strict=True), start=1):
        for n, word in enumerate(words, start=1):
            rows, columns = (seen == n).nonzero()
            if len(rows) == 0:
                continue
            top, left = int(rows.min()), int(columns.min())
            box = [left, top, int(columns.max()) - left + 1, int(rows.max()) - top + 1]
            mask = {"size": list(seen.shape), "counts": word}
            one = {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "iscrowd": 0, "area": len(rows)}
            annotations.append({**one, "bbox": box, "segmentation": mask})
    made = coco.COCO()
    sizes = {"height": labels.shape[1], "width": labels.shape[2]}
    made.dataset = {
        "info": {},
        "images": [{"id": n + 1, **sizes} for n in range(len(labels))],
        "categories": [{"id": 1, "name": "object"}],
        "annotations": annotations,
    }
    made.createIndex()
    return made
