"""Timing: medians of repeated calls, and how a model's time divides over its stages."""

from __future__ import annotations

import cProfile
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

from pcdnet.model.composition import compose
from pcdnet.model.evidence import Evidence
from pcdnet.model.peaks import propose
from pcdnet.model.refinement import refine
from pcdnet.model.selection import select

STAGES: dict[str, Any] = {
    "correlation": propose,
    "canvas": Evidence.opening,
    "selection": select,
    "refinement": refine,
    "composition": compose,
}
"""The stage's name and the function whose cumulative time it is."""


def seconds(call: Callable[[], object], repeats: int = 7) -> float:
    """The median time of a call after one call to warm up."""
    call()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def shares(call: Callable[[], object], repeats: int = 5) -> dict[str, float]:
    """The share of each stage in a call's time; selection inside refinement counts as refinement, and laying out
    the canvases, which selection then only touches window by window, counts apart."""
    call()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(repeats):
        call()
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = max(row[3] for row in stats.values())
    result: dict[str, float] = {}
    for stage, function in STAGES.items():
        code = function.__code__
        rows = [row for key, row in stats.items() if (key[0], key[2]) == (code.co_filename, code.co_name)]
        time_taken = sum(row[3] for row in rows)
        if stage in ("canvas", "selection"):
            # Only what the network's own search calls; what refinement selects anew is counted there.
            calls = [by for row in rows for caller, by in row[4].items() if caller[2] in ("_place", "select")]
            time_taken = sum(by[3] for by in calls)
        if stage == "selection":
            time_taken -= result["canvas"] * total
        result[stage] = time_taken / total
    result["rest"] = 1 - sum(result.values())
    return result
