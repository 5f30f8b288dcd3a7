"""Laws of the fleet: so many processes at a time, what each says under its name, and none is left behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from pcdnet.training import fleet
from pcdnet.training.display import LiveLines
from pcdnet.training.fleet import run_side_by_side, threads_for

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests are run in, lines are plain."""
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr(fleet, "WAIT", 0.01)


def script(code: str) -> list[str]:
    """A command that starts quickly."""
    return [sys.executable, "-ISc", f"import os, signal, sys, time\ndef say(text): os.write(2, text.encode())\n{code}"]


def run(commands: dict[str, list[str]], count: int = 2, stop: object = None) -> dict[str, str]:
    """What is wrong with each of the commands."""
    with LiveLines() as lines:
        return run_side_by_side(commands, count, lines, stop or (lambda: False))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 2])
def test_no_more_run_at_a_time_than_may(count: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = f"def note(sign):\n  with open({str(log)!r}, 'a') as file: file.write(sign)\n"
    names = [f"seed {n}" for n in range(4)]
    done = run(dict.fromkeys(names, script(f"{note}note('+'); time.sleep(0.05); note('-')")), count)
    assert done == dict.fromkeys(names, "")
    signs = log.read_text()
    assert signs.count("-") == 4
    assert all(signs[:place].count("+") - signs[:place].count("-") <= count for place in range(len(signs) + 1))


def test_those_that_may_run_at_a_time_do(tmp_path: Path) -> None:
    def met(own: Path, other: Path) -> list[str]:
        """A command that ends when the other has begun."""
        return script(f"open({str(own)!r}, 'w')\nwhile not os.path.exists({str(other)!r}): time.sleep(0.01)")

    a, b = tmp_path / "a", tmp_path / "b"
    begun = time.monotonic()
    ended = run({"a": met(a, b), "b": met(b, a)}, 2, lambda: time.monotonic() > begun + 30)
    assert ended == {"a": "", "b": ""}


def test_what_each_says_is_shown_under_its_name(capsys: Capture) -> None:
    run({"seed 3": script("say('step 5  loss 0.1\\n\\nnote: [bold]odd\\n')"), "seed 4": script("say('validation')")})
    printed, said = capsys.readouterr()
    assert printed == ""
    lines = said.splitlines()
    assert {"seed 3  step 5  loss 0.1", "seed 3  note: [bold]odd", "seed 4  validation"} < set(lines)
    assert [line for line in lines if line.startswith("seed 3")][-1] in ("seed 3  done, 1 of 2", "seed 3  done, 2 of 2")


def test_in_a_terminal_there_is_a_line_for_each_that_runs(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "60")
    with LiveLines() as lines:
        lines.update("seed 0", "step 1  loss 0.1")
        lines.update("seed 1", "step 2  loss 0.1" + " and so on" * 9)
        lines.update("seed 0", "step 3  loss 0.1")
        lines.say("seed 0", "validation")
        time.sleep(0.2)  # it is drawn ten times a second
        lines.end("seed 1")
    said = capsys.readouterr().err
    assert "seed 0  validation\n" in said
    assert "seed 0  step 3" in said
    assert "and so on and so on and so on and so on and so on" not in said  # cut off, as it would take a second line


def test_one_that_fails_does_not_stop_the_others_and_its_reason_is_known() -> None:
    commands = {
        "a": script("say('pcdnet: no such file; give another\\n'); sys.exit(1)"),
        "b": script("sys.exit(5)"),
        "c": script("os.kill(os.getpid(), 9)"),
        "d": script("sys.exit(3)"),
    }
    problems = {
        "a": "no such file; give another",
        "b": "ended with exit code 5",
        "c": "was killed by signal 9",
        "d": "",
    }
    assert run(commands, 1) == problems


def test_asked_to_stop_those_that_run_end_by_themselves_and_no_other_begins(tmp_path: Path, capsys: Capture) -> None:
    ready = tmp_path / "ready"
    code = (
        f"signal.signal(15, lambda *_: (say('finishing\\npcdnet: stopped\\n'), sys.exit(130)))\n"
        f"open({str(ready)!r}, 'w'); time.sleep(60)"
    )
    assert run({"a": script(code), "b": script("sys.exit(0)")}, 1, ready.exists) == {"a": "stopped"}
    assert capsys.readouterr().err.splitlines() == ["a  getting ready"]


def test_whatever_ends_the_fleet_ends_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "PATIENCE", 0.2)
    stubborn = "signal.signal(15, signal.SIG_IGN)\n"
    commands = {
        name: script(f"{code}open({str(tmp_path / name)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
        for name, code in (("a", ""), ("b", stubborn))
    }

    def stop() -> bool:
        if all((tmp_path / name).is_file() and (tmp_path / name).read_text() for name in commands):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(commands, 2, stop)
    for name in commands:
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / name).read_text()), 0)


def test_threads_are_shared_fairly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [threads_for(count) for count in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads_for(2) == 2


def test_every_process_has_its_share_of_the_threads(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "6")
    run({name: script("say(os.environ['OMP_NUM_THREADS'])") for name in "abc"}, 9)
    assert {f"{name}  2" for name in "abc"} < set(capsys.readouterr().err.splitlines())
