"""Random scenes of overlapping textured objects, for comparing the engine with the oracle."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pcdnet.model.bank import PrototypeBank


def random_bank(
    rng: torch.Generator,
    count: int,
    frame: tuple[int, int],
    background: tuple[int, int, int] | None,
    dtype: torch.dtype,
) -> PrototypeBank:
    """Prototypes of random texture under random ellipses with a soft rim."""
    h, w = frame
    y, x = torch.arange(h)[:, None].to(dtype), torch.arange(w).to(dtype)
    masks = []
    for _ in range(count):
        radius = 0.25 + 0.2 * torch.rand(2, generator=rng, dtype=dtype)
        distance = ((y - (h - 1) / 2) / (radius[0] * h)).square() + ((x - (w - 1) / 2) / (radius[1] * w)).square()
        masks.append((2.5 * (1.4 - distance)).clamp(0, 1))
    prototypes = 0.2 + 0.8 * torch.rand(count, h, w, generator=rng, dtype=dtype)
    behind = None
    if background is not None:
        C, H, W = background
        coarse = torch.rand(1, C, 4, 4, generator=rng, dtype=dtype)
        behind = 0.5 * torch.nn.functional.interpolate(coarse, (H, W), mode="bilinear", align_corners=True)[0]
    return PrototypeBank(prototypes, torch.stack(masks), behind)


def random_scene(
    rng: torch.Generator, bank: PrototypeBank, size: tuple[int, int], channels: int, objects: int, noise: float
) -> Tensor:
    """One image (C H W): objects anywhere, some over the border, over each other, with a little noise."""
    (H, W), (h, w) = size, bank.frame
    dtype = bank.prototypes.dtype
    picture = torch.zeros(channels, H + 2 * h, W + 2 * w, dtype=dtype)
    if bank.background is not None:
        picture[:, h : h + H, w : w + W] = bank.background
    for _ in range(objects):
        p = int(torch.randint(len(bank.prototypes), (), generator=rng))
        row = int(torch.randint(-h // 3, H - 2 * h // 3, (), generator=rng)) + h
        column = int(torch.randint(-w // 3, W - 2 * w // 3, (), generator=rng)) + w
        colour = 0.4 + 0.6 * torch.rand(channels, 1, 1, generator=rng, dtype=dtype)
        window = picture[:, row : row + h, column : column + w]
        window += bank.masks[p] * (colour * bank.prototypes[p] - window)
    picture = picture[:, h : h + H, w : w + W]
    return (picture + noise * torch.randn(picture.shape, generator=rng, dtype=dtype)).clamp(0, 1)


@torch.no_grad()
def random_weights(rng: torch.Generator, network: nn.Module) -> None:
    """Draw a network's weights from a generator, as wide as PyTorch draws them from its own."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            for values in (layer.weight, layer.bias):
                assert values is not None
                drawn = torch.rand(values.shape, generator=rng, dtype=values.dtype)
                values.copy_((2 * drawn - 1) / layer.weight[0].numel() ** 0.5)
