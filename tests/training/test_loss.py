"""The loss is the paper's, plus a price on mask area."""

from __future__ import annotations

import dataclasses

import torch

from pcdnet.config import LossConfig
from pcdnet.training.loss import area, loss_of, total_variation


def test_the_regularizers_are_those_of_the_paper(rng: torch.Generator) -> None:
    x = torch.randn(3, 4, 5, generator=rng)
    literal_l1 = sum(x[p].abs().sum() for p in range(3)) / 3
    literal_tv = torch.zeros(())
    for p in range(3):
        for i in range(4):
            for j in range(5):
                if i + 1 < 4:
                    literal_tv += (x[p, i + 1, j] - x[p, i, j]).abs() / 3
                if j + 1 < 5:
                    literal_tv += (x[p, i, j + 1] - x[p, i, j]).abs() / 3
    torch.testing.assert_close(area(x), literal_l1)
    torch.testing.assert_close(total_variation(x), literal_tv)


def test_the_loss_adds_up(rng: torch.Generator) -> None:
    images, painted = torch.rand(2, 3, 6, 6, generator=rng), torch.rand(2, 3, 6, 6, generator=rng)
    prototypes, masks = torch.rand(3, 4, 5, generator=rng), torch.rand(3, 4, 5, generator=rng) * 2 - 0.5
    config = LossConfig(l1=0.1, tv=0.2, mask_area=0.3)
    # Equation 6 of the paper, for the mean image, divided by its number of values.
    values = 3 * 6 * 6
    paper = (images - painted).square().sum() / 2 + 0.1 * area(prototypes) + 0.2 * total_variation(masks)
    plain = paper / values
    priced = plain + 0.3 * masks.clamp(min=0).mean()
    torch.testing.assert_close(loss_of(images, painted, prototypes, masks, config), priced)
    config = dataclasses.replace(config, mask_area=0.0)
    torch.testing.assert_close(loss_of(images, painted, prototypes, masks, config), plain)
