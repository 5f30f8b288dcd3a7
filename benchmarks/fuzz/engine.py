"""Engine: mutates inputs and keeps those that reach lines of the package which none reached before."""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import pcdnet
from benchmarks.fuzz.law import Finding, judged
from benchmarks.fuzz.target import Target

PACKAGE = str(Path(pcdnet.__file__).parent)
RUNNING = "running"
"""The file among the findings that holds the present input."""
HANG = 600.0
"""Seconds after which a process ends itself that does not even answer to a signal."""
MOST_KEPT = 2000
"""Inputs that are kept to make others of."""

Tracer = Callable[[FrameType, str, Any], Any]


@dataclass(slots=True)
class Tally:
    """What was tried and found so far."""

    inputs: int = 0
    """Inputs read."""
    kept: int = 0
    """Those of them that reached something new."""
    lines: int = 0
    """Lines of the package that were reached."""
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each kind of finding was seen at each place."""


def fuzz(target: Target, work: Path, findings: Path, *, seconds: float, seed: int) -> Tally:
    """Read mutated inputs for so long; the first input of every finding is kept in the folder of the findings."""
    rng, tally = Random(f"{target.name} {seed}"), Tally()
    for folder in (work, findings):
        folder.mkdir(parents=True, exist_ok=True)
    read, seeds = target.prepare(work), list(target.seeds())
    for content in seeds:  # what is compiled, or loaded when it is first used, counts for none of them
        with suppress(Exception):
            read(content)
    corpus: list[bytes] = []
    end = time.monotonic() + seconds  # what it takes to prepare does not count
    with _reached() as lines, _running(findings / RUNNING) as running:
        while time.monotonic() < end or tally.inputs < len(seeds):
            content = seeds[tally.inputs] if tally.inputs < len(seeds) else _mutated(target, corpus, rng)
            tally.inputs += 1
            running(content)
            before = len(lines)
            if (finding := judged(target, read, content)) is not None and finding.kind == "slow":
                with _untraced():  # which makes all slower
                    finding = judged(target, read, content)
            if finding is not None:
                _note(finding, content, findings, tally)
            if len(lines) > before or tally.inputs <= len(seeds):
                corpus.append(content)
                tally.kept += 1
                if len(corpus) > MOST_KEPT:
                    del corpus[rng.randrange(len(seeds), len(corpus) - 1)]
            tally.lines = len(lines)
    return tally


def _mutated(target: Target, corpus: list[bytes], rng: Random) -> bytes:
    """Another input made of one that is known, of the newest ones more often."""
    for _ in range(50):
        parent = corpus[-1 - int(rng.random() ** 2 * len(corpus))]
        with suppress(Exception):  # one that is so damaged that its form cannot be kept
            return target.mutate(parent, rng)
    return corpus[0]


@contextmanager
def _running(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Keeps the present input where it is found if the process ends, which it does if it no longer answers."""
    room = 1 << 22
    with path.open("w+b") as file:
        file.truncate(room)
        with mmap.mmap(file.fileno(), room) as held:
            armed = 0.0

            def keep(content: bytes) -> None:
                nonlocal armed
                content = content[: room - 8]
                held[: 8 + len(content)] = len(content).to_bytes(8, "little") + content
                if time.monotonic() - armed > HANG / 10:
                    armed = time.monotonic()
                    faulthandler.dump_traceback_later(HANG, exit=True)

            yield keep
            faulthandler.cancel_dump_traceback_later()
    path.unlink()


def last_input(path: Path) -> bytes:
    """The input that a process read when it ended."""
    content = path.read_bytes()
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def _note(finding: Finding, content: bytes, folder: Path, tally: Tally) -> None:
    key = finding.kind, finding.place
    tally.found[key] += 1
    if tally.found[key] == 1:
        name = hashlib.sha256(" ".join(key).encode()).hexdigest()[:12]
        (folder / f"{finding.kind}-{name}").write_bytes(content)
        (folder / f"{finding.kind}-{name}.txt").write_text(f"{finding.place}\n{finding.what}\n", encoding="utf-8")


@contextmanager
def _reached() -> Iterator[set[tuple[CodeType, int]]]:
    """The lines of the package that are reached in the block, in all threads that begin in it."""
    lines: set[tuple[CodeType, int]] = set()

    def inner(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.add((frame.f_code, frame.f_lineno))
        return inner

    def outer(frame: FrameType, _: str, __: Any) -> Tracer | None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        lines.add((frame.f_code, frame.f_lineno))
        return inner

    former = sys.gettrace()
    sys.settrace(outer)
    threading.settrace(outer)
    try:
        yield lines
    finally:
        sys.settrace(former)
        threading.settrace(None)


@contextmanager
def _untraced() -> Iterator[None]:
    """No line is noted in the block."""
    former = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(former)
