"""Seeds are the shapes that many blobs resemble."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.errors import PcdnetError
from pcdnet.training.foreground import find_foreground, still_background
from pcdnet.training.shapes import choose_seeds
from tests.training.blobs import SHAPES, frames


def test_the_seeds_are_the_shapes_that_repeat() -> None:
    images = frames(80)
    blobs = find_foreground(images, still_background(images, (9, 9))[None], (9, 9)).blobs
    seeds = choose_seeds(blobs, 2, (9, 9), np.random.default_rng(0))
    masks = seeds.masks
    assert seeds.prototypes.shape == masks.shape == (2, 9, 9)
    assert set(seeds.kinds.tolist()) <= {-1, 0, 1}
    found = sorted((masks > 0.5).sum(axis=(1, 2)).tolist())
    assert found == sorted(int(shape.sum()) for shape in SHAPES)
    for mask in masks > 0.5:
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert any(np.array_equal(box, shape.astype(bool)) for shape in SHAPES)


def test_images_without_anything_to_see_are_refused_with_the_cure() -> None:
    with pytest.raises(PcdnetError, match="stands out"):
        choose_seeds([], 2, (9, 9), np.random.default_rng(0))
