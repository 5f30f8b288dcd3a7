"""Laws of the budget: minutes are those of the clock, with what comes before and after the steps."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.errors import Interrupted
from pcdnet.run import RunFolder
from pcdnet.training import fit as fitting
from pcdnet.training.budget import LEAST, Budget, budget_for
from pcdnet.training.fit import fit
from pcdnet.training.loop import Progress, Trainer
from pcdnet.training.task import prepare

SMALL = Config.preset("tetrominoes").with_fields({"train.batch": 4, "model.num_prototypes": 3, "train.steps": 10**6})


def images(count: int = 40) -> np.ndarray:
    return np.asarray(tetrominoes.generate(count=count, seed=1).images)


def test_what_comes_before_and_after_takes_from_the_time_of_the_steps() -> None:
    budget = Budget(minutes=1.0, greedy=10)
    assert budget.left(before=0.0, after=0.0) == 60
    assert budget.left(before=10.0, after=5.0) == 45
    assert budget.left(before=10.0, after=None) < 50
    assert Budget(minutes=1.0).left(before=10.0, after=None) == 50  # where nothing is to come


def test_some_time_is_left_to_the_steps_in_any_case() -> None:
    assert Budget(minutes=1.0, greedy=10).left(before=1000.0, after=1000.0) == LEAST * 60


def test_the_end_takes_longer_where_there_is_more_of_it() -> None:
    given = {"minutes": 1.0, "config": SMALL, "images": images(), "validation": images(4), "began": 0.0}
    bare, settled, shown = (
        budget_for(**given, settles=settles, report=report)  # type: ignore[arg-type]
        for settles, report in ((False, 0), (True, 0), (True, 4))
    )
    assert bare.refined == 0
    assert bare.refined < settled.refined < shown.refined
    assert bare.greedy <= settled.greedy < shown.greedy
    assert shown.page
    assert not settled.page


def asked_of_budgets(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How much time was gone before the first step, whenever it is asked how much is left; hardly any is."""
    asked: list[float] = []

    def left(self: Budget, before: float, after: float | None) -> float:
        asked.append(before)
        return 1e-3

    monkeypatch.setattr(Budget, "left", left)
    return asked


def test_what_was_gone_before_the_first_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_of_budgets(monkeypatch)
    told: list[Progress] = []
    fit(images(), SMALL, minutes=0.1, began=time.monotonic() - 100.0, quiet=True, watch=told.append)
    assert min(asked) >= 100.0
    assert told[-1].step == 1
    assert told[-1].seconds < 100.0  # which training itself took


def test_steps_end_early_enough_for_what_comes_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "after", lambda *_: 3.0)
    told: list[Progress] = []
    begun = time.monotonic() - 2.0
    fit(images(), SMALL, minutes=0.12, began=begun, out=tmp_path / "run", quiet=True, watch=told.append)
    assert all(each.seconds < 0.12 * 60 - 2.0 - 3.0 for each in told[:-1])  # but for the step that takes it beyond
    assert told[-1].step < SMALL.train.steps
    assert RunFolder.open(tmp_path / "run").verdict() is not None


def test_a_resumed_run_has_the_time_that_the_first_part_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before the interruption counts, too."""
    started = time.monotonic()
    out = tmp_path / "run"
    with pytest.raises(Interrupted):
        fit(images(), SMALL, minutes=0.2, began=started - 100.0, out=out, quiet=True, stop=lambda: True)
    words = RunFolder.open(out).load_state()[1]
    assert words["before"] >= 100.0
    asked = asked_of_budgets(monkeypatch)
    fit(images(), SMALL, out=out, resume=True, quiet=True)
    assert min(asked) >= 100.0


def test_without_minutes_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> float:
        raise AssertionError

    monkeypatch.setattr(Budget, "after", never)
    fit(images(), SMALL.with_fields({"train.steps": 3}), quiet=True)


def test_the_background_is_made_once_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Carried along from the choice, it has the very bits that training would make anew."""
    rng = np.random.default_rng(0)
    pixels = np.tile(rng.integers(60, 200, (1, 32, 32, 1), np.uint8), (24, 1, 1, 3))
    for image in pixels:
        for _ in range(3):
            row, column = rng.integers(0, 26, 2)
            image[row : row + 6, column : column + 4] = 255
    made: list[np.ndarray] = []
    usual = Trainer._first_background

    def counted(self: Trainer) -> np.ndarray | None:
        picture = usual(self)
        assert picture is not None
        made.append(picture)
        return picture

    monkeypatch.setattr(Trainer, "_first_background", counted)
    steps = {"train.steps": 2, "train.settle": False}
    once = fit(pixels, changes=steps, quiet=True)
    assert once.config.background == "still"
    assert made == []

    def forgetful(*given: object, **named: object) -> object:
        task = prepare(*given, **named)  # type: ignore[arg-type]
        object.__setattr__(task, "picture", None)
        return task

    monkeypatch.setattr(fitting, "prepare", forgetful)
    anew = fit(pixels, changes=steps, quiet=True)
    assert len(made) == 1
    for name, value in once.state_dict().items():
        assert torch.equal(value, anew.state_dict()[name]), name
