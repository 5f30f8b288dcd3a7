"""Laws of the engine over backgrounds that differ from image to image, and over parts that are ignored."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from tests.model.models import CONFIG, FRAME, SIZE, random_batch, random_model
from tests.oracle.scenes import random_bank, random_scene


def test_images_larger_than_a_moving_background_are_refused(rng: torch.Generator) -> None:
    bank = random_bank(rng, 3, FRAME, (3, *SIZE), torch.float32)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="moving"))
    assert model.image_size is None
    with pytest.raises(PcdnetError, match="images of 20x30 are larger than the background, 32x28; crop them"):
        model(torch.zeros(1, 3, 20, 30))


def paper(size: tuple[int, int]) -> Tensor:
    """Paper under a lamp: as smooth as plain backgrounds are, and uneven by a third."""
    y, x = ((torch.arange(side) + 0.5) / side for side in size)
    light = 0.8 + 0.1 * torch.cos(torch.pi * x) + 0.3 * (y - 0.5).square()[:, None]
    return light.expand(3, -1, -1)


@pytest.mark.parametrize("size", [(48, 56), (61, 40)])
@torch.no_grad()
def test_objects_over_uneven_paper_are_found_in_images_of_any_size(size: tuple[int, int]) -> None:
    bank, _ = random_batch(5)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="plain", localization="error_reduction"))
    assert model.image_size is None
    image, places = paper(size).clone(), [(0, 6, 5), (1, 30, 24), (2, 12, 28)]
    for p, row, column in places:
        window = image[:, row : row + FRAME[0], column : column + FRAME[1]]
        window += bank.masks[p] * (torch.tensor([0.5, 0.1, 0.3])[:, None, None] * bank.prototypes[p] - window)
    layers = model(image[None])
    where = layers.placement
    found = torch.stack([where.prototype, where.row, where.column], dim=-1)[where.exists]
    assert sorted(map(tuple, found.tolist())) == sorted(places)
    assert layers.own is not None
    torch.testing.assert_close(layers.own[0], paper(size), atol=0.01, rtol=0)
    assert (layers.reconstruction - image).square().mean() < 1e-5


@torch.no_grad()
def test_ignored_pixels_are_not_searched() -> None:
    model, images = random_model(2, background="still")
    assert model.ignored is not None
    assert model.background is not None
    assert torch.equal(model.seen(images), images)
    everywhere = model(images).placement.exists.sum()
    model.ignored[:, : SIZE[1] // 2] = True
    seen = model.seen(images)
    assert torch.equal(seen[..., SIZE[1] // 2 :], images[..., SIZE[1] // 2 :])
    layers, noise = model(images), torch.rand(images.shape, generator=torch.Generator().manual_seed(0))
    changed = model(torch.where(model.ignored, noise, images))
    assert torch.equal(changed.reconstruction, layers.reconstruction)
    assert 0 < layers.placement.exists.sum() < everywhere
    model.ignored[:] = True
    assert not model(images).placement.exists.any()


@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
@pytest.mark.parametrize("colour", ["least_squares", "network", "none"])
@torch.no_grad()
def test_a_background_for_each_image_finds_what_the_same_still_one_finds(colour: str, localization: str) -> None:
    fields: dict[str, Any] = {"colour": colour, "localization": localization, "min_solid": 0.2, "restarts": 3}
    still, images = random_model(4, background="still", **fields)
    moving = copy.deepcopy(still)
    moving.config = dataclasses.replace(still.config, background="moving")
    expected, found = still(images), moving(images)
    assert expected.own is None
    assert found.own is not None
    assert expected.placement.exists.sum() > 4
    for name in ("prototype", "row", "column"):
        assert torch.equal(getattr(found.placement, name), getattr(expected.placement, name)), name
    torch.testing.assert_close(found.reconstruction, expected.reconstruction, atol=1e-4, rtol=0)


def test_a_moving_background_learns_where_it_is_seen_as_a_still_one_does() -> None:
    still, images = random_model(4, background="still")
    moving = copy.deepcopy(still)
    moving.config = dataclasses.replace(still.config, background="moving")
    for model in (still, moving):
        (model(images).reconstruction - images).square().mean().backward()
    assert still.background is not None
    assert moving.background is not None
    assert still.background.grad is not None
    torch.testing.assert_close(moving.background.grad, still.background.grad, atol=1e-6, rtol=1e-3)


@torch.no_grad()
def test_what_a_moving_camera_sees_is_decomposed_as_the_part_that_it_sees() -> None:
    rng = torch.Generator().manual_seed(6)
    bank = random_bank(rng, 3, FRAME, (3, 48, 60), torch.float32)
    assert bank.background is not None
    texture = torch.rand(3, 48, 60, generator=rng)
    large = PrototypeBank(bank.prototypes, bank.masks, bank.background + 0.3 * texture)
    model = PCDNet.from_bank(large, dataclasses.replace(CONFIG, background="moving"))
    for row, column in ((0, 0), (9, 17), (16, 32)):
        part = model.background[:, row : row + SIZE[0], column : column + SIZE[1]]  # type: ignore[index]
        there = PrototypeBank(bank.prototypes, bank.masks, part)
        image = random_scene(rng, there, SIZE, 3, 2, 0.0)[None]
        still = PCDNet.from_bank(there, dataclasses.replace(CONFIG, background="still"))
        found, expected = model(image), still(image)
        assert found.own is not None
        assert torch.equal(found.own[0], part)
        assert torch.equal(found.placement.prototype, expected.placement.prototype)
        torch.testing.assert_close(found.reconstruction, expected.reconstruction, atol=1e-4, rtol=0)
