"""Laws of writing files: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcdnet.errors import PcdnetError
from pcdnet.files import folder, whole_file


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
