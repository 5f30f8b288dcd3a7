"""Laws of plain backgrounds: smooth surfaces found behind the objects of single images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pcdnet.model.background.plain import LEAST_NOISE, fit_surface

SIZE = (72, 60)
NOISE = 0.01


def tilted(channels: int = 3, size: tuple[int, int] = SIZE) -> Tensor:
    """Paper that is brighter at the right and a little brighter below, of a tint."""
    y, x = (torch.arange(side) / side for side in size)
    tint = torch.tensor([1.0, 0.9, 0.8])[:channels, None, None]
    return (tint * (0.6 + 0.25 * x + 0.1 * y[:, None]))[None]


def noisy(images: Tensor, rng: torch.Generator) -> Tensor:
    return images + NOISE * torch.randn(images.shape, generator=rng)


def with_objects(images: Tensor) -> Tensor:
    """Nine dark squares, a quarter of all pixels, some at the border."""
    covered = images.clone()
    for row in (0, 28, 56):
        for column in (2, 25, 49):
            covered[:, :, row : row + 11, column : column + 11] = 0.1
    return covered


def test_a_tilted_surface_behind_dark_objects_is_found_within_the_noise(rng: torch.Generator) -> None:
    away = fit_surface(noisy(with_objects(tilted()), rng)).picture() - tilted()
    assert away.square().mean().sqrt() < NOISE / 2
    assert away.abs().max() < 2 * NOISE, "a tilt is followed up to the border"


def test_objects_do_not_bend_the_surface(rng: torch.Generator) -> None:
    paper = noisy(tilted(), rng)
    bare, covered = fit_surface(paper).picture(), fit_surface(with_objects(paper)).picture()
    torch.testing.assert_close(covered, bare, atol=NOISE, rtol=0)


def test_covered_pixels_have_no_say(rng: torch.Generator) -> None:
    """Most of the paper is hidden: what most of the pixels agree on is the object."""
    paper = noisy(tilted(), rng)
    covered = torch.zeros(1, *SIZE, dtype=torch.bool)
    covered[:, 8:64, 8:52] = True
    images = torch.where(covered[:, None], 0.1, paper)
    assert (fit_surface(images).picture() - tilted()).abs().max() > 0.2
    found = fit_surface(images, covered).picture()
    torch.testing.assert_close(found[:, :, :8], tilted()[:, :, :8], atol=3 * NOISE, rtol=0)


def test_of_an_image_that_objects_hide_altogether_every_pixel_counts(rng: torch.Generator) -> None:
    images = noisy(tilted(), rng).expand(2, -1, -1, -1)
    hidden = torch.zeros(2, *SIZE, dtype=torch.bool)
    hidden[0] = True
    surface = fit_surface(images, hidden).picture()
    assert torch.equal(surface[0], surface[1])


def test_part_of_a_surface_is_that_part_of_the_whole(rng: torch.Generator) -> None:
    surface = fit_surface(noisy(tilted(), rng))
    part = surface.picture(20, 7, (30, 41))
    torch.testing.assert_close(part, surface.picture()[:, :, 20:50, 7:48])


def test_the_noise_is_measured_beside_the_objects(rng: torch.Generator) -> None:
    noise = float(fit_surface(noisy(with_objects(tilted(1)), rng)).noise)
    assert 0.7 * NOISE < noise < 1.4 * NOISE
    assert float(fit_surface(torch.full((1, 1, *SIZE), 0.7)).noise) == pytest.approx(LEAST_NOISE)


def test_every_image_has_its_own_surface(rng: torch.Generator) -> None:
    images = torch.cat([noisy(with_objects(tilted()), rng), noisy(1 - tilted(), rng)])
    together = fit_surface(images).picture()
    for n in range(2):
        torch.testing.assert_close(together[n], fit_surface(images[n : n + 1]).picture()[0], atol=1e-4, rtol=0)


def test_the_surface_of_a_large_image_is_found_from_some_of_its_pixels(rng: torch.Generator) -> None:
    large = tilted(1, (301, 283))
    assert (fit_surface(noisy(large, rng)).picture() - large).square().mean().sqrt() < NOISE / 2
