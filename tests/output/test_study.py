"""Laws of a study's page: one file that needs nothing else, with every picture, true to the trials."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.study import render, study_report
from pcdnet.training.tuning.trials import StudyRecord, Trial
from tests.output.test_page import Reader


def trial(number: int, error: float | None, ending: Any = "complete", **changes: Any) -> Trial:
    """A trial of three fields."""
    values = {"loss.tv": 10.0 ** -(number + 1), "train.batch": number, "model.prototype_size": (9, 9 + number % 2)}
    whole = Trial(
        number=number,
        ending=ending,
        values=values,
        curve=[] if error is None else [(10, 2 * error), (20, error)],
        error=error,
        seconds=61.0,
    )
    return dataclasses.replace(whole, **changes)


STUDY = StudyRecord(
    name="<mine>",
    data="photos & more",
    origin={
        "space": {
            "loss.tv": {"low": 1e-9, "high": 1.0, "log": True},
            "train.batch": {"low": 0, "high": 9, "log": False},
            "model.prototype_size": {"choices": [[9, 9], [9, 10]]},
        }
    },
    trials=[
        trial(0, 0.5),
        trial(1, 0.0125),
        trial(2, 0.25, "pruned"),
        trial(3, None, "refused", note="<script>alert()</script>"),
        trial(4, None, "interrupted", values={}),
        trial(5, 0.125, retry_of=4),
        trial(6, None, "running", seconds=None),
    ],
    importance={"loss.tv": 0.9, "train.batch": 0.1},
)


def test_the_page_needs_nothing_else_and_has_every_picture() -> None:
    page = render(STUDY, "steps = 3\n", "best.toml")
    read = Reader(page)
    assert read.open == []
    assert read.addresses == []
    assert "<script" not in page
    assert page.count("<svg") == 2 + 1 + 3  # history, importance, values
    assert "<mine>" in read.words
    assert "photos & more" in read.words
    for words in ("0.0125 least validation error, in trial 1", "5 trials finished", "1 of these pruned", "steps = 3"):
        assert words in read.words
    for words in (
        "1 more interrupted and tried again",
        "5 (as 4)",
        "refused: <script>alert()</script>",
        "0.0125 complete",
    ):
        assert words in read.words
    assert "pcdnet train --config best.toml" in read.words


def test_the_best_trial_comes_first_in_the_table() -> None:
    words = Reader(render(STUDY, "", "best.toml")).words
    places = [
        words.index(text)
        for text in ("0.0125 complete", "0.125 complete", "0.5 complete", "0.25 pruned", "interrupted")
    ]
    assert places[:4] == sorted(places[:4])


def test_a_study_that_has_just_begun_has_a_page() -> None:
    for trials in ([], STUDY.trials[6:], STUDY.trials[3:5]):
        page = render(dataclasses.replace(STUDY, trials=trials, importance={}), "", "best.toml")
        assert Reader(page).open == []
        assert "too few complete trials" in page


def test_the_page_is_written_into_the_folder_of_the_study(tmp_path: Path) -> None:
    STUDY.write(tmp_path)
    assert study_report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(
        StudyRecord.read(tmp_path), "", str(tmp_path / "best.toml")
    )
    with pytest.raises(PcdnetError, match="is no .html file; use "):
        study_report(tmp_path, out=tmp_path / "page.pdf")


def test_a_study_survives_its_file_and_damage_is_reported(tmp_path: Path) -> None:
    STUDY.write(tmp_path)
    read = StudyRecord.read(tmp_path)
    assert [(each.number, each.ending, each.error, each.curve) for each in read.trials] == [
        (each.number, each.ending, each.error, each.curve) for each in STUDY.trials
    ]
    for damage in ("", "[]", "{}", '{"trials": [{}]}', '{"trials": 3}'):
        (tmp_path / "trials.json").write_text(damage)
        with pytest.raises(PcdnetError, match="cannot read .*; delete it"):
            study_report(tmp_path)
