"""Maps of every place say what painting there would do."""

from __future__ import annotations

import pytest
import torch

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.localization import ErrorReductionLocalizer, PhaseLocalizer


def literal_reduction(
    image: torch.Tensor, bank: PrototypeBank, p: int, row: int, column: int, max_colour: float
) -> torch.Tensor:
    """Paint the prototype on the whole canvas in many colours, and take the largest fall of the error."""
    C, H, W = image.shape
    h, w = bank.frame
    behind = torch.zeros_like(image) if bank.background is None else bank.background
    wide_T, wide_M = torch.zeros(H + 2 * h, W + 2 * w).double(), torch.zeros(H + 2 * h, W + 2 * w).double()
    place = slice(row + h, row + 2 * h), slice(column + w, column + 2 * w)
    wide_T[place], wide_M[place] = bank.prototypes[p], bank.masks[p]
    T, M = wide_T[h : h + H, w : w + W], wide_M[h : h + H, w : w + W]
    colours = torch.linspace(0, max_colour, 601).double()[:, None, None]
    total = torch.zeros(()).double()
    for c in range(C):
        painted = M * colours * T + (1 - M) * behind[c]
        error = (image[c] - painted).square().sum(dim=(1, 2))
        total += (image[c] - behind[c]).square().sum() - error.min()
    return total


@pytest.mark.parametrize("background", [True, False])
def test_error_reduction_maps_hold_what_painting_would_reduce(background: bool, rng: torch.Generator) -> None:
    images = torch.rand(2, 3, 14, 17, generator=rng).double()
    behind = torch.rand(3, 14, 17, generator=rng).double() if background else None
    bank = PrototypeBank(
        torch.rand(3, 5, 6, generator=rng).double(), torch.rand(3, 5, 6, generator=rng).double(), behind
    )
    geometry = Geometry.for_overhang((14, 17), (5, 6), 0.5)
    maps = ErrorReductionLocalizer(bank, geometry, max_colour=1.5).maps(images)(slice(0, 2), slice(1, 3))
    assert maps.shape == (2, 2, *geometry.positions)
    for b, p, y, x in [(0, 0, 0, 0), (1, 1, 5, 7), (0, 1, geometry.positions[0] - 1, 3), (1, 0, 2, 12)]:
        row, column = y - geometry.padding[0], x - geometry.padding[1]
        expected = literal_reduction(images[b], bank, 1 + p, row, column, 1.5)
        torch.testing.assert_close(maps[b, p, y, x], expected, atol=2e-3, rtol=0)


def test_a_dark_thing_on_a_bright_ground_is_where_the_error_reduction_is_highest(rng: torch.Generator) -> None:
    """Phase correlation looks for the bright prototype; a darker thing has the opposite sign there."""
    bank = PrototypeBank(torch.ones(1, 4, 6), torch.ones(1, 4, 6), torch.full((1, 20, 24), 0.7))
    image = torch.full((1, 1, 20, 24), 0.7) + 0.02 * torch.rand(1, 1, 20, 24, generator=rng)
    image[0, 0, 9:13, 5:11] = 0.1
    geometry = Geometry.for_overhang((20, 24), (4, 6), 0.5)
    best = ErrorReductionLocalizer(bank, geometry, 1.5).maps(image)(slice(0, 1), slice(0, 1)).argmax().item()
    assert divmod(best, geometry.positions[1]) == (9 + geometry.padding[0], 5 + geometry.padding[1])
    phase = PhaseLocalizer(bank, geometry).maps(image)(slice(0, 1), slice(0, 1)).argmax().item()
    assert phase != best


def test_with_the_paper_s_template_neither_masks_nor_the_background_matter(rng: torch.Generator) -> None:
    """Equation 1 has the prototype and the image alone; by default both count."""
    images, geometry = torch.rand(2, 3, 20, 24, generator=rng), Geometry.for_overhang((20, 24), (5, 6), 0.5)
    prototypes, everywhere = torch.rand(2, 5, 6, generator=rng), (slice(0, 2), slice(0, 2))
    plain = PrototypeBank(prototypes, torch.ones(2, 5, 6))
    other = PrototypeBank(prototypes, torch.rand(2, 5, 6, generator=rng), torch.rand(3, 20, 24, generator=rng))
    found, expected = (PhaseLocalizer(bank, geometry, "prototype").maps(images)(*everywhere) for bank in (other, plain))
    torch.testing.assert_close(found, expected, atol=0, rtol=0)
    assert (PhaseLocalizer(other, geometry).maps(images)(*everywhere) - expected).abs().max() > 0.05
    torch.testing.assert_close(PhaseLocalizer(plain, geometry).maps(images)(*everywhere), expected)
