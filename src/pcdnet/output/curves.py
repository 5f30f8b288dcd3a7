"""Curves: how numbers went over the steps of training, as SVG that takes its colours from the page around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

Points = Sequence[tuple[float, float]]

MOST_POINTS = 300
"""A longer curve is thinned to means of neighbours: more points than pixels tell nothing."""

QUALITY = {"fg_ari": "FG-ARI", "f1": "F1"}
"""Scores that tell how good a run is, by the names of its metrics, best first; the others stand in for the first."""

_WIDTH, _HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 24


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
        if (svg := curve(points, log=log, low=low, high=high))
    ]


def _series(lines: Sequence[Mapping[str, Any]], key: str) -> Points:
    return [(line["step"], line[key]) for line in lines if line.get(key) is not None]


def curve(points: Points, *, log: bool = False, low: float | None = None, high: float | None = None) -> Markup:
    """An SVG picture of values over steps, or nothing if there are none; `low` and `high` widen its range."""
    points = [(x, y) for x, y in points if math.isfinite(y) and (y > 0 or not log)]
    if not points:
        return Markup("")
    values = [y for _, y in points] + [y for y in (low, high) if y is not None]
    ticks = _decades(min(values), max(values)) if log else _ticks(min(values), max(values))
    bottom, top = min(*values, *ticks), max(*values, *ticks)
    last = max(1.0, *(x for x, _ in points))

    def across(x: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * x / last

    def up(y: float) -> float:
        a, b, v = (math.log10(n) if log else n for n in (bottom, top, y))
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (v - a) / ((b - a) or 1)

    lines = [f"M{_LEFT} {up(y):.1f}H{_WIDTH - _RIGHT}" for y in ticks]
    words = [f'<text x="{_LEFT - 6}" y="{up(y) + 4:.1f}" text-anchor="end">{y:g}</text>' for y in ticks]
    words += [
        f'<text x="{across(x):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{x:,.0f}</text>'
        for x in _ticks(0, last, whole=True)
        if x <= last
    ]
    thin = _thinned(points, log)
    path = "M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in thin)
    dots = "".join(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3"/>' for x, y in thin if len(thin) <= 20)
    # Only numbers are put in here, so nothing needs escaping.
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><path class="grid" d="{"".join(lines)}"/>{"".join(words)}'
        f'<path class="curve" d="{path}"/>{dots}</svg>'
    )


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Three to six round numbers over a range."""
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / 3))
    step = next(size * n for n in (1, 2, 5, 10) if span / (size * n) <= 5)
    if whole:
        step = max(step, 1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, max(last, first + 1) + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    stride = max(1, math.ceil((last - first) / 5))
    return [10.0**n for n in range(first, max(last, first + 1) + stride, stride)]


def _thinned(points: Points, log: bool) -> Points:
    """At most so many points: of neighbours the mean, on a logarithmic axis the geometric one."""
    group = math.ceil(len(points) / MOST_POINTS)
    if group == 1:
        return points
    values = np.array([(x, math.log(y) if log else y) for x, y in points])
    means = [part.mean(axis=0).tolist() for part in np.split(values, range(group, len(values), group))]
    return [(x, math.exp(y) if log else y) for x, y in means]
