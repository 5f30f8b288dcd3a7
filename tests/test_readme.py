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
from benchmarks.lines import read
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

    monkeypatch.setattr("pcdnet.training.task.choose", quick)
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


def rows_of(first: str) -> list[list[str]]:
    """The cells of the table whose head begins with these words, without the head."""
    text = README.read_text(encoding="utf-8")
    table = text[text.index(f"| {first}") :].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_figures_of_what_was_learned_are_those_of_the_results() -> None:
    known = {
        f"seed {row['seed']}": row
        for line in measured("learning", set=[], preset="tetrominoes")
        for row in line["rows"]
    }
    for name, *cells in rows_of("learned from scratch"):
        row = known[name]
        share, shapes = f"{100 * row['perfect']:.1f} %", f"{row['shapes']:.0f} of 19, {row['least_iou']:.2f}"
        assert cells == [f"{row['fg_ari']:.4f}", share, shapes, f"{minutes(row):.1f}"]


def test_figures_of_real_scenes_are_those_of_the_results() -> None:
    known = {row["data"]: row for line in measured("real", preset=None) for row in line["rows"]}
    for name, *cells in rows_of("| F1 at IoU 0.5"):
        row = known["space-invaders" if name.startswith("Space Invaders") else name.split()[2].rstrip(",")]
        assert cells[:2] == [f"{row['f1']:.3f}", f"{row['ap50']:.3f}"]
        assert cells[2:] == [f"{row['frames_per_second']:.0f}", f"{minutes(row):.1f} minutes"]
        assert f"{row['frames']} frames" in name


def test_figures_of_given_prototypes_and_of_speed_are_those_of_the_results_if_these_have_them() -> None:
    for line in measured("quality"):
        kinds = {("true prototypes", "greedy"), ("true prototypes", "refined"), ("authors' released bank", "refined")}
        groups = [
            [row for row in line["rows"] if (row["bank"], row["search"]) == kind and row["seed"] != "genuine"]
            for kind in sorted(kinds, key=lambda kind: (kind[0] != "true prototypes", kind[1]))
        ]
        for (_, *cells), group in zip(rows_of("given prototypes"), groups, strict=True):
            means = [np.mean([row[name] for row in group]) for name in ("fg_ari", "count_accuracy")]
            assert cells == [f"{mean:.4f}" for mean in means]
    for line in measured("speed"):
        for (_, *cells), row in zip(rows_of("images/s, batch 64"), in_the_order_of_the_readme(line), strict=True):
            assert cells == [f"{row['engine']:,.0f}", f"{row['oracle']:.1f}", f"{row['ratio']:.0f}x"]


def in_the_order_of_the_readme(line: dict[str, Any]) -> list[dict[str, float]]:
    jobs = [f"{job} {colour}" for job in ("inference", "forward+backward") for colour in ("least_squares", "network")]
    return [line["tetrominoes"][job] for job in jobs]


def measured(benchmark: str, **settings: Any) -> list[dict[str, Any]]:
    """The lines of a benchmark with these settings."""
    lines = [line for line in read(README.parent / "docs") if line["benchmark"] == benchmark]
    return [line for line in lines if all(line.get(name) == value for name, value in settings.items())]


def minutes(row: dict[str, Any]) -> float:
    """Of the clock with several threads, of the processor with one, as on the page."""
    return float(row["core_minutes"] if row.get("threads", 1) == 1 else row["minutes"])
