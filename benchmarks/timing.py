"""Timing: medians of repeated calls, and how a model's time divides over its stages."""

from __future__ import annotations

import cProfile
import pstats
import statistics
import time
from collections.abc import Callable
from typing import Any

from pcdnet.model.composition import compose
from pcdnet.model.engine import Engine
from pcdnet.model.selection import select

STAGES: dict[str, tuple[Any, str]] = {
    "correlation": (Engine.selection_input, "_place_upright"),
    "selection": (select, "_place_upright"),
    "depth order": (Engine._in_order, "_place_upright"),
    "refinement": (Engine._refined, "_place_upright"),
    "composition": (compose, "_paint"),
}
"""The stage's name, the function whose cumulative time it is, and who calls it: what refinement correlates, selects
and orders anew counts as refinement."""


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
    """The share of each stage in a call's time."""
    call()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(repeats):
        call()
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = max(row[3] for row in stats.values())
    result: dict[str, float] = {}
    for stage, (function, caller) in STAGES.items():
        code = function.__code__
        rows = [row for key, row in stats.items() if (key[0], key[2]) == (code.co_filename, code.co_name)]
        result[stage] = sum(by[3] for row in rows for key, by in row[4].items() if key[2] == caller) / total
    result["rest"] = 1 - sum(result.values())
    return result
