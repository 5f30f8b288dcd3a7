"""Laws of `pcdnet decompose` on odd pictures: a sentence each, and the rest is done; large ones are done whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.origin import Origin
from tests.runs import true_run

Capture = pytest.CaptureFixture[str]
SCENES = generate(100, seed=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the true prototypes of Tetrominoes, which knows what it learned from."""
    return true_run(tmp_path_factory.mktemp("runs") / "true", Origin(data="tetrominoes", size=(35, 35))).path


def decomposed(run: Path, *paths: Path, out: Path, code: int = 0) -> dict[str, dict[str, Any]]:
    """The records of pictures, by the names of their files."""
    assert main(["decompose", str(run), *map(str, paths), "--out", str(out)]) == code
    lines = (out / "decompositions.jsonl").read_text().splitlines()
    return {Path(record["name"]).name: record for record in map(json.loads, lines)}


def test_empty_and_broken_files_have_a_sentence_each_and_the_rest_is_done(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.fromarray(SCENES.images[0]).save(photos / "full.png")
    Image.new("RGB", (35, 35)).save(photos / "blank.png")
    (photos / "nothing.png").write_bytes(b"")
    (photos / "cut.png").write_bytes((photos / "full.png").read_bytes()[:-60])
    found = decomposed(trained, photos, out=tmp_path / "out", code=1)
    assert {name: len(record["objects"]) for name, record in found.items()} == {"blank.png": 0, "full.png": 3}
    said = [line for line in capsys.readouterr().err.splitlines() if "skipped" in line]
    assert [[name in line for line in said] for name in ("cut.png", "nothing.png")] == [[True, False], [False, True]]


def test_ten_pictures_of_ten_sizes_are_done(trained: Path, tmp_path: Path) -> None:
    for n in range(10):
        picture = np.zeros((35 + 3 * n, 62 - 3 * n, 3), np.uint8)
        picture[:35, :35] = SCENES.images[n]
        Image.fromarray(picture).save(tmp_path / f"{n}.png")
    found = decomposed(trained, tmp_path, out=tmp_path / "out")
    assert [found[f"{n}.png"]["size"] for n in range(10)] == [[35 + 3 * n, 62 - 3 * n] for n in range(10)]
    assert all(len(record["objects"]) >= 3 and record["error"] < 1 for record in found.values())


def test_a_picture_of_many_scenes_has_the_objects_of_all(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    """The model learned from images of three objects each; in a picture of a hundred it finds three hundred.

    Two things that touch can be three of which one hides parts of the others: without error either way.
    """
    sheet = SCENES.images.reshape(10, 10, 35, 35, 3).transpose(0, 2, 1, 3, 4).reshape(350, 350, 3)
    Image.fromarray(sheet).save(tmp_path / "sheet.png")
    record = decomposed(trained, tmp_path / "sheet.png", out=tmp_path / "out")["sheet.png"]
    assert 300 <= len(record["objects"]) <= 302
    assert record["error"] < 1
    boxes = [tuple(thing["box"]) for thing in record["objects"] if thing["box"]]
    assert len(set(boxes)) == len(boxes)
    assert capsys.readouterr().out.startswith("1 images")
