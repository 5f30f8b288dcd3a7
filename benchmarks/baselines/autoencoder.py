"""Autoencoder: what Slot Attention and the Slot MLP share, everything but the way from features to slots.

Locatello et al., Object-Centric Learning with Slot Attention, 2020, at its size for Tetrominoes: convolutions of 5x5
with 32 channels, four in the encoder and three in the decoder, and slots of 64 numbers,
one slot more than there are sprites.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn

SLOTS, WIDTH, CHANNELS = 4, 64, 32
"""Slots (three sprites and the background), numbers a slot, and channels of the convolutions."""


@dataclass(frozen=True, slots=True)
class Explained:
    """Images as mixtures of what the slots paint."""

    reconstruction: Float[Tensor, "B C H W"]
    masks: Float[Tensor, "B K H W"]
    """The share of every slot in every pixel; they sum to one."""

    def labels(self) -> Int[Tensor, "B H W"]:
        """The slot that has the largest share in each pixel, from 1: which is the background nobody knows."""
        return self.masks.argmax(dim=1) + 1


class PositionEmbedding(nn.Module):
    """Adds a linear map of the distances to the four sides to every pixel's features."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.project = nn.Linear(4, channels)

    def forward(self, features: Float[Tensor, "B D H W"]) -> Float[Tensor, "B D H W"]:
        """The features with their places."""
        down, right = (torch.linspace(0, 1, side).to(features) for side in features.shape[-2:])
        y, x = torch.meshgrid(down, right, indexing="ij")
        where = self.project(torch.stack([y, 1 - y, x, 1 - x], dim=-1))
        placed: Tensor = features + rearrange(where, "h w d -> 1 d h w")
        return placed


class Encoder(nn.Module):
    """From images to features of every pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        widths = (channels, *[CHANNELS] * 4)
        layers = [(nn.Conv2d(a, b, 5, padding=2), nn.ReLU()) for a, b in pairwise(widths)]
        self.convolutions = nn.Sequential(*(each for layer in layers for each in layer))
        self.place = PositionEmbedding(CHANNELS)
        self.mix = nn.Sequential(
            nn.LayerNorm(CHANNELS), nn.Linear(CHANNELS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CHANNELS)
        )

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B H W D"]:
        """Features with their channels last."""
        features: Tensor = self.mix(rearrange(self.place(self.convolutions(images)), "b d h w -> b h w d"))
        return features


class Decoder(nn.Module):
    """Spatial broadcast: a slot is put into every pixel, and convolutions make of it a picture and a mask."""

    def __init__(self, channels: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.place = PositionEmbedding(WIDTH)
        widths = (WIDTH, *[CHANNELS] * 3)
        layers = [(nn.Conv2d(a, b, 5, padding=2), nn.ReLU()) for a, b in pairwise(widths)]
        self.convolutions = nn.Sequential(
            *(each for layer in layers for each in layer), nn.Conv2d(CHANNELS, channels + 1, 3, padding=1)
        )

    def forward(self, slots: Float[Tensor, "B K S"]) -> Explained:
        """Images as mixtures of the slots' pictures."""
        H, W = self.size
        spread = repeat(slots, "b k s -> (b k) s h w", h=H, w=W)
        painted = rearrange(self.convolutions(self.place(spread)), "(b k) c h w -> b k c h w", b=len(slots))
        masks = painted[:, :, -1].softmax(dim=1)
        return Explained((painted[:, :, :-1] * masks[:, :, None]).sum(dim=1), masks)


class SlotAutoencoder(nn.Module):
    """Images to features to slots and back to images; `slotter` is the way from features to slots."""

    def __init__(self, slotter: nn.Module, size: tuple[int, int], channels: int = 3) -> None:
        super().__init__()
        self.encoder, self.slotter, self.decoder = Encoder(channels), slotter, Decoder(channels, size)

    def forward(self, images: Float[Tensor, "B C H W"], rng: torch.Generator) -> Explained:
        """Explain images of values in [0, 1]; `rng` draws the first slots, where these are random."""
        explained: Explained = self.decoder(self.slotter(self.encoder(images), rng))
        return explained
