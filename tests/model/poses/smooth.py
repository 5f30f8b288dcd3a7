"""Prototypes that tests fit poses of: soft shapes with smooth texture, unlike themselves in any other pose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.poses.fitting import Seen
from pcdnet.model.poses.resampling import sprites
from tests.oracle.poses import Bank, Posed, painted

FRAME = (17, 15)


def smooth_pictures(rng: torch.Generator, count: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Prototypes and their masks: (n 2 h w)."""
    h, w = FRAME
    coarse = torch.rand(count, 1, 5, 5, generator=rng, dtype=torch.float64)
    texture = torch.nn.functional.interpolate(coarse, FRAME, mode="bicubic", align_corners=True)[:, 0].clamp(0, 1)
    y = torch.linspace(-1, 1, h, dtype=torch.float64)[:, None]
    x = torch.linspace(-1, 1, w, dtype=torch.float64)
    shape = (y / 0.75).square() + (x / (0.55 - 0.2 * y)).square()  # an egg, so that its outline has an up
    mask = (3 * (1 - shape)).clamp(0, 1).expand(count, h, w)
    return torch.stack([0.25 + 0.75 * texture, mask], dim=1).to(dtype)


def looks(pictures: Tensor, poses: Tensor, colours: Tensor, config: ModelConfig, frame: tuple[int, int]) -> Seen:
    """What is seen of objects over grey: colours are (n C)."""
    paint, mask = sprites(pictures, poses, frame, config).unbind(1)
    behind = torch.full((len(poses), colours.shape[1], *frame), 0.15, dtype=pictures.dtype)
    alpha = mask[:, None]
    shown = colours[..., None, None] * (paint * mask)[:, None] + (1 - alpha) * behind
    return Seen(shown, behind, torch.ones_like(mask))


def smooth_bank(rng: torch.Generator, count: int = 2, dtype: torch.dtype = torch.float64) -> PrototypeBank:
    """The same as a bank, over black."""
    return PrototypeBank(*smooth_pictures(rng, count, dtype).unbind(1))


def scene(bank: PrototypeBank, things: Sequence[Posed], size: tuple[int, int]) -> Tensor:
    """The image (C H W) that objects make, front to back."""
    channels = len(things[0].colour)
    painter = Bank(bank.prototypes, bank.masks, torch.zeros(channels, *size, dtype=bank.masks.dtype))
    return painted(torch.tensor([thing.numbers for thing in things], dtype=bank.masks.dtype), list(things), painter)


def thing(
    prototype: int, middle: tuple[float, float], angle: float = 0.0, scale: float = 1.0, mirrored: bool = False
) -> Posed:
    """A grey object."""
    colour = torch.tensor([0.8], dtype=torch.float64)
    return Posed(prototype, middle, angle, math.log(scale), mirrored, colour)
