"""Laws of patches: the surface of a large picture has no steps, and parts of it are parts of the whole."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pcdnet.model.background.patches import PatchedSurface
from pcdnet.model.background.plain import fit_surface
from tests.model.background.test_plain import NOISE, noisy

SIZE, PATCH = (150, 220), (64, 72)


def rippled() -> Tensor:
    """Light that varies too fast for one surface of the whole."""
    y, x = (torch.arange(side) for side in SIZE)
    return (0.5 + 0.15 * torch.sin(x / 24) + 0.1 * torch.sin(y[:, None] / 20))[None].expand(3, -1, -1)


def fitted(picture: Tensor, patch: tuple[int, int] = PATCH, covered: Tensor | None = None) -> PatchedSurface:
    def parts(whole: Tensor) -> object:
        return lambda corners, size: torch.stack(
            [whole[..., row : row + size[0], left : left + size[1]] for row, left in corners.tolist()]
        )

    return PatchedSurface.fit(SIZE, patch, parts(picture), None if covered is None else parts(covered))  # type: ignore[arg-type]


def test_what_varies_within_a_picture_is_followed(rng: torch.Generator) -> None:
    picture = noisy(rippled(), rng)
    away = fitted(picture).picture(0, 0, SIZE) - rippled()
    assert away.square().mean().sqrt() < NOISE
    assert (fit_surface(picture[None]).picture()[0] - rippled()).square().mean().sqrt() > 3 * NOISE


def test_there_is_no_step_anywhere(rng: torch.Generator) -> None:
    surface = fitted(noisy(rippled(), rng)).picture(0, 0, SIZE)
    for axis in (1, 2):
        assert surface.diff(dim=axis).abs().max() < 0.15 / 24 + 0.1 / 20
        assert surface.diff(n=2, dim=axis).abs().max() < NOISE / 2


@pytest.mark.parametrize("part", [(0, 0, 150, 220), (33, 70, 60, 80), (149, 219, 1, 1), (0, 100, 5, 120)])
def test_a_part_is_that_part_of_the_whole(part: tuple[int, int, int, int], rng: torch.Generator) -> None:
    surface = fitted(noisy(rippled(), rng))
    top, left, height, width = part
    whole = surface.picture(0, 0, SIZE)[:, top : top + height, left : left + width]
    torch.testing.assert_close(surface.picture(top, left, (height, width)), whole, atol=1e-5, rtol=0)


def test_one_patch_is_one_surface(rng: torch.Generator) -> None:
    picture = noisy(rippled(), rng)
    one = fitted(picture, (999, 999)).picture(0, 0, SIZE)
    torch.testing.assert_close(one, fit_surface(picture[None]).picture()[0], atol=1e-5, rtol=0)


def test_covered_pixels_have_no_say(rng: torch.Generator) -> None:
    picture, covered = noisy(rippled(), rng), torch.zeros(SIZE, dtype=torch.bool)
    covered[40:80, 60:100] = True
    hidden = torch.where(covered, 0.0, picture)
    bare, found = (each.picture(0, 0, SIZE) for each in (fitted(picture), fitted(hidden, covered=covered)))
    assert (found - bare)[:, ~covered].abs().max() < 2 * NOISE
