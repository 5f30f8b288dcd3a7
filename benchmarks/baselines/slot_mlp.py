"""Slot MLP: the baseline of Slot Attention's authors, in which a plain network maps the features to ordered slots.

They resize and flatten the features; how large the layers are is not in the paper's table, so these sizes are ours.
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from benchmarks.baselines.autoencoder import CHANNELS, SLOTS, WIDTH, SlotAutoencoder

SIDE, HIDDEN = 7, 256
"""Height and width that features are averaged to (of 35x35 Tetrominoes one for each 5x5 tile), and hidden numbers."""


class SlotMLP(nn.Module):
    """From features to slots, each of which has its own weights and so its own habits."""

    def __init__(self) -> None:
        super().__init__()
        self.resize = nn.AdaptiveAvgPool2d(SIDE)
        self.layers = nn.Sequential(
            nn.Linear(SIDE * SIDE * CHANNELS, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, SLOTS * WIDTH),
        )

    def forward(self, features: Float[Tensor, "B H W D"], rng: torch.Generator) -> Float[Tensor, "B K S"]:
        """The slots; nothing about them is random."""
        small = self.resize(rearrange(features, "b h w d -> b d h w"))
        slots: Tensor = rearrange(self.layers(small.flatten(1)), "b (k s) -> b k s", k=SLOTS)
        return slots


def slot_mlp(size: tuple[int, int]) -> SlotAutoencoder:
    """The model for RGB images of this height and width; its first weights follow torch's global seed."""
    return SlotAutoencoder(SlotMLP(), size)
