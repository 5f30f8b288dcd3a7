"""Seeds of models with poses are shapes up to turns, sizes and mirror images."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import ndimage

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.training.foreground import Blob
from pcdnet.training.shapes import Seeds
from pcdnet.training.turned import choose_posed_seeds
from tests.training.blobs import SHAPES, blob
from tests.training.posed_blobs import Shape, ellipse, heart, hook, posed_blob, square, triangle

ANY = ModelConfig(prototype_size=(31, 31), rotations=24)
SIZES = ModelConfig(prototype_size=(31, 31), rotations=24, scales=3, scale_range=(0.5, 1.0))


def sample(
    shapes: tuple[Shape, ...],
    seed: int,
    each: int = 20,
    sizes: tuple[float, float] = (8, 8),
    mirrors: float = 0.0,
) -> list[Blob]:
    """Blobs of each shape by turns, at angles and in sizes by chance, some of them mirrored."""
    rng = np.random.default_rng(seed)
    return [
        posed_blob(shape, rng.uniform(0, 360), rng.uniform(*sizes), rng, mirrored=bool(rng.random() < mirrors))
        for _ in range(each)
        for shape in shapes
    ]


def chosen(blobs: list[Blob], config: ModelConfig, count: int = 8) -> Seeds:
    return choose_posed_seeds(blobs, count, config.prototype_size, np.random.default_rng(0), config)


def one_kind_each(seeds: Seeds, shapes: int) -> bool:
    """Whether all blobs of a shape are one kind, and of no other shape's."""
    kinds = seeds.kinds.reshape(-1, shapes)
    return len(seeds.masks) == shapes and bool((kinds == kinds[0]).all()) and len(set(kinds[0])) == shapes


@pytest.mark.parametrize(("config", "sizes"), [(ANY, (8, 8)), (SIZES, (6, 12))])
def test_every_shape_is_one_kind_at_all_angles_and_sizes(config: ModelConfig, sizes: tuple[float, float]) -> None:
    shapes = heart, square, ellipse, triangle, hook
    assert one_kind_each(chosen(sample(shapes, 0, sizes=sizes), config), len(shapes))


def bar(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = (np.abs(x) < 1.2) & (np.abs(y) < 0.12)
    return inside


def ring(x: np.ndarray, y: np.ndarray, *, cross: bool = False) -> np.ndarray:
    """A ring around a cross or a wedge, about as much of its inside each."""
    far, within = x**2 + y**2, (np.minimum(np.abs(x), np.abs(y)) < 0.12) if cross else (np.abs(y) < 0.45 * (x + 0.4))
    inside: np.ndarray = (far < 1) & ((far > 0.65) | within)
    return inside


def crossed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ring(x, y, cross=True)


def test_what_differs_inside_only_is_told_apart_beside_thin_things() -> None:
    shapes = bar, ring, crossed
    blobs = [filled(blob) for blob in sample(shapes, 0, sizes=(8, 14))]
    assert one_kind_each(chosen(blobs, SIZES), len(shapes))


def filled(blob: Blob) -> Blob:
    """A blob as it is found: its holes are inside of its mask."""
    return dataclasses.replace(blob, mask=ndimage.binary_fill_holes(blob.mask))


def test_which_angle_is_upright_follows_from_the_shape_alone() -> None:
    one, two = (chosen(sample((heart,), seed, each=30), ANY).masks[0] for seed in (1, 2))
    assert np.abs(one - two).mean() < 0.01
    assert np.abs(one - np.rot90(two, 2)).mean() > 0.03


def test_what_is_averaged_is_crisp() -> None:
    mask = chosen(sample((hook,), 0, each=40), ANY).masks[0]
    unsure = (mask > 0.2) & (mask < 0.8)
    assert unsure.sum() < 0.5 * (mask > 0.5).sum()
    turned_anyhow = np.mean([posed_blob(hook, a, 8, np.random.default_rng(0)).mask.sum() for a in range(0, 360, 30)])
    assert (mask > 0.5).sum() == pytest.approx(turned_anyhow, rel=0.08)


def test_mirror_images_are_one_kind_only_if_the_model_has_them() -> None:
    blobs = sample((hook,), 0, each=60, mirrors=0.3)
    both = ModelConfig(prototype_size=(31, 31), rotations=24, mirror=True)
    assert len(chosen(blobs, ANY).masks) == 2
    assert len(chosen(blobs, both).masks) == 1
    commoner = chosen(sample((hook,), 1, each=30), ANY).masks[0]
    assert np.abs(chosen(blobs, both).masks[0] - commoner).mean() < 0.02


def test_prototypes_are_as_large_as_the_range_of_sizes_says() -> None:
    areas = [blob.mask.sum() for blob in sample((square,), 0, each=60, sizes=(6, 12))]
    mask = chosen(sample((square,), 0, each=60, sizes=(6, 12)), SIZES).masks[0]
    assert (mask > 0.5).sum() == pytest.approx(max(areas), rel=0.15)


def test_of_a_part_of_the_turn_the_median_is_upright() -> None:
    config = ModelConfig(prototype_size=(31, 31), rotations=5, rotation_range=(-40.0, 40.0))
    rng = np.random.default_rng(0)
    mask = chosen([posed_blob(heart, angle, 8, rng) for angle in np.linspace(-40, 40, 41)], config).masks[0]
    assert np.abs(mask - mask[:, ::-1]).mean() < 0.02  # a heart upright is its own mirror image
    assert mask[:15].sum() > mask[16:].sum()


def test_a_frame_that_holds_no_upright_shape_holds_it_turned() -> None:
    config = ModelConfig(prototype_size=(16, 16), rotations=24)
    seeds = chosen(sample((square,), 0, each=30), config)  # upright is on its corner, 18 pixels wide
    areas = [blob.mask.sum() for blob in seeds.blobs]
    assert (seeds.masks[0] > 0.5).sum() == pytest.approx(np.mean(areas), rel=0.05)


def test_quarter_turns_are_exact() -> None:
    config = ModelConfig(prototype_size=(9, 9), rotations=4, fine_poses=False)
    blobs = [blob(n, 5, 5, np.rot90(shape, n)) for n in range(12) for shape in SHAPES]
    seeds = chosen(blobs, config)
    assert len(seeds.masks) == 2
    assert set(np.unique(seeds.masks)) == {0.0, 1.0}
    assert (seeds.kinds.reshape(-1, 2) == seeds.kinds[:2]).all()
    again = chosen([blob(n, 5, 5, np.rot90(shape, n + 1)) for n in range(7) for shape in SHAPES], config)
    for mask in seeds.masks:
        assert any(np.array_equal(mask, other) for other in again.masks)


def test_images_without_anything_to_see_are_refused_with_the_cure() -> None:
    with pytest.raises(PcdnetError, match="stands out"):
        chosen([], ANY)
