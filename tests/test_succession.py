"""Laws of succession: whenever it is cut off, a run is the old or the new one, and what it was is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcdnet import succession
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json
from pcdnet.succession import ADOPTING, complete, formers, succeed

FILES, FOLDERS = ("config", "weights", "names"), ("edits",)


def make(folder: Path, mark: str, *names: str) -> None:
    """Files that say whose they are."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{mark} {name}", encoding="utf-8")


def held(folder: Path) -> dict[str, str]:
    """What a run holds, but for former models."""
    files = [folder / name for name in FILES] + sorted((folder / "edits").glob("*"))
    return {str(f.relative_to(folder)): f.read_text(encoding="utf-8") for f in files if f.is_file()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run and a candidate in it that has no names, and other edits."""
    make(tmp_path, "old", "config", "weights", "names", "edits/a", "edits/b", "origin")
    make(tmp_path / "candidate", "new", "config", "weights", "edits/b", "edits/c")
    return tmp_path


def test_the_new_takes_the_place_of_the_old_which_is_kept_and_comes_back(run: Path) -> None:
    old, new = held(run), held(run / "candidate")
    kept = succeed(run, "candidate", FILES, FOLDERS)
    assert held(run) == new
    assert held(kept) == old
    assert formers(run) == [1]
    assert sorted(each.name for each in run.iterdir()) == ["config", "edits", "former", "origin", "weights"]
    succeed(run, "former/1", FILES, FOLDERS)
    assert held(run) == old
    assert formers(run) == [2]
    assert held(run / "former/2") == new


class Killed(BaseException):
    """Stands for a signal that nobody can handle."""


def test_cut_off_anywhere_a_run_is_one_of_the_two(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = held(run), held(run / "candidate")
    take, unlink, rename = succession._take, Path.unlink, Path.rename
    left = [0]

    def counted() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    def taking(source: Path, target: Path) -> None:
        counted()
        take(source, target)

    def unlinking(path: Path, missing_ok: bool = False) -> None:
        if path.name == ADOPTING:
            counted()
        unlink(path, missing_ok)

    def renaming(path: Path, target: Path) -> Path:
        counted()
        return rename(path, target)

    outcomes = []
    for steps in range(40):
        with monkeypatch.context() as patched:
            patched.setattr(succession, "_take", taking)
            patched.setattr(Path, "unlink", unlinking)
            patched.setattr(Path, "rename", renaming)
            left[0] = steps
            try:
                succeed(run, "candidate", FILES, FOLDERS)
                finished = True
            except Killed:
                finished = False
        complete(run, FILES, FOLDERS)
        assert held(run) in (old, new)
        outcomes.append(held(run) == new)
        if finished:
            break
        for name in (*FILES, *FOLDERS):  # as it was, for the next time
            (run / name).unlink() if (run / name).is_file() else None
        make(run, "old", "config", "weights", "names", "edits/a", "edits/b")
        for name in set(held(run)) - set(old):
            (run / name).unlink()
        make(run / "candidate", "new", "config", "weights", "edits/b", "edits/c")
    assert finished
    assert outcomes == sorted(outcomes), "first the old one, and from some step on the new one"
    assert True in outcomes
    assert False in outcomes


@pytest.mark.parametrize("text", ["", "{}", '{"source": "../other"}', '{"source": 3}', "[" * 5000])
def test_a_damaged_note_is_refused_with_its_cure(text: str, run: Path) -> None:
    (run / ADOPTING).write_text(sealed_json(text) if text.startswith("{") else text, encoding="utf-8")
    before = held(run)
    with pytest.raises(PcdnetError, match="remove it, and copy"):
        complete(run, FILES, FOLDERS)
    assert held(run) == before


def test_a_note_about_nothing_changes_nothing(run: Path) -> None:
    (run / ADOPTING).write_text(sealed_json('{"source": "former/7"}'), encoding="utf-8")
    before = held(run)
    with pytest.raises(PcdnetError, match="which is not there"):
        complete(run, FILES, FOLDERS)
    assert held(run) == before
