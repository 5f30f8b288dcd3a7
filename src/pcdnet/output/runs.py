"""Runs: the runs below a folder, how far each came and what came of it; seeds of one configuration are summed up.

Whatever is wrong with a run is said in its row: a listing never fails because of one of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pcdnet.config import MOST_STEPS
from pcdnet.data.folder import natural_order
from pcdnet.errors import PcdnetError
from pcdnet.files import is_held
from pcdnet.history import is_number
from pcdnet.model.storage import CONFIG, WEIGHTS, load_words
from pcdnet.origin import FILE as ORIGIN
from pcdnet.progress import counting
from pcdnet.run import LOCK, METRICS, STATE, RunFolder
from pcdnet.trained import HOME, NAMES
from pcdnet.training.seeds import SEEDS
from pcdnet.training.verdict import kept_verdict

State = Literal["finished", "stopped", "running", "saved", "damaged"]
SCORES = ("mse", "fg_ari", "perfect", "f1", "ap50", "ari", "miou", "count_accuracy", "precision", "recall", "objects")
"""The scores of the last validation that are listed, as far as they are known."""

_MARKS = (CONFIG, ORIGIN, WEIGHTS, STATE, METRICS)  # a folder that holds two of them is, or was, a run
_DAMAGE = (PcdnetError, OSError, ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedRun:
    """A run in a listing; what is not known of it is None."""

    path: Path
    """Its folder."""
    state: State
    """`finished` with a verdict; `running` while a process trains; `stopped` in between; `saved` from Python without a
    training; or `damaged`."""
    problem: str = ""
    """What is wrong with it, if it is damaged."""
    preset: str | None = None
    """The preset that its configuration differs least from."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The fields that differ, but for the seed."""
    data: str | None = None
    """What it was trained on."""
    seed: int | None = None
    """The seed of everything random."""
    step: int | None = None
    """Steps done."""
    steps: int | None = None
    """Steps in all."""
    verdict: str | None = None
    """`good`, `partial` or `failed`."""
    prototypes: int | None = None
    """Prototypes in use, as judged."""
    minutes: float | None = None
    """How long training took so far."""
    error: float | None = None
    """Mean squared error of the last validation."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """All scores of the last validation."""

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON; `path` is called `run`, as by `pcdnet train --json`."""
        words = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "path"}
        return {"run": str(self.path), **words, "changes": dict(self.changes), "scores": dict(self.scores)}


@dataclass(frozen=True, slots=True)
class Seeds:
    """The runs of one configuration on the same data."""

    runs: tuple[ListedRun, ...]

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the preset in all of them; where it is chosen from images, seeds may differ further."""
        first, *others = (run.changes for run in self.runs)
        return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}

    @property
    def verdicts(self) -> Counter[str]:
        """How many runs have which verdict."""
        return Counter(run.verdict for run in self.runs if run.verdict is not None)

    def scores(self) -> dict[str, dict[str, float]]:
        """Mean, least and largest of every score, over the runs that have it."""
        summed = {}
        for name in SCORES:
            values = [run.scores[name] for run in self.runs if name in run.scores]
            if values:
                summed[name] = {"mean": fmean(values), "least": min(values), "largest": max(values)}
        return summed

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        first = self.runs[0]
        return {
            "preset": first.preset,
            "changes": self.changes,
            "data": first.data,
            "seeds": [run.seed for run in self.runs],
            "runs": [str(run.path) for run in self.runs],
            "good": self.verdicts["good"],
            "verdicts": dict(self.verdicts),
            "scores": self.scores(),
        }


@dataclass(frozen=True, slots=True)
class RunList(Sequence[ListedRun]):
    """The runs below a folder, in the order of their paths; printed, it is a table."""

    folder: Path
    """Where they were looked for."""
    runs: tuple[ListedRun, ...]
    """All of them."""
    configurations: tuple[Seeds, ...]
    """Those that are not damaged, by configuration and data."""

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: Any) -> Any:
        return self.runs[index]

    def __str__(self) -> str:
        from pcdnet.output.listing import table

        return table(self)

    def only(self, paths: Collection[Path]) -> RunList:
        """The same list of some of the runs."""
        groups = (tuple(run for run in seeds.runs if run.path in paths) for seeds in self.configurations)
        listed = tuple(run for run in self.runs if run.path in paths)
        return RunList(self.folder, listed, tuple(Seeds(group) for group in groups if group))

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "folder": str(self.folder),
            "runs": [run.to_dict() for run in self.runs],
            "configurations": [seeds.to_dict() for seeds in self.configurations],
        }


def runs(folder: str | Path) -> RunList:
    """List the runs below a folder: configuration, data, seed, state, verdict and scores; seeds are summed up.

    Parameters
    ----------
    folder
        A folder of runs, however deep they lie in it; or a run, or the name of one that comes with the package.

    Returns
    -------
    RunList
        The runs; damaged ones say what is wrong. `configurations` has them together that differ only in the seed, with
        mean, least and largest of their scores. Printed, it is a table; `to_dict` is for JSON.

    Examples
    --------
    >>> import tempfile
    >>> from pcdnet import Config, RunFolder
    >>> from pcdnet.origin import Origin
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for seed in range(3):
    ...         config = Config.preset("ngsim").with_fields({"train.seed": seed})
    ...         run = RunFolder.create(f"{folder}/seed-{seed}", config, Origin(data="frames"))
    ...     found = runs(folder)
    >>> [(run.path.name, run.preset, run.seed, run.state) for run in found][:2]
    [('seed-0', 'ngsim', 0, 'stopped'), ('seed-1', 'ngsim', 1, 'stopped')]
    >>> len(found), len(found.configurations)
    (3, 1)
    """
    folder = Path(folder)
    if str(folder) in NAMES and not folder.is_dir():
        folder = HOME / folder
    if not folder.is_dir():
        raise PcdnetError(f"{folder} is no folder; give one that holds runs, as `pcdnet train --out` makes them")
    groups: dict[Hashable, list[ListedRun]] = {}
    listed = []
    for path in counting(_folders(folder), None, "reading runs,"):
        run, kind = _listed(path)
        listed.append(run)
        if kind is not None:
            groups.setdefault(kind, []).append(run)
    by_seed = (sorted(group, key=lambda run: run.seed or 0) for group in groups.values())
    return RunList(folder, tuple(listed), tuple(Seeds(tuple(group)) for group in by_seed))


def _folders(top: Path) -> Iterator[Path]:
    """The folders of runs in and below a folder, in a natural order; what cannot be read is passed by."""
    for place, inner, files in os.walk(top):
        if len(set(_MARKS).intersection(files)) > 1:
            inner.clear()  # a run's own folders hold none
            yield Path(place)
        inner.sort(key=natural_order)


def _listed(path: Path) -> tuple[ListedRun, Hashable | None]:
    """A run, and what those of one configuration have in common; nothing of one that cannot be opened."""
    try:
        run = RunFolder.open(path)
    except _DAMAGE as error:
        return ListedRun(path=path, state="damaged", problem=_sentence(error)), None
    preset, changes = run.nearest_preset()
    train, data = run.config.train, run.origin.data
    known: dict[str, Any] = {"preset": preset, "changes": changes, "data": data}
    try:
        known |= _progress(run)
    except _DAMAGE as error:
        known |= {"state": "damaged", "problem": _sentence(error)}
    # Seeds that were asked for together are of one configuration, even if the images made them differ.
    together = (path.parent / SEEDS).is_file()
    origin = dataclasses.replace(run.origin, size=None, fingerprint=None)
    kind = path.parent.resolve() if together else (run.config.with_fields({"train.seed": 0}), origin)
    return ListedRun(path=path, seed=train.seed, steps=train.steps, **known), kind


def _progress(run: RunFolder) -> dict[str, Any]:
    """How far a run came, and what came of it."""
    lines = [line for line in run.metrics() if isinstance(line, dict)]
    step = max((int(line["step"]) for line in lines if "step" in line), default=0)
    if run.has_weights:
        load_words(run.path / WEIGHTS)  # refuses what is no such file
    if run.has_state:
        step = json.loads(load_words(run.path / STATE)["state"])["step"]
        if type(step) is not int or not 0 <= step <= MOST_STEPS:
            raise ValueError(f"{run.path / STATE} says that step {step!r:.40} was done")
    verdict = kept_verdict(run)
    validations = [line["validation"] for line in lines if isinstance(line.get("validation"), dict)]
    scores = {name: value for name, value in (validations or [{}])[-1].items() if _is_finite(value)}
    seconds = [line["seconds"] for line in lines if _is_finite(line.get("seconds"))]
    trained = run.has_state or bool(lines) or (run.path / ORIGIN).is_file()
    state: State = "finished" if verdict is not None else "stopped" if trained else "saved"
    return {
        "state": "running" if is_held(run.path / LOCK) else state,
        "step": step,
        "verdict": None if verdict is None else verdict.verdict,
        "prototypes": None if verdict is None else verdict.figures.get("in_use"),
        "minutes": round(seconds[-1] / 60, 2) if seconds else None,
        "error": scores.get("mse"),
        "scores": scores,
    }


def _is_finite(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _sentence(error: BaseException) -> str:
    """What is wrong, on one line."""
    words = str(error) if isinstance(error, PcdnetError) else f"{type(error).__name__}: {error}"
    return " ".join(words.split())
