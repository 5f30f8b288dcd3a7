"""Laws of `pcdnet data`: scenes and recorded games become files that are read back with their ground truth."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.data import atari, npz, space_invaders
from pcdnet.data.tetrominoes import generate
from tests.cli.conftest import Complaint

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two games from near their beginning, and a cache of its own."""
    monkeypatch.setattr(atari, "_GAMES", 2)
    monkeypatch.setattr(atari, "_LATEST_START", 200)
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def emulator() -> None:
    """Skip where games cannot be played."""
    pytest.importorskip("ale_py", reason="needs ale-py: pip install 'pcdnet[atari]'")


def test_data_writes_the_scenes_of_the_seed(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "a.npz"
    assert main(["data", "tetrominoes", "--count", "4", "--seed", "2", "--out", str(target)]) == 0
    np.testing.assert_array_equal(np.load(target)["image"], generate(4, seed=2).images)
    printed, complaints = capsys.readouterr()
    assert printed.startswith(f"wrote {target}: 4 re-created Tetrominoes, seed 2\n")
    assert complaints == ""


def test_data_overwrites_only_by_force(tmp_path: Path, complaint: Complaint) -> None:
    target = tmp_path / "a.npz"
    target.write_bytes(b"precious")
    command = ["data", "tetrominoes", "--count", "1", "--out", str(target)]
    assert "use --force to overwrite it" in complaint(*command)
    assert target.read_bytes() == b"precious"
    assert main([*command, "--force"]) == 0
    assert len(np.load(target)["image"]) == 1


@pytest.mark.parametrize(("failure", "code"), [(KeyboardInterrupt, 130), (MemoryError, 1)])
def test_an_interruption_leaves_no_file(
    failure: type[BaseException], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(count: int, seed: int) -> None:
        raise failure

    monkeypatch.setattr("pcdnet.data.tetrominoes.generate", fail)
    assert main(["data", "tetrominoes", "--out", str(tmp_path / "a.npz")]) == code
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_space_invaders_are_read_back_with_their_boxes(emulator: None, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "a.npz"
    assert main(["data", "space-invaders", "--count", "3", "--seed", "2", "--out", str(target)]) == 0
    printed, progress = capsys.readouterr()
    assert printed == (
        f"wrote {target}: 3 frames of Space Invaders, seed 2\n"
        f"next: pcdnet train --preset space-invaders --data {target} --out runs/first\n"
    )
    assert progress.startswith("frames 3/3 ")
    read, recorded = npz.read(target), space_invaders.generate(3, 2)
    np.testing.assert_array_equal(read.images, recorded.images)
    assert (read.kinds, read.scored) == (recorded.kinds, recorded.scored)
    for one, other in zip(read.boxes or (), recorded.boxes or (), strict=True):
        np.testing.assert_array_equal(one.corners, other.corners)
        np.testing.assert_array_equal(one.kinds, other.kinds)


def test_any_game_is_read_back_without_ground_truth(emulator: None, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "a.npz"
    assert main(["data", "atari:pong", "--count", "2", "--out", str(target)]) == 0
    assert capsys.readouterr().out.startswith(f"wrote {target}: 2 frames of pong, seed 0\nnext: pcdnet train --data ")
    read = npz.read(target)
    np.testing.assert_array_equal(read.images, atari.generate(2, 0, "pong").images)
    assert read.boxes is None
    assert read.labels is None


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (
            ["tetris", "--out", "a.npz"],
            "use tetrominoes (generated), letters (generated), multi-dsprites (re-created), symbols (generated), ",
        ),
        (["space-invaders", "--out", "a.txt"], "use a.npz"),
        (["tetrominoes", "--count", "1", "--out", "missing/a.npz"], "choose another place"),
        (["space-invaders", "--count", "0", "--out", "a.npz"], "at least 1"),
        (["atari:pong", "--seed", "-1", "--out", "a.npz"], "0 or a positive integer"),
    ],
)
def test_mistakes_name_their_cure(arguments: list[str], cure: str, complaint: Complaint) -> None:
    assert cure in complaint("data", *arguments)


def test_an_unknown_game_is_answered_with_the_likeliest(emulator: None, tmp_path: Path, capsys: Capture) -> None:
    assert main(["data", "atari:Ms-Pacman", "--out", str(tmp_path / "a.npz")]) == 1
    assert "use ms_pacman" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["space-invaders", "atari:pong"])
def test_without_the_emulator_the_line_to_install_it_is_shown(
    source: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    assert main(["data", source, "--out", str(tmp_path / "a.npz")]) == 1
    assert capsys.readouterr().err.endswith("pip install 'pcdnet[atari]'\n")
    assert not list(tmp_path.iterdir())
