"""Laws of the COCO file as CVAT imports it: by the reader that CVAT's imports are built on."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pcdnet.output.coco import write
from tests.output.found import NAMES, random_records, results


@pytest.mark.filterwarnings("ignore")  # of the neighbour's own
def test_datumaro_reads_labels_masks_and_their_boxes(tmp_path: Path) -> None:
    pytest.importorskip("datumaro", reason="needs datumaro")
    dataset: Any = import_module("datumaro.components.dataset").Dataset
    found, made = random_records(6)
    for folder in ("annotations", "images"):
        (tmp_path / folder).mkdir()
    for number, one in enumerate(found):
        H, W = one.instances.shape
        Image.new("RGB", (W, H)).save(tmp_path / "images" / f"{number}.png")
    write(results([{**record, "name": f"{n}.png"} for n, record in enumerate(made)]), tmp_path / "annotations")
    (tmp_path / "annotations" / "coco_results.json").unlink()
    (tmp_path / "annotations" / "coco.json").rename(tmp_path / "annotations" / "instances_default.json")
    read = dataset.import_from(str(tmp_path), "coco_instances")
    (labels,) = read.categories().values()
    names = [label.name for label in labels]
    assert len(read) == 6
    for item in read:
        one = found[int(Path(item.id).stem)]
        seen = [thing for thing in one.objects if thing.box is not None]
        masks = [each for each in item.annotations if each.type.name == "mask"]
        assert len(masks) == len(seen)
        # In an order of its own.
        read_back = {(names[mask.label], mask.image.tobytes(), tuple(map(round, mask.get_bbox()))) for mask in masks}
        expected = set()
        for thing in seen:
            assert thing.box is not None
            top, left, height, width = thing.box
            pixels = thing.mask.astype(masks[0].image.dtype).tobytes()
            expected.add((NAMES[thing.prototype], pixels, (left, top, width, height)))
        assert read_back == expected


def test_every_annotation_has_what_cvat_asks_for(tmp_path: Path) -> None:
    """A label of the task by name, an image by its file name, a whole number of pixels, and a mask of one object."""
    write(results(random_records(6)[1]), tmp_path)
    read = json.loads((tmp_path / "coco.json").read_text(encoding="utf-8"))
    images = {image["id"]: image for image in read["images"]}
    kinds = {kind["id"] for kind in read["categories"]}
    assert len({annotation["id"] for annotation in read["annotations"]}) == len(read["annotations"]) > 0
    for annotation in read["annotations"]:
        assert annotation["category_id"] in kinds
        image = images[annotation["image_id"]]
        assert annotation["segmentation"]["size"] == [image["height"], image["width"]]
        assert annotation["iscrowd"] == 0
