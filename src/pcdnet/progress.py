"""Progress: what is being done and how far it is, on stderr; a live line in a terminal, plain lines elsewhere.

Work is cut into phases, each of which has a name in words. Within `shown` a thread says what the innermost phase is
whenever nothing else was said for a while, so that nobody waits for long without a word. Elsewhere phases say nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

T = TypeVar("T")

SECONDS = 1.5
"""Time between two plain lines; nothing is silent for longer than two seconds."""
FIRST = 0.8
"""What takes less time than this is not worth a line of its own."""
LOOK = 0.1
"""Time between two looks at how far it is."""
TERMINALS = ("TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR")
"""Variables that can make a terminal of whatever stderr is."""
BAR = 16
"""Characters of the bar."""
COMPILING = "compiling the search, once per installation, mostly in less than a minute"
"""What the first search after an installation does first."""


class Phase:
    """Something that is being done; call it to say how far it is."""

    def __init__(self, words: str, teller: Teller | None, *, at_once: bool = False, dots: bool = True) -> None:
        self._words, self._details, self._dots = words, "", " ..." if dots else ""
        self._teller, self._at_once = teller, at_once
        self.share = None
        self.since, self.task = time.monotonic(), None

    share: float | None
    """How much of it is done; None where that is not known."""
    since: float
    """When it began."""
    task: TaskID | None
    """Its bar in a terminal, if it has one."""

    def __call__(self, details: str, share: float | None = None, *, stays: bool = False) -> None:
        """Say how far it is; what `stays` is said in any case."""
        self._details, self.share = details, share
        if self._teller is not None:
            self._teller.hear(self, stays=stays)

    def __enter__(self) -> Phase:
        if self._teller is not None:
            self._teller.begin(self, at_once=self._at_once)
        return self

    def __exit__(self, *_: object) -> None:
        if self._teller is not None:
            self._teller.end(self)

    def text(self, *, timed: bool) -> str:
        """What is done, in a line."""
        told = " ".join(filter(None, [self._words, self._details])) + self._dots
        return f"{told}  {clock(time.monotonic() - self.since)}" if timed else told


class Teller:
    """Tells on stderr which phase it is, the innermost of those that have begun; a thread of its own repeats it."""

    began: float
    """When it was first listened to: when the command began."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._phases: list[Phase] = []
        self.began = self._said = time.monotonic()
        self._last = ""
        self._lock, self._unheard = RLock(), False
        self._thread: tuple[Thread, Event] | None = None

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console  # here, as the first words come before anything is loaded

        return Console(stderr=True, highlight=False, emoji=False)

    @cached_property
    def _live(self) -> bool:
        if not any(map(os.environ.get, TERMINALS)) and not (sys.stderr is not None and sys.stderr.isatty()):
            return False
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def begin(self, phase: Phase, *, at_once: bool = False) -> None:
        """Let a phase begin within those that have."""
        with self._lock:
            self._phases.append(phase)
            if self._thread is None:
                over = Event()
                self._thread = Thread(target=self._repeat, args=(over,), name="progress", daemon=True), over
                self._thread[0].start()
            if at_once:
                self._tell(phase)

    def end(self, phase: Phase) -> None:
        """Let a phase end."""
        ended = None
        with self._lock:
            self._phases = [other for other in self._phases if other is not phase]
            if self._bar is not None and phase.task is not None:
                self._bar.remove_task(phase.task)
            if not self._phases:
                ended, self._thread = self._thread, None
                if self._bar is not None:
                    self._bar.stop()
                    self._bar = None
        if ended is not None:
            ended[1].set()
            ended[0].join()

    def hear(self, phase: Phase, *, stays: bool) -> None:
        """Take note of how far a phase is."""
        if self._unheard:  # the thread, which saw it, cannot end the process
            raise SystemExit(1)
        with self._lock:
            late = not self._live and time.monotonic() - self._said >= SECONDS
            if (stays or late) and phase in self._phases:
                self._tell(phase)

    def say(self, words: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._said = time.monotonic()
            try:
                if self._live:
                    # Lines that stay are not wrapped, for those who search them; nor do live lines break then.
                    self._console.print(words, soft_wrap=True, markup=False)
                elif sys.stderr is not None:
                    print(words, file=sys.stderr, flush=True)
            except BrokenPipeError:  # what is shown to nobody need not be done, as rich has it, too
                self._unheard = True
                raise SystemExit(1) from None
            except (OSError, ValueError):  # a full disk, a stream that was closed
                pass

    def _tell(self, phase: Phase) -> None:
        if self._live:
            self._draw(phase)
            return
        text = phase.text(timed=False)
        self._last, text = text, phase.text(timed=True) if text == self._last and phase.share != 1 else text
        self.say(text)

    def _draw(self, phase: Phase) -> None:
        """Draw the live line, with all others hidden behind it."""
        if self._bar is None:
            self._bar = _bar(self._console)
            self._bar.start()
        if phase.task is None:
            phase.task = self._bar.add_task("", total=None)
        for other in self._phases:
            if other.task is not None:
                self._bar.update(other.task, visible=other is phase)
        total = None if phase.share is None else 1.0
        self._bar.update(phase.task, total=total, completed=phase.share or 0.0)
        self._bar.update(phase.task, description=phase.text(timed=phase.share is None))
        self._bar.refresh()

    def _repeat(self, over: Event) -> None:
        try:
            self._go_on(over)
        except SystemExit:
            self._unheard = True

    def _go_on(self, over: Event) -> None:
        while not over.wait(LOOK):
            with self._lock, suppress(OSError, ValueError):
                if not self._phases:
                    continue
                phase, now = self._phases[-1], time.monotonic()
                if now - phase.since < FIRST / 2 and self._bar is None:
                    continue
                told, waited = self._last == phase.text(timed=False), now - max(self._said, phase.since)
                if self._live:
                    self._draw(phase)
                elif now - self._said >= SECONDS or (not told and waited >= FIRST):
                    self._tell(phase)


class _Hushed:
    """Stands for a teller that is to say nothing."""


_HUSHED = _Hushed()
_teller: ContextVar[Teller | _Hushed | None] = ContextVar("teller", default=None)
_telling: list[Teller] = []
_steps: list[None] = []


@contextmanager
def shown(*, quiet: bool = False) -> Iterator[None]:
    """Within the block phases are shown, unless it is `quiet`; blocks within it change nothing."""
    if _teller.get() is not None and not quiet:
        yield
        return
    teller = _HUSHED if quiet else Teller()
    token = _teller.set(teller)
    if isinstance(teller, Teller):
        _telling.append(teller)
    try:
        yield
    finally:
        _teller.reset(token)
        if isinstance(teller, Teller):
            _telling.remove(teller)


def phase(words: str, *, at_once: bool = False) -> Phase:
    """What is done within the block; it is said `at_once`, or as soon as it has taken a while."""
    teller = _teller.get()
    return Phase(words, teller if isinstance(teller, Teller) else None, at_once=at_once)


def began() -> float:
    """When that began which is shown, a command for example, as `time.monotonic` tells it; now, where nothing is."""
    teller = _teller.get()
    return teller.began if isinstance(teller, Teller) else time.monotonic()


def own_teller() -> Teller | None:
    """The teller of the block around, another one outside of all, and none where nothing is to be said."""
    teller = _teller.get()
    return Teller() if teller is None else teller if isinstance(teller, Teller) else None


def track(steps: Iterable[tuple[int, T]], total: int, what: str) -> Iterator[T]:
    """Yield the values of `steps`, (size, value) pairs whose sizes add up to `total`, and show how far it is."""
    if total < 1:
        raise PcdnetError(f"there are {total} {what}; give at least 1")
    done, start = 0, time.monotonic()
    with Phase(what, own_teller(), dots=False) as now:
        for size, value in steps:
            yield value
            done += size
            rate = done / max(time.monotonic() - start, 1e-9)
            words = f"{done}/{total}  {rate:.0f} a second  ETA {max(0, total - done) / rate:.0f} s"
            now(words, done / total, stays=done >= total)


def counting(values: Iterable[T], total: int | None, words: str) -> Iterator[T]:
    """Pass values through, within a phase that says how many there were."""
    with phase(words) as now:
        for number, value in enumerate(values, start=1):
            yield value
            now(f"{number:,}" if total is None else f"{number:,} of {total:,}", number / total if total else None)


def compiling() -> Callable[[], None]:
    """Say that the search is compiled, to whoever is shown anything; what is returned ends that."""
    teller = _teller.get()
    tellers = [teller] if isinstance(teller, Teller) else [] if teller is not None else list(_telling)
    stack = ExitStack()
    for each in tellers:
        stack.enter_context(Phase(COMPILING, each))
    return stack.close


@contextmanager
def stepping() -> Iterator[None]:
    """Within the block work is done in steps, between which it can be ended well; elsewhere it is ended at once."""
    _steps.append(None)
    try:
        yield
    finally:
        _steps.pop()


def in_steps() -> bool:
    """Whether whoever wants the work to end should wait for the step that is being made."""
    return bool(_steps)


def clock(seconds: float) -> str:
    """A time as 0:07, 2:10 or 1:02:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(console: Console) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    whole = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    # Results are not progress: what is printed on stdout goes there.
    return Progress(
        *(BarColumn(bar_width=BAR), whole), console=console, transient=True, auto_refresh=False, redirect_stdout=False
    )
