"""Laws of signals: the first asks, the second stops, and afterwards all is as it was."""

from __future__ import annotations

import os
import signal
from threading import Thread

import pytest

from pcdnet.cli.signals import interrupted_by_sigterm, stop_on_signal
from pcdnet.progress import stepping

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_second_signal_stops_at_once(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # tests may run as a background job, which ignores Ctrl-C
    try:
        with stop_on_signal() as stop, stepping():
            assert not stop()
            signal.raise_signal(number)
            assert stop()
            assert capfd.readouterr().err == "\nfinishing the step; Ctrl-C again stops at once\n"
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_not_done_in_steps_ends_at_once(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with stop_on_signal() as stop:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
            assert not stop()
    finally:
        signal.signal(number, before)


def test_a_request_to_terminate_is_an_interruption_in_the_main_thread_alone() -> None:
    with pytest.raises(KeyboardInterrupt), interrupted_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    found: list[object] = []

    def elsewhere() -> None:
        with interrupted_by_sigterm():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_what_fails_because_it_was_terminated_is_an_interruption() -> None:
    def half_imported() -> None:  # as numpy is then
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise RecursionError from None

    with pytest.raises(KeyboardInterrupt), interrupted_by_sigterm():
        half_imported()
    with pytest.raises(ZeroDivisionError), interrupted_by_sigterm():
        raise ZeroDivisionError


def test_former_handlers_come_back_whatever_happens() -> None:
    former = [signal.getsignal(number) for number in NUMBERS]
    with pytest.raises(ZeroDivisionError), stop_on_signal():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in NUMBERS] == former


def test_a_background_job_goes_on_ignoring_what_it_ignores() -> None:
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop()
    finally:
        signal.signal(signal.SIGINT, former)
