"""Letters that look like themselves in one pose alone."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def letters(factor: int = 1) -> Float[Tensor, "2 h w"]:
    """Masks of an L and of an F in frames of 15x15 pixels, or of as many times more."""
    shapes = torch.zeros(2, 15, 15)
    shapes[:, 2:13, 4:7] = 1
    shapes[0, 10:13, 4:12] = 1
    shapes[1, 2:5, 4:12] = shapes[1, 7:9, 4:10] = 1
    return shapes.repeat_interleave(factor, 1).repeat_interleave(factor, 2)
