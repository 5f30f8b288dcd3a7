"""Tuning: search the settings with which training explains images best; what `pcdnet tune` does."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from pcdnet.config import Config
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import folder as made
from pcdnet.files import locked_file
from pcdnet.model.storage import checked_device
from pcdnet.pixels import pieces
from pcdnet.progress import phase, shown, stepping
from pcdnet.training.display import LiveLine
from pcdnet.training.loop import Progress, Trainer
from pcdnet.training.task import Data, Task, check_fit, prepare
from pcdnet.training.tuning.space import DEFAULT, SearchSpace
from pcdnet.training.tuning.trials import TRIALS, StudyRecord, TunedStudy

DATABASE, LOCK = "study.db", "study.lock"
"""Where trials are kept, unless another storage is given; what keeps a second process out then."""
VALIDATIONS = 8
"""Validations of a trial at least: these are where it may be pruned."""


def tune(
    data: Data,
    config: Config | str | None = None,
    *,
    out: str | Path,
    space: SearchSpace | Mapping[str, Any] | str | Path | None = None,
    trials: int = 50,
    steps: int | None = None,
    minutes: float | None = None,
    storage: str | None = None,
    name: str | None = None,
    seed: int = 0,
    patience: float = 60.0,
    view: View = UNCHANGED,
    device: str = "cpu",
    quiet: bool = False,
    stop: Callable[[], bool] | None = None,
) -> TunedStudy:
    """Search the settings with which training explains the validation images best, without looking at any label.

    The same call again goes on with the study. A trial whose process was killed is tried again with the same values,
    and trials that do worse than the median at a validation are pruned. The first is the
    configuration itself, or the nearest that the space holds.

    Parameters
    ----------
    data
        What to learn from, as `fit` takes it.
    config
        The configuration to start from, as `fit` takes it; what is not searched stays as it is there.
    out
        Folder of the study: `best.toml`, `trials.json` and, without a `storage`, the database.
    space
        What is searched: a TOML file, or a mapping such as `{"loss.tv": {"low": 1e-4, "high": 0.1, "log": True}}`;
        by default the hyper-parameters of the paper.
    trials
        How many trials the study is to have in all, those of other processes and of earlier calls included.
    steps, minutes
        How long each trial may train. The best configuration keeps the steps of `config`.
    storage
        Address of a database that several processes share, `postgresql+psycopg://user@host/name` for example; by
        default a file in the folder, for one process at a time.
    name
        What the study is called in the storage; by default as the folder.
    seed
        Seed of the search and of every training.
    patience
        Seconds without a sign of life after which a trial of another process is tried again.
    view
        How images are looked at.
    device
        Where to compute: `cpu`, `cuda`, ...
    quiet
        Show no progress.
    stop
        Asked after every step; when it says True, the search ends with `Interrupted`.

    Returns
    -------
    TunedStudy
        The best configuration, and every trial.

    Examples
    --------
    >>> import tempfile, pcdnet
    >>> from pcdnet.data import tetrominoes
    >>> images = tetrominoes.generate(count=40, seed=1).images
    >>> small = Config.preset("tetrominoes").with_fields({"train.batch": 4, "model.num_prototypes": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = pcdnet.tune(images, small, out=f"{folder}/study", trials=2, steps=2, quiet=True)
    >>> [trial.ending for trial in found.record.trials], found.best.model.num_prototypes
    (['complete', 'complete'], 3)
    """
    if find_spec("optuna") is None:
        raise PcdnetError("tuning needs optuna, which is missing; run: pip install 'pcdnet[tune]'")
    with shown(quiet=quiet), phase("loading Optuna"):
        from pcdnet.training.tuning.search import Search
        from pcdnet.training.tuning.storage import open_study

    _check(trials=trials, steps=steps, minutes=minutes, seed=seed, patience=patience)
    searched, target, out = _space(space, steps), checked_device(device), _free(out)
    with shown(quiet=quiet):
        task = _unlabelled(prepare(data, config, {"train.seed": seed}, view=view, quiet=quiet))
    base, name, asked = _shortened(task.config, steps), name or out.resolve().name, stop or (lambda: False)
    searched.check(base)
    origin = {
        "data": _fingerprint(task),
        "config": base.to_toml(),
        "space": searched.to_tables(),
        "minutes": minutes,
    }
    url = f"sqlite:///{made(out).resolve() / DATABASE}" if storage is None else storage
    with (
        shown(quiet=quiet),
        phase("opening the study"),
        locked_file(out / LOCK) if storage is None else nullcontext(),
        open_study(url, name, searched, base, seed=seed, patience=0 if storage is None else patience) as study,
        nullcontext() if quiet else LiveLine() as line,
        stepping(),
    ):
        for kept in [study.agree(origin), *([StudyRecord.read(out).origin] if (out / TRIALS).is_file() else [])]:
            _refuse_another(kept, origin, out)
        made(out)
        record = StudyRecord(name=name, data=task.scenes.name, origin=origin)
        search = Search(study, record, out, task.config, base, line)
        return search.run(trials, lambda *trial: _trained(task, target, minutes, asked, *trial), asked)


def _trained(
    task: Task,
    device: torch.device,
    minutes: float | None,
    stop: Callable[[], bool],
    config: Config,
    watch: Callable[[Progress], None],
) -> float:
    """Train a configuration; the least validation error."""
    check_fit(task.scenes, config)
    trainer = Trainer(task.scenes, task.validation, config, None, device, minutes)
    trainer.begin(None, task.ignored)
    trainer.train(watch, stop)
    if trainer.error is None or not math.isfinite(trainer.error):
        raise PcdnetError(f"the validation error is {trainer.error}; lower ", Setting("train.learning_rate"))
    return trainer.error


def _check(**given: float | None) -> None:
    """Refuse numbers with which nothing can be searched."""
    least = {"trials": 1, "steps": 1, "seed": 0}
    for name, value in given.items():
        if value is None:
            continue
        if name in least and value < least[name]:
            raise PcdnetError(Setting(name, value), f" cannot be used; give {least[name]} or more")
        if name not in least and not 0 < value < math.inf:
            raise PcdnetError(Setting(name, value), " is no time; give more than 0")


def _space(space: SearchSpace | Mapping[str, Any] | str | Path | None, steps: int | None) -> SearchSpace:
    if isinstance(space, Mapping):
        space = SearchSpace.from_tables(space)
    elif not isinstance(space, SearchSpace):
        space = SearchSpace.load(DEFAULT if space is None else space)
    if steps is not None and "train.steps" in space.entries:
        raise PcdnetError(
            "the search space has train.steps, so they cannot be set for all trials; leave out ", Setting("steps")
        )
    return space


def _free(out: str | Path) -> Path:
    """The path, if a study may be there: an empty folder, none yet, or the folder of one."""
    path = Path(out)
    ours = {DATABASE, LOCK, TRIALS}
    if path.exists() and (
        not path.is_dir() or (any(path.iterdir()) and not any((path / own).exists() for own in ours))
    ):
        raise PcdnetError(f"{path} holds other things than a study; choose another ", Setting("out"))
    return path


def _unlabelled(task: Task) -> Task:
    """The same without any ground truth: what no trial sees, no search can be led by."""
    scenes, valid = (
        dataclasses.replace(each.part(slice(None)), labels=None, boxes=None) for each in (task.scenes, task.validation)
    )
    return dataclasses.replace(task, scenes=scenes, validation=valid)


def _shortened(config: Config, steps: int | None) -> Config:
    """The configuration of the trials: of so many steps, with enough validations to be pruned at."""
    steps = config.train.steps if steps is None else steps
    often = max(1, min(config.train.validate_every, steps // VALIDATIONS))
    return config.with_fields({"train.steps": steps, "train.validate_every": often})


def _fingerprint(task: Task) -> str:
    """What tells the images of one study from those of another, on whichever machine they lie."""
    digest = hashlib.blake2b(digest_size=16)
    for scenes in (task.scenes, task.validation):
        digest.update(repr(scenes.images.shape).encode())
        for piece in pieces(scenes.images):
            digest.update(piece.tobytes())
    return digest.hexdigest()


def _refuse_another(kept: Mapping[str, Any], asked: Mapping[str, Any], out: Path) -> None:
    """Refuse to go on with a study of other images, settings or values."""
    end = ("; leave that as it was, or choose another ", Setting("out"))
    there = Config.from_toml(kept["config"], "the study's configuration")
    for name, stored, given in there.differences(Config.from_toml(asked["config"])):
        raise PcdnetError(
            f"the study {out} was begun with ", Setting(name, stored), ", not ", Setting(name, given), *end
        )
    if kept["data"] != asked["data"]:
        raise PcdnetError(f"the study {out} was begun with other images", *end)
    if kept["minutes"] != asked["minutes"]:
        raise PcdnetError(
            f"the study {out} was begun with {kept['minutes']} minutes a trial, not {asked['minutes']}", *end
        )
    for name in {**kept["space"], **asked["space"]}:
        stored, given = kept["space"].get(name, "nothing"), asked["space"].get(name, "nothing")
        if stored != given:
            raise PcdnetError(f"the study {out} searches {stored} of {name}, not {given}", *end)
