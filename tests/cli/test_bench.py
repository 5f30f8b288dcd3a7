"""Laws of `pcdnet bench`: it measures on the run's own images, or on those that are named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from tests.cli.conftest import Complaint

Capture = pytest.CaptureFixture[str]


def test_it_prints_one_json_object_or_a_sentence(trained: Path, capsys: Capture) -> None:
    assert main(["bench", str(trained), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images_per_second"] > 0
    assert 0 <= figures["objects_per_image"] <= 3
    assert figures["batch"] == 8  # all that were kept apart from training
    assert figures["device"] == "cpu"
    assert main(["bench", str(trained)]) == 0
    printed = capsys.readouterr().out
    assert "images/s" in printed
    assert f"the median of {figures['repeats']} batches of 8 images on cpu" in printed


def test_it_takes_a_batch_of_what_is_named(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "few.npz", image=generate(3, seed=0).images)
    for name, batch in ((str(tmp_path / "few.npz"), 3), ("tetrominoes", 64)):
        assert main(["bench", str(trained), "--data", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["batch"] == batch


def test_mistakes_name_their_cure(trained: Path, tmp_path: Path, complaint: Complaint) -> None:
    assert "is no run" in complaint("bench", tmp_path)
    assert "use tetrominoes" in complaint("bench", trained, "--data", "tetris")
    assert "--device cpu" in complaint("bench", trained, "--device", "abacus")
