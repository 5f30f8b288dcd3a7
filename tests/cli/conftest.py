"""A file of scenes, a run that learned a little from it, and what commands say when they fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.output.dataset import save_scenes
from tests.runs import ENDED

SMALL = (
    *("--preset", "tetrominoes", "--train.batch", "8", "--train.validate-every", "3", "--train.steps", "6"),
    *("--model.num-prototypes", "4", "--model.restarts", "0"),
)
"""Options of a training of six steps."""
Complaint = Callable[..., str]


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 80 scenes, of which the last 8 are kept for validation."""
    path = tmp_path_factory.mktemp("data") / "scenes.npz"
    save_scenes(generate(80, seed=1), path)
    return path


@pytest.fixture(scope="package")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps on that file."""
    out = tmp_path_factory.mktemp("runs") / "small"
    assert main(["train", "--data", str(data), "--out", str(out), *SMALL]) in ENDED
    return out


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Complaint:
    """What a command that must fail says, in its one line: what is wrong; how to cure it."""

    def complaint_of(*arguments: object) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 1
        printed, said = capsys.readouterr()
        assert printed == ""
        assert said.startswith("pcdnet: ")
        assert said.count("\n") == 1
        assert "; " in said
        return said

    return complaint_of
