"""The README's lines do what they say."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pcdnet
from pcdnet.cli import parse
from pcdnet.training import automatic
from tests.training.blobs import frames

README = Path(__file__).resolve().parents[1] / "README.md"
SCRIPT = """
import pcdnet

model = pcdnet.fit("photos", out="runs/mine")
print(pcdnet.evaluate("runs/mine"))
result = model.decompose("new.png")
for thing in result.objects:
    print(thing.prototype, thing.position, thing.colour, thing.box, thing.error_reduction)
pcdnet.decompose_files(model, "new.png", "results", formats="coco")
"""
"""Learns from a folder, scores, decomposes a new picture and writes COCO."""


def blocks(language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with photos and a new picture, in which training takes a moment."""

    def quick(images: np.ndarray, seed: int, *, tiles: bool) -> automatic.Choice:
        choice = automatic.choose(images, seed, tiles=tiles)
        changes = {"train.steps": 4, "train.batch": 4, "train.validate_every": 2}
        return dataclasses.replace(choice, config=choice.config.with_fields(changes))

    monkeypatch.setattr("pcdnet.training.fit.choose", quick)
    monkeypatch.chdir(tmp_path)
    *learned, new = frames(31)
    Path("photos").mkdir()
    for n, image in enumerate(learned):
        Image.fromarray(image).save(f"photos/{n:02}.png")
    Image.fromarray(new).save("new.png")
    return tmp_path


def test_ten_lines_learn_from_a_folder_score_decompose_and_write_coco(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[np.ndarray] = []
    real = pcdnet.PCDNet.decompose_all

    def noted(model: pcdnet.PCDNet, images: np.ndarray, **options: Any) -> Any:
        scored.append(images)
        return real(model, images, **options)

    assert len(SCRIPT.strip().splitlines()) <= 10
    names: dict[str, Any] = {}
    first, second = SCRIPT.split("print(pcdnet.evaluate", 1)
    exec(first, names)
    with monkeypatch.context() as patch:
        patch.setattr(pcdnet.PCDNet, "decompose_all", noted)
        exec("print(pcdnet.evaluate" + second, names)
    words = capsys.readouterr().out.splitlines()
    assert words[0].startswith("MSE ")
    assert len(words) == 1 + len(names["result"])
    np.testing.assert_array_equal(scored[0], frames(31)[27:30])  # those that were kept apart from training
    assert names["result"].instances.shape == (40, 50)
    written = json.loads((place / "results" / "coco.json").read_text(encoding="utf-8"))
    assert [image["file_name"] for image in written["images"]] == ["new.png"]
    assert len(written["annotations"]) == sum(thing.box is not None for thing in names["result"].objects)
    assert pcdnet.load("runs/mine").config == names["model"].config


def test_the_lines_of_python_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As they stand, but for fewer steps."""
    names: dict[str, Any] = {}
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)
    assert isinstance(names["model"], pcdnet.PCDNet)
    assert len(capsys.readouterr().out.splitlines()) >= len(names["result"])
    assert (place / "results" / "coco.json").is_file()


def test_every_line_of_the_command_line_is_understood() -> None:
    """Those of `pcdnet` in the blocks for a shell, and in the tables."""
    text = README.read_text(encoding="utf-8")
    lines = [line for block in blocks("sh") for line in block.splitlines()] + re.findall(r"`(pcdnet [^`]+)`", text)
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("pcdnet ")]
    full = [words[1:] for words in commands if len(words) > 2]
    assert {words[0] for words in full} >= {"train", "eval", "decompose", "report", "serve"}
    for words in full:
        parse(words)


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures
    assert all((README.parent / picture).is_file() for picture in pictures)
