"""Laws of the display: numbers for people, on stderr, and lines that stay for what happened."""

from __future__ import annotations

import time

import pytest

from pcdnet import progress as telling
from pcdnet.progress import clock
from pcdnet.training.display import TrainingDisplay, line
from pcdnet.training.evaluation import Evaluation
from pcdnet.training.loop import Progress
from pcdnet.training.reset import Event

SCORES = Evaluation(
    scenes=9,
    fg_ari=0.91234,
    ari=0.8,
    miou=0.7,
    count_accuracy=0.9,
    perfect=0.5,
    mse=0.00021,
    objects=2.5,
    parameters=7,
    images_per_second=70.0,
    seconds=0.1,
)


def progress(step: int, *, validation: Evaluation | None = None, events: tuple[Event, ...] = ()) -> Progress:
    return Progress(
        step=step,
        steps=1000,
        loss=0.0034,
        in_use=17,
        num_prototypes=19,
        images_per_second=612.3,
        seconds=step / 10,
        eta=(1000 - step) * 1.3,
        validation=validation,
        events=events,
    )


def test_the_line_holds_what_matters() -> None:
    assert line(progress(900)) == "step 900  loss 0.0034  prototypes in use 17/19  612 images/s  ETA 2:10"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00"), (7.4, "0:07"), (130, "2:10"), (3723, "1:02:03"), (-1, "0:00")]
)
def test_times_are_written_as_on_a_clock(seconds: float, words: str) -> None:
    assert clock(seconds) == words


@pytest.mark.parametrize("terminal", [False, True])
def test_what_happened_gets_lines_that_stay(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
    with TrainingDisplay() as show:
        show(progress(100, events=(Event(100, "split", 3, 7),)))
        show(progress(101, validation=SCORES))
        show(progress(1000))
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 100  prototype 3 was hardly needed: now a copy of 7\n" in err
    assert "step 101  validation  FG-ARI 0.9123  perfect 50.0 %  MSE 2.1e-04  2.50 objects per image\n" in err
    assert "step 1000  loss 0.0034" in err
    assert ("\x1b" in err) == terminal


def test_the_live_line_stays_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with TrainingDisplay() as show:
        for step in range(1, 5):
            show(progress(step))
            time.sleep(0.1)  # it is drawn ten times a second
    assert capsys.readouterr().err.count("\n") <= 1


def test_without_a_terminal_lines_come_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    now = 1000.0
    monkeypatch.setattr("pcdnet.progress.time.monotonic", lambda: now)
    with TrainingDisplay() as show:
        for step in range(1, 1001):
            now += 0.1
            show(progress(step))
    steps = [int(text.split()[1]) for text in capsys.readouterr().err.splitlines()]
    assert steps[0] == 1
    assert steps[-1] == 1000
    assert len(steps) == pytest.approx(100 / telling.SECONDS, abs=2)
