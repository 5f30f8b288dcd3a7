"""Sampling: what Optuna asks next, and values as it has them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

from pcdnet.config import Config
from pcdnet.training.tuning.space import Choices, Range, SearchSpace

DIGITS = 4
"""Digits of the numbers that are tried: more make no difference, and are a nuisance to read and to copy."""


class ByNumber(BaseSampler):
    """Optuna's TPE, seeded anew for every trial by its number, and the base configuration as the first trial.

    Whoever asks, and however often the study was interrupted, trial 7 draws the same numbers.
    """

    def __init__(self, seed: int, first: Mapping[str, Any]) -> None:
        self._seed, self._first = seed, first

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """What is sampled together."""
        return TPESampler().infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values that are sampled together."""
        return self._seeded(trial, "").sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value that is sampled on its own."""
        if trial.number == 0:
            return self._first[param_name]
        return self._seeded(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    def _seeded(self, trial: FrozenTrial, name: str) -> TPESampler:
        seeds = np.random.SeedSequence([self._seed, trial.number, zlib.crc32(name.encode())])
        return TPESampler(seed=int(seeds.generate_state(1)[0]))


def first_values(space: SearchSpace, base: Config) -> dict[str, Any]:
    """The values of the base configuration, or the nearest in the space, as Optuna has them."""
    return {name: _encoded(entry, entry.nearest(attrgetter(name)(base))) for name, entry in space.entries.items()}


def suggested(trial: optuna.Trial, name: str, entry: Range | Choices) -> Any:
    """What a trial is to try of a field."""
    if isinstance(entry, Choices):
        return decoded(entry, trial.suggest_categorical(name, [_encoded(entry, value) for value in entry.values]))
    if entry.whole:
        return trial.suggest_int(name, int(entry.low), int(entry.high), log=entry.log)
    return decoded(entry, trial.suggest_float(name, entry.low, entry.high, log=entry.log))


def _encoded(entry: Range | Choices, value: Any) -> Any:
    """A value as Optuna takes it, which knows no tuples."""
    return json.dumps(value) if isinstance(entry, Choices) and isinstance(value, tuple) else value


def decoded(entry: Range | Choices, value: Any) -> Any:
    """The value that Optuna's stands for."""
    if isinstance(entry, Range):
        return entry.nearest(float(f"{value:.{DIGITS}g}")) if isinstance(value, float) else value
    return next(each for each in entry.values if _encoded(entry, each) == value)
