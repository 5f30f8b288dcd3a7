"""Search: one process's part of a study, trial by trial."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import optuna
from optuna import TrialPruned
from optuna.exceptions import UpdateFinishedTrialError

from pcdnet.config import Config
from pcdnet.errors import Interrupted, PcdnetError, Setting
from pcdnet.progress import clock
from pcdnet.training.display import LiveLine
from pcdnet.training.evaluation import small
from pcdnet.training.loop import Progress
from pcdnet.training.tuning.study import STORAGE_ERRORS, SharedStudy
from pcdnet.training.tuning.trials import StudyRecord, Trial, TunedStudy, write_best

WAIT = 0.5
"""Seconds between two looks at the trials of other processes."""

Train = Callable[[Config, Callable[[Progress], None]], float]
"""Trains a configuration, watched, and returns the least validation error; what cannot be trained is a PcdnetError."""


class Search:
    """One process's part of a study."""

    def __init__(
        self, study: SharedStudy, record: StudyRecord, out: Path, whole: Config, base: Config, line: LiveLine | None
    ) -> None:
        self._study, self._empty, self._out, self._whole, self._base = study, record, out, whole, base
        self._line = line

    def run(self, wanted: int, train: Train, stop: Callable[[], bool]) -> TunedStudy:
        """Try until so many trials are finished, by whomever."""
        told = False
        self._keep()  # a folder that cannot be written to is better noticed now
        while True:
            for number in self._study.rescue():
                self._say(f"trial {number} was interrupted with its process, and is tried again")
            if self._study.finished() >= wanted:
                break
            if stop():
                raise self._interrupted("stopped", wanted)
            trial = self._study.claim(wanted)
            if trial is not None:
                self._try(trial, wanted, train)
            else:
                if not told:
                    self._say("waiting for the last trials of other processes")
                told = True
                time.sleep(WAIT)
        return self._result()

    def _try(self, trial: optuna.Trial, wanted: int, train: Train) -> None:
        """Train one configuration, and note what came of it."""
        study, watch = self._study, self._watch(trial, wanted)
        try:
            with study.beating(trial):
                study.end(trial, train(self._base.with_fields(study.values(trial)), watch))
        except TrialPruned:
            study.end(trial, None)
        except UpdateFinishedTrialError:
            self._say(f"trial {trial.number} was silent for too long, and is tried again by another process")
        except Interrupted:
            study.give_back(trial)
            raise self._interrupted(f"stopped in trial {trial.number}, which will be tried again", wanted) from None
        except KeyboardInterrupt:
            study.give_back(trial)
            raise
        except (PcdnetError, MemoryError) as problem:
            study.end(trial, None, note=str(problem) or "there is not enough memory")
        except STORAGE_ERRORS:
            raise  # the trial stays as it is, and is tried again when its silence is noticed
        except Exception as problem:
            study.end(trial, None, note=f"{type(problem).__name__}: {problem}")
            raise
        self._report(trial.number)

    def _watch(self, trial: optuna.Trial, wanted: int) -> Callable[[Progress], None]:
        """What follows a trial: it shows how far the study is, and ends the trial if others did better."""
        record = self._record()
        done, workers = len(record.finished), max(1, record.count("running"))
        best = [] if record.best is None or record.best.error is None else [f"best error {small(record.best.error)}"]
        later = max(0, math.ceil((wanted - done - 1) / workers))

        def watch(progress: Progress) -> None:
            if self._line is not None:
                # As if no trial would be pruned, and the other processes stay.
                eta = progress.eta + later * (progress.seconds + progress.eta)
                words = [f"trial {trial.number}", f"{done} of {wanted} finished", *best]
                words += [f"step {progress.step} of {progress.steps}", f"loss {small(progress.loss)}"]
                self._line.update("  ".join([*words, f"ETA {clock(eta)}"]), seconds=progress.seconds, eta=eta)
            if progress.validation is None:
                return
            # The error alone: scores that need the ground truth have no say, and trials are given none.
            worse = self._study.report(trial, progress.step, progress.validation.mse)
            if worse and progress.eta > 0:
                raise TrialPruned

        return watch

    def _report(self, number: int) -> None:
        """Keep how the study stands, and say how a trial ended."""
        record, _ = self._keep()
        for trial in record.trials:
            if trial.number == number:
                best = record.best is not None and record.best.number == number
                self._say(f"{in_words(trial)}{'  the best so far' if best else ''}")

    def _record(self) -> StudyRecord:
        return dataclasses.replace(self._empty, trials=self._study.trials())

    def _keep(self) -> tuple[StudyRecord, Config | None]:
        """Write how the study stands and, if there is one, the best configuration; both are returned."""
        record = dataclasses.replace(self._record(), importance=self._study.importance())
        record.write(self._out)
        return record, write_best(record, self._whole, self._out)

    def _interrupted(self, what: str, wanted: int) -> Interrupted:
        record, _ = self._keep()
        return Interrupted(
            f"{what}; {len(record.finished)} of {wanted} trials are finished; run the same command again to go on"
        )

    def _result(self) -> TunedStudy:
        record, best = self._keep()
        if best is None:
            why = next((trial.note for trial in reversed(record.trials) if trial.note), "none was trained to the end")
            raise PcdnetError(
                f"none of {len(record.finished)} trials could be trained: {why}; try other values in ", Setting("space")
            )
        return TunedStudy(out=self._out, best=best, record=record)

    def _say(self, words: str) -> None:
        if self._line is not None:
            self._line.say(words)


def in_words(trial: Trial) -> str:
    """A trial in a line: how it ended, its error and its values."""
    ended = {
        "pruned": f"pruned at step {trial.curve[-1][0] if trial.curve else 0}",
        "refused": f"refused: {trial.note}",
    }
    words = [f"trial {trial.number}"]
    words += [] if trial.retry_of is None else [f"(as trial {trial.retry_of})"]
    words += [ended[trial.ending]] if trial.ending in ended else []
    words += [] if trial.error is None else [f"error {small(trial.error)}"]
    values = (
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in trial.values.items()
    )
    return "  ".join([*words, *values])
