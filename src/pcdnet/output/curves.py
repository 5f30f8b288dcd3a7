"""Curves: how numbers went over the steps of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from pcdnet.output.charts import Frame, Points, drawable

MOST_POINTS = 300
"""A longer curve is thinned to means of neighbours: more points than pixels tell nothing."""
FEW = 20
"""So many points are shown as dots, too."""
QUALITY = {"fg_ari": "FG-ARI", "f1": "F1"}
"""Scores that tell how good a run is, by the names of its metrics, best first; the others stand in for the first."""


def learning_curves(metrics: Sequence[Mapping[str, Any]], prototypes: int) -> list[tuple[str, str, str, Markup]]:
    """Loss, quality, error and use over the steps of a run, from the lines of its metrics; those that are known.

    Each has a name, a note, its last value and its picture. Quality is FG-ARI, or F1 where the ground truth is boxes
    only.
    """
    validations = [{"step": line["step"], **line["validation"]} for line in metrics if "validation" in line]
    quality = "fg_ari" if _series(validations, "fg_ari") else "f1"
    known = [
        ("loss", "what training minimises", ".2g", _series(metrics, "loss"), (True, None, None)),
        (QUALITY[quality], "in validation", ".4f", _series(validations, quality), (False, None, 1)),
        ("MSE", "in validation", ".2g", _series(validations, "mse"), (True, None, None)),
        ("prototypes in use", f"of {prototypes}", ".0f", _series(metrics, "in_use"), (False, 0, prototypes)),
    ]
    return [
        (name, note, format(points[-1][1], form), svg)
        for name, note, form, points, (log, low, high) in known
        if (svg := curve(points, log=log, low=low, high=high, words=f"{name} over the steps"))
    ]


def _series(lines: Sequence[Mapping[str, Any]], key: str) -> Points:
    return [(line["step"], line[key]) for line in lines if line.get(key) is not None]


def curve(
    points: Points, *, log: bool = False, low: float | None = None, high: float | None = None, words: str = ""
) -> Markup:
    """An SVG picture of values over steps, or nothing if there are none; `low` and `high` widen its range."""
    points = drawable(points, log_y=log)
    if not points:
        return Markup("")
    steps, values = zip(*points, strict=True)
    frame = Frame((0.0, 1.0, *steps), (*values, *(y for y in (low, high) if y is not None)), log_y=log, whole=True)
    thin = _thinned(points, log)
    told = words and f"{words}: from {values[0]:.2g} to {values[-1]:.2g}"
    return frame.picture(frame.path(thin), frame.dots(thin) if len(thin) <= FEW else "", words=told)


def _thinned(points: Points, log: bool) -> Points:
    """At most so many points: of neighbours the mean, on a logarithmic axis the geometric one."""
    group = math.ceil(len(points) / MOST_POINTS)
    if group == 1:
        return points
    values = np.array([(x, math.log(y) if log else y) for x, y in points])
    means = [part.mean(axis=0).tolist() for part in np.split(values, range(group, len(values), group))]
    return [(x, math.exp(y) if log else y) for x, y in means]
