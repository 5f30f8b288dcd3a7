"""Laws of the YOLO files: lines are boxes as shares, files are named as images, and none is left over."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pcdnet.output.yolo import write
from tests.output.found import NAMES, random_records, results


def test_every_visible_object_is_a_line_from_which_its_box_follows(tmp_path: Path) -> None:
    found, made = random_records(12)
    assert write(results(made), tmp_path) == [tmp_path / "yolo"]
    for number, one in enumerate(found):
        (H, W), seen = one.instances.shape, [thing for thing in one.objects if thing.box is not None]
        lines = (tmp_path / "yolo" / "labels" / f"image-{number}.txt").read_text().splitlines()
        assert len(lines) == len(seen)
        for line, thing in zip(lines, seen, strict=True):
            kind, *shares = line.split()
            x, y, width, height = map(float, shares)
            box = (H * (y - height / 2), W * (x - width / 2), H * height, W * width)
            assert int(kind) == thing.prototype
            assert thing.box == tuple(round(side) for side in box)
            assert max(abs(side - round(side)) for side in box) < 1e-4
    assert sum(len(one) for one in found) > sum(len(file.read_text().splitlines()) for file in _labels(tmp_path))


def test_the_names_of_the_kinds_can_be_read_as_yaml_whatever_is_in_them(tmp_path: Path) -> None:
    write(results(random_records(1)[1]), tmp_path)
    lines = (tmp_path / "yolo" / "data.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["path: .", "train: images", "val: images", "names:"]
    names = dict(line.strip().split(": ", 1) for line in lines[4:])  # JSON's texts are YAML's
    assert [json.loads(names[str(n)]) for n in range(len(NAMES))] == list(NAMES)


def test_files_are_named_as_images_and_none_is_left_of_another_call(tmp_path: Path) -> None:
    _, made = random_records(5)
    names = ["photos/a.png", "more/a.png", "../../B.tif#3", "film.mp4#12", ".hidden"]
    write(results([{**record, "name": name} for record, name in zip(made, names, strict=True)]), tmp_path)
    marks = [hashlib.sha256(name.encode()).hexdigest()[:8] for name in names[:2]]
    expected = {".hidden.txt", "B-3.txt", "film-12.txt", *(f"a-{mark}.txt" for mark in marks)}
    assert {file.name for file in _labels(tmp_path)} == expected
    write(results([{**made[0], "name": "photos/a.png"}]), tmp_path)
    assert [file.name for file in _labels(tmp_path)] == ["a.txt"]


def _labels(folder: Path) -> list[Path]:
    return sorted((folder / "yolo" / "labels").iterdir())
