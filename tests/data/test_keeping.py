"""Laws of pixels that are kept in the user's cache."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from pcdnet.data.keeping import HELD, UNUSED, Keep

IMAGES = np.arange(3 * 4 * 5 * 3, dtype=np.uint8).reshape(3, 4, 5, 3)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path))
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")


def kept(key: str) -> Keep:
    """Images that were decoded into a file of the cache."""
    keep = Keep(name="some images", key=(key,))
    keep.collect(iter(IMAGES))
    assert keep.path.is_file(), f"{HELD} bytes are not held in memory"
    return keep


def test_what_is_kept_is_found_again() -> None:
    kept("one")
    again = Keep(name="some images", key=("one",)).kept()
    assert again is not None
    np.testing.assert_array_equal(np.asarray(again[:]), IMAGES)


def test_pixels_that_were_not_used_for_long_make_room_for_others(capsys: pytest.CaptureFixture[str]) -> None:
    old, used = kept("old"), kept("used")
    long_ago = time.time() - UNUSED - 60
    broken = old.path.with_name("killed.pixels.12345.partial")
    broken.touch()
    for path in (old.path, used.path, broken):
        os.utime(path, (long_ago, long_ago))
    assert used.kept() is not None
    kept("new")
    assert not old.path.exists()
    assert not broken.exists()
    assert used.path.exists(), "what was opened in the meantime is in use"
    assert f"removed {old.path}" in capsys.readouterr().err
