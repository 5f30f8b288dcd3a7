"""Study: what a search for settings tried and found, on one HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

import pcdnet
from pcdnet.files import whole_file, with_ending
from pcdnet.output.charts import Frame, bars, drawable, wide
from pcdnet.output.page import template
from pcdnet.progress import clock
from pcdnet.training.evaluation import small
from pcdnet.training.tuning.trials import BEST, REPORT, StudyRecord, Trial

Picture = tuple[str, str, str, Markup]
"""A name, a note, a last value and the picture itself."""

BROWSED = 200
"""Trials that the table names at most, the best first."""


def study_report(folder: str | Path, *, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page about a study: history, importance of the fields, values, every trial.

    Parameters
    ----------
    folder
        Folder of a study, as `tune` makes it.
    out
        The .html file to write; by default report.html in the folder.

    Returns
    -------
    Path
        Where the page is.

    Examples
    --------
    >>> import pcdnet
    >>> pcdnet.study_report("studies/missing")
    Traceback (most recent call last):
        ...
    pcdnet.errors.PcdnetError: studies/missing is no study: it holds no trials.json; ...
    """
    path = Path(folder) / REPORT if out is None else Path(out)
    with_ending(path, ".html")
    study = StudyRecord.read(folder)
    best = Path(folder) / BEST
    content = render(study, best.read_text(encoding="utf-8") if best.is_file() else "", str(best))
    with whole_file(path, shared=True) as file:
        file.write(content.encode())
    return path


def render(study: StudyRecord, best: str, path: str) -> str:
    """The page as HTML text; `best` is the best configuration as TOML, and `path` where it lies."""
    ended = [trial for trial in study.trials if trial.error is not None and math.isfinite(trial.error)]
    order = {"complete": 0, "pruned": 1}
    ranked = sorted(study.trials, key=lambda trial: (order.get(trial.ending, 2), trial.error or math.inf, trial.number))
    return template("study.html").render(
        study=study,
        tiles=list(_tiles(study)),
        history=list(_history(study, ended)),
        importance=bars(study.importance) if study.importance else None,
        slices=[] if not ended else [_slice(name, study, ended) for name in study.origin["space"]],
        names=list(study.origin["space"]),
        rows=[_row(trial, list(study.origin["space"])) for trial in ranked[:BROWSED]],
        best=best,
        command=f"pcdnet train --config {path} --data DATA --out RUN",
        version=pcdnet.__version__,
    )


def _tiles(study: StudyRecord) -> Iterator[tuple[str, str]]:
    if study.best is not None and study.best.error is not None:
        yield f"least validation error, in trial {study.best.number}", small(study.best.error)
    yield "trials finished", f"{len(study.finished):,}"
    yield "of these pruned", f"{study.count('pruned'):,}"
    if study.count("refused"):
        yield "of these refused", f"{study.count('refused'):,}"
    if study.count("interrupted"):
        yield "more interrupted and tried again", f"{study.count('interrupted'):,}"
    yield "of training, all trials together", clock(sum(trial.seconds or 0 for trial in study.trials))


def _history(study: StudyRecord, ended: Sequence[Trial]) -> Iterator[Picture]:
    """Errors over the trials, and over the steps of every trial."""
    complete = _points(ended, "complete")
    if not complete:
        return
    pruned, best, stairs = _points(ended, "pruned"), math.inf, []
    for number, error in complete:
        stairs += [] if math.isinf(best) else [(number, best)]
        best = min(best, error)
        stairs.append((number, best))
    numbers, errors = zip(*complete, *pruned, strict=True)
    frame = Frame((0.0, 1.0, *numbers), errors, log_y=wide(errors), whole=True)
    stairs.append((max(numbers), best))
    marks = frame.path(stairs), frame.dots(pruned, "pale"), frame.dots(complete)
    yield (
        "error",
        "over the trials",
        small(best),
        frame.picture(*marks, words=f"error over the trials, {small(best)} at best"),
    )
    curves = [(trial, drawable(trial.curve, log_y=True)) for trial in ended]
    known = [point for _, curve in curves for point in curve]
    if not known:
        return
    steps_done, errors = zip(*known, strict=True)
    frame = Frame((0.0, 1.0, *steps_done), errors, log_y=wide(errors), whole=True)
    drawn = [frame.path(curve, "pale") for _, curve in curves if curve]
    winner = next((curve for trial, curve in curves if trial == study.best), ())
    drawn += [frame.path(winner)] if winner else []
    yield (
        "all errors",
        "over steps; the best in colour",
        "",
        frame.picture(*drawn, words="errors of all trials over their steps"),
    )


def _slice(name: str, study: StudyRecord, ended: Sequence[Trial]) -> tuple[str, str, Markup]:
    """Errors over the values of one field."""
    entry, best = study.origin["space"][name], study.best
    choices = [json.dumps(choice) for choice in entry.get("choices", ())]

    def place(trial: Trial) -> float:
        value = trial.values[name]
        return choices.index(json.dumps(value)) if choices else float(value)

    tried = [trial for trial in ended if name in trial.values]
    points = {
        ending: drawable([(place(trial), trial.error or 0) for trial in tried if trial.ending == ending], log_y=True)
        for ending in ("complete", "pruned")
    }
    errors = [error for each in points.values() for _, error in each]
    value = "" if best is None else f"best {_number(best.values.get(name))}"
    if not errors:
        return name, value, Markup("")
    ends = (0.0, len(choices) - 1.0) if choices else (entry["low"], entry["high"])
    words = [word.strip('"') for word in choices]
    frame = Frame(ends, errors, log_x=entry.get("log", False), log_y=wide(errors), names=words)
    marks = [frame.dots(points["pruned"], "pale"), frame.dots(points["complete"])]
    if best is not None and best in tried and best.error:
        marks.append(frame.dots([(place(best), best.error)], "best", 5))
    return name, value, frame.picture(*marks, words=f"error over {name}, {value}")


def _row(trial: Trial, names: Sequence[str]) -> list[str]:
    """A trial in the table: number, error, how it ended, time and values."""
    number = f"{trial.number}" if trial.retry_of is None else f"{trial.number} (as {trial.retry_of})"
    ended = trial.ending if trial.note is None else f"{trial.ending}: {trial.note}"
    time = "" if trial.seconds is None else clock(trial.seconds)
    return [number, _number(trial.error), ended, time, *(_number(trial.values.get(name)) for name in names)]


def _points(ended: Sequence[Trial], ending: str) -> list[tuple[float, float]]:
    return list(
        drawable([(t.number, t.error) for t in ended if t.ending == ending and t.error is not None], log_y=True)
    )


def _number(value: Any) -> str:
    """A value in few digits."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
