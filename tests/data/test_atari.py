"""Laws of Atari recordings: the same for the same seed, never a frame twice, and kept on disk with care."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pcdnet.data import atari
from pcdnet.errors import PcdnetError

GAME = "breakout"


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two games from near their beginning, and a cache of its own, which is returned."""
    pytest.importorskip("ale_py", reason="needs ale-py: pip install 'pcdnet[atari]'")
    monkeypatch.setattr(atari, "_GAMES", 2)
    monkeypatch.setattr(atari, "_LATEST_START", 40)
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "atari"


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Frames of noise instead of games, and a cache of its own, which is returned."""

    def shots(*_: object, seed: int, **__: object) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.default_rng(seed)
        while True:
            yield rng.integers(0, 256, (6, 5, 3), dtype=np.uint8), rng.integers(0, 256, 128, dtype=np.uint8)

    monkeypatch.setattr(atari, "_rom", lambda _: None)
    monkeypatch.setattr(atari, "shots", shots)
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "atari"


def not_played(*_: object, **__: object) -> None:
    """Stands for the emulator where only the cache may be used."""
    raise AssertionError("this was to be read, not played")


def same(one: atari.Recording, other: atari.Recording) -> bool:
    """Whether two recordings are equal, bit for bit."""
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


def test_a_seed_stands_for_its_frames_and_more_of_them_begin_with_the_fewer(quick: Path) -> None:
    few, more, others = (atari.record(GAME, count=count, seed=seed) for count, seed in ((4, 3), (9, 3), (9, 4)))
    for fewer, all_of_them in zip(few, more, strict=True):
        np.testing.assert_array_equal(fewer, all_of_them[:4])
    assert {frame.tobytes() for frame in more[0]} != {frame.tobytes() for frame in others[0]}


def test_frames_are_rgb_no_two_alike_and_of_several_games(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, ram = atari.record(GAME, count=12, seed=0)
    assert frames.shape == (12, 210, 160, 3)
    assert ram.shape == (12, 128)
    assert len({frame.tobytes() for frame in frames}) == 12
    monkeypatch.setattr(atari, "_GAMES", 1)
    of_the_first = {frame.tobytes() for frame, _ in islice(atari.shots(GAME, seed=0), 12)}
    assert {frame.tobytes() in of_the_first for frame in frames} == {True, False}


def test_rows_can_be_taken_off_the_top(quick: Path) -> None:
    whole, cropped = (atari.record(GAME, count=3, seed=0, top=top)[0] for top in (0, 25))
    np.testing.assert_array_equal(cropped, whole[:, 25:])


def test_scenes_of_a_game_are_its_frames_without_ground_truth(quick: Path) -> None:
    scenes = atari.generate(3, 1, "pong", quiet=True)
    np.testing.assert_array_equal(scenes.images, atari.record("pong", count=3, seed=1)[0])
    assert scenes.labels is None
    assert scenes.boxes is None
    assert scenes.name == "frames of pong, seed 1"


def test_progress_is_shown_while_recording_unless_quiet(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    atari.record(GAME, count=3, seed=0)
    assert capsys.readouterr().err == ""
    atari.generate(4, 0, GAME)
    assert capsys.readouterr().err.startswith("frames 4/4 ")
    atari.generate(4, 0, GAME)  # now it is only read
    assert capsys.readouterr() == ("", "")


def test_pilots_do_what_the_joystick_can_and_gunners_fire_where_it_fires() -> None:
    rng = np.random.default_rng(0)
    for actions in ([0, 1, 3, 4, 11, 12], [0, 3, 4]):
        seen = rng, np.zeros(128, np.uint8), actions
        for pilot in atari.PILOTS:
            for action, frames in (pilot(*seen) for _ in range(50)):
                assert action in actions
                assert frames >= 1
        fired = {atari.gunner(*seen)[0] for _ in range(50)}
        assert fired == ({1, 11, 12} if 1 in actions else {0, 3, 4})


def test_recording_is_silent(quick: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ale_py import roms

    monkeypatch.setenv("ALE_ROMS_DIR", str(Path(roms.__file__).parent))  # ale-py announces it
    atari.record(GAME, count=2, seed=0)
    assert capfd.readouterr() == ("", "")


def test_a_recording_is_played_once_and_then_read(made_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = atari.record(GAME, count=4, seed=0)
    assert [file.suffix for file in made_up.iterdir()] == [".npz"]
    monkeypatch.setattr(atari, "shots", not_played)
    assert same(atari.record(GAME, count=4, seed=0), recording)
    for other in ({"count": 5}, {"seed": 1}, {"top": 1}, {"pilots": (atari.gunner,)}):
        with pytest.raises(AssertionError, match="not played"):
            atari.record(GAME, **{"count": 4, "seed": 0, **other})  # type: ignore[arg-type]
    monkeypatch.setattr(atari, "VERSION", atari.VERSION + 1)
    with pytest.raises(AssertionError, match="not played"):
        atari.record(GAME, count=4, seed=0)


def cut(file: Path) -> None:
    """Damage: the end is missing."""
    file.write_bytes(file.read_bytes()[:-200])


def changed(**arrays: np.ndarray) -> Callable[[Path], None]:
    """Damage: other arrays in the same file."""

    def damage(file: Path) -> None:
        with np.load(file) as held:
            np.savez_compressed(file, **(dict(held) | arrays))

    return damage


def flip(file: Path) -> None:
    """Damage: a byte is another."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        flip,
        lambda file: file.write_bytes(b"nothing of the kind"),
        changed(frames=np.zeros((2, 6, 5, 3), np.uint8)),
        changed(frames=np.zeros((3, 6, 5, 3), np.float32)),
        changed(frames=np.zeros((3, 6, 5), np.uint8)),
        changed(ram=np.zeros((3, 64), np.uint8)),
        changed(ram=np.array(7, np.uint8)),
        changed(ram=np.array([1, 2, 3], object)),
    ],
)
def test_a_damaged_cache_is_recorded_again(
    damage: Callable[[Path], None], made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = atari.record(GAME, count=3, seed=0)
    (file,) = made_up.iterdir()
    whole = file.read_bytes()
    damage(file)
    assert file.read_bytes() != whole
    assert same(atari.record(GAME, count=3, seed=0), recording)
    assert list(made_up.iterdir()) == [file]
    monkeypatch.setattr(atari, "shots", not_played)
    assert same(atari.record(GAME, count=3, seed=0), recording)


def test_a_cache_that_cannot_be_written_is_no_error(
    made_up: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "file"))
    assert len(atari.record(GAME, count=2, seed=0)[0]) == 2


def test_what_breaks_while_writing_leaves_nothing_behind(made_up: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    assert len(atari.record(GAME, count=2, seed=0)[0]) == 2
    assert not list(made_up.iterdir())


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("PCDNET_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert atari.cache() == Path("/home/me/.cache/pcdnet/atari")
    monkeypatch.setenv("XDG_CACHE_HOME", "/users")
    assert atari.cache() == Path("/users/pcdnet/atari")
    monkeypatch.setenv("PCDNET_CACHE", "/own")
    assert atari.cache() == Path("/own/atari")


@pytest.mark.parametrize(
    ("game", "cure"),
    [
        ("Space-Invaders", "use space_invaders"),
        ("break out", "use breakout"),
        ("qqq", "names like space_invaders"),
        ("combat", "no Atari game known here"),  # two have to play it
        ("../breakout", "no Atari game known here"),
    ],
)
def test_an_unknown_game_is_refused_with_those_of_like_names(game: str, cure: str, quick: Path) -> None:
    with pytest.raises(PcdnetError, match=cure):
        atari.record(game, count=1, seed=0)


@pytest.mark.parametrize(("count", "seed", "cure"), [(0, 0, "at least 1"), (1, -1, "0 or a positive")])
def test_counts_and_seeds_that_mean_nothing_are_refused(count: int, seed: int, cure: str) -> None:
    with pytest.raises(PcdnetError, match=cure):
        atari.record(GAME, count=count, seed=seed)


def test_a_game_that_stands_still_is_refused(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atari, "_PATIENCE", 5)
    monkeypatch.setattr(atari, "_LONGEST_GAME", 30)
    with pytest.raises(PcdnetError, match="breakout shows nothing new after .* different frames; ask for fewer"):
        atari.record(GAME, count=500, seed=0, top=209, pilots=[lambda *_: (atari.NOTHING, 100)])


def test_without_the_emulator_the_cure_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(PcdnetError, match=r"pip install 'pcdnet\[atari\]'$"):
        atari.record(GAME, count=1, seed=0)
