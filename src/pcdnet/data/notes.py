"""Notes: what a reader of data reports, of files that are odd and of files that cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pcdnet.errors import Incomplete, PcdnetError

T = TypeVar("T")

Note = Callable[[str], None]
"""Takes one sentence; readers call it for what is odd but no mistake, a few damaged images of many for example."""


LONGEST = 2000
"""Characters of a text for a terminal at most; what strangers wrote may have millions."""


def printable(text: str) -> str:
    """The text for a terminal: what strangers wrote in names must neither break lines, give commands nor fill it."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    half = LONGEST // 2 - 3  # what is wrong stands at the beginning, and the cure at the end
    return shown if len(shown) <= LONGEST else f"{shown[:half]} ... {shown[-half:]}"


def to_stderr(message: str) -> None:
    """Print it where progress is shown, so that nothing is skipped in silence."""
    print(printable(f"note: {message}"), file=sys.stderr)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of many names, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def noted(things: Iterable[T]) -> Iterator[T]:
    """The things of a file that can be read, for those who can do with fewer: what is missing is a note."""
    try:
        yield from things
    except Incomplete as missing:
        to_stderr(str(missing))


@contextmanager
def readable(path: str | Path, what: str, damage: tuple[type[Exception], ...] = (), cure: str = "") -> Iterator[None]:
    """Report a file or folder that is missing, that the system does not let us read or that is damaged as one sentence.

    `what` it should be is for messages, `damage` is what its library raises, and `cure` what can then be done.
    """
    try:
        yield
    except FileNotFoundError:
        raise PcdnetError(f"{path} does not exist; give the path of {what}") from None
    except damage as error:
        reason = getattr(error, "strerror", None) or error
        raise PcdnetError(f"{path} is no sound {what.partition(' ')[2]} ({reason}); {cure}") from None
    except OSError as error:
        raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); give {what} that can be read") from None
