"""Laws of `pcdnet merge`: one line says what is one kind now, and every output knows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcdnet.cli import main
from pcdnet.run import RunFolder
from tests.cli.conftest import Complaint
from tests.runs import true_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with the true prototypes of Tetrominoes."""
    return true_run(tmp_path / "run")


def test_merged_prototypes_have_one_name_and_one_line_says_so(run: RunFolder, capsys: Capture) -> None:
    assert main(["merge", str(run.path), "3", "7", "9"]) == 0
    assert capsys.readouterr() == (
        f"prototypes 3, 7 and 9 are one kind now: prototype 3   next: pcdnet report {run.path}\n",
        "",
    )
    assert main(["merge", str(run.path), "12", "7", "--name", "spade"]) == 0
    assert capsys.readouterr().out == f"prototypes 7 and 12 are one kind now: spade   next: pcdnet report {run.path}\n"
    assert main(["merge", str(run.path), "0", "12"]) == 0
    assert (
        capsys.readouterr().out == f"prototypes 0, 7 and 12 are one kind now: spade   next: pcdnet report {run.path}\n"
    )
    assert run.names().given == {3: "prototype 3", 9: "prototype 3", **dict.fromkeys((0, 7, 12), "spade")}


def test_results_know_the_merged_prototypes_without_new_work(
    run: RunFolder, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    decompose = ["decompose", str(run.path), str(data), "--out", str(tmp_path / "out"), "--format", "json,coco"]
    assert main(decompose) == 0
    assert main(["merge", str(run.path), *map(str, range(19)), "--name", "tetromino"]) == 0
    capsys.readouterr()
    assert main(decompose) == 0
    printed, said = capsys.readouterr()
    assert "80 images were done before" in said
    assert "  tetromino        240   100.0 %" in printed.splitlines()
    lines = (tmp_path / "out" / "decompositions.jsonl").read_text().splitlines()
    assert {(thing["kind"], thing["name"]) for line in lines for thing in json.loads(line)["objects"]} == {
        (0, "tetromino")
    }
    assert len(json.loads((tmp_path / "out" / "coco.json").read_text())["categories"]) == 1


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["3"], "it takes two prototypes to make one kind of them, and 3 was given"),
        (["3", "3"], "and 3 3 was given"),
        (["3", "19"], "there is no prototype 19; give a number of 0 to 18"),
        (["3", "4", "--name", " "], "blank"),
        (["3", "4", "--name", "x" * 61], "has 61 characters"),
    ],
)
def test_mistakes_change_nothing(words: list[str], wrong: str, run: RunFolder, complaint: Complaint) -> None:
    assert wrong in complaint("merge", run.path, *words)
    assert not (run.path / "names.toml").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, complaint: Complaint) -> None:
    assert "is no run" in complaint("merge", tmp_path, 1, 2)
