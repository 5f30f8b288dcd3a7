"""Laws of exporting a model as an ONNX file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from pcdnet.errors import PcdnetError
from pcdnet.model import onnx as to_file
from pcdnet.model.onnx import export_onnx, to_onnx
from pcdnet.model.onnx.parity import Parity, run
from tests.model.onnx.models import SIZE, random_model


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = random_model(0)
    monkeypatch.setattr(to_file, "find_spec", {}.get)
    with pytest.raises(PcdnetError, match="need onnx, which is missing; run: pip install 'pcdnet\\[onnx\\]'"):
        to_onnx(model, SIZE)
    with pytest.raises(PcdnetError, match="need onnxruntime, which is missing"):
        run(b"", torch.zeros(1, 3, *SIZE))


def test_an_export_is_written_compared_and_described(tmp_path: Path) -> None:
    model, _ = random_model(0, background="still")
    written = export_onnx(model, tmp_path / "model.onnx", batch=2)
    assert written.path.read_bytes() == to_onnx(model, SIZE, 2)
    assert written.bytes == written.path.stat().st_size
    assert written.shape == (2, 3, *SIZE)
    assert written.parity is not None
    assert written.parity.as_good
    assert written.parity.objects > 0


def test_an_export_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    model, _ = random_model(0)
    with pytest.raises(PcdnetError, match=r"model.bin is no .onnx file; use .*model.onnx"):
        export_onnx(model, tmp_path / "model.bin", size=SIZE)
    with pytest.raises(PcdnetError, match="does not say how large its images are; give size"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_file_that_finds_other_objects_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = random_model(0)
    wrong = Parity(objects=4, shared=1, difference=0.5, as_good=False)
    monkeypatch.setattr("pcdnet.model.onnx.parity.compare", lambda *_: wrong)
    with pytest.raises(PcdnetError, match="was written, but onnxruntime finds only 1 of 4 objects.*; do not use it"):
        export_onnx(model, tmp_path / "model.onnx", size=SIZE)


def test_without_onnxruntime_the_file_is_written_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = random_model(0)
    monkeypatch.setattr(to_file, "find_spec", lambda name: None if name == "onnxruntime" else find_spec(name))
    written = export_onnx(model, tmp_path / "model.onnx", size=SIZE)
    assert written.parity is None
    assert written.path.is_file()
