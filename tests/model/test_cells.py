"""Searching only the cells in which something is left finds what searching everywhere finds."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.cells import CellLocalizer
from pcdnet.model.geometry import Geometry, support
from pcdnet.model.localization import ErrorReductionLocalizer
from pcdnet.model.network import PCDNet
from pcdnet.model.peaks import Peaks, top_peaks
from pcdnet.model.placement import to_placement
from pcdnet.model.selection import select
from pcdnet.model.sizes import like_sizes

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


def both_ways(
    bank: PrototypeBank, images: torch.Tensor, behind: torch.Tensor | None, own: bool, count: int = 300
) -> tuple[Peaks, Peaks]:
    """The peaks of all maps, from active cells and from everywhere."""
    geometry, shared = Geometry.for_overhang(SIZE, FRAME, 0.5), None if own or behind is None else behind[0]
    localizer = ErrorReductionLocalizer(dataclasses.replace(bank, background=shared), geometry, 1.5)
    maps = localizer.maps(images, behind if own else None)
    cells = CellLocalizer(bank, like_sizes(support(bank.masks)), localizer, LEAST)
    P, which = len(bank.masks), slice(0, len(images))
    found = [torch.full((len(images), P, count), torch.nan) for _ in range(3)]
    for some, peaks in cells.portions(images, behind, maps, own=own)(which, count):
        for values, part in zip(found, peaks, strict=True):
            values[:, some] = part.to(values)
    return (found[0], found[1], found[2]), top_peaks(maps(which, slice(0, P)), count, localizer.reach)


@pytest.mark.parametrize("places", [((20, 30),), ((-2, -3), (44, 48)), ((9, 17), (12, 20))])
@pytest.mark.parametrize("ground_is", ["black", "shared", "own"])
@pytest.mark.parametrize("small", [False, True])
def test_active_cells_have_the_peaks_that_count_of_the_whole_map(
    places: tuple[tuple[int, int], ...], ground_is: str, small: bool
) -> None:
    bank, ground, image = scene(*places)
    if small:  # two sizes of frames
        bank.masks[1:, :1] = bank.masks[1:, 2:] = bank.masks[1:, :, :1] = bank.masks[1:, :, 3:] = 0
        bank.masks[1:, 1, 1:3] = 1
        assert len(like_sizes(support(bank.masks))) == 2
    images = (image - ground).abs()[None] if ground_is == "black" else image[None]
    behind = None if ground_is == "black" else ground[None]
    found, expected = both_ways(bank, images, behind, ground_is == "own")
    counts = expected[0] >= LEAST
    assert counts.any()
    assert ((found[0] >= LEAST) == counts).all()
    for values, whole in zip(found, expected, strict=True):
        torch.testing.assert_close(values[counts], whole[counts].to(values), atol=2e-4, rtol=1e-4)
    assert (found[0] == -torch.inf).any()  # and not everything was searched


def test_images_in_which_much_is_left_are_searched_everywhere() -> None:
    bank, ground, image = scene((20, 30))
    images = torch.stack([image, torch.rand(3, *SIZE, generator=torch.Generator().manual_seed(1)), ground])
    found, expected = both_ways(bank, images, ground[None], own=False)
    for values, whole in zip(found, expected, strict=True):
        torch.testing.assert_close(values[1], whole[1].to(values))
    assert (found[0][0] == -torch.inf).any()
    assert (found[0][2] == -torch.inf).all()


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
    found = []
    for each in (plan, dataclasses.replace(plan, cells=None)):
        selection_input = model.selection_input(image[None], each, 4)
        placement = to_placement(selection_input, select(selection_input))
        found.append(
            {*zip(*(getattr(placement, name)[0].tolist() for name in ("prototype", "row", "column")), strict=True)}
        )
    assert found[0] == found[1]
    assert {(0, 20, 30), (0, 3, 5)} <= found[0]
