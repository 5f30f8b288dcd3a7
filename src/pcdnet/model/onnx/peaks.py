"""Peaks in ONNX: the places to try, as in `pcdnet.model.peaks`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcdnet.model.onnx.graph import Value, node, where
from pcdnet.model.peaks import SPARE_PEAKS
from pcdnet.model.plan import SearchPlan


@dataclass(frozen=True, slots=True)
class Places:
    """Candidates of a batch, each (B T), prototype-major: candidate t belongs to prototype t // K."""

    row: Value
    """Top row of the frame on the padded canvas, so never negative."""
    column: Value
    """Left column of the frame on the canvas."""
    exists: Value
    """False where a map had fewer than K peaks."""
    peaks: int
    """K, the number of candidates per prototype."""


def propose(maps: Value, batch: int, plan: SearchPlan) -> Places:
    """The highest local maxima of maps (B P rows columns), at most one within the plan's reach."""
    assert plan.localizer is not None
    (Y, X), P, reach = plan.geometry.positions, len(plan.boxes), plan.localizer.reach
    count = min(plan.config.peaks_per_prototype, Y * X)
    tried = count if reach == 1 else min(SPARE_PEAKS * count, Y * X)
    height, index = where(_local_maxima(maps, Y, X), maps, -np.inf).reshape(batch, P, Y * X).topk(tried)
    if reach > 1:
        height, order = where(_hidden(index // X, index % X, tried, reach), -np.inf, height).topk(count)
        index = index.gather(-1, order)
    height, index = (x.reshape(batch, P * count) for x in (height, index))
    return Places(index // X, index % X, height > -np.inf, count)


def _local_maxima(maps: Value, Y: int, X: int) -> Value:
    """Where a map exceeds its eight neighbours; of equal neighbours the first in reading order does."""
    padded = maps.pad([0, 0, 1, 1, 0, 0, 1, 1], -np.inf)
    left, middle, right = (padded.slice(-1, x, x + X) for x in range(3))
    wide = node("Max", left, middle, right)
    before = node("Max", wide.slice(-2, 0, Y), left.slice(-2, 1, Y + 1))
    after = node("Max", wide.slice(-2, 2, Y + 2), right.slice(-2, 1, Y + 1))
    return (maps > before) & (maps >= after)


def _hidden(row: Value, column: Value, count: int, reach: int) -> Value:
    """Which peaks, sorted by height, are near to a higher one."""
    near_rows, near_columns = (node("Abs", x.unsqueeze(-1) - x.unsqueeze(-2)) <= reach for x in (row, column))
    return (near_rows & near_columns & np.tri(count, k=-1, dtype=np.bool_)).any(-1)
