"""Studies that take a moment: real ones of a few steps, and such in which nothing is trained."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate
from pcdnet.training import loop
from pcdnet.training.evaluation import Evaluation
from pcdnet.training.loop import Progress
from pcdnet.training.tuning import tune
from pcdnet.training.tuning.search import Search, Train
from pcdnet.training.tuning.space import SearchSpace
from pcdnet.training.tuning.storage import open_study
from pcdnet.training.tuning.study import SharedStudy
from pcdnet.training.tuning.trials import StudyRecord, TunedStudy

TINY = Config.preset("tetrominoes").with_fields(
    {"train.batch": 4, "train.noise_steps": 0, "model.num_prototypes": 3, "model.restarts": 0}
)
"""A configuration whose training takes a moment, if it has few steps."""
SPACE: dict[str, Any] = {
    "train.learning_rate": {"low": 0.001, "high": 0.03, "log": True},
    "model.peaks_per_prototype": {"low": 1, "high": 4},
    "model.prototype_size": {"choices": [[21, 21], [25, 25]]},
}
"""Something of each kind to search."""
STEPS = 4
"""Steps of a trial."""


def tuned(out: Path, trials: int, **options: Any) -> TunedStudy:
    """A study of a few steps a trial, of which nothing is shown."""
    given: dict[str, Any] = {"space": SPACE, "steps": STEPS, "quiet": True, **options}
    return tune(
        given.pop("data", generate(40, seed=1).images), given.pop("config", TINY), out=out, trials=trials, **given
    )


@contextmanager
def shared(folder: Path, *, patience: float = 0, seed: int = 0, config: Config = TINY) -> Iterator[SharedStudy]:
    """A study as one process sees it."""
    url, space = f"sqlite:///{folder / 'shared.db'}", SearchSpace.from_tables(SPACE)
    with open_study(url, "study", space, config, seed=seed, patience=patience) as study:
        yield study


def searched(
    study: SharedStudy, folder: Path, wanted: int, train: Train, stop: Callable[[], bool] = bool
) -> TunedStudy:
    """What a search finds that trains in this way."""
    origin = {"space": SearchSpace.from_tables(SPACE).to_tables()}
    record = StudyRecord(name="study", data="nothing", origin=origin)
    return Search(study, record, folder, TINY, TINY, None).run(wanted, train, stop)


def bowl(config: Config, watch: Callable[[Progress], None]) -> float:
    """Instead of a training: an error that is least at a learning rate of 0.01 and two peaks."""
    error = abs(config.train.learning_rate - 0.01) * 100 + abs(config.model.peaks_per_prototype - 2) + 0.1
    watch(progress(1, 2 * error))
    watch(progress(2, error))
    return error


def progress(step: int, error: float) -> Progress:
    """How training is going: two steps in all, validated with this error."""
    scores = Evaluation(scenes=1, mse=error, objects=1.0, parameters=1, images_per_second=1.0, seconds=1.0)
    return Progress(
        step=step,
        steps=2,
        loss=error,
        in_use=1,
        num_prototypes=1,
        images_per_second=1.0,
        seconds=float(step),
        eta=2.0 - step,
        validation=scores,
        events=(),
    )


def main(out: str, trials: str, storage: str, hang: str) -> None:
    """Tune in a process of its own, with patience for two seconds; `hang` is the trial in which it hangs, if any."""
    begun, real = [], loop.Trainer._validate

    def validate(trainer: loop.Trainer) -> Evaluation:
        if trainer not in begun:
            begun.append(trainer)
        if len(begun) == int(hang):
            print("hangs", flush=True)
            sys.stdin.read()
        return real(trainer)

    setattr(loop.Trainer, "_validate", validate)  # noqa: B010  (mypy knows no other way)
    found = tuned(Path(out), int(trials), storage=storage or None, name="killed", patience=2.0)
    print(len(found.record.finished), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
