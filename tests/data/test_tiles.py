"""Laws of tiles: they are equal squares of the pictures where something is, with their ground truth, kept apart."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.data import intake, tiles
from pcdnet.data.tiles import ENOUGH, FEWEST, LARGEST, LEAST, MOST, SIDES, apart, chosen_side, cut, tiled
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes

Size = tuple[int, int]
sizes = st.lists(st.tuples(st.integers(20, 900), st.integers(20, 900)), min_size=1, max_size=6)


def noise(size: Size, seed: int = 0, channels: int = 1) -> np.ndarray:
    """A picture that differs everywhere."""
    return np.random.default_rng(seed).integers(0, 256, (*size, channels), dtype=np.uint8)


def corners(places: np.ndarray) -> list[list[int]]:
    """Where tiles were cut, in order."""
    return sorted(places.tolist())


@given(sizes)
def test_the_chosen_side_fits_most_pictures_and_gives_enough_tiles(given: list[Size]) -> None:
    side = chosen_side(given)
    small = sum(min(size) < (side or SIDES[-1]) for size in given)
    if side is None:
        assert small > 0 or max(map(max, given)) < 2 * SIDES[-1]
        return
    assert LEAST <= side <= LARGEST
    assert small <= ceil(tiles.SMALL * len(given))
    _, places = cut(lambda: map(noise, given), given, 1, side)
    assert len(places) >= FEWEST
    if side > SIDES[-1]:
        assert len(places) >= ENOUGH


@pytest.mark.parametrize(
    ("given", "side"),
    [
        ([(2000, 2000)], 192),
        ([(6000, 6000)], 256),
        ([(303, 384)], 192),
        ([(512, 512)], 192),
        ([(200, 200)], 96),
        ([(90, 300)], 90),
        ([(100, 100)], None),
        ([(20, 20), (364, 364)], 192),
        ([(64, 64)] * 5, None),
        ([(30, 3000)], None),
        ([(20 * n, 300 - 10 * n) for n in range(1, 11)], 80),
    ],
)
def test_sides_are_large_where_pictures_allow_it(given: list[Size], side: int | None) -> None:
    assert chosen_side(given) == side


@given(size=st.tuples(st.integers(40, 200), st.integers(40, 200)))
@settings(max_examples=30)
def test_tiles_are_parts_of_the_picture_and_cover_it(size: Size) -> None:
    picture = noise(size)
    images, places = cut(lambda: [picture], [size], 1, 40)
    seen = np.zeros(size, bool)
    for image, (number, top, left) in zip(images, places, strict=True):
        assert number == 0
        np.testing.assert_array_equal(image, picture[top : top + 40, left : left + 40])
        seen[top : top + 40, left : left + 40] = True
    assert seen.all()
    assert len(np.unique(places, axis=0)) == len(places)


def test_tiles_overlap_by_a_half_and_by_more_where_they_would_be_few() -> None:
    _, places = cut(lambda: [noise((2000, 2000))], [(2000, 2000)], 1, 200)
    assert np.unique(places[:, 1]).tolist() == [*range(0, 1801, 100)]
    _, places = cut(lambda: [noise((300, 300))], [(300, 300)], 1, 160)
    assert np.unique(places[:, 1]).tolist() == [*range(0, 141, 20)]


def test_tiles_are_taken_where_something_is() -> None:
    light = np.linspace(40, 120, 1600)[:, None] + np.linspace(0, 80, 1600)  # uneven, but nothing in itself
    sheet = (light + np.random.default_rng(0).normal(0, 2, light.shape)).astype(np.uint8)[..., None]
    for top, left in ((300, 300), (700, 1200), (1200, 400)):
        sheet[top : top + 12, left : left + 12] = 255
    for n in range(40):
        sheet[20 + 30 * (n % 8) :, 1000 + 30 * (n // 8) :][:12, :12] = 0
    _, places = cut(lambda: [sheet], [sheet.shape[:2]], 1, 192)
    assert ENOUGH <= len(places) < 100
    for top, left in ((306, 306), (706, 1206), (1206, 406)):
        assert ((abs(places[:, 1] + 96 - top) < 90) & (abs(places[:, 2] + 96 - left) < 90)).any()


def test_an_empty_picture_among_full_ones_gives_no_tile() -> None:
    pictures = [noise((400, 400), n) for n in range(4)]
    pictures[2][:] = 77
    _, places = cut(lambda: pictures, [(400, 400)] * 4, 1, 96)
    assert set(places[:, 0].tolist()) == {0, 1, 3}
    images, places = cut(lambda: [pictures[2]], [(400, 400)], 1, 96)  # but where there is nothing else it must do
    assert len(images) >= ENOUGH


def test_more_tiles_than_anybody_needs_are_drawn_by_lot() -> None:
    size = (3600, 3600)
    _, places = cut(lambda: [noise(size)], [size], 1, 96)
    assert len(places) == MOST
    _, again = cut(lambda: [noise(size)], [size], 1, 96)
    np.testing.assert_array_equal(places, again)
    first = places[:50, 1:]
    assert (first.max(axis=0) - first.min(axis=0) > 2500).all()  # the first ones are a sample of all


def test_pictures_of_several_sizes_and_channels_give_tiles_of_one() -> None:
    pictures = [noise((150, 300), 0), noise((50, 60), 1), noise((96, 96), 2, channels=3)]
    images, places = cut(lambda: pictures, [picture.shape[:2] for picture in pictures], 3, 96)
    assert images.shape[1:] == (96, 96, 3)
    assert set(places[:, 0].tolist()) == {0, 2}
    np.testing.assert_array_equal(images[places[:, 0] == 2][0], pictures[2])
    grey = images[places[:, 0] == 0]
    assert (grey == grey[..., :1]).all()


def test_tiles_leave_out_a_part_that_is_ignored() -> None:
    part = (0, 100, 60, 50)
    _, places = cut(lambda: [noise((400, 400))], [(400, 400)], 1, 96, part)
    assert len(places)
    for _, top, left in places:
        assert top >= 60 or left >= 150 or left + 96 <= 100
    with pytest.raises(PcdnetError, match="no tile of 96x96 lies outside of the part to ignore; give a smaller part"):
        cut(lambda: [noise((120, 120))], [(120, 120)], 1, 96, (40, 40, 40, 40))


def test_tiles_that_take_all_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_BYTES", 96 * 96 * 10)
    with pytest.raises(PcdnetError, match="tiles take .* more than the limit"):
        cut(lambda: [noise((400, 400))], [(400, 400)], 1, 96)


def test_the_ground_truth_follows_the_tiles() -> None:
    labels = np.zeros((2, 300, 300), np.int32)
    labels[0, 100:120, 140:170] = 1
    boxes = [Boxes.from_rows([[100, 140, 20, 30, 1]]), Boxes.from_rows([])]
    images = (noise((300, 300)) // 8)[None].repeat(2, axis=0) + (labels * 200).astype(np.uint8)[..., None]
    scenes = Scenes(images=images, labels=labels, boxes=boxes, kinds=("a", "b"), scored=("b",), name="made")
    found = tiled(scenes, 96)
    assert found.labels is not None
    assert found.boxes is not None
    assert found.places is not None
    parts = zip(found.images, found.labels, found.boxes, found.places, strict=True)
    for image, seen, box, (number, top, left) in parts:
        np.testing.assert_array_equal(image, images[number, top : top + 96, left : left + 96])
        np.testing.assert_array_equal(seen, labels[number, top : top + 96, left : left + 96])
        assert len(box) == (seen.sum() >= 300)
        if len(box):
            rows, columns = np.nonzero(seen)
            size = [np.ptp(rows) + 1, np.ptp(columns) + 1]
            assert box.corners.tolist() == [[rows.min(), columns.min(), *size]]
    number, top, left = found.places[0]
    assert found.names[0] == f"{number}@{top},{left}"
    assert (found.kinds, found.scored, found.name) == (("a", "b"), ("b",), "made, in tiles of 96x96")


@given(
    lengths=st.lists(st.tuples(st.integers(96, 700), st.integers(96, 700)), min_size=1, max_size=12),
    share=st.integers(2, 20),
)
@settings(max_examples=50)
def test_tiles_kept_apart_share_no_pixel_with_the_others_where_possible(lengths: list[Size], share: int) -> None:
    _, places = cut(lambda: map(noise, lengths), lengths, 1, 96)
    kept = max(1, len(places) // share)
    learned, held = apart(places, 96, kept)
    assert held.sum() == kept
    assert not (learned & held).any()
    assert learned.sum() >= min(len(places) // 2 - kept, 1)
    shared = np.zeros(len(places), bool)
    for number, top, left in places[held]:
        near = (abs(places[:, 1:] - (top, left)) < 96).all(axis=1)
        shared |= (places[:, 0] == number) & near & ~held
    assert not (learned & shared).any() or 2 * shared.sum() > len(places)


def test_of_many_pictures_the_last_are_kept_apart_and_of_one_a_corner() -> None:
    size = (400, 500)
    _, places = cut(lambda: (noise(size, n) for n in range(20)), [size] * 20, 1, 96)
    learned, held = apart(places, 96, len(places) // 10)
    assert set(places[held][:, 0].tolist()) == {18, 19}
    assert learned.sum() + held.sum() == len(places)
    _, places = cut(lambda: [noise((2000, 2000))], [(2000, 2000)], 1, 192)
    learned, held = apart(places, 192, len(places) // 10)
    assert places[held][:, 1:].min() > 1000
    assert learned.sum() > 0.75 * len(places)
