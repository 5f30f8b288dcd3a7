"""Fleet: commands in processes of their own, so many at a time, with a line of each shown as it goes.

Every process has its share of the threads, and is in a session of its own: Ctrl-C reaches this process alone, which
asks the others once to stop. One that outlives this process ends with the next line that nobody reads.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pcdnet.progress import TERMINALS
from pcdnet.training.display import LiveLines

ENDED = (0, 3)
"""The exit codes of a training that came to its end, whatever its verdict."""
PROGRESS = re.compile(r"step \d+  loss |.* \.\.\.(  [\d:]+)?$")
"""How a line begins that tells how far a training is."""
WAIT = 0.1
"""Seconds between two questions whether to stop."""
PATIENCE = 10.0
"""Seconds that a process has to end after it was asked to stop at once."""

_COMPLAINT = "pcdnet: "


@dataclass(slots=True)
class _Process:
    """A command that runs."""

    process: subprocess.Popen[str]
    complaint: str = ""  # why it ends badly, in its own words

    def ask_to_stop(self) -> None:
        # Not an interrupt: a process that was started in the background may ignore it.
        with suppress(OSError):
            self.process.send_signal(signal.SIGTERM)

    def problem(self) -> str:
        """Why it did not come to its end; empty where it did."""
        code = self.process.wait()
        if code in ENDED:
            return ""
        return self.complaint or (f"ended with exit code {code}" if code > 0 else f"was killed by signal {-code}")


def run_side_by_side(
    commands: Mapping[str, Sequence[str]], count: int, lines: LiveLines, stop: Callable[[], bool]
) -> dict[str, str]:
    """Run commands, named, `count` at a time; what is wrong with each that was started, or nothing.

    When `stop` says True, those that run are asked to stop, and no other is started.
    """
    assert count > 0
    waiting = dict(commands)
    running: dict[str, _Process] = {}
    ended: dict[str, str] = {}
    said: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()
    environment = _environment(min(count, len(commands)))
    asked = False
    try:
        while running or (waiting and not asked):
            while waiting and not asked and len(running) < count:
                name = next(iter(waiting))
                running[name] = _started(name, waiting.pop(name), environment, said)
                lines.update(name, "getting ready")
            if not asked and (asked := stop()):
                for each in running.values():
                    each.ask_to_stop()
            with suppress(queue.Empty):
                name, line = said.get(timeout=WAIT)
                if line is not None:
                    _show(name, line, running[name], lines, quiet=asked)
                    continue
                ended[name] = problem = running.pop(name).problem()
                lines.end(name)
                if not asked:
                    lines.say(name, f"{'failed' if problem else 'done'}, {len(ended)} of {len(commands)}")
    finally:
        _end(list(running.values()))
    return ended


def threads_for(processes: int) -> int:
    """A fair share of the threads that this process may use, for each of several."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, (int(allowed) if allowed.isdecimal() and int(allowed) else cores) // max(1, processes))


def _environment(processes: int) -> dict[str, str]:
    """The environment of the processes: their share of the threads, and no terminal."""
    own = {name: value for name, value in os.environ.items() if name not in TERMINALS}
    return {**own, "OMP_NUM_THREADS": str(threads_for(processes))}


def _started(
    name: str,
    command: Sequence[str],
    environment: dict[str, str],
    said: queue.SimpleQueue[tuple[str, str | None]],
) -> _Process:
    """Start a command; a thread passes on its lines, and None when there will be no more."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # what it has to tell is in its folder
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=environment,
        start_new_session=True,
    )

    def pass_on() -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                said.put((name, line.rstrip()))
        said.put((name, None))

    threading.Thread(target=pass_on, daemon=True).start()
    return _Process(process)


def _show(name: str, line: str, process: _Process, lines: LiveLines, *, quiet: bool) -> None:
    """Show a line of a process; `quiet` is for what each of them says of having been asked to stop."""
    if PROGRESS.match(line):
        lines.update(name, line)
        return
    if line.startswith(_COMPLAINT):
        line = process.complaint = line.removeprefix(_COMPLAINT)
    if line and not quiet:
        lines.say(name, line)


def _end(running: Sequence[_Process]) -> None:
    """End processes at once; they have a moment to do so by themselves."""
    for each in running:
        each.ask_to_stop()
    for each in running:
        try:
            each.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
