"""Study: trials in Optuna's storage, which several processes may share, and of which none is lost.

Optuna has heartbeats of its own. They do not see a process that died before its first beat, nor one that died between
giving up another's trial and queueing it again, and only one kind of storage has them. So here a running trial counts
its beats in a note, and whoever sees that number stand still for too long tries the trial again. No two clocks are
compared.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from pcdnet.errors import PcdnetError, Setting
from pcdnet.training.tuning.sampling import decoded, suggested
from pcdnet.training.tuning.space import SearchSpace
from pcdnet.training.tuning.trials import Ending, Trial

STORAGE_ERRORS = (StorageInternalError, SQLAlchemyError)
"""What is raised when a storage does not answer as it should."""
BEAT, NOTE, RETRY_OF, DEATHS, ORIGIN = "beat", "note", "retry_of", "deaths", "origin"
"""Notes on trials: beats so far, why it ended, which it replaces, how many processes died of it; on studies: what it is
about."""
MOST_DEATHS = 5
"""A trial of which so many processes died, of too little memory perhaps, is not tried again."""
BEATS = 4
"""Beats in the time after which a trial that shows none is tried again."""
FEWEST = 8
"""With fewer complete trials nothing is said about which field matters."""
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
"""States of trials that need not be tried again. Those that were refused are pruned: sampling then avoids the place."""


class SharedStudy:
    """A study as one of its processes sees it.

    Parameters
    ----------
    study
        Optuna's study.
    space
        What is searched.
    patience
        Seconds without a beat after which a running trial is tried again; 0 if no other process can be at work.
    """

    def __init__(self, study: optuna.Study, space: SearchSpace, patience: float) -> None:
        self._study, self._space, self._patience = study, space, patience
        self._seen: dict[int, tuple[object, float]] = {}

    def agree(self, origin: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the study is about: this, unless it was begun before; compare the two."""
        if ORIGIN not in self._study.user_attrs:
            if self._study.get_trials(deepcopy=False):
                raise PcdnetError(
                    f"the storage holds a study {self._study.study_name} of another program; give this one another ",
                    Setting("name"),
                )
            self._study.set_user_attr(ORIGIN, dict(origin))
        kept: Mapping[str, Any] = self._study.user_attrs[ORIGIN]
        return kept

    def rescue(self) -> list[int]:
        """Queue the trials of processes that died once more; the numbers of those."""
        trials, now = self._study.get_trials(deepcopy=False), time.monotonic()
        orphans, rescued = _orphans(trials), []
        for trial in trials:
            if trial.state != TrialState.RUNNING and trial.number not in orphans:
                continue
            sign = trial.state, trial.user_attrs.get(BEAT)
            known, since = self._seen.get(trial.number, (None, now))
            if known != sign:
                self._seen[trial.number], since = (sign, now), now
            if now - since >= self._patience and self._queue_again(trial, died=True):
                rescued.append(trial.number)
        return rescued

    def _queue_again(self, trial: FrozenTrial, *, died: bool) -> bool:
        """Try a trial again, by another number; False if another process was quicker, or it died too often."""
        storage, deaths = self._study._storage, trial.user_attrs.get(DEATHS, 0) + died
        try:
            if deaths >= MOST_DEATHS:
                note = f"{deaths} processes died of it, of too little memory perhaps"
                storage.set_trial_user_attr(trial._trial_id, NOTE, note)
                storage.set_trial_state_values(trial._trial_id, state=TrialState.PRUNED)
                return False
            if trial.state == TrialState.RUNNING:
                storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL)
        except UpdateFinishedTrialError:
            return False
        self._study.add_trial(
            optuna.create_trial(
                state=TrialState.WAITING,
                params=trial.params,
                distributions=trial.distributions,
                user_attrs={RETRY_OF: trial.number, DEATHS: deaths},
            )
        )
        return True

    def states(self) -> Counter[TrialState]:
        """How many trials are in which state."""
        return Counter(trial.state for trial in self._study.get_trials(deepcopy=False))

    def finished(self) -> int:
        """How many trials count."""
        states = self.states()
        return sum(states[state] for state in FINISHED)

    def claim(self, wanted: int) -> optuna.Trial | None:
        """The next trial; None as long as other processes are at work on all of those that are wanted."""
        trials = self._study.get_trials(deepcopy=False)
        if not any(trial.state == TrialState.WAITING for trial in trials) and len(_counting(trials)) >= wanted:
            return None
        trial = self._study.ask()
        others = _counting(self._study.get_trials(deepcopy=False))
        if sum(number < trial.number for number in others) < wanted:
            return trial
        # Two processes asked for the last one at the same moment.
        trial.set_user_attr(NOTE, "not needed")
        self._study.tell(trial, state=TrialState.FAIL)
        return None

    def values(self, trial: optuna.Trial) -> dict[str, Any]:
        """What the trial is to try, by field."""
        return {name: suggested(trial, name, entry) for name, entry in self._space.entries.items()}

    @contextmanager
    def beating(self, trial: optuna.Trial) -> Iterator[None]:
        """Let the other processes know, within the block, that this one is alive."""
        done = threading.Event()

        def beat() -> None:
            count = 0
            while not done.wait(0 if count == 0 else self._patience / BEATS):
                count += 1
                with suppress(UpdateFinishedTrialError, *STORAGE_ERRORS):  # one is missed
                    self._study._storage.set_trial_user_attr(trial._trial_id, BEAT, count)

        thread = threading.Thread(target=beat, daemon=True)
        if self._patience > 0:
            thread.start()
        try:
            yield
        finally:
            done.set()
            if thread.is_alive():
                thread.join()

    def report(self, trial: optuna.Trial, step: int, error: float) -> bool:
        """Note a validation error; whether the trial does worse than most others did by then."""
        trial.report(error, step)
        return bool(trial.should_prune())

    def end(self, trial: optuna.Trial, error: float | None, note: str | None = None) -> None:
        """Note how a trial ended: trained with that error, pruned, or with a note refused."""
        if note is not None:
            trial.set_user_attr(NOTE, note)
        if error is None:
            self._study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
        else:
            self._study.tell(trial, error, skip_if_finished=True)

    def give_back(self, trial: optuna.Trial) -> None:
        """Let a trial that cannot be ended now be tried again."""
        self._queue_again(self._study._storage.get_trial(trial._trial_id), died=False)

    def trials(self) -> list[Trial]:
        """All trials but those that were not needed or have not begun."""
        found = self._study.get_trials(deepcopy=False, states=(*FINISHED, TrialState.FAIL, TrialState.RUNNING))
        return [
            self._trial(trial)
            for trial in found
            if trial.state != TrialState.FAIL or trial.user_attrs.get(NOTE) is None
        ]

    def _trial(self, trial: FrozenTrial) -> Trial:
        note = trial.user_attrs.get(NOTE)
        endings: dict[TrialState, Ending] = {
            TrialState.COMPLETE: "complete",
            TrialState.PRUNED: "pruned" if note is None else "refused",
            TrialState.FAIL: "interrupted",
            TrialState.RUNNING: "running",
        }
        curve = sorted(trial.intermediate_values.items())
        entries = self._space.entries
        return Trial(
            number=trial.number,
            ending=endings[trial.state],
            values={name: decoded(entries[name], value) for name, value in trial.params.items()},
            curve=curve,
            error=trial.value if trial.state == TrialState.COMPLETE else min((e for _, e in curve), default=None),
            seconds=None if trial.duration is None else trial.duration.total_seconds(),
            note=note,
            retry_of=trial.user_attrs.get(RETRY_OF),
        )

    def importance(self) -> dict[str, float]:
        """How much every field matters, most first; empty as long as too few trials are complete."""
        if self.states()[TrialState.COMPLETE] < FEWEST:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            return dict(optuna.importance.get_param_importances(self._study, evaluator=evaluator))


def _orphans(trials: Sequence[FrozenTrial]) -> set[int]:
    """The trials that failed and that nobody has queued again: somebody is about to do so, or died before."""
    replaced = {trial.user_attrs.get(RETRY_OF) for trial in trials}
    failed = (trial for trial in trials if trial.state == TrialState.FAIL and NOTE not in trial.user_attrs)
    return {trial.number for trial in failed} - replaced


def _counting(trials: Sequence[FrozenTrial]) -> set[int]:
    """The trials that are finished or will be, under this number or another."""
    return {trial.number for trial in trials if trial.state != TrialState.FAIL} | _orphans(trials)
