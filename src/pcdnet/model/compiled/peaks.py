"""Which of many peaks are near a higher one; `model.peaks` says why they do not count."""

from __future__ import annotations

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array


def hidden(row: Array, column: Array, reach: int) -> Array:
    """Which places of each group (groups n), the highest first, are near one that comes before."""
    found = np.zeros(row.shape, np.bool_)

    def work(first: int, last: int) -> None:
        _hidden((first, last), row, column, reach, found)

    share(work, len(row))
    return found


@compiled
def _hidden(ends: tuple[int, int], row: Array, column: Array, reach: int, found: Array) -> None:
    """Groups from the first end to the second."""
    for group in range(ends[0], ends[1]):
        for n in range(row.shape[1]):
            for before in range(n):
                down, right = row[group, n] - row[group, before], column[group, n] - column[group, before]
                if -reach <= down <= reach and -reach <= right <= reach:
                    found[group, n] = True
                    break
