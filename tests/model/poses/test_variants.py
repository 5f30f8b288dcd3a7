"""Laws of variants: every prototype in every coarse pose as a prototype of its own."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.pose import CoarsePoses, pose_frame
from pcdnet.model.poses.variants import VariantSearch, in_images, upright, variants_of
from tests.oracle.scenes import random_bank

CONFIG = ModelConfig(num_prototypes=2, prototype_size=(9, 6), channels=1, rotations=4, mirror=True, fine_poses=False)


def bank(rng: torch.Generator, dtype: torch.dtype = torch.float32) -> PrototypeBank:
    """Two prototypes whose masks end within their frames."""
    made = random_bank(rng, 2, (9, 6), None, dtype)
    inner = torch.zeros(9, 6, dtype=dtype)
    inner[2:-2, 1:-1] = 1
    return PrototypeBank(made.prototypes, made.masks * inner)


def test_variants_come_prototype_by_prototype(rng: torch.Generator) -> None:
    given = bank(rng)
    made = variants_of(given, CONFIG)
    assert made.frame == pose_frame((9, 6), CONFIG)
    assert len(made.masks) == 2 * len(CoarsePoses.of(CONFIG, given.masks)) == 16
    for p in range(2):
        upright_one, mirror_image = made.masks[8 * p], made.masks[8 * p + 4]
        torch.testing.assert_close(mirror_image, upright_one.flip(1), atol=1e-5, rtol=0)
        torch.testing.assert_close(made.masks[8 * p + 2], upright_one.flip(0, 1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_turned_by_quarters_is_as_small_as_what_is_not(dtype: torch.dtype, rng: torch.Generator) -> None:
    square = dataclasses.replace(CONFIG, prototype_size=(9, 9))
    masks = torch.zeros(1, 9, 9, dtype=dtype)
    masks[:, 3:6, 2:7] = 1
    tight, _ = variants_of(PrototypeBank(masks, masks), square).tight()
    assert tight.frame == (5, 5)
    assert ((tight.masks > 0).sum((1, 2)) == 15).all()


def test_nothing_turns_a_second_time() -> None:
    config = dataclasses.replace(CONFIG, scales=2, scale_range=(0.5, 2.0), subpixel=True)
    assert not upright(config).posed
    kept = {field.name for field in dataclasses.fields(config)} - {
        *("rotations", "rotation_range", "scales", "scale_range", "mirror", "subpixel")
    }
    assert all(getattr(upright(config), name) == getattr(config, name) for name in kept)


def test_frames_larger_than_images_are_cut_about_their_middle(rng: torch.Generator) -> None:
    given = variants_of(bank(rng), CONFIG)
    inner, (top, left) = in_images(given, (7, 30))
    assert inner.frame == (7, given.frame[1])
    assert (top, left) == ((given.frame[0] - 7 + 1) // 2, 0)
    assert torch.equal(inner.masks, given.masks[:, top : top + 7])


@pytest.mark.parametrize("size", [(25, 30), (9, 30)])
def test_what_is_found_is_a_prototype_in_its_pose(size: tuple[int, int], rng: torch.Generator) -> None:
    """Also where the frames of posed objects are larger than the images."""
    given = bank(rng)
    config = dataclasses.replace(CONFIG, max_objects=2, localization="error_reduction", restarts=0)
    model = PCDNet.from_bank(given, config)
    search = VariantSearch.derive(SearchPlan.derive(given, size, config))
    poses = CoarsePoses.of(config, given.masks).values
    Y, X = pose_frame((9, 6), config)
    variants = variants_of(given, config)
    for number in (1, 6, 11):
        image = torch.zeros(1, 1, size[0] + 2 * Y, size[1] + 2 * X)
        row, column = (size[0] - Y) // 2, 9
        image[..., row + Y : row + 2 * Y, column + X : column + 2 * X] = (
            0.8 * variants.prototypes[number] * variants.masks[number]
        )
        image = image[..., Y : Y + size[0], X : X + size[1]]
        with torch.inference_mode():
            found = model(image)
        where = found.placement
        assert where.exists.sum() == 1
        assert int(where.prototype[0, 0]) == number // len(poses)
        torch.testing.assert_close(where.pose[0, 0], poses[number % len(poses)])
        assert (int(where.row[0, 0]), int(where.column[0, 0])) == (row, column)
        torch.testing.assert_close(found.reconstruction, image, atol=1e-4, rtol=0)
    assert search.plan.bank.frame == tuple(map(min, zip(size, (Y, X), strict=True)))
