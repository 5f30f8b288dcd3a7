"""Laws of pixels: a store gives what an array of its images gives, and is checked when it is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.errors import PcdnetError
from pcdnet.pixels import HEAD, PixelStore, open_store, pieces, spread, write_store

IMAGES = np.random.default_rng(0).integers(0, 256, (23, 5, 4, 3), np.uint8)
NUMBER = st.integers(-23, 22)


def stored(path: Path, images: np.ndarray = IMAGES) -> PixelStore:
    with path.open("wb") as file:
        write_store(file, iter(images), {"of": "noise"})
    return open_store(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PixelStore:
    return stored(tmp_path_factory.mktemp("store") / "a.pixels")


def test_a_store_says_what_it_holds(store: PixelStore) -> None:
    assert (store.shape, store.dtype, store.ndim, len(store)) == (IMAGES.shape, IMAGES.dtype, 4, 23)
    assert store.nbytes == IMAGES.nbytes
    assert store.words == {"of": "noise"}
    assert "23x5x4x3" in repr(store)


@given(number=NUMBER, numbers=st.lists(NUMBER), ends=st.tuples(*[st.none() | st.integers(-30, 30)] * 2), step=NUMBER)
def test_a_store_is_indexed_as_an_array_is(
    store: PixelStore, number: int, numbers: list[int], ends: tuple[int | None, int | None], step: int
) -> None:
    assert (store[number] == IMAGES[number]).all()
    chosen = np.array(numbers, np.int64)
    assert np.array_equal(store[chosen], IMAGES[chosen])
    part = slice(*ends, step or None)
    assert np.array_equal(np.asarray(store[part]), IMAGES[part])
    assert np.array_equal(np.asarray(store[part][::2][:3]), IMAGES[part][::2][:3])
    mask = np.isin(np.arange(23), chosen)
    assert np.array_equal(np.asarray(store[mask]), IMAGES[mask])
    assert np.array_equal(np.asarray(store[mask][1:]), IMAGES[mask][1:])
    inner = np.arange(len(IMAGES[part]))[::-1]
    assert np.array_equal(store[part][inner], IMAGES[part][inner])
    store.expect(chosen)


def test_what_is_not_there_is_an_index_error(store: PixelStore) -> None:
    for wrong in (23, -24, np.array([0, 23]), np.array([-24]), np.ones(22, bool)):
        with pytest.raises(IndexError):
            store[wrong]


def test_all_images_come_in_their_order(store: PixelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcdnet.pixels.PIECE", 3 * IMAGES[0].size)
    assert [len(piece) for piece in pieces(store)] == [3] * 7 + [2]
    assert np.array_equal(np.concatenate(list(pieces(store[3:]))), IMAGES[3:])
    assert np.array_equal(np.stack(list(store)), IMAGES)
    assert np.array_equal(spread(store, 4, 5), spread(IMAGES, 4, 5))


def test_a_store_with_any_byte_changed_or_missing_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.pixels"
    stored(path, IMAGES[:2])
    whole = path.read_bytes()
    used = [*range(32), *range(HEAD, len(whole))]  # what lies between is padding
    for place in used:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((ValueError, KeyError)):
            open_store(path)
    for length in (0, 10, HEAD, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="."):
            open_store(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(ValueError, match="cut off"):
        open_store(path)


def test_a_store_that_is_cut_while_it_is_open_is_reported(tmp_path: Path) -> None:
    store = stored(tmp_path / "a.pixels")
    with (tmp_path / "a.pixels").open("r+b") as file:
        file.truncate(HEAD + 30)
    with pytest.raises(PcdnetError, match="was changed while it was read; start again"):
        store[5]


def test_a_store_that_is_replaced_while_it_is_open_stays_as_it_was(tmp_path: Path) -> None:
    store = stored(tmp_path / "a.pixels")
    stored(tmp_path / "b.pixels", 255 - IMAGES)
    (tmp_path / "b.pixels").replace(tmp_path / "a.pixels")
    assert np.array_equal(np.asarray(store), IMAGES)


def test_files_are_closed_when_nobody_needs_them(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    part = stored(tmp_path / "a.pixels")[3:5]
    assert np.array_equal(np.asarray(part), IMAGES[3:5])
    del part
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_pixels_cannot_be_had_without_a_copy(store: PixelStore) -> None:
    with pytest.raises(ValueError, match="copy"):
        np.asarray(store, copy=False)
