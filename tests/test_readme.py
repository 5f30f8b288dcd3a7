"""The README's lines do what they say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from pcdnet.training.run import load

from pcdnet.config import Config, TrainConfig

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_lines_of_python_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they stand, but for fewer scenes and steps."""
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "20_000" in code
    quick = dataclasses.replace(Config.preset("tetrominoes"), train=TrainConfig(steps=4, batch=8))
    monkeypatch.setattr(Config, "preset", staticmethod(lambda _: quick))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code.replace("20_000", "64"), "README.md", "exec"), names)
    assert len(capsys.readouterr().out.splitlines()) == len(names["result"])
    assert names["result"].instances.shape == (35, 35)
    assert load("runs/first").config == quick.model


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures
    assert all((README.parent / picture).is_file() for picture in pictures)
