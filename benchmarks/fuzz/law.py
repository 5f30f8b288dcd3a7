"""Law: what every input is measured by. Nothing but a PcdnetError with a cure may leave, in bounded time and memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from benchmarks.fuzz.target import Reader, Target
from pcdnet.errors import PcdnetError

_STATM = os.open("/proc/self/statm", os.O_RDONLY) if Path("/proc/self/statm").exists() else None
OWN = ("pcdnet", "fuzz")
"""Folders whose frames say where something happened."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that broke the law."""

    kind: str
    """`exception`, `slow`, `memory` or `unkind`."""
    place: str
    """Where it happened; findings of one kind at one place are one."""
    what: str
    """What happened, for people."""


class OutOfTime(BaseException):
    """Raised into whatever is at work when an input has taken too long; nobody else catches it."""


class Broken(Exception):
    """What a reader raises that has found its input read wrongly, though nothing was raised."""


def judged(target: Target, read: Reader, content: bytes) -> Finding | None:
    """Read an input, and say which law it broke, if any."""
    held, former, start = present_memory(), peak_memory(), time.process_time()
    try:
        with _limited(2 * target.seconds):
            read(content)
    except PcdnetError as error:
        if "; " not in str(error):
            return Finding("unkind", _place(error), f"no cure in: {error}")
    except OutOfTime as error:
        return Finding("slow", _place(error), f"more than {2 * target.seconds:.0f} s\n{traceback.format_exc(limit=-6)}")
    except Exception as error:
        return Finding("exception", f"{type(error).__name__} {_place(error)}", traceback.format_exc(limit=-6))
    took, peak = time.process_time() - start, peak_memory()
    if took > target.seconds:
        return Finding("slow", "in all", f"{took:.1f} s of processor time")
    if peak > former and (grown := (peak - held) / 2**20) > target.megabytes:
        return Finding("memory", "in all", f"{grown:.0f} MiB")
    return None


def peak_memory() -> int:
    """Bytes that the process held at most, ever."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def present_memory() -> int:
    """Bytes that the process holds now, or held at most, where the system does not say."""
    with suppress(OSError):
        if _STATM is not None:
            return int(os.pread(_STATM, 100, 0).split()[1]) * resource.getpagesize()
    return peak_memory()


def bound_memory(megabytes: int) -> None:
    """Have the system refuse more than so much beyond what the process has: a mistake must not take all there is."""
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])  # all that is mapped
        limit = pages * resource.getpagesize() + megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise OutOfTime into the block when it has taken so much processor time."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise OutOfTime

    former = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def _place(error: BaseException) -> str:
    """The innermost of our own lines that an error came through."""
    frames = list(traceback.extract_tb(error.__traceback__))
    frames = frames[:-1] if isinstance(error, OutOfTime) else frames  # the last is ours, who interrupted
    ours = [frame for frame in frames if set(OWN) & set(Path(frame.filename).parts)]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
