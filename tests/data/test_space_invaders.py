"""Laws of the ground truth of Space Invaders: tight around what is there, one box an object, nothing for explosions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.data import atari, space_invaders
from pcdnet.data.space_invaders import KINDS, SCORED, ground_truth, marksman
from pcdnet.scene import Boxes

GREEN, YELLOW, GREY, ORANGE = (50, 132, 50), (134, 134, 29), (142, 142, 142), (181, 83, 40)
EXPLOSIONS = {17, 20, 33, 51}  # pixels of an alien's, as it bursts and fades
CANNON = """
...#...
..###..
..###..
.#####.
..###..
..###..
#######
.#####.
#######
#######
"""


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few games from near their beginning, and a cache of its own."""
    pytest.importorskip("ale_py", reason="needs ale-py: pip install 'pcdnet[atari]'")
    monkeypatch.setattr(atari, "_GAMES", 4)
    monkeypatch.setattr(atari, "_LATEST_START", 800)
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path))


def scene() -> tuple[np.ndarray, np.ndarray]:
    """A black frame, and memory in which the first alien's cell begins at row 6, column 22."""
    ram = np.zeros(128, np.uint8)
    ram[26] = 23
    return np.zeros((185, 160, 3), np.uint8), ram


def listed(boxes: Boxes) -> list[tuple[str, tuple[int, ...]]]:
    """The kind and the corners of every box."""
    return [(KINDS[kind], tuple(map(int, box))) for box, kind in zip(boxes.corners, boxes.kinds, strict=True)]


def draw(frame: np.ndarray, shape: np.ndarray, row: int, column: int, colour: tuple[int, int, int]) -> None:
    """Paint a shape into a frame."""
    frame[row : row + len(shape), column : column + shape.shape[1]][shape] = colour


@given(
    down=st.integers(0, 40),
    across=st.integers(23, 50),
    shapes=st.lists(st.integers(-1, 1), min_size=36, max_size=36),
)
def test_every_alien_is_boxed_wherever_the_grid_is(down: int, across: int, shapes: list[int]) -> None:
    frame, ram = scene()
    ram[16], ram[26] = down, across
    drawn = []
    for index, which in enumerate(shapes):
        kind, column = divmod(index, 6)
        top, left = 6 + 2 * down + 18 * kind, across - 1 + 16 * column
        if which >= 0 and top + 10 <= 170:  # the ground hides what is lower
            shape = space_invaders._ALIENS[kind, which]
            draw(frame, shape, top, left, YELLOW)
            rows, columns = np.nonzero(shape)
            size = (int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1)
            drawn.append((f"alien {kind + 1}", (top + int(rows.min()), left + int(columns.min()), *size)))
    assert listed(ground_truth(frame, ram)) == drawn


def test_what_lacks_or_has_a_pixel_more_is_an_explosion_and_no_alien() -> None:
    frame, ram = scene()
    for column, pixel in ((0, (0, 0)), (1, (5, 0)), (2, None)):
        shape = space_invaders._ALIENS[0, 0].copy()
        if pixel:
            shape[pixel] = ~shape[pixel]
        draw(frame, shape, 6, 22 + 16 * column, YELLOW)
    assert listed(ground_truth(frame, ram)) == [("alien 1", (6, 54, 10, 8))]


def test_an_alien_of_another_row_is_no_alien_of_this() -> None:
    frame, ram = scene()
    draw(frame, space_invaders._ALIENS[1, 0], 6, 22, YELLOW)
    assert not len(ground_truth(frame, ram))


def test_a_shield_is_boxed_tightly_until_only_rubble_is_left() -> None:
    frame, ram = scene()
    draw(frame, np.ones((18, 8), bool), 132, 42, ORANGE)  # whole
    draw(frame, np.ones((2, 4), bool), 132, 74, ORANGE)  # in two pieces of 8 pixels
    draw(frame, np.ones((4, 2), bool), 140, 80, ORANGE)
    draw(frame, np.ones((5, 3), bool), 133, 107, ORANGE)  # 15 pixels
    assert listed(ground_truth(frame, ram)) == [
        ("shield", (132, 42, 18, 8)),
        ("shield", (132, 74, 12, 8)),
        ("rubble", (133, 107, 5, 3)),
    ]


def test_the_cannon_is_boxed_and_its_explosion_is_not() -> None:
    frame, ram = scene()
    shape = np.array([[pixel == "#" for pixel in row] for row in CANNON.split()])
    draw(frame, shape, 160, 70, GREEN)
    draw(frame, np.ones((5, 2), bool), 171, 33, GREEN)  # a mark on the ground
    assert listed(ground_truth(frame, ram)) == [("cannon", (160, 70, 10, 7))]
    frame[165, 73] = 0
    assert not len(ground_truth(frame, ram))


def test_a_bullet_is_one_box_even_where_something_hides_its_middle() -> None:
    frame, ram = scene()
    frame[[20, 21, 25, 26, 27], 60] = GREY  # one, with something in front
    frame[40:49, 60] = GREY
    frame[42:50, 61] = GREY  # beside the other
    assert listed(ground_truth(frame, ram)) == [
        ("bullet", (20, 60, 8, 1)),
        ("bullet", (40, 60, 9, 1)),
        ("bullet", (42, 61, 8, 1)),
    ]


def test_recorded_frames_have_a_tight_box_for_all_but_explosions(quick: None) -> None:
    scenes = space_invaders.generate(60, 5)
    assert scenes.images.shape == (60, 185, 160, 3)
    assert (scenes.kinds, scenes.scored, scenes.name) == (KINDS, SCORED, "frames of Space Invaders, seed 5")
    assert scenes.boxes is not None
    colours = dict.fromkeys(KINDS, YELLOW) | {"shield": ORANGE, "rubble": ORANGE, "cannon": GREEN, "bullet": GREY}
    seen: Counter[str] = Counter()
    for image, boxes in zip(scenes.images, scenes.boxes, strict=True):
        left = image[:170].copy()
        for kind, (top, column, height, width) in listed(boxes):
            part = left[top : top + height, column : column + width]
            own = (image[top : top + height, column : column + width] == colours[kind]).all(axis=-1)
            assert own[[0, -1]].any(axis=1).all(), "the box is higher than the object"
            assert own[:, [0, -1]].any(axis=0).all(), "the box is wider than the object"
            part[own] = 0
            seen[kind] += 1
        assert (left == YELLOW).all(axis=-1).sum() in {0} | EXPLOSIONS
        assert not (left == ORANGE).all(axis=-1).any()
        assert not (left == GREY).all(axis=-1).any()
    assert set(SCORED) <= set(seen)


def test_aliens_are_those_that_the_console_counts_or_the_one_just_hit_more(quick: None) -> None:
    recorded = atari.record("space_invaders", count=40, seed=6, top=space_invaders.TOP, pilots=space_invaders.PILOTS)
    for frame, ram in zip(*recorded, strict=True):
        aliens = (ground_truth(frame, ram).kinds < 6).sum()
        assert aliens - ram[17] in (0, 1)


def test_another_seed_is_another_game_and_the_same_is_the_same(quick: None, tmp_path: Path) -> None:
    first, second = space_invaders.generate(12, 1), space_invaders.generate(12, 2)
    assert not {image.tobytes() for image in first.images} & {image.tobytes() for image in second.images}
    for file in (tmp_path / "atari").iterdir():
        file.unlink()
    again = space_invaders.generate(12, 1)
    np.testing.assert_array_equal(again.images, first.images)
    assert list(map(listed, again.boxes or ())) == list(map(listed, first.boxes or ()))


def test_the_marksman_wins_a_wave(quick: None) -> None:
    console, rng = atari._console(atari._rom("space_invaders")), np.random.default_rng(0)
    fewest = 36
    for _ in range(6000):
        ram = console.getRAM()
        fewest = min(fewest, int(ram[17]))
        if ram[17] == 36 > fewest:
            break
        action, frames = marksman(rng, ram, [0, 1, 3, 4, 11, 12])
        for _ in range(frames):
            console.act(action)
        assert not console.game_over()
    assert fewest <= 1
    assert console.getRAM()[17] == 36
