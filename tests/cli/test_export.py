"""Laws of `pcdnet export`: a file that works at once, or one sentence on why there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch

from pcdnet.cli import main
from pcdnet.config import Config, ModelConfig
from pcdnet.data.tetrominoes import generate
from pcdnet.model import onnx
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.onnx import parity
from pcdnet.names import Names
from pcdnet.origin import Origin
from tests.cli.conftest import Complaint
from tests.runs import grey_run, run_of, true_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run with the true prototypes of Tetrominoes, as if trained on a file of images of 35x35."""
    return true_run(tmp_path / "true", Origin(data="scenes.npz", size=(35, 35))).path


@pytest.fixture
def grey(tmp_path: Path) -> Path:
    """A grey run with a background of 20x30."""
    return grey_run(tmp_path / "grey").path


def test_the_file_finds_the_sprites_of_a_generated_scene(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    assert main(["export", str(trained), "--onnx", str(path)]) == 0
    printed, complaints = capsys.readouterr()
    assert complaints == ""
    assert printed.startswith(f"wrote {path}   ")
    assert "1 x 3 x 35 x 35, up to 3 objects\n" in printed
    assert "refinement is not in the file\n" in printed
    assert "checked: onnxruntime finds the same 3 objects" in printed
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    image = generate(1, seed=2).images[0]
    found = session.run(["reconstruction"], {"images": (image.transpose(2, 0, 1) / np.float32(255))[None]})[0]
    assert np.abs(found[0].transpose(1, 2, 0) - image / 255).max() < 0.01
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["model.onnx"]


def test_the_printed_example_runs(grey: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    assert main(["export", str(grey), "--onnx", str(path), "--batch", "2"]) == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert len(lines) == 4
    lines.append("print(reconstruction.shape, instances.shape)")
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert ran.stdout == "(2, 1, 20, 30) (2, 20, 30)\n"


def test_objects_with_poses_are_exported_in_coarse_ones(tmp_path: Path, capsys: Capture) -> None:
    shapes = torch.rand(1, 7, 5, generator=torch.Generator().manual_seed(0))
    turning = ModelConfig(num_prototypes=1, prototype_size=(7, 5), max_objects=2, channels=1, rotations=4, mirror=True)
    bank, path = PrototypeBank(shapes, torch.ones(1, 7, 5)), tmp_path / "model.onnx"
    run_of(tmp_path / "turning", bank, Config(model=turning), Origin())
    assert main(["export", str(tmp_path / "turning"), "--onnx", str(path), "--size", "20", "30"]) == 0
    printed, example = capsys.readouterr().out.split("\n\n")
    assert "objects lie at whole pixels, each in one of 8 poses: what lies between them is not in the file\n" in printed
    lines = [*example.splitlines(), "print(angle.shape, scale.dtype, mirrored.any())"]
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert ran.stdout == "(1, 2) float32 False\n"


def test_names_of_prototypes_are_in_the_file(grey: Path, tmp_path: Path) -> None:
    Names(count=2, given={1: "ball"}).write(grey)
    assert main(["export", str(grey), "--onnx", str(tmp_path / "a.onnx")]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    words = session.get_modelmeta().custom_metadata_map
    assert json.loads(words["prototype_names"]) == ["prototype 0", "ball"]
    assert json.loads(words["image_size"]) == [20, 30]


def test_the_size_is_asked_for_where_nothing_says_it(tmp_path: Path, complaint: Complaint, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    for name, origin in (("film", Origin(data="film.mp4")), ("array", Origin())):
        assert "give --size" in complaint("export", true_run(tmp_path / name, origin).path, "--onnx", path)
    assert not path.exists()
    assert main(["export", str(tmp_path / "film"), "--onnx", str(path), "--size", "40", "50"]) == 0
    assert "1 x 3 x 40 x 50" in capsys.readouterr().out


def test_mistakes_leave_no_file(trained: Path, grey: Path, tmp_path: Path, complaint: Complaint) -> None:
    path = tmp_path / "model.onnx"
    assert "is no .onnx file; use" in complaint("export", trained, "--onnx", tmp_path / "model.bin")
    assert "smaller than the prototypes" in complaint("export", trained, "--onnx", path, "--size", 20, 20)
    assert "use --size 20 30" in complaint("export", grey, "--onnx", path, "--size", 20, 20)
    assert "the batch is 0" in complaint("export", grey, "--onnx", path, "--batch", 0)
    assert "is no run" in complaint("export", tmp_path, "--onnx", path)
    assert "cannot write" in complaint("export", grey, "--onnx", tmp_path / "none" / "model.onnx")
    assert not [each for each in tmp_path.iterdir() if each.is_file()]


def test_without_onnxruntime_the_file_is_written_unchecked(
    grey: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "find_spec", {"onnx": True}.get)
    assert main(["export", str(grey), "--onnx", str(tmp_path / "a.onnx")]) == 0
    assert "not checked, as onnxruntime is missing; run: pip install 'pcdnet[onnx]'\n" in capsys.readouterr().out


def test_a_file_that_finds_other_things_is_no_success(
    grey: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parity.Parity(objects=2, shared=1, difference=0.5, as_good=False)
    monkeypatch.setattr(parity, "compare", lambda *_: found)
    assert main(["export", str(grey), "--onnx", str(tmp_path / "a.onnx")]) == 1
    assert "finds only 1 of 2 objects" in capsys.readouterr().err
    monkeypatch.setattr(parity, "compare", lambda *_: parity.Parity(objects=2, shared=1, difference=0, as_good=True))
    assert main(["export", str(grey), "--onnx", str(tmp_path / "a.onnx")]) == 0
    assert "with 1 of 2 objects the same" in capsys.readouterr().out
