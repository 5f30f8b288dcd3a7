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
import tyro
from pcdnet.cli.origin import Origin
from pcdnet.training.run import Run

from pcdnet.cli import export, main
from pcdnet.cli.export import Export
from pcdnet.config import Config, ModelConfig
from pcdnet.data.tetrominoes import generate, true_prototypes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import parity
from pcdnet.names import Names

Capture = pytest.CaptureFixture[str]


def run_of(folder: Path, bank: PrototypeBank, config: ModelConfig) -> Path:
    Run.create(folder, Config(model=config)).save_weights(PCDNet.from_bank(bank, config))
    return folder


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run with the true prototypes of Tetrominoes."""
    prototypes, masks = true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    folder = run_of(tmp_path / "true", bank, Config.preset("tetrominoes").model)
    Origin(data="tetrominoes").write(folder)
    return folder


@pytest.fixture
def grey(tmp_path: Path) -> Path:
    """A grey run with a background of 20x30."""
    rng = torch.Generator().manual_seed(0)
    shapes = torch.rand(2, 5, 5, generator=rng)
    bank = PrototypeBank(shapes, torch.ones(2, 5, 5), torch.full((1, 20, 30), 0.2))
    config = ModelConfig(
        num_prototypes=2, prototype_size=(5, 5), max_objects=2, peaks_per_prototype=2, channels=1, background=True
    )
    return run_of(tmp_path / "grey", bank, config)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(arguments: list[str]) -> Export:
        assert arguments.pop(0) == "export"
        return tyro.cli(Export, args=arguments, config=(tyro.conf.FlagCreatePairsOff,))

    monkeypatch.setattr("pcdnet.cli.parse", parse)


def complaint_of(capsys: Capture, *arguments: object) -> str:
    """What the command says, in its one line, when it must fail."""
    capsys.readouterr()
    assert main(["export", *map(str, arguments)]) == 1
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert complaint.startswith("pcdnet: ")
    assert complaint.count("\n") == 1
    return complaint


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


def test_names_of_prototypes_are_in_the_file(grey: Path, tmp_path: Path) -> None:
    Names(prototypes=2, given={1: "ball"}).write(grey)
    assert main(["export", str(grey), "--onnx", str(tmp_path / "a.onnx")]) == 0
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    words = session.get_modelmeta().custom_metadata_map
    assert json.loads(words["prototype_names"]) == ["prototype 0", "ball"]
    assert json.loads(words["image_size"]) == [20, 30]


def test_the_size_is_asked_for_where_nothing_tells_it(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    Origin(data="film.mp4").write(trained)
    assert "give --size HEIGHT WIDTH" in complaint_of(capsys, trained, "--onnx", path)
    (trained / "origin.json").unlink()
    assert "give --size HEIGHT WIDTH" in complaint_of(capsys, trained, "--onnx", path)
    assert not path.exists()
    assert main(["export", str(trained), "--onnx", str(path), "--size", "40", "50"]) == 0
    assert "1 x 3 x 40 x 50" in capsys.readouterr().out


def test_mistakes_leave_no_file(trained: Path, grey: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.onnx"
    assert "is no .onnx file; use" in complaint_of(capsys, trained, "--onnx", tmp_path / "model.bin")
    assert "smaller than the prototypes" in complaint_of(capsys, trained, "--onnx", path, "--size", 20, 20)
    assert "the background of 20x30" in complaint_of(capsys, grey, "--onnx", path, "--size", 20, 20)
    assert "the batch is 0" in complaint_of(capsys, grey, "--onnx", path, "--batch", 0)
    assert "is no run" in complaint_of(capsys, tmp_path, "--onnx", path)
    assert "cannot write" in complaint_of(capsys, grey, "--onnx", tmp_path / "none" / "model.onnx")
    assert not [each for each in tmp_path.iterdir() if each.is_file()]


def test_without_onnxruntime_the_file_is_written_unchecked(
    grey: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "find_spec", {}.get)
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
