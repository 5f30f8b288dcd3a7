"""Laws of studies: processes share the work, see who died, and draw the same numbers in whichever order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from pcdnet.config import Config
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.training.loop import Progress
from pcdnet.training.tuning.study import FEWEST, MOST_DEATHS, SharedStudy
from tests.training.tuning.studies import TINY, bowl, progress, searched, shared

STARTUP = 10
"""Trials that Optuna draws blindly."""


def claimed(study: SharedStudy, wanted: int = 99) -> optuna.Trial:
    """The next trial, which there must be."""
    trial = study.claim(wanted)
    assert trial is not None
    return trial


def test_a_search_finds_what_is_good_and_an_interrupted_one_the_same(tmp_path: Path) -> None:
    with shared(tmp_path) as study:
        whole = searched(study, tmp_path, STARTUP + 8, bowl).record
        assert list(study.importance()) == list(whole.importance)
    assert whole.best is not None
    assert whole.best.error is not None
    assert whole.best.error < 0.3
    assert whole.importance.keys() == whole.trials[0].values.keys()
    assert sum(whole.importance.values()) == pytest.approx(1)
    assert whole.count("complete") >= FEWEST
    assert whole.count("pruned") > 0
    parts = tmp_path / "parts"
    parts.mkdir()
    for wanted in (1, 7, STARTUP + 3, STARTUP + 8):
        with shared(parts) as study:
            last = searched(study, parts, wanted, bowl).record
    assert [trial.values for trial in last.trials] == [trial.values for trial in whole.trials]


def test_processes_that_take_turns_never_try_the_same_and_stop_together(tmp_path: Path) -> None:
    with shared(tmp_path, patience=60) as one, shared(tmp_path, patience=60) as other:
        tried = []
        for study in (one, other) * 3:
            trial = claimed(study, 6)
            tried.append(study.values(trial))
            assert one.rescue() == other.rescue() == []
            if len(tried) < 6:
                study.end(trial, 1.0)
        assert all(tried.count(values) == 1 for values in tried)
        assert one.claim(6) is None  # the last one is still at work
        assert one.finished() == 5
        other.end(trial, 1.0)
        assert one.finished() == 6


def test_of_two_that_ask_for_the_last_trial_at_once_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared(tmp_path, patience=60) as one, shared(tmp_path, patience=60) as other:
        real, first = one._study.ask, list[optuna.Trial]()

        def late() -> optuna.Trial:
            first.append(claimed(other, 1))
            return real()

        monkeypatch.setattr(one._study, "ask", late)
        assert one.claim(1) is None
        assert [trial.number for trial in other.trials()] == [first[0].number]
        other.end(first[0], 1.0)
        assert other.rescue() == []
        assert other.finished() == 1


def test_a_trial_that_falls_silent_is_tried_again_once_with_the_same_values(tmp_path: Path) -> None:
    with shared(tmp_path, patience=0.4) as dead, shared(tmp_path, patience=0.4) as one, shared(tmp_path) as other:
        trial = claimed(dead)
        values = dead.values(trial)
        with dead.beating(trial):
            for _ in range(6):
                assert one.rescue() == []
                time.sleep(0.15)
        assert one.rescue() == []  # perhaps it is only slow
        time.sleep(0.5)
        assert one.rescue() == [trial.number]
        assert other.rescue() == []
        again = claimed(one)
        assert (again.number, one.values(again)) == (trial.number + 1, values)
        with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
            dead.report(trial, 1, 0.5)
        one.end(again, 1.0)
        assert [(each.ending, each.retry_of) for each in one.trials()] == [("interrupted", None), ("complete", 0)]


def test_a_process_that_dies_before_it_drew_values_loses_no_trial(tmp_path: Path) -> None:
    with shared(tmp_path) as study:
        claimed(study)
        assert study.rescue() == [0]
        assert study.values(claimed(study)).keys() == study.trials()[1].values.keys()


def test_a_rescuer_that_dies_halfway_loses_no_trial(tmp_path: Path) -> None:
    with shared(tmp_path) as study:
        trial = claimed(study)
        values = study.values(trial)
        study._study.tell(trial, state=TrialState.FAIL)  # and not queued again
        assert study.claim(1) is None  # nor does another one take its place
        assert study.rescue() == [0]
        assert study.rescue() == []
        assert study.values(claimed(study)) == values


def test_a_trial_of_which_many_processes_die_is_given_up(tmp_path: Path) -> None:
    with shared(tmp_path) as study:
        for _ in range(MOST_DEATHS):
            study.values(claimed(study))
            study.rescue()
        assert study.finished() == 1
        assert study.trials()[-1].ending == "refused"
        assert f"{MOST_DEATHS} processes died of it" in str(study.trials()[-1].note)
        assert claimed(study).number == MOST_DEATHS


def test_trials_worse_than_most_are_pruned_but_not_while_prototypes_are_noisy(tmp_path: Path) -> None:
    noisy = TINY.with_fields({"train.noise_steps": 20})
    with shared(tmp_path, config=noisy) as study:
        for error in (1.0, 2.0, 3.0, 4.0, 5.0):
            trial = claimed(study)
            assert not any(study.report(trial, step, error) for step in (10, 20, 30))
            study.end(trial, error)
        good, bad = claimed(study), claimed(study)
        assert [study.report(good, step, 2.5) for step in (10, 20, 30)] == [False, False, False]
        assert [study.report(bad, step, 3.5) for step in (10, 20)] == [False, True]
        study.end(bad, None)
        assert (study.trials()[-1].ending, study.trials()[-1].error) == ("pruned", 3.5)


def test_a_trial_that_another_process_took_over_counts_once(tmp_path: Path) -> None:
    tried = []

    def slow(config: Config, watch: Callable[[Progress], None]) -> float:
        tried.append(config)
        if len(tried) == 1:
            assert study.rescue() == [0]  # as another process would do that heard nothing for too long
        watch(progress(2, 1.0))
        return 1.0

    with shared(tmp_path) as study:
        record = searched(study, tmp_path, 2, slow).record
    assert [trial.ending for trial in record.trials] == ["interrupted", "complete", "complete"]
    assert tried[0] == tried[1] != tried[2]


@pytest.mark.parametrize("failure", [Interrupted("stopped"), KeyboardInterrupt()])
def test_an_interrupted_trial_is_given_back(tmp_path: Path, failure: BaseException) -> None:
    def stopped(config: Config, watch: Callable[[Progress], None]) -> float:
        raise failure

    with shared(tmp_path) as study:
        with pytest.raises(type(failure)):
            searched(study, tmp_path, 2, stopped)
        assert study.states() == {TrialState.FAIL: 1, TrialState.WAITING: 1}
        with pytest.raises(Interrupted, match="0 of 2 trials are finished"):
            searched(study, tmp_path, 2, bowl, lambda: True)


@pytest.mark.parametrize("failure", [PcdnetError("the loss is nan; lower it"), MemoryError()])
def test_a_training_that_fails_does_not_end_the_study(tmp_path: Path, failure: Exception) -> None:
    tried = []

    def failing(config: Config, watch: Callable[[Progress], None]) -> float:
        tried.append(config)
        if len(tried) == 2:
            raise failure
        return 1.0

    with shared(tmp_path) as study:
        record = searched(study, tmp_path, 3, failing).record
    assert [trial.ending for trial in record.trials] == ["complete", "refused", "complete"]
    assert record.trials[1].note == (str(failure) or "there is not enough memory")


def test_our_own_mistakes_are_not_hidden(tmp_path: Path) -> None:
    def broken(config: Config, watch: Callable[[Progress], None]) -> float:
        raise ZeroDivisionError("ours")

    with shared(tmp_path) as study:
        with pytest.raises(ZeroDivisionError):
            searched(study, tmp_path, 3, broken)
        assert [trial.note for trial in study.trials()] == ["ZeroDivisionError: ours"]
