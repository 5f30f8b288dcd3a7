"""Searching only the cells in which something is left finds what searching everywhere finds."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.cells import CellLocalizer
from pcdnet.model.geometry import Geometry
from pcdnet.model.localization import ErrorReductionLocalizer
from pcdnet.model.network import PCDNet
from pcdnet.model.placement import to_placement
from pcdnet.model.selection import select

FRAME, SIZE = (5, 6), (47, 52)
LEAST = 0.3


def scene(*places: tuple[int, int], seed: int = 0) -> tuple[PrototypeBank, torch.Tensor, torch.Tensor]:
    """A bank, a textured ground and an image of its first prototype at some places; frames may hang over the border."""
    rng = torch.Generator().manual_seed(seed)
    bank = PrototypeBank(torch.rand(3, *FRAME, generator=rng), torch.rand(3, *FRAME, generator=rng).round())
    ground = 0.5 * torch.rand(3, *SIZE, generator=rng)
    image = ground.clone()
    for row, column in places:
        for y in range(FRAME[0]):
            for x in range(FRAME[1]):
                if bank.masks[0, y, x] and 0 <= row + y < SIZE[0] and 0 <= column + x < SIZE[1]:
                    image[:, row + y, column + x] = bank.prototypes[0, y, x] * torch.tensor([0.9, 0.2, 1.0])
    return bank, ground, image


@pytest.mark.parametrize("places", [((20, 30),), ((-2, -3), (44, 48)), ((9, 17), (12, 20))])
@pytest.mark.parametrize("over_black", [False, True])
def test_active_cells_hold_the_same_values_as_the_whole_map(
    places: tuple[tuple[int, int], ...], over_black: bool
) -> None:
    bank, ground, image = scene(*places)
    behind = None if over_black else ground[None]
    images = (image - ground).abs()[None] if over_black else image[None]
    geometry = Geometry.for_overhang(SIZE, FRAME, 0.5)
    cells = CellLocalizer(bank, geometry, 1.5, LEAST)
    everywhere = ErrorReductionLocalizer(bank, geometry, 1.5).maps(images, behind)
    active = cells.few(images, behind)
    assert 0 < active.sum() < active.numel() / 4
    found = cells.maps(images, behind, active, everywhere)(slice(0, 1), slice(0, 3))
    expected = everywhere(slice(0, 1), slice(0, 3))
    assert found.shape == expected.shape
    made = found > -torch.inf
    torch.testing.assert_close(found[made], expected[made], atol=2e-4, rtol=1e-4)
    assert (expected[~made] < LEAST).all()
    assert expected.amax() > LEAST  # else there was nothing to find


def test_images_in_which_much_is_left_are_searched_everywhere() -> None:
    bank, ground, image = scene((20, 30))
    images = torch.stack([image, torch.rand(3, *SIZE, generator=torch.Generator().manual_seed(1)), ground])
    geometry = Geometry.for_overhang(SIZE, FRAME, 0.5)
    cells = CellLocalizer(bank, geometry, 1.5, LEAST)
    everywhere = ErrorReductionLocalizer(bank, geometry, 1.5).maps(images, ground.expand(3, -1, -1, -1))
    active = cells.few(images, ground[None])
    assert active.flatten(1).any(dim=1).tolist() == [True, False, False]
    found = cells.maps(images, ground[None], active, everywhere)(slice(0, 3), slice(1, 3))
    assert (found[0] == -torch.inf).any()
    torch.testing.assert_close(found[1:], everywhere(slice(1, 3), slice(1, 3)))


def test_objects_are_the_same_whether_cells_are_searched_or_everything() -> None:
    bank, ground, image = scene((20, 30), (3, 5))
    config = ModelConfig(
        num_prototypes=3,
        prototype_size=FRAME,
        max_objects=5,
        background="still",
        localization="error_reduction",
        min_error_reduction=LEAST,
        restarts=0,
    )
    model = PCDNet.from_bank(dataclasses.replace(bank, background=ground), config)
    plan = model.plan(SIZE)
    assert plan.cells is not None
    assert plan.cells.few(image[None], ground[None]).any()
    found = []
    for each in (plan, dataclasses.replace(plan, cells=None)):
        selection_input = model.selection_input(image[None], each, 4)
        placement = to_placement(selection_input, select(selection_input))
        found.append(
            {*zip(*(getattr(placement, name)[0].tolist() for name in ("prototype", "row", "column")), strict=True)}
        )
    assert found[0] == found[1]
    assert {(0, 20, 30), (0, 3, 5)} <= found[0]
