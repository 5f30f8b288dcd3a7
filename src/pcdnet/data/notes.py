"""Notes: what a reader of data passed over, said to whoever asked for the data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

Note = Callable[[str], None]
"""Takes one sentence; readers call it for what is odd but no mistake, a few damaged images of many for example."""


def to_stderr(message: str) -> None:
    """Say it where progress is shown, so that nothing is passed over in silence."""
    print(f"note: {message}", file=sys.stderr)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of many names, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
