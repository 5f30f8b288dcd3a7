"""Laws of stacks: the images of an .npz file come one by one as they were saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.data import stack
from pcdnet.errors import PcdnetError

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)


@pytest.mark.parametrize("images", [IMAGES, IMAGES[..., :1], IMAGES[..., 0]])
def test_images_come_as_they_were_saved(images: np.ndarray, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", allow_pickle=True, image=images, labels=np.zeros((5, 4, 6)))
    assert stack.count(tmp_path / "a.npz") == 5
    found = np.stack(list(stack.images(tmp_path / "a.npz")))
    np.testing.assert_array_equal(found, images.reshape(5, 4, 6, -1))


def test_what_is_no_stack_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", allow_pickle=True, images=IMAGES)
    np.savez(tmp_path / "float.npz", allow_pickle=True, image=IMAGES / 255)
    np.savez(tmp_path / "cut.npz", allow_pickle=True, image=IMAGES)
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:300])
    at = whole.index(IMAGES[2].tobytes())
    (tmp_path / "bad.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for name, complaint in {
        "other": "no array 'image' .it holds images.",
        "float": "is of type float64",
        "cut": "no sound .npz file",
        "bad": "no sound .npz file .Bad CRC",
        "missing": "does not exist",
    }.items():
        with pytest.raises(PcdnetError, match=complaint):
            list(stack.images(tmp_path / f"{name}.npz"))
