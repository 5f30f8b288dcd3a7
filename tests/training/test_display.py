"""Laws of the display: numbers for people, on stderr, and lines that stay for what happened."""

from __future__ import annotations

import dataclasses
import time

import pytest

from pcdnet.training import display
from pcdnet.training.display import TrainingDisplay, clock, line, summary
from pcdnet.training.evaluation import Evaluation
from pcdnet.training.events import told
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
        prototypes=19,
        images_per_second=612.3,
        seconds=step / 10,
        eta=(1000 - step) * 1.3,
        validation=validation,
        events=events,
    )


def test_the_line_tells_what_matters() -> None:
    assert line(progress(900)) == "step 900  loss 0.0034  prototypes in use 17/19  612 images/s  ETA 2:10"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00"), (7.4, "0:07"), (130, "2:10"), (3723, "1:02:03"), (-1, "0:00")]
)
def test_times_are_written_as_on_a_clock(seconds: float, words: str) -> None:
    assert clock(seconds) == words


def test_the_summary_tells_the_best_score_that_is_known() -> None:
    rest = "MSE 2.1e-04  2.50 objects per image"
    boxes = dataclasses.replace(SCORES, fg_ari=None, perfect=None, f1=0.75, ap50=0.5)
    assert summary(dataclasses.replace(SCORES, f1=0.75, ap50=0.5)) == f"FG-ARI 0.9123  perfect 50.0 %  {rest}"
    assert summary(boxes) == f"F1 0.7500  AP50 0.5000  {rest}"
    assert summary(dataclasses.replace(boxes, ap50=None)) == f"F1 0.7500  {rest}"
    assert summary(dataclasses.replace(boxes, f1=None, ap50=None)) == rest


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
    monkeypatch.setattr("pcdnet.training.display.time.monotonic", lambda: now)
    with TrainingDisplay() as show:
        for step in range(1, 1001):
            now += 0.1
            show(progress(step))
    steps = [int(text.split()[1]) for text in capsys.readouterr().err.splitlines()]
    assert steps[0] == 1
    assert steps[-1] == 1000
    assert len(steps) == pytest.approx(100 / display.SECONDS, abs=2)


def test_many_prototypes_are_counted_and_few_named() -> None:
    def centred(*prototypes: int) -> list[dict[str, object]]:
        return [{"step": 5, "event": "centre", "prototype": p, "source": p} for p in prototypes]

    assert told(centred(1)) == [(5, "prototype 1 moved to the centre")]
    assert told(centred(1, 2, 4)) == [(5, "prototypes 1, 2 and 4 moved to the centre")]
    assert told(centred(*range(9))) == [(5, "9 prototypes moved to the centre")]
