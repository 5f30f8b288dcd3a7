"""Laws of the event files: they hold what the metrics hold, and nothing is touched before training has begun."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from pcdnet.errors import PcdnetError
from pcdnet.output.tensorboard import board
from pcdnet.training.evaluation import Evaluation
from pcdnet.training.loop import Progress
from tests.runs import true_run

Given = list[tuple[str, int]]
SCORES = Evaluation(scenes=1, mse=0.1, objects=1.0, parameters=1, images_per_second=1.0, seconds=1.0)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """What a writer in TensorBoard's place was given: what it is called, and at which step."""
    seen: Given = []

    class Writer:
        """Notes what it is given."""

        def __init__(self, folder: Path) -> None:
            seen.append((folder.name, -1))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            assert isinstance(value, float | int)
            seen.append((name, step))

        def add_image(self, name: str, picture: np.ndarray, step: int, dataformats: str) -> None:
            assert picture.dtype == np.uint8
            assert picture.shape[2] == len(dataformats) == 3
            seen.append((name, step))

        def close(self) -> None:
            seen.append(("closed", -1))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return seen


def at(step: int, validation: Evaluation | None = None) -> Progress:
    """How far training is."""
    return Progress(
        step=step,
        steps=9,
        loss=0.5,
        in_use=19,
        num_prototypes=19,
        images_per_second=1.0,
        seconds=1.0,
        eta=1.0,
        validation=validation,
        events=(),
    )


def test_lines_are_passed_on_once_and_prototypes_are_shown_at_validations(tmp_path: Path, given: Given) -> None:
    run = true_run(tmp_path / "run")
    with board(run.path) as watch:
        assert given == []
        run.log(step=1, loss=0.5, learning_rate=0.1, in_use=19)
        watch(at(1))
        run.log(step=2, event="split", prototype=1, source=2)
        run.log(step=2, loss=0.4, learning_rate=0.1, in_use=19)
        run.log(step=2, validation={"fg_ari": 0.9, "f1": 0.8})
        watch(at(2, validation=SCORES))
        run.log(step=3, validation={"fg_ari": None, "f1": 0.8})
        watch(at(3))
    assert given == [
        ("tensorboard", -1),
        *((name, 1) for name in ("loss", "lr", "in_use")),
        *((name, 2) for name in ("loss", "lr", "in_use", "fg_ari", "prototypes")),
        ("f1", 3),
        ("closed", -1),
    ]


def test_what_was_written_before_a_run_goes_on_is_written_anew(tmp_path: Path, given: Given) -> None:
    run = true_run(tmp_path / "run")
    run.log(step=1, loss=0.5)
    old = run.path / "tensorboard" / "events.out.tfevents.1"
    old.parent.mkdir()
    old.touch()
    (old.parent / "mine.txt").touch()
    with board(run.path) as watch:
        assert old.exists()
        watch(at(2))
    assert not old.exists()
    assert (old.parent / "mine.txt").exists()
    assert ("loss", 1) in given


def test_without_tensorboard_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(PcdnetError, match=r"pip install 'pcdnet\[tensorboard\]'"), board(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_run_that_never_began_has_no_event_files(tmp_path: Path, given: Given) -> None:
    with board(tmp_path / "run"):
        pass
    assert given == []
    assert not (tmp_path / "run").exists()
