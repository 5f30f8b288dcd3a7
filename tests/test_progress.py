"""Laws of progress: values pass through, and stdout stays clean."""

from __future__ import annotations

import sys
import time
from threading import active_count

import pytest

from pcdnet import progress
from pcdnet.errors import PcdnetError
from pcdnet.progress import compiling, counting, in_steps, phase, shown, stepping, track

STEPS = [(2, "a"), (2, "b"), (1, "c")]


@pytest.mark.parametrize("terminal", [False, True])
def test_values_pass_in_order_and_stdout_stays_clean(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
    assert list(track(STEPS, 5, "images")) == ["a", "b", "c"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "images" in err
    assert "5/5" in err


def test_without_a_terminal_there_are_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.setattr("pcdnet.progress.SECONDS", 0.0)
    list(track(STEPS, 5, "images"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["images 2/5", "images 4/5", "images 5/5"]
    assert "\x1b" not in "".join(lines)


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(PcdnetError, match="0 images"):
        list(track([], 0, "images"))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words come twenty times as often, so that tests need not wait for them."""
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    for name in ("SECONDS", "FIRST", "LOOK"):
        monkeypatch.setattr(progress, name, getattr(progress, name) / 20)


def test_nothing_is_silent_for_two_seconds() -> None:
    assert progress.SECONDS + progress.LOOK < 2
    assert progress.FIRST + progress.LOOK < 2


def test_what_takes_long_is_named_again_and_again(hasty: None, capsys: pytest.CaptureFixture[str]) -> None:
    with shown(), phase("comparing shapes"):
        time.sleep(0.6)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "comparing shapes ..."
    assert len(lines) >= 3
    assert all(line.startswith("comparing shapes ...  0:0") for line in lines[1:])


def test_the_innermost_phase_is_told_and_then_the_one_around(hasty: None, capsys: pytest.CaptureFixture[str]) -> None:
    with shown(), phase("outer"):
        with phase("inner"):
            time.sleep(0.3)
        time.sleep(0.3)
    told = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert told[0] == "inner"
    assert told[-1] == "outer"
    assert told == sorted(told)


def test_what_is_quick_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        for _ in range(50):
            with phase("quick"):
                pass
    assert capsys.readouterr().err == ""


def test_what_is_to_be_told_at_once_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with shown(), phase("loading", at_once=True):
        assert capsys.readouterr().err == "loading ...\n"


@pytest.mark.parametrize("quiet", [False, True])
def test_outside_of_all_and_when_quiet_nothing_is_told(
    quiet: bool, hasty: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> list[str]:
        end = compiling()
        with phase("working", at_once=True):
            time.sleep(0.2)
        end()
        return list(track(STEPS, 5, "images")) if quiet else []

    if quiet:
        with shown(), shown(quiet=True), shown():  # whoever is quiet is so in all that it calls
            assert work() == ["a", "b", "c"]
    else:
        work()
    assert capsys.readouterr() == ("", "")


def test_values_are_counted_as_they_pass(hasty: None, capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        passed = []
        for n in counting(range(10), 10, "reading photos"):
            time.sleep(0.05)
            passed.append(n)
    assert passed == list(range(10))
    assert "reading photos 9 of 10 ...\n" in capsys.readouterr().err


def test_in_a_terminal_it_is_a_live_line_that_goes(
    hasty: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with shown(), phase("comparing shapes"):
        time.sleep(0.3)
        print("a result")
        print("a note", file=sys.stderr)
    out, err = capsys.readouterr()
    assert out == "a result\n"  # also while the line is there
    assert "comparing shapes ...  0:00" in err
    assert "a note\n" in err
    assert err.endswith("\r\x1b[2K\x1b[?25h\r")  # nothing of it stays


def test_compiling_is_told_to_whoever_is_shown_anything(hasty: None, capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        end = compiling()
        time.sleep(0.2)
        end()
    assert progress.COMPILING in capsys.readouterr().err


def test_no_thread_outlives_the_phases(hasty: None) -> None:
    before = active_count()
    with shown():
        with phase("one"), phase("two"):
            assert active_count() == before + 1
        assert active_count() == before
    assert active_count() == before


def test_an_error_passes_and_ends_the_phase(hasty: None, capsys: pytest.CaptureFixture[str]) -> None:
    with shown():
        with pytest.raises(KeyError), phase("failing"):
            raise KeyError
        time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_steps_are_known_while_they_are_made() -> None:
    assert not in_steps()
    with stepping(), stepping():
        assert in_steps()
    assert not in_steps()
