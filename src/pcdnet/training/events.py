"""Events: what was done to the bank in training, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

MOST_NAMED = 4
"""More prototypes than this are counted, not named."""


def in_words(events: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """The step and the sentence of every event, in order; prototypes that were centred in one step share one.

    An event has `step`, `event` (split or centre), `prototype` and `source`, as in a run's metrics.
    """
    lines = []
    for (step, kind), group in groupby(events, key=lambda event: (event["step"], event["event"])):
        if kind == "centre":
            moved = [event["prototype"] for event in group]
            lines.append((step, f"{_named(moved)} moved to the centre"))
        else:
            why = "was hardly needed" if kind == "split" else f"had a {kind}"
            lines += [(step, f"prototype {e['prototype']} {why}: now a copy of {e['source']}") for e in group]
    return lines


def _named(prototypes: Sequence[int]) -> str:
    if len(prototypes) > MOST_NAMED:
        return f"{len(prototypes)} prototypes"
    return f"prototype{'s' if len(prototypes) > 1 else ''} {listed(prototypes)}"


def listed(numbers: Sequence[int]) -> str:
    """Numbers as in a sentence: 1, 2 and 3."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last
