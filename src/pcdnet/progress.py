"""Progress: how far the work is, on stderr; a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from pcdnet.errors import PcdnetError

T = TypeVar("T")

SECONDS = 5.0
"""Time between two plain lines at least; the last is always printed."""


def track(steps: Iterable[tuple[int, T]], total: int, what: str) -> Iterator[T]:
    """Yield the values of `steps`, (size, value) pairs whose sizes add up to `total`, and show how far it is."""
    if total < 1:
        raise PcdnetError(f"there are {total} {what}; give at least 1")
    console = Console(stderr=True, highlight=False)
    yield from (_bar if console.is_terminal else _lines)(console, steps, total, what)


def _bar(console: Console, steps: Iterable[tuple[int, T]], total: int, what: str) -> Iterator[T]:
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), "ETA", TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        for size, value in steps:
            yield value
            progress.advance(task, size)


def _lines(console: Console, steps: Iterable[tuple[int, T]], total: int, what: str) -> Iterator[T]:
    done, start = 0, time.monotonic()
    printed = start
    for size, value in steps:
        yield value
        done, now = done + size, time.monotonic()
        if done >= total or now - printed >= SECONDS:
            printed = now
            rate = done / max(now - start, 1e-9)
            console.print(f"{what} {done}/{total}  {rate:.0f} a second  ETA {(total - done) / rate:.0f} s")
