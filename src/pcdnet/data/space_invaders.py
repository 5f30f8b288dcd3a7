"""Space Invaders: recorded games, cropped as in the paper, with the ground truth of every frame as boxes.

The ground truth is exact, to the pixel. The console's memory says where the grid of aliens begins; what stands in a
cell of the grid is an alien if its pixels are, one and all, those of one of the two shapes of its row. So an alien that
was hit counts until its explosion is drawn, and explosions never count. The cannon is found by its shape as well.
Nothing ever stands in front of aliens, shields and cannon; they hide bullets, so what shows of a bullet is one box.

A shield has three fixed places and is boxed tightly around what is left of it, even if that is in pieces; of fewer
than 16 of its 112 pixels only rubble is left. Where aliens come down to them, the game takes all shields away.
The UFO flies above the crop. Digits, ground and the marks on it are no objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, UInt8

from pcdnet.data import atari
from pcdnet.scene import Boxes, Scenes, visible_boxes

TOP = 25
"""Rows that are taken off the top: those of the score, and of the UFO."""
KINDS = (*(f"alien {row}" for row in range(1, 7)), "shield", "cannon", "bullet", "rubble")
"""What boxes are about; aliens are numbered by their row, from the top, and keep their kind in both of their shapes."""
SCORED = KINDS[:8]
"""The kinds that a model should find: aliens, shields and the cannon."""

# Where the console's memory has what is needed here. Rows of aliens are from the top, a bit an alien, leftmost first.
_DOWN, _LEFT, _MARCH, _ACROSS, _CANNON = 16, 17, 24, 26, 28
_ROWS = 23, 22, 21, 20, 19, 18
_TURNS = 22, 129  # columns in which aliens turn back
_BOMBS = (81, 83), (82, 84)  # row and column of each

_FIRST_ROW, _ROW_PITCH, _COLUMN_PITCH = 31 - TOP, 18, 16
_GROUND = 195 - TOP
_CANNON_TOP = 185 - TOP
_SHIELD_LEFTS, _SHIELD_WIDTH, _LEAST_SHIELD = (42, 74, 106), 8, 16
_LONGEST_BULLET = 13
_GREEN, _YELLOW, _GREY, _ORANGE = 50, 134, 142, 181  # cannon, aliens, bullets, shields: each has another red


def _shapes(*rows: str) -> Bool[np.ndarray, "shapes 10 8"]:
    bits = np.frombuffer(bytes.fromhex("".join(rows)), np.uint8).reshape(-1, 10, 1)
    return np.unpackbits(bits, axis=2).astype(bool)


# Ten rows of eight pixels each, a hexadecimal digit for four of them.
_ALIENS: Bool[np.ndarray, "6 2 10 8"] = _shapes(
    *("804225197c567e7e42c6", "0142a4983e6b7e7e42e7"),
    *("3c7e5affa5995a5a5a42", "3c7e5affa59999a5a5a5"),
    *("00185abd9999a5244224", "8181a5bd5a18181824c3"),
    *("3c7ed77e3c24425a2400", "3c7eeb7e3c2424424281"),
    *("3c7ecfcfff3a222222ee", "3c7ef3f3ff5c44444477"),
    *("187edbff424222111109", "185adbff424244888890"),
).reshape(6, 2, 10, 8)
_CANNON_SHAPE: Bool[np.ndarray, "10 7"] = _shapes("1038387c3838fe7cfefe")[0, :, :7]

_Box = tuple[int, int, int, int, str]  # top, left, height, width, kind


def generate(count: int, seed: int, *, quiet: bool = False) -> Scenes:
    """Return frames of several games, 185 x 160 RGB, with their ground truth: for the same seed the same, bit for bit.

    More frames of a seed begin with the fewer. Unless `quiet` is set, it is shown how far the recording is.
    """
    frames, ram = atari.record("space_invaders", count=count, seed=seed, top=TOP, pilots=PILOTS, quiet=quiet)
    return Scenes(
        images=frames,
        boxes=[*map(ground_truth, frames, ram)],
        kinds=KINDS,
        scored=SCORED,
        name=f"frames of Space Invaders, seed {seed}",
    )


def ground_truth(frame: UInt8[np.ndarray, "185 160 3"], ram: UInt8[np.ndarray, "128"]) -> Boxes:
    """Return the objects of a frame, tight around what is visible of them, given the console's memory."""
    red = frame[:_GROUND, :, 0]
    boxes = [*_aliens(red == _YELLOW, ram), *_shields(red == _ORANGE), *_cannon(red == _GREEN), *_bullets(red == _GREY)]
    return Boxes.from_rows([(*corners, KINDS.index(kind)) for *corners, kind in boxes])


def _aliens(pixels: Bool[np.ndarray, "H W"], ram: UInt8[np.ndarray, "128"]) -> Iterator[_Box]:
    # In the very frame of a hit the alien is drawn, though the memory knows of it no more, and if it was the last of
    # the leftmost column the grid begins one further. So all columns are looked at, across the image.
    height, width = _ALIENS.shape[2:]
    tops = np.arange(_FIRST_ROW + 2 * int(ram[_DOWN]), len(pixels) - height + 1, _ROW_PITCH)[: len(_ALIENS)]
    lefts = np.arange((int(ram[_ACROSS]) - 1) % _COLUMN_PITCH, pixels.shape[1] - width + 1, _COLUMN_PITCH)
    rows, columns = tops[:, None] + np.arange(height), lefts[:, None] + np.arange(width)
    cells = pixels[rows[:, None, :, None], columns[None, :, None, :]]
    alike = (cells[:, :, None] == _ALIENS[: len(tops), None]).all(axis=(3, 4))
    for row, column, shape in np.argwhere(alike):
        top, left, height, width = _BOUNDS[row][shape]
        yield top + int(tops[row]), left + int(lefts[column]), height, width, KINDS[row]


def _shields(pixels: Bool[np.ndarray, "H W"]) -> Iterator[_Box]:
    for left in _SHIELD_LEFTS:
        shield = pixels[:, left : left + _SHIELD_WIDTH]
        if shield.any():
            top, inset, height, width = _tight(shield)
            yield top, left + inset, height, width, "shield" if shield.sum() >= _LEAST_SHIELD else "rubble"


def _cannon(pixels: Bool[np.ndarray, "H W"]) -> Iterator[_Box]:
    columns = np.flatnonzero(pixels.any(axis=0))
    if len(columns):
        height, width = _CANNON_SHAPE.shape
        left = int(columns[0])
        if np.array_equal(pixels[_CANNON_TOP : _CANNON_TOP + height, left : columns[-1] + 1], _CANNON_SHAPE):
            yield _CANNON_TOP, left, height, width, "cannon"


def _bullets(pixels: Bool[np.ndarray, "H W"]) -> Iterator[_Box]:
    # Bullets are a pixel wide. What shows of one on both sides of an alien's leg is still one.
    for column in np.flatnonzero(pixels.any(axis=0)):
        rows = np.flatnonzero(pixels[:, column])
        while len(rows):
            one = rows[rows < rows[0] + _LONGEST_BULLET]
            yield int(one[0]), int(column), int(one[-1] - one[0] + 1), 1, "bullet"
            rows = rows[len(one) :]


def _tight(pixels: Bool[np.ndarray, "h w"]) -> tuple[int, int, int, int]:
    """Top, left, height and width of what is there."""
    (box,) = filter(None, visible_boxes(pixels.astype(np.int32), 1))
    return box


_BOUNDS = [[_tight(shape) for shape in shapes] for shapes in _ALIENS]


def marksman(rng: np.random.Generator, ram: UInt8[np.ndarray, "128"], actions: Sequence[int]) -> tuple[int, int]:
    """Keep clear of bombs and shoot the lowest aliens first, aiming at where they will be: this wins waves."""
    cannon = int(ram[_CANNON]) + 2
    bombs = [int(ram[column]) - 2 for row, column in _BOMBS if 75 < ram[row] < 97]
    if _under(bombs, cannon):
        left, right = (_steps_to_safety(bombs, cannon, way) for way in (-1, 1))
        return (atari.LEFT_FIRE if left <= right else atari.RIGHT_FIRE), 2
    targets = [(abs(column - cannon) - 0.7 * bottom, column - cannon) for bottom, column in _targets(ram)]
    if not targets:
        return atari.NOTHING, 8
    off = min(targets)[1] + int(rng.integers(-1, 2))
    few = ram[_LEFT] <= 2
    if abs(off) <= (3 if few else 2):
        return atari.FIRE, 1
    # The last two are faster than the cannon: rather than to run after them it waits.
    if (few and abs(off) < 60) or _under(bombs, cannon + (4 if off > 0 else -4)):
        return atari.NOTHING, 1
    return (atari.RIGHT if off > 0 else atari.LEFT), min(int(abs(off)), 4)


def _under(bombs: Sequence[int], cannon: int) -> bool:
    return any(abs(bomb - cannon) < 5 for bomb in bombs)


def _steps_to_safety(bombs: Sequence[int], cannon: int, way: int) -> int:
    places = range(cannon + way, cannon + 40 * way, way)
    return next((abs(at - cannon) for at in places if 36 < at < 120 and not _under(bombs, at)), 99)


def _targets(ram: UInt8[np.ndarray, "128"]) -> list[tuple[int, float]]:
    """The bottom row of every column of aliens, and the column in which a shot of now would meet it."""
    lowest = {column: row for row in range(6) for column in range(6) if ram[_ROWS[row]] >> column & 1}
    left, start = int(ram[_LEFT]), int(ram[_ACROSS]) - 1
    # Aliens are the faster the fewer are left: pixels a frame, as seen in play.
    pace = 0.03 if left > 21 else 0.1 if left > 7 else 0.19 if left > 4 else 1.25 / max(left, 1)
    # They turn back where the first or the last column reaches its edge.
    back, ahead = _TURNS[0] - start, _TURNS[1] - start - _COLUMN_PITCH * max(lowest, default=0)
    targets = []
    for column, row in lowest.items():
        bottom = 40 + 2 * int(ram[_DOWN]) + _ROW_PITCH * row
        shift = (pace if ram[_MARCH] & 2 else -pace) * (185 - bottom) / 2
        shift = 2 * ahead - shift if shift > ahead else 2 * back - shift if shift < back else shift
        targets.append((bottom, start + 4 + _COLUMN_PITCH * column + shift))
    return targets


PILOTS: tuple[atari.Pilot, ...] = (*atari.PILOTS, marksman, marksman, marksman)
"""Those who play; thanks to some who play well, later waves are seen too."""
