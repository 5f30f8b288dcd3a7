"""Signals: Ctrl-C, or a request to terminate, ends the work at the next good moment; a second one at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from pcdnet.progress import in_steps
from pcdnet.training.launch import world_size

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Within the block a request to terminate is what Ctrl-C is: the work ends at once, and says how to go on."""

    asked: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    # Whoever ignores or handles it goes on doing so; only the main thread of a process may handle any.
    ours = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and current_thread() is main_thread()
    if ours:
        signal.signal(signal.SIGTERM, handle)
    try:
        yield
    except Exception:
        if asked:  # a library that was interrupted while it was imported may fail in any way
            raise KeyboardInterrupt from None
        raise
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stop_on_signal(*, quiet: bool = False) -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether the work should end; in steps the first signal only asks for it.

    That is said on stderr, unless it is `quiet`. What is not done in steps ends at once.
    """
    asked: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if asked or not (in_steps() or world_size() > 1):  # whose steps several processes make together
            raise KeyboardInterrupt
        asked.append(number)
        if quiet:
            return
        # Not print: the signal may have come in the middle of one, which must not be entered twice.
        os.write(2, b"\nfinishing the step; Ctrl-C again stops at once\n")

    former = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        if former[number] != signal.SIG_IGN:  # a shell's background job is not to be stopped by Ctrl-C
            signal.signal(number, handle)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
