"""Seeds are the shapes that many blobs resemble."""

from __future__ import annotations

import numpy as np
import pytest

from pcdnet.errors import PcdnetError
from pcdnet.training.foreground import find_foreground, still_background
from pcdnet.training.shapes import agreed, choose_seeds
from tests.training.blobs import SHAPES, blob, frames


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


def ring(value: int, rng: np.random.Generator, *, hole: bool) -> np.ndarray:
    """A ring at a random place on grey paper, or a disc whose middle has the paper's grey in one of three cases."""
    image = np.full((40, 40, 3), 150, np.uint8)
    row, column = rng.integers(1, 30, 2)
    image[row : row + 9, column : column + 9] = value
    if hole or rng.random() < 1 / 3:
        image[row + 3 : row + 6, column + 3 : column + 6] = 150
    return image


@pytest.mark.parametrize("hole", [True, False])
def test_what_nearly_all_blobs_lack_is_a_hole_and_bright_and_dark_rings_are_one_shape(hole: bool) -> None:
    rng = np.random.default_rng(0)
    images = np.stack([ring(value, rng, hole=hole) for value in (30, 90, 220, 250) * 10])
    paper = np.full((1, 40, 40, 3), 150 / 255, np.float32)
    seeds = choose_seeds(find_foreground(images, paper, (12, 12)).blobs, 5, (12, 12), rng)
    assert len(seeds.masks) == 1
    mask = seeds.masks[0] > 0.5
    assert mask.sum() == (72 if hole else 81)
    assert np.allclose(seeds.prototypes[0][mask], 1, atol=0.05)


def test_blobs_that_do_not_agree_on_a_shape_are_no_seed() -> None:
    rng = np.random.default_rng(0)
    blobs = [blob(n, 5, 5, SHAPES[0]) for n in range(20)]
    for n in range(20):
        pair = np.zeros((9, 9))
        pair[:6, :5] = 1
        pair[3:, rng.integers(1, 5) :] = 1
        pair[rng.random((9, 9)) < 0.4] = 0
        pair[0], pair[-1], pair[:, 0], pair[:, -1] = 1, 1, 1, 1
        blobs.append(blob(n, 20, 20, pair))
    seeds = choose_seeds(blobs, 4, (12, 12), rng)
    kept = agreed(seeds)
    assert len(kept.masks) == 1 < len(seeds.masks)
    assert (kept.masks[0] > 0.5).sum() == SHAPES[0].sum()
    assert set(kept.kinds.tolist()) == {-1, 0}
    assert (kept.kinds == 0).sum() == 20
