"""Laws of the command line: results on stdout, the rest on stderr, and never a traceback for a user's mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate

Capture = pytest.CaptureFixture[str]


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "pcdnet", *arguments], capture_output=True, text=True, **options)


def test_help_names_every_command_and_keeps_stderr_clean() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for command in ("demo", "train", "eval", "report", "bench", "data"):
        assert command in done.stdout
        assert run(command, "--help").returncode == 0


def test_the_version_is_told(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("pcdnet 0.")


def test_data_writes_the_scenes_of_the_seed(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "a.npz"
    assert main(["data", "tetrominoes", "--count", "4", "--seed", "2", "--out", str(target)]) == 0
    np.testing.assert_array_equal(np.load(target)["image"], generate(4, seed=2).images)
    printed, complaints = capsys.readouterr()
    assert printed.startswith(f"wrote {target}: 4 re-created Tetrominoes, seed 2\n")
    assert complaints == ""


def test_data_overwrites_only_by_force(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "a.npz"
    target.write_bytes(b"precious")
    command = ["data", "tetrominoes", "--count", "1", "--out", str(target)]
    assert main(command) == 1
    assert target.read_bytes() == b"precious"
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert complaint == f"pcdnet: {target} exists already; use --force to overwrite it, or choose another name\n"
    assert main([*command, "--force"]) == 0
    assert len(np.load(target)["image"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--minutes", "0"],
        ["demo", "--seed", "-1"],
        ["demo", "--out", "file"],
        ["data", "tetrominoes", "--count", "0", "--out", "a.npz"],
        ["data", "tetrominoes", "--out", "a.txt"],
        ["data", "tetrominoes", "--count", "1", "--out", "missing/a.npz"],
    ],
)
def test_a_mistake_that_can_be_cured_is_told_in_one_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(arguments) == 1
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert complaint.startswith("pcdnet: ")
    assert complaint.count("\n") == 1
    assert "; " in complaint  # what is wrong; how to cure it


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dmo"],
        ["demo", "--minutes", "many"],
        ["demo", "--minuets", "3"],
        ["train"],
        ["train", "--out", "a", "--model.num-prototypes", "some"],
        ["eval"],
        ["data", "tetris"],
        ["data", "tetrominoes"],
    ],
)
def test_wrong_usage_exits_with_2_and_says_why_on_stderr(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert "--help" in complaint


@pytest.mark.parametrize(("failure", "code"), [(KeyboardInterrupt, 130), (MemoryError, 1)])
def test_an_interruption_takes_one_line(
    failure: type[BaseException], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(count: int, seed: int) -> None:
        raise failure

    monkeypatch.setattr("pcdnet.data.tetrominoes.generate", fail)
    assert main(["data", "tetrominoes", "--out", str(tmp_path / "a.npz")]) == code
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["--help"], ["data", "tetrominoes", "--count", "1", "--out", "a.npz"]])
def test_a_reader_that_went_away_is_no_error_worth_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [sys.executable, "-m", "pcdnet", *arguments]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 141
    assert done.stderr == ""
