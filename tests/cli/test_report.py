"""Laws of `pcdnet report`: the page is where it is wanted, and about what is asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import pcdnet
from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.names import Names
from tests.cli.conftest import Complaint

Capture = pytest.CaptureFixture[str]
NEXT = "open it in a browser, or pcdnet serve {} to try other images"


def test_the_page_is_in_the_folder_of_the_run_unless_wanted_elsewhere(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    shutil.copytree(trained, run)
    (run / "report.html").unlink()
    assert main(["report", str(run)]) == 0
    assert "8 scenes: the last 8 of scenes.npz" in (run / "report.html").read_text(encoding="utf-8")
    *suggestions, last = capsys.readouterr().out.splitlines()
    assert last == f"wrote {run}/report.html   next: {NEXT.format(run)}"
    # The run of the tests is a few steps old, and nothing has a shape yet.
    assert suggestions[0].startswith("suggestion: train longer (train.steps), as ")
    assert suggestions[1].startswith(f"    pcdnet train --config {run}/config.toml ")
    assert main(["report", str(run), "--out", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {page}   next: {NEXT.format(run)}\n")
    assert "8 scenes: the last 8 of scenes.npz" in page.read_text(encoding="utf-8")


def test_the_page_is_about_what_it_is_asked_for(trained: Path, tmp_path: Path) -> None:
    data, page = tmp_path / "wide.npz", tmp_path / "page.html"
    np.savez(data, image=np.pad(generate(9, seed=5).images, ((0, 0), (0, 0), (0, 5), (0, 0))))
    options = ["--data", str(data), "--out", str(page), "--crop", "0", "0", "35", "35", "--stride", "4"]
    assert main(["report", str(trained), *options]) == 0
    assert "3 scenes: wide.npz" in page.read_text(encoding="utf-8")


def test_programs_are_given_what_is_on_the_page(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(trained), "--out", str(page), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    written = pcdnet.report(trained, out=page)
    same = {**written.to_dict(), "scores": {**written.scores.to_dict(), "images_per_second": 0, "seconds": 0}}
    told["scores"] |= {"images_per_second": 0, "seconds": 0}
    assert told == json.loads(json.dumps(same))
    assert told["verdict"] == "failed"
    assert told["found"]["images"] == 8
    assert len(told["found"]["kinds"]) == 4
    assert told["suggestions"][0]["changes"]


def test_names_that_were_given_are_on_the_page(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    Names(count=4, given={3: "<b>bar</b>"}).write(run)
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;bar&lt;/b&gt;" in text
    assert "<b>bar" not in text


def test_mistakes_name_their_cure(trained: Path, tmp_path: Path, complaint: Complaint) -> None:
    assert "is no run" in complaint("report", tmp_path / "none")
    assert "use tetrominoes" in complaint("report", trained, "--data", "tetris")
    assert "does not exist" in complaint("report", trained, "--data", tmp_path / "none.npz")
    assert "--device cpu" in complaint("report", trained, "--device", "abacus")
    assert f"use {tmp_path}/page.html" in complaint("report", trained, "--out", tmp_path / "page.txt")
    assert not list(tmp_path.iterdir())
