"""Labelling: frames of Space Invaders as tasks of Label Studio, read back by its own converter.

usage: python -m benchmarks.labelling [RUN] [--frames N] [--out DIR]

Without a run the preset space-invaders is trained. Its prototypes get the names of the aliens that they find in other
games, as a person would give them in the viewer. Then N frames of games that training did not see are decomposed into
tasks, every prediction is accepted as it is, and label-studio-sdk's converter makes COCO of them. Of a true alien, some
box of its name must lie within a pixel on all four sides. Needs label-studio-sdk.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from PIL import Image

from benchmarks.provenance import Start
from pcdnet.config import Config
from pcdnet.data.opening import open_data, training_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.files import folder
from pcdnet.metrics.matching import box_iou
from pcdnet.output.decompose import decompose_files
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.fit import fit

DATA = "space-invaders"
FRAMES, NAMED_BY = 1000, 100
"""Frames that are labelled, and those of another game that prototypes are named by."""
NEAR = 1.0
"""Pixels by which each side of a box may be off."""


def name_prototypes(run: RunFolder, scenes: Scenes) -> None:
    """Call every prototype by the kind of most of the true boxes that its objects fit; others keep their number."""
    model, seen = run.load_model(), dict[int, Counter[str]]()
    assert scenes.boxes is not None
    for image, boxes in zip(scenes.images, scenes.boxes, strict=True):
        things = [thing for thing in model.decompose(image).objects if thing.box is not None]
        found = np.array([thing.box for thing in things], np.float32).reshape(-1, 4)
        for thing, overlaps in zip(things, box_iou(found, boxes.corners), strict=True):
            if len(overlaps) and overlaps.max() >= 0.5:
                kind = scenes.kinds[boxes.kinds[overlaps.argmax()]]
                seen.setdefault(thing.prototype, Counter())[kind] += 1
    names = run.names()
    for prototype, kinds in seen.items():
        names = names.renamed(prototype, kinds.most_common(1)[0][0])
    run.keep_names(names)


def converted(tasks: Path, interface: Path, out: Path) -> dict[str, list[tuple[str, tuple[float, ...]]]]:
    """The boxes with their names, by picture, that Label Studio's converter makes of accepted predictions."""
    read = json.loads(tasks.read_text(encoding="utf-8"))
    for task in read:
        task["annotations"] = [{"id": task["id"], "result": task["predictions"][0]["result"]}]
    accepted = out / "accepted.json"
    accepted.write_text(json.dumps(read), encoding="utf-8")
    converter: Any = import_module("label_studio_sdk.converter").Converter
    converter(str(interface), str(out)).convert_to_coco(str(accepted), str(out / "coco"), is_dir=False)
    made = json.loads((out / "coco" / "result.json").read_text(encoding="utf-8"))
    pictures = {each["id"]: Path(each["file_name"]).name for each in made["images"]}
    names = {each["id"]: each["name"] for each in made["categories"]}
    found: dict[str, list[tuple[str, tuple[float, ...]]]] = {name: [] for name in pictures.values()}
    for each in made["annotations"]:
        found[pictures[each["image_id"]]].append((names[each["category_id"]], tuple(each["bbox"])))
    return found


def scored(scenes: Scenes, found: dict[str, list[tuple[str, tuple[float, ...]]]]) -> dict[str, Any]:
    """How many of the true aliens have a box within a pixel, and which of these have the right name."""
    near, named, aliens, far = 0, 0, 0, list[float]()
    assert scenes.boxes is not None
    for number, boxes in enumerate(scenes.boxes):
        things = found.get(f"{number:04}.png", [])
        edges = _edges(np.array([box for _, box in things], np.float64).reshape(-1, 4)[:, [1, 0, 3, 2]])
        for kind, box in zip(boxes.kinds.tolist(), boxes.corners, strict=True):
            name = scenes.kinds[kind]
            if not name.startswith("alien"):
                continue
            aliens += 1
            off = np.abs(edges - _edges(box[None])).max(axis=1, initial=0)
            off = np.where(np.isfinite(off), off, np.inf)
            fits = [each for each, apart in zip(things, off, strict=True) if apart <= NEAR]
            near += bool(fits)
            named += any(title.startswith(name) for title, _ in fits)
            far.append(float(off.min(initial=np.inf)))
    share = {"aliens": aliens, "within_a_pixel": near / aliens, "within_a_pixel_and_named": named / aliens}
    return {**share, "median_pixels_off": float(np.median(far)), "boxes": sum(map(len, found.values()))}


def _edges(boxes: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 4"]:
    """Top, left, bottom and right of boxes of top, left, height and width."""
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labelling", description=__doc__, formatter_class=form)
    parser.add_argument("run", nargs="?", help="a run of Space Invaders; by default the preset is trained")
    parser.add_argument("--frames", type=int, default=FRAMES, help="frames that are labelled")
    parser.add_argument("--out", type=Path, help="folder to keep everything in")
    return parser


def main() -> None:
    """Print one line of JSON."""
    start, asked = Start.now(), parser().parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = folder(asked.out or temporary)
        own = out / "run"
        if asked.run is not None:
            RunFolder.open(asked.run).copy(own)
        else:
            train, valid = training_data(DATA, seed=0)
            fit(train, Config.preset(DATA), validation=valid, out=own, quiet=True)
        run = RunFolder.open(own)
        name_prototypes(run, open_data(DATA, count=NAMED_BY, seed=TEST_SEED + 1))
        scenes = open_data(DATA, count=asked.frames, seed=TEST_SEED)
        pictures = folder(out / "frames")
        for number, image in enumerate(scenes.images):
            Image.fromarray(image).save(pictures / f"{number:04}.png")
        begun = time.perf_counter()
        results = out / "results"
        decompose_files(run, pictures, results, formats="label-studio", quiet=True)
        seconds = time.perf_counter() - begun
        found = converted(results / "label_studio.json", results / "label_studio.xml", results)
        figures = {"frames": len(scenes), **scored(scenes, found), "seconds_to_tasks": seconds}
    reader = {"reader": f"label-studio-sdk {version('label-studio-sdk')}"}
    start.close({"benchmark": "labelling", "run": "preset" if asked.run is None else asked.run, **reader, **figures})


if __name__ == "__main__":
    main()
