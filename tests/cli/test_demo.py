"""Laws of `pcdnet demo`: everything once, as often as one likes."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest

from pcdnet.cli import main
from pcdnet.config import PRESETS
from pcdnet.data import sources
from pcdnet.output.report import report
from tests.cli.conftest import Complaint


def test_the_demo_learns_scores_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SOURCES", [dataclasses.replace(sources.SOURCES[0], training=(128, 4))])
    monkeypatch.setitem(PRESETS, "tetrominoes", PRESETS["tetrominoes"].with_fields({"model.restarts": 0}))
    monkeypatch.setattr("pcdnet.output.report.report", functools.partial(report, count=2))
    monkeypatch.setattr("pcdnet.cli.demo.SHOWN", 2)
    out = tmp_path / "new" / "demo"
    for _ in range(2):  # the second replaces the first
        assert main(["demo", "--out", str(out), "--minutes", "0.005", "--seed", "1"]) == 0
        printed, progress = capsys.readouterr()
        assert "FG-ARI" in printed
        assert "next:" in printed
        assert f"pcdnet eval {out}/run" in printed
        assert "prototypes in use" in progress
        assert sorted(path.name for path in out.iterdir()) == ["decompositions.png", "prototypes.png", "run"]
        assert (out / "run" / "report.html").is_file()
    assert "--minutes 0.005" in (out / "run" / "report.html").read_text(encoding="utf-8")


def test_mistakes_name_their_cure(tmp_path: Path, complaint: Complaint) -> None:
    (tmp_path / "file").touch()
    assert "more than 0" in complaint("demo", "--minutes", "0", "--out", tmp_path / "demo")
    assert "use 0 or more" in complaint("demo", "--seed", "-1", "--out", tmp_path / "other")
    assert "choose another place" in complaint("demo", "--out", tmp_path / "file")
