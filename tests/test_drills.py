"""Laws of the drills: every file has every damage, and a difference that nobody mentions is found."""

from __future__ import annotations

import errno
import mmap
import shutil
from pathlib import Path

import pytest
from benchmarks.damages import FILES, KINDS, damage
from benchmarks.drilling.disks import Disk
from benchmarks.drills import further, outcome, results, stopped_run

from pcdnet.data.tetrominoes import generate
from pcdnet.output.dataset import save_scenes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped half way."""
    folder = tmp_path_factory.mktemp("drill")
    save_scenes(generate(20, seed=1), folder / "small.npz")
    return stopped_run(folder / "small.npz", folder / "run")


def test_all_files_have_all_damages_and_each_changes_something(run: Path, tmp_path: Path) -> None:
    done = set()
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    for number in range(len(FILES) * len(KINDS)):
        copy = shutil.copytree(run, tmp_path / str(number))
        done.add(damage(copy, number, seed=3))
        assert {path.name: path.read_bytes() for path in copy.iterdir()} != before
    assert done == {f"{name} {kind.__name__}" for name in FILES for kind in KINDS}


def test_a_difference_that_nobody_mentions_is_silent_and_a_wrong_bit_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {name: ask() for name, ask in results(shutil.copytree(run, tmp_path / "sound"))}
    assert outcome(shutil.copytree(run, tmp_path / "same"), expected) == "same"
    wrong = shutil.copytree(run, tmp_path / "wrong")
    content = bytearray((wrong / "weights.safetensors").read_bytes())
    content[-9] ^= 1
    (wrong / "weights.safetensors").write_bytes(content)
    believed = shutil.copytree(wrong, tmp_path / "believed")
    assert outcome(wrong, expected) == "refused"
    monkeypatch.setattr("pcdnet.model.storage._unsealed", lambda _: ({}, None))
    assert outcome(believed, expected) == "silent: eval gives another result"
    monkeypatch.setattr("pcdnet.run.RunFolder.load_model", lambda *_: 1 / 0)
    assert outcome(believed, expected).startswith("traceback: eval Traceback")


@pytest.mark.parametrize("mode", ["wb", "r+b", "a", "w"])
def test_a_disk_is_full_at_its_last_byte_for_all_files_together(mode: str, tmp_path: Path) -> None:
    used = mmap.mmap(-1, 8)
    disk = Disk(10, used)
    with disk.opened(tmp_path / "first", "wb", 0) as file:
        file.write(b"123456")
    (tmp_path / "second").touch()
    words = b"7890" if "b" in mode else "7890"
    with disk.opened(tmp_path / "second", mode) as file:
        file.write(words)
    assert int.from_bytes(used[:8], "little") == 10
    full = disk.opened(tmp_path / "third", "wb", 0)
    with pytest.raises(OSError, match="No space left") as caught:
        full.write(b"x")
    full.close()
    assert caught.value.errno == errno.ENOSPC
    with disk.opened(tmp_path / "second", "rb") as file:
        assert file.read() == b"7890"


def test_a_drill_that_lacks_what_it_needs_is_said_to_be_untried(capsys: pytest.CaptureFixture[str]) -> None:
    assert further("nowhere", 0, 0) is None
    assert not capsys.readouterr().out
    assert further("nowhere", 3, 0) is None
    assert "nowhere: not tried, as benchmarks.drilling.nowhere is missing; install it" in capsys.readouterr().out
