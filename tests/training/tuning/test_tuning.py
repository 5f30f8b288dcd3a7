"""Laws of tuning: no label is seen, no trial is lost, and the same command goes on where the last one ended."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.files import locked_file
from pcdnet.scene import Scenes
from pcdnet.training import tuning
from pcdnet.training.fit import fit
from pcdnet.training.loop import Trainer
from pcdnet.training.tuning.trials import StudyRecord, TunedStudy
from tests.training.tuning.studies import SPACE, STEPS, TINY, tuned


def values(study: TunedStudy) -> list[Any]:
    """What the trials tried, and with which errors."""
    return [(trial.values, trial.error) for trial in study.record.trials]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> TunedStudy:
    """A study of three trials."""
    return tuned(tmp_path_factory.mktemp("studies") / "study", 3)


def test_the_best_configuration_is_the_base_with_the_values_of_the_best_trial(study: TunedStudy) -> None:
    best = study.record.best
    assert best is not None
    assert best.error == min(trial.error or 1 for trial in study.record.trials)
    assert study.best == TINY.with_fields(best.values)
    assert Config.load(study.out / "best.toml") == study.best
    assert StudyRecord.read(study.out).trials[0].error == study.record.trials[0].error


def test_the_error_is_the_least_of_the_validations_and_the_first_trial_is_the_base(study: TunedStudy) -> None:
    for trial in study.record.trials:
        assert [step for step, _ in trial.curve] == [1, 2, 3, 4]
        assert trial.error == min(error for _, error in trial.curve)
    assert study.record.trials[0].values == {
        "train.learning_rate": 0.01,
        "model.peaks_per_prototype": 3,
        "model.prototype_size": (25, 25),
    }
    errors: list[float] = []
    config = TINY.with_fields({"train.steps": STEPS, "train.validate_every": 1})
    fit(
        generate(40, seed=1).images,
        config,
        quiet=True,
        watch=lambda progress: errors.append(progress.validation.mse) if progress.validation else None,
    )
    assert [error for _, error in study.record.trials[0].curve] == errors


def test_a_seed_always_gives_the_same_trials_and_another_one_others(study: TunedStudy, tmp_path: Path) -> None:
    assert values(tuned(tmp_path / "same", 2)) == values(study)[:2]
    assert tuned(tmp_path / "other", 2, seed=1).record.trials[1].values != study.record.trials[1].values


def test_the_same_call_goes_on_and_ends_as_if_in_one_piece(study: TunedStudy, tmp_path: Path) -> None:
    tuned(tmp_path / "study", 1)
    assert values(tuned(tmp_path / "study", 3)) == values(study)
    assert values(tuned(tmp_path / "study", 3)) == values(study)  # and there is nothing left to do


def test_no_trial_sees_a_label(study: TunedStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Scenes] = []
    real = Trainer.__init__

    def noted(trainer: Trainer, *arguments: Any) -> None:
        given.extend(arguments[:2])
        real(trainer, *arguments)

    monkeypatch.setattr(Trainer, "__init__", noted)
    scenes = generate(40, seed=1)
    assert scenes.labels is not None
    assert values(tuned(tmp_path / "labels", 2, data=scenes)) == values(study)[:2]
    assert len(given) == 4
    assert all(each.labels is None and each.boxes is None for each in given)


def test_what_is_stopped_is_tried_again_with_the_same_values(study: TunedStudy, tmp_path: Path) -> None:
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > STEPS + 3  # in the second trial

    with pytest.raises(Interrupted, match="trial 1, which will be tried again; 1 of 3 .*; run the same command again"):
        tuned(tmp_path / "study", 3, stop=stop)
    assert [trial.ending for trial in StudyRecord.read(tmp_path / "study").trials] == ["complete", "interrupted"]
    again = tuned(tmp_path / "study", 3).record
    assert [(trial.number, trial.retry_of) for trial in again.finished] == [(0, None), (2, 1), (3, None)]
    assert again.trials[2].values == study.record.trials[1].values
    assert again.trials[2].error == study.record.trials[1].error


def test_the_trial_of_a_killed_process_is_not_lost(study: TunedStudy, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.training.tuning.studies", str(tmp_path / "study"), "3", "", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hangs\n"
        with pytest.raises(PcdnetError, match="another process is writing to .*; wait for it, or choose another out"):
            tuned(tmp_path / "study", 3)
        process.kill()
    again = tuned(tmp_path / "study", 3, name="killed").record
    assert [trial.ending for trial in again.trials] == ["complete", "interrupted", "complete", "complete"]
    assert again.trials[2].retry_of == 1
    assert again.trials[2].values == again.trials[1].values == study.record.trials[1].values


def test_what_cannot_be_trained_is_refused_and_the_study_goes_on(tmp_path: Path) -> None:
    space = {"model.prototype_size": {"choices": [[25, 25], [99, 99]]}}
    found = tuned(tmp_path / "some", 8, space=space).record
    assert len(found.finished) == 8
    assert found.count("refused") > 0
    assert found.best is not None
    for trial in found.trials:
        assert (trial.ending == "refused") == (trial.values["model.prototype_size"] == (99, 99))
        assert (trial.note is None) == (trial.ending != "refused")
    with pytest.raises(PcdnetError, match="none of 2 trials could be trained: .*larger.*; try other values in space"):
        tuned(tmp_path / "all", 2, space={"model.prototype_size": {"choices": [[98, 98], [99, 99]]}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": generate(40, seed=2).images}, "was begun with other images"),
        ({"seed": 1}, "was begun with seed=0, not seed=1"),
        ({"steps": 5}, "was begun with steps=4, not steps=5"),
        ({"config": TINY.with_fields({"model.max_objects": 2})}, "with max_objects=3, not max_objects=2"),
        ({"minutes": 1.0}, "with None minutes a trial, not 1.0"),
        ({"space": {**SPACE, "loss.tv": {"low": 0, "high": 1}}}, "searches nothing of loss.tv, not "),
        ({"space": {**SPACE, "model.peaks_per_prototype": {"low": 1, "high": 5}}}, "of model.peaks_per_prototype"),
    ],
)
def test_a_study_goes_on_with_nothing_else(study: TunedStudy, change: dict[str, Any], words: str) -> None:
    before = (study.out / "trials.json").read_bytes()
    with pytest.raises(PcdnetError, match="; leave that as it was, or choose another out$") as refused:
        tuned(study.out, 4, **change)
    assert words in str(refused.value)
    assert (study.out / "trials.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trials": 0}, "trials=0 cannot be used; give 1 or more"),
        ({"steps": 0}, "steps=0 cannot be used; give 1 or more"),
        ({"seed": -1}, "seed=-1 cannot be used; give 0 or more"),
        ({"minutes": 0.0}, "minutes=0.0 is no time; give more than 0"),
        ({"patience": float("nan")}, "patience=nan is no time; give more than 0"),
        ({"space": {"train.steps": {"low": 1, "high": 2}}}, "the search space has train.steps, .*; leave out steps"),
        ({"space": {"train.learning_rate": {"low": 0, "high": 2}}}, "learning_rate=0.0 cannot be used; use"),
        ({"config": "tetris"}, "there is no preset 'tetris'"),
        ({"data": "none.npz"}, "none.npz does not exist; give"),
        ({"view": View(resize=(10, 10))}, "; use"),
    ],
)
def test_mistakes_are_reported_in_a_sentence_and_leave_nothing(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(PcdnetError, match=words):
        tuned(tmp_path / "study", **{"trials": 2, **change})
    assert not (tmp_path / "study").exists()


def test_folders_that_are_no_study_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").touch()
    for out in (tmp_path, tmp_path / "precious.txt"):
        with pytest.raises(PcdnetError, match="holds other things than a study; choose another out"):
            tuned(out, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    with pytest.raises(PcdnetError, match="cannot make the folder .*; choose another place"):
        tuned(tmp_path / "precious.txt" / "study", 2)
    (tmp_path / "study").mkdir()
    held = locked_file(tmp_path / "study" / "study.lock")
    with held, pytest.raises(PcdnetError, match="another process is writing"):
        tuned(tmp_path / "study", 2)


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "find_spec", lambda _: None)
    with pytest.raises(
        PcdnetError, match=r"^tuning needs optuna, which is missing; run: pip install 'pcdnet\[tune\]'$"
    ):
        tuned(tmp_path / "study", 2)


def test_without_a_preset_everything_else_is_chosen_from_the_images(tmp_path: Path) -> None:
    images = np.tile(generate(40, seed=1).images, (1, 2, 2, 1))
    space = {"train.learning_rate": {"choices": [0.004, 0.005]}}
    found = tuned(tmp_path / "study", 1, data=images, config=None, space=space, steps=1)
    assert dataclasses.replace(found.best, train=Config().train) != Config()
