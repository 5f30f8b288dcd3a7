"""Trials: what a study tried and what came of it, as a file that needs no database to be read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file

TRIALS, BEST, REPORT = "trials.json", "best.toml", "report.html"
"""The files of a study's folder: what was tried, the best configuration, and the report on both."""

Ending = Literal["complete", "pruned", "refused", "interrupted", "running"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One configuration that was tried."""

    number: int
    """Its number in the study, from 0 on."""
    ending: Ending
    """How it ended: trained to the end; pruned, as others did better; refused, as it cannot be trained; interrupted,
    and then tried again under another number."""
    values: Mapping[str, Any]
    """The fields of the configuration that it tried, by name."""
    curve: Sequence[tuple[int, float]] = ()
    """Every validation: the step and the mean squared error."""
    error: float | None = None
    """The least of these errors; None where there is none."""
    seconds: float | None = None
    """How long it took; None while it runs."""
    note: str | None = None
    """Why it was refused."""
    retry_of: int | None = None
    """The trial that was interrupted and is tried again here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyRecord:
    """A study as it stands."""

    name: str
    """What it is called."""
    data: str
    """What is learned from, in words."""
    origin: Mapping[str, Any]
    """What must be the same for whoever goes on with it: configuration, space, data and time."""
    trials: Sequence[Trial] = ()
    """All trials, by number."""
    importance: Mapping[str, float] = field(default_factory=dict)
    """How much every field matters, most first, adding up to 1; empty as long as that cannot be told."""

    @property
    def finished(self) -> list[Trial]:
        """The trials that count: those that need not be tried again."""
        return [trial for trial in self.trials if trial.ending in ("complete", "pruned", "refused")]

    @property
    def best(self) -> Trial | None:
        """The trial with the least error among those that were trained to the end."""
        known = [trial for trial in self.trials if trial.ending == "complete" and trial.error is not None]
        return min(known, key=lambda trial: (trial.error, trial.number), default=None)

    def count(self, ending: Ending) -> int:
        """How many trials ended so."""
        return sum(trial.ending == ending for trial in self.trials)

    def write(self, folder: Path) -> None:
        """Keep it in the study's folder; several processes may do so."""
        with whole_file(folder / TRIALS, shared=True) as file:
            file.write(json.dumps(dataclasses.asdict(self), indent=1).encode())

    @staticmethod
    def read(folder: str | Path) -> StudyRecord:
        """What `write` kept."""
        path = Path(folder) / TRIALS
        if not path.is_file():
            raise PcdnetError(f"{folder} is no study: it holds no {TRIALS}; give a folder that `pcdnet tune` made")
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
            trials = [
                Trial(**{**trial, "curve": [(int(step), float(error)) for step, error in trial["curve"]]})
                for trial in words["trials"]
            ]
            return StudyRecord(**{**words, "trials": trials})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise PcdnetError(f"cannot read {path}: {error}; delete it, and run `pcdnet tune` once more") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedStudy:
    """What a search found."""

    out: Path
    """The folder of the study."""
    best: Config
    """The best configuration, as `best.toml` holds it."""
    record: StudyRecord
    """Every trial, and how much every field matters."""


def write_best(record: StudyRecord, base: Config, folder: Path) -> Config | None:
    """Write the best configuration so far as TOML, and return it; None as long as no trial was trained to the end."""
    best = record.best
    if best is None:
        return None
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in best.values.items()}
    config = base.with_fields(values)
    step = best.curve[-1][0] if best.curve else 0
    words = f"# Trial {best.number} of the study {record.name}: validation error {best.error:.6g} in {step} steps.\n"
    with whole_file(folder / BEST, shared=True) as file:
        file.write((words + config.to_toml()).encode())
    return config
