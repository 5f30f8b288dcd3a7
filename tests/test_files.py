"""Laws of writing files: whole or not at all, and by one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import folder, locked_file, whole_file


def test_a_file_takes_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    with whole_file(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_processes_that_share_a_file_do_not_share_its_partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.bin"
    with whole_file(target, shared=True) as ours:
        ours.write(b"ours")
        monkeypatch.setattr("os.getpid", lambda: -1)
        with whole_file(target, shared=True) as theirs:
            theirs.write(b"theirs")
        assert target.read_bytes() == b"theirs"
    assert target.read_bytes() == b"ours"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
def test_whatever_goes_wrong_leaves_nothing_behind(failure: BaseException, tmp_path: Path) -> None:
    def write() -> None:
        with whole_file(tmp_path / "a.bin") as file:
            file.write(b"half")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "missing" / "a.bin", tmp_path / "folder"):
        with pytest.raises(PcdnetError, match=f"cannot write {target}: .*; choose another place"), whole_file(target):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_may_exist_but_not_as_a_file(tmp_path: Path) -> None:
    assert folder(tmp_path / "a" / "b").is_dir()
    assert folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "c").write_bytes(b"")
    with pytest.raises(PcdnetError, match="cannot make the folder"):
        folder(tmp_path / "c")


def test_the_message_of_a_failed_write_ends_with_the_cure_of_the_caller(tmp_path: Path) -> None:
    cure = "choose another ", Setting("out")
    with pytest.raises(PcdnetError, match="; choose another out$") as caught, whole_file(tmp_path / "no" / "a", *cure):
        pass
    assert caught.value.settings == (Setting("out"),)


def locked_elsewhere(path: Path) -> str:
    """What another process is answered that wants the same file."""
    code = f"from pathlib import Path; from pcdnet.files import locked_file; locked_file(Path({str(path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stderr


def test_a_locked_file_keeps_its_content_and_other_processes_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"kept")
    with locked_file(path) as file:
        assert file.read() == b"kept"
        assert f"another process is writing to {tmp_path}; wait for it" in locked_elsewhere(path)
    assert locked_elsewhere(path) == ""
    assert path.read_bytes() == b"kept"


def test_a_file_that_is_not_there_is_made_and_locked(tmp_path: Path) -> None:
    with locked_file(tmp_path / "journal") as file:
        file.write(b"new")
    assert (tmp_path / "journal").read_bytes() == b"new"
    with pytest.raises(PcdnetError, match="cannot write .*; choose another out$"):
        locked_file(tmp_path / "missing" / "journal")
