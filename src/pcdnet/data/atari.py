"""Atari: frames of any game that ale-py ships, played by simple pilots and recorded without a screen.

Several games run side by side, each in another hand, and give frames in turn: so a few frames are already different,
and more frames of a seed begin with the fewer. The console itself knows no chance; only what the pilots do, and when
they begin, differs by seed. So the first moments of a game can look the same in the recordings of two seeds.
"""

from __future__ import annotations

import difflib
import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from itertools import cycle, islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from pcdnet.data import keeping
from pcdnet.errors import PcdnetError
from pcdnet.files import folder, whole_file
from pcdnet.progress import track
from pcdnet.scene import Scenes

if TYPE_CHECKING:
    from ale_py import ALEInterface

VERSION = 2
"""Counts the recorder's changes: what an older one has kept on disk is not used again."""
NOTHING, FIRE, RIGHT, LEFT, RIGHT_FIRE, LEFT_FIRE = 0, 1, 3, 4, 11, 12
"""Some of the 18 positions of the joystick, as the console's emulator numbers them."""

_GAMES = 8  # that run side by side
_GAPS = 8, 33  # frames from one recorded frame to the next; bullets show in every other, so odd and even gaps
_LATEST_START = 4000  # frames after which the first recorded frame of a game comes at the latest
_LONGEST_WAIT = 60  # frames before a pilot does anything
_LONGEST_GAME = 20_000  # frames after which a game that does not end is begun anew
_PATIENCE = 2_000  # frames in a row that were all seen before, until a game counts as showing nothing new


Pilot = Callable[[np.random.Generator, UInt8[np.ndarray, "128"], Sequence[int]], tuple[int, int]]
"""Chooses an action, and for how many frames, by its own chance, the console's memory and what the joystick can do."""
Recording = tuple[UInt8[np.ndarray, "N H W 3"], UInt8[np.ndarray, "N 128"]]
"""Frames in RGB, and the console's memory, frame by frame; it can be a step ahead of what is drawn."""


def restless(rng: np.random.Generator, ram: UInt8[np.ndarray, "128"], actions: Sequence[int]) -> tuple[int, int]:
    """Do anything, for a moment."""
    return int(rng.choice(actions)), int(rng.integers(1, 4))


def steady(rng: np.random.Generator, ram: UInt8[np.ndarray, "128"], actions: Sequence[int]) -> tuple[int, int]:
    """Do anything, and keep doing it for a while."""
    return int(rng.choice(actions)), int(rng.integers(8, 41))


def gunner(rng: np.random.Generator, ram: UInt8[np.ndarray, "128"], actions: Sequence[int]) -> tuple[int, int]:
    """Move or stay, and fire all the time, where the game lets one fire."""
    firing = [action for action in actions if action == FIRE or action > 9]
    return int(rng.choice(firing or actions)), int(rng.integers(4, 25))


PILOTS: tuple[Pilot, ...] = (restless, steady, gunner)
"""Those that can play any game, in no way well."""


def generate(count: int, seed: int, game: str, *, quiet: bool = False) -> Scenes:
    """Return frames of a game as scenes: as large as they are, and without ground truth."""
    frames, _ = record(game, count=count, seed=seed, quiet=quiet)
    return Scenes(images=frames, name=f"frames of {game}, seed {seed}")


def record(
    game: str, *, count: int, seed: int, top: int = 0, pilots: Sequence[Pilot] = PILOTS, quiet: bool = True
) -> Recording:
    """Return frames of a game without their first `top` rows, no two alike: for the same seed the same, bit for bit.

    Recordings are kept in the user's cache, and read again where that is possible. Unless `quiet` is set, it is shown
    how far a recording is.
    """
    if count < 1:
        raise PcdnetError(f"{count} frames were asked for; give a count of at least 1")
    if seed < 0:
        raise PcdnetError(f"the seed is {seed}; give 0 or a positive integer")
    _rom(game)  # refuses what is no game
    made_by = repr((VERSION, game, count, seed, top, [pilot.__name__ for pilot in pilots]))
    path = cache() / f"{game}-{count}-{seed}-{hashlib.sha256(made_by.encode()).hexdigest()[:12]}.npz"
    kept = _kept(path, count)
    if kept is not None:
        return kept
    taken = islice(shots(game, seed=seed, top=top, pilots=pilots), count)
    shown = taken if quiet else track(((1, shot) for shot in taken), count, "frames")
    ram = np.empty((count, 128), np.uint8)
    for index, (frame, memory) in enumerate(shown):
        if index == 0:  # only now it is known how large frames are
            frames = np.empty((count, *frame.shape), np.uint8)
        frames[index], ram[index] = frame, memory
    with suppress(PcdnetError):  # what cannot be kept is recorded anew the next time
        folder(path.parent)
        with whole_file(path, shared=True) as file:
            np.savez_compressed(file, frames=frames, ram=ram)
    return frames, ram


def _kept(path: Path, count: int) -> Recording | None:
    """Read a recording, or return None where there is no sound one of so many frames."""
    try:
        with path.open("rb") as stream, np.load(stream) as file:  # nothing is unpickled
            frames, ram = file["frames"], file["ram"]
    except Exception:  # damage of any kind
        return None
    due = (count, *frames.shape[1:3], 3), (count, 128)
    sound = frames.dtype == ram.dtype == np.uint8 and (frames.shape, ram.shape) == due
    return (frames, ram) if sound else None


def shots(
    game: str, *, seed: int, top: int = 0, pilots: Sequence[Pilot] = PILOTS
) -> Iterator[tuple[UInt8[np.ndarray, "H W 3"], UInt8[np.ndarray, "128"]]]:
    """Yield frames of several games in turn with the console's memory, without end and without any frame twice."""
    rom = _rom(game)
    consoles = [_console(rom) for _ in range(_GAMES)]
    played = [
        _play(console, np.random.Generator(np.random.PCG64([seed, index])), pilots[index % len(pilots)])
        for index, console in enumerate(consoles)
    ]
    seen: set[bytes] = set()
    in_vain = 0
    for index, console in cycle(enumerate(consoles)):
        next(played[index])
        frame: UInt8[np.ndarray, "H W 3"] = console.getScreenRGB()[top:]
        mark = hashlib.sha256(frame.tobytes()).digest()
        in_vain = in_vain + 1 if mark in seen else 0
        if in_vain == _PATIENCE:
            raise PcdnetError(f"{game} shows nothing new after {len(seen)} different frames; ask for fewer")
        if mark not in seen:
            seen.add(mark)
            yield frame, console.getRAM()


def _play(console: ALEInterface, rng: np.random.Generator, pilot: Pilot) -> Iterator[None]:
    """Play game after game, and stop wherever a frame is due."""
    actions = [action.value for action in console.getMinimalActionSet()]
    due = int(rng.integers(0, _LATEST_START))
    while True:
        console.reset_game()
        action, left = NOTHING, int(rng.integers(0, _LONGEST_WAIT))
        for _ in range(_LONGEST_GAME):
            if left == 0:
                action, left = pilot(rng, console.getRAM(), actions)
            console.act(action)
            left, due = left - 1, due - 1
            if due <= 0:
                yield
                due = int(rng.integers(*_GAPS))
            if console.game_over():
                break


def _emulator() -> tuple[ModuleType, ModuleType]:
    try:
        import ale_py
        from ale_py import roms
    except ImportError:
        raise PcdnetError("Atari games need ale-py, which is not there; pip install 'pcdnet[atari]'") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py, roms


def _rom(game: str) -> Path:
    """The file of a game, if the emulator can play it; others would end the process."""
    ale_py, roms = _emulator()
    known: dict[str, Path] = {}
    for name in sorted(roms.get_all_rom_ids()):
        with redirect_stdout(io.StringIO()), suppress(OSError):  # another folder for games is announced, or is missing
            path = roms.get_rom_path(name)
            if ale_py.ALEInterface.isSupportedROM(path):
                known[name] = path
    if game not in known:
        near = difflib.get_close_matches(game.lower().replace("-", "_").replace(" ", "_"), known, n=3, cutoff=0.5)
        cure = f"use {' or '.join(near)}" if near else f"use one of {len(known)} names like space_invaders"
        raise PcdnetError(f"{game!r} is no Atari game known here; {cure}")
    return known[game]


def _console(rom: Path) -> ALEInterface:
    """A console with the game in it, silent and without a screen."""
    ale_py, _ = _emulator()
    console: ALEInterface = ale_py.ALEInterface()
    console.setInt("random_seed", 0)
    console.setFloat("repeat_action_probability", 0.0)
    console.loadROM(rom)
    return console


def cache() -> Path:
    """The folder that recordings are kept in."""
    return keeping.cache("atari")
