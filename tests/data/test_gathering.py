"""Laws of gathering: pictures become images of one size, whole or in tiles, and memory is settled first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pcdnet.data.gathering import gather
from pcdnet.data.intake import Header
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes

PLACE = Path("photos")


def pictures(*sizes: tuple[int, int], channels: int = 1, dtype: type = np.uint8) -> dict[str, np.ndarray]:
    """Pictures a, b, ... that differ everywhere."""
    rng = np.random.default_rng(0)
    return {chr(ord("a") + n): rng.integers(0, 256, (*size, channels)).astype(dtype) for n, size in enumerate(sizes)}


def headers(given: dict[str, np.ndarray]) -> dict[str, Header]:
    """What they say of themselves."""
    return {
        name: Header(size=image.shape[:2], channels=image.shape[2], deep=image.dtype != np.uint8)
        for name, image in given.items()
    }


def test_pictures_of_one_size_stay_whole() -> None:
    given = pictures((40, 50), (40, 50))
    for view in (View(), View(tiles=64)):  # as they are smaller than a tile
        found = gather(given.items, headers(given), view, PLACE)
        np.testing.assert_array_equal(found.images, np.stack([*given.values()]))
        assert found.places is None
        assert found.sizes == {"a": (40, 50), "b": (40, 50)}
        assert found.scenes("some").names == ("a", "b")


def test_pictures_that_cannot_be_read_after_all_are_left_out() -> None:
    given = pictures((40, 50), (40, 50), (40, 50))
    known = headers(given)
    del given["b"]
    found = gather(given.items, known, View(), PLACE)
    assert [*found.sizes] == ["a", "c"]
    np.testing.assert_array_equal(found.images, np.stack([*given.values()]))


def test_pictures_of_several_sizes_are_refused_with_a_cure_or_cut(capsys: pytest.CaptureFixture[str]) -> None:
    given = pictures((400, 300), (200, 500), (50, 60), (400, 300))
    with pytest.raises(PcdnetError, match="most are 400x300, but not b .200x500., c .50x60.; .*, or tiles=192 to cut"):
        gather(given.items, headers(given), View(), PLACE)
    found = gather(given.items, headers(given), View(tiles=192), PLACE)
    assert found.places is not None
    assert set(found.places[:, 0].tolist()) == {0, 1, 3}
    assert "skipped 1 of 4 images of photos that are smaller than tiles of 192x192: c" in capsys.readouterr().err
    boxes = [Boxes.from_rows([[row, 100, 9, 9, 0]]) for row in (100, 50, 20, 150)]
    scenes = found.scenes("photos", boxes, ("car",))
    assert scenes.boxes is not None
    for name, image, seen, (number, top, left) in zip(
        scenes.names, scenes.images, scenes.boxes, found.places, strict=True
    ):
        whole = "abcd"[number]
        assert name == f"{whole}@{top},{left}"
        np.testing.assert_array_equal(image, given[whole][top : top + 192, left : left + 192])
        for corner in seen.corners[:, :2] + np.array([top, left]):
            assert (abs(corner - boxes[number].corners[0, :2]) <= 5).all()
    assert sum(map(len, scenes.boxes)) > 0


def test_of_pictures_that_are_cut_one_is_held_at_a_time() -> None:
    given = pictures((400, 300), (300, 400), (400, 300))
    held: list[str] = []

    def one_by_one() -> Iterator[tuple[str, np.ndarray]]:
        for name, image in given.items():
            held.append(name)
            yield name, image

    gather(one_by_one, headers(given), View(tiles=96), PLACE)
    assert held == ["a", "b", "c"] * 2


def test_values_and_tiles_go_together() -> None:
    given = pictures((300, 300), dtype=np.uint16)
    found = gather(given.items, headers(given), View(values=(0, 255), tiles=96), PLACE)
    assert found.places is not None
    _, top, left = found.places[0]
    np.testing.assert_array_equal(found.images[0], given["a"][top : top + 96, left : left + 96])


def test_values_beyond_what_is_known_name_the_picture() -> None:
    given = pictures((30, 30), dtype=np.float32)
    with pytest.raises(PcdnetError, match="photos/a has values from 0 to 255; give 8 bits, values of 0 to 1, or"):
        gather(given.items, headers(given), View(), PLACE)


def test_memory_is_settled_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = pictures((40, 50), (40, 50))
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=3000))
    with pytest.raises(PcdnetError, match="photos takes .* on the disk"):
        gather(lambda: pytest.fail("read"), headers(given), View(), PLACE)
