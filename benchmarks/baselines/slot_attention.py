"""Slot Attention (Locatello et al., 2020): slots compete for the pixels, in rounds of attention."""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from benchmarks.baselines.autoencoder import CHANNELS, SLOTS, WIDTH, SlotAutoencoder

ROUNDS = 3
"""How often the slots look at the features."""
EPSILON = 1e-8
"""Keeps the weights of a slot that no pixel attends to from being divided by zero."""


class SlotAttention(nn.Module):
    """From features to slots that are drawn at random first, so that none is meant for anything."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.empty(1, 1, WIDTH))
        self.log_deviation = nn.Parameter(torch.empty(1, 1, WIDTH))
        for each in (self.mean, self.log_deviation):
            nn.init.xavier_uniform_(each)
        self.feature_norm, self.slot_norm, self.update_norm = (nn.LayerNorm(n) for n in (CHANNELS, WIDTH, WIDTH))
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key, self.value = (nn.Linear(CHANNELS, WIDTH, bias=False) for _ in range(2))
        self.memory = nn.GRUCell(WIDTH, WIDTH)
        self.update = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, features: Float[Tensor, "B H W D"], rng: torch.Generator) -> Float[Tensor, "B K S"]:
        """The slots after all rounds."""
        seen = self.feature_norm(rearrange(features, "b h w d -> b (h w) d"))
        keys, values = self.key(seen) / WIDTH**0.5, self.value(seen)
        noise = torch.randn(len(features), SLOTS, WIDTH, generator=rng).to(features)
        slots = self.mean + self.log_deviation.exp() * noise
        for _ in range(ROUNDS):
            # Softmax over the slots, not over the pixels: what one slot explains, the others need not.
            shares = torch.einsum("bns,bks->bnk", keys, self.query(self.slot_norm(slots))).softmax(dim=-1) + EPSILON
            found = torch.einsum("bnk,bns->bks", shares / shares.sum(dim=1, keepdim=True), values)
            slots = rearrange(
                self.memory(*(rearrange(each, "b k s -> (b k) s") for each in (found, slots))),
                "(b k) s -> b k s",
                k=SLOTS,
            )
            slots = slots + self.update(self.update_norm(slots))
        return slots


def slot_attention(size: tuple[int, int]) -> SlotAutoencoder:
    """The model for RGB images of this height and width; its first weights follow torch's global seed."""
    return SlotAutoencoder(SlotAttention(), size)
