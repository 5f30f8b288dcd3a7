"""Laws of `pcdnet runs`: a table for people, one object for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pcdnet.cli import main

Capture = pytest.CaptureFixture[str]


def test_a_trained_run_and_a_damaged_one_are_listed(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    for path in trained.iterdir():
        for name in ("a", "b"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    (tmp_path / "b" / "config.toml").write_text("[model]\nsense = 3\n")
    capsys.readouterr()
    assert main(["runs", str(tmp_path)]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert "  a    0     6/6    finished  " in printed
    assert "damaged\n  b  " in printed
    assert main(["runs", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["folder", "runs", "configurations"]
    assert [(Path(run["run"]).name, run["state"]) for run in told["runs"]] == [("a", "finished"), ("b", "damaged")]
    assert told["runs"][0]["scores"]["fg_ari"] <= 1
    assert told["runs"][0]["error"] == told["configurations"][0]["scores"]["mse"]["mean"]
