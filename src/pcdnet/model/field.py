"""Field: the part of the images in which things are seen at all.

Game screens have frames: bars at the sides, a panel with the score. What moves passes behind them, as it passes behind
the border of an image. So the search looks at the field alone, and what lies around it always is the background.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from pcdnet.model.bank import PrototypeBank


@dataclass(frozen=True, slots=True)
class Field:
    """A rectangle of an image."""

    top: int
    left: int
    height: int
    width: int

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    def holds(self, frame: tuple[int, int]) -> bool:
        """Whether a frame of that height and width has room in it."""
        return frame[0] <= self.height and frame[1] <= self.width

    def cut(self, planes: Shaped[Tensor, "*any H W"]) -> Shaped[Tensor, "*any h w"]:
        """What is in the field."""
        return planes[..., self.top : self.top + self.height, self.left : self.left + self.width]

    def cut_bank(self, bank: PrototypeBank) -> PrototypeBank:
        """The bank of whoever looks at the field alone."""
        return bank if bank.background is None else replace(bank, background=self.cut(bank.background))

    def around(self, inside: Float[Tensor, "B C h w"], outside: Float[Tensor, "b C H W"]) -> Float[Tensor, "B C H W"]:
        """A picture of the field with its surroundings; gradients flow into both."""
        whole = outside.expand(len(inside), -1, -1, -1).clone()
        whole[..., self.top : self.top + self.height, self.left : self.left + self.width] = inside
        return whole

    def seen(self, shown: Float[Tensor, "1 1 h w"] | None, image: Float[Tensor, "C H W"]) -> Float[Tensor, "1 1 H W"]:
        """Where objects can be seen in images like this one: where they are `shown` in the field, or all over it."""
        around = torch.zeros_like(image[:1])[None]
        return self.around(torch.ones_like(self.cut(around)) if shown is None else shown, around)
