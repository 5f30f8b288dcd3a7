"""Laws of writing files: whole or not at all, and by one process at a time."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tomllib
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data.inputs import find_inputs
from pcdnet.errors import PcdnetError, Setting, Unwritable
from pcdnet.files import (
    added_to,
    at_most,
    checksum,
    expanded,
    folder,
    lock,
    locked_file,
    nameable,
    sealed_json,
    sealed_toml,
    unsealed_json,
    unsealed_toml,
    whole_file,
    with_ending,
)


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


def test_a_path_that_no_file_can_be_called_is_refused_with_one_that_can() -> None:
    assert with_ending("a.html", ".html") == Path("a.html")
    for path, better in (("a.txt", "a.html"), ("", "pcdnet.html"), ("/", "/pcdnet.html")):
        with pytest.raises(PcdnetError, match=f"; use {better}$"):
            with_ending(path, ".html")


def test_a_file_may_be_called_as_a_home_folder_of_nobody() -> None:
    assert expanded("~") == Path.home()
    assert expanded("~no such user/a.png") == Path("~no such user/a.png")


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


@pytest.mark.parametrize("durable", [False, True])
def test_a_full_disk_leaves_the_file_as_it_was(durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync" if durable else "pathlib.Path.replace", full)
    with pytest.raises(Unwritable, match="cannot write .*a.bin: No space left on device; make room"):  # noqa: SIM117
        with whole_file(target, "make room", durable=durable) as file:
            file.write(b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_lock_keeps_others_out_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()  # of a process that was killed
    with lock(path):
        assert "another process is writing to" in locked_elsewhere(path)
        with pytest.raises(PcdnetError, match="another process is writing to .*; wait for it"), lock(path):
            pass
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), lock(path):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_the_checksum_is_that_of_the_castagnoli_polynomial() -> None:
    assert checksum(b"123456789") == checksum(b"1234", b"", b"56789") == "e3069283"


WORDS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), min_size=1).filter(
    lambda words: "checksum" not in words
)


@given(WORDS, st.sampled_from([None, 1]), st.data())
def test_a_sealed_object_is_read_back_and_no_other(
    words: dict[str, object], indent: int | None, data: st.DataObject
) -> None:
    text = json.dumps(words, indent=indent)
    sealed = sealed_json(text)
    assert unsealed_json(sealed) == unsealed_json(text) == text
    assert json.loads(sealed) == {"checksum": checksum(text.encode()), **words}
    content = bytearray(sealed.encode())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    try:
        found = json.loads(unsealed_json(content.decode()))
    except ValueError:
        return
    # The name of the checksum was hit: the rest is sound, and whoever reads it does not know that name.
    assert found.items() > words.items()


@given(st.integers(0, 10**6), st.data())
def test_a_sealed_file_of_settings_is_read_back_and_no_other(number: int, data: st.DataObject) -> None:
    text = f"[a]\nb = {number}\n"
    sealed = sealed_toml(text)
    assert unsealed_toml(sealed) == (text, True)
    assert unsealed_toml(text) == (text, False)
    assert tomllib.loads(sealed) == {"a": {"b": number}}
    with pytest.raises(ValueError, match="not as it was written.*; if you edited it, remove its first line"):
        unsealed_toml(sealed[: data.draw(st.integers(sealed.index("\n") + 1, len(sealed) - 1))])
    place = data.draw(st.integers(sealed.index("\n") + 1, len(sealed) - 1))
    with pytest.raises(ValueError, match="not as it was written"):
        unsealed_toml(f"{sealed[:place]}{chr(ord(sealed[place]) ^ 1)}{sealed[place + 1 :]}")


def test_a_small_file_takes_little_memory_however_much_it_may_hold(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"content")
    tracemalloc.start()
    try:
        assert at_most(tmp_path / "small", 2**32) == b"content"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_what_is_written_never_goes_through_a_link_or_into_a_pipe(tmp_path: Path) -> None:
    ours, folder = tmp_path / "ours.txt", tmp_path / "theirs"
    ours.write_bytes(b"precious")
    folder.mkdir()
    for kind, name in enumerate(("a.partial", "a.lock", "a.log")):
        place = folder / name
        for make in (place.symlink_to, lambda _, place=place: os.mkfifo(place)):
            make(ours)
            if kind == 0:
                with whole_file(folder / "a") as file:
                    file.write(b"x")
                assert (folder / "a").read_bytes() == b"x"
                assert not (folder / "a").is_symlink()
            elif kind == 1:
                with pytest.raises(PcdnetError, match=r"cannot write .*a\.lock: .*; choose another out"):
                    locked_file(place)
            else:
                with pytest.raises(OSError, match="."):
                    added_to(place)
            place.unlink(missing_ok=True)
        place.symlink_to(tmp_path / "nothing")  # and none is made where a link leads
        with suppress(PcdnetError, OSError), locked_file(place) if kind == 1 else added_to(place):
            pytest.fail("it was opened")
        place.unlink()
    assert ours.read_bytes() == b"precious"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name: str, tmp_path: Path) -> None:
    complaint = r"no file can be called '.*'; choose another name"
    with pytest.raises(PcdnetError, match=complaint):
        folder(tmp_path / name)
    with pytest.raises(PcdnetError, match=complaint), whole_file(tmp_path / name):
        pytest.fail("it was opened")
    with pytest.raises(PcdnetError, match=complaint):
        find_inputs([str(tmp_path)], without=tmp_path / name)
    assert nameable(tmp_path / "a\udcff") == tmp_path / "a\udcff"  # bytes that are no text are a name
