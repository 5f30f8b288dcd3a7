"""Flicker: a still background that has more than one look, by turns.

What shows one of the other looks is seen as the background itself, so that nothing need explain it.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

ALTERNATES = 2
"""Looks of a pixel besides the background's own."""
ALIKE = 0.04
"""Values that differ by no more than this are the same look."""


def steady(
    images: Float[Tensor, "B C H W"], looks: UInt8[Tensor, "looks C H W"], background: Float[Tensor, "C H W"]
) -> Float[Tensor, "B C H W"]:
    """The images with the background wherever they show one of its other looks."""
    near = torch.zeros_like(images[:, :1], dtype=torch.bool)
    for look in looks:
        near |= ((images - look.to(images) / 255).abs() <= ALIKE).all(dim=1, keepdim=True)
    return torch.where(near, background, images)
