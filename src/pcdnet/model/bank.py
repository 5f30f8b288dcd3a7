"""Bank: the prototypes, their masks and the background, as values ready for use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from pcdnet.decomposition import BankArrays
from pcdnet.errors import PcdnetError
from pcdnet.model.geometry import Geometry, support
from pcdnet.model.storage import load_tensors, save_tensors
from pcdnet.model.windows import Windows, canvas

LEAK = 0.01
"""Slope of the soft clamp outside [0, 1], as the authors have it."""


@dataclass(frozen=True, slots=True, eq=False)
class PrototypeBank:
    """What objects look like: grey prototypes with alpha masks, and what is behind them.

    Parameters
    ----------
    prototypes
        Grey pictures of the objects, `P h w`, one frame each.
    masks
        How opaque each pixel of them is, `P h w`: 0 lets through what is behind, 1 hides it.
    background
        What is behind all objects, `C H W`; None stands for black.

    Examples
    --------
    >>> import torch
    >>> bank = PrototypeBank(torch.rand(3, 8, 8), torch.ones(3, 8, 8))
    >>> bank.frame
    (8, 8)
    """

    prototypes: Float[Tensor, "P h w"]
    masks: Float[Tensor, "P h w"]
    background: Float[Tensor, "C H W"] | None = None

    def __post_init__(self) -> None:
        if self.prototypes.ndim != 3 or self.prototypes.shape != self.masks.shape:
            raise PcdnetError(
                f"prototypes of shape {tuple(self.prototypes.shape)} and masks of shape {tuple(self.masks.shape)} "
                f"do not fit; both must be prototypes x height x width"
            )
        if self.background is not None and self.background.ndim != 3:
            raise PcdnetError(
                f"the background has shape {tuple(self.background.shape)}; give channels x height x width"
            )

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width of the prototypes' frames."""
        return self.prototypes.shape[1], self.prototypes.shape[2]

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Height and width of the background; None where there is none, and so images may be of any size."""
        return None if self.background is None else (self.background.shape[1], self.background.shape[2])

    def behind(self, image: Float[Tensor, "C H W"]) -> Float[Tensor, "C H W"]:
        """The background, or black where there is none, for images like this one."""
        return torch.zeros_like(image) if self.background is None else self.background

    def clamped(self) -> PrototypeBank:
        """The bank as it is painted in evaluation: all values from 0 to 1."""
        return self.map(lambda values: values.clamp(0, 1))

    def map(self, function: Callable[[Tensor], Tensor]) -> PrototypeBank:
        """The bank with `function` applied to each of its tensors."""
        background = None if self.background is None else function(self.background)
        return PrototypeBank(function(self.prototypes), function(self.masks), background)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that there are, by name."""
        named = {"prototypes": self.prototypes, "masks": self.masks, "background": self.background}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def equals(self, other: PrototypeBank) -> bool:
        """Whether all numbers are the same, on the same device and of the same type."""
        mine, theirs = self.tensors(), other.tensors()
        return mine.keys() == theirs.keys() and all(
            (one.device, one.dtype) == (two.device, two.dtype) and torch.equal(one, two)
            for one, two in zip(mine.values(), theirs.values(), strict=True)
        )

    def to_numpy(self) -> BankArrays:
        """The bank as plain arrays, for results and pictures; the background is channels last."""
        plain = self.map(lambda values: values.detach().float().cpu())
        behind = None if plain.background is None else plain.background.permute(1, 2, 0).contiguous().numpy()
        return BankArrays(plain.prototypes.numpy(), plain.masks.numpy(), behind)

    def tight(self) -> tuple[PrototypeBank, Int[Tensor, "P 2"]]:
        """The same objects centred in the smallest frame that holds them all, and where it lies in the old one.

        What paints nothing is cut away, so windows are smaller, and a prototype that was learned off the centre
        of its frame reaches the borders of an image like any other. A frame at (r, c) of the new bank is the
        frame at (r, c) - offset of the old one.
        """
        boxes = torch.tensor(support(self.masks), device=self.masks.device)
        size = boxes[:, 2:].amax(dim=0)
        offset = boxes[:, :2] - (size - boxes[:, 2:]).div(2, rounding_mode="floor")
        height, width = size.tolist()
        geometry = Geometry(self.frame, (height, width), (height, width))
        windows = Windows(geometry, torch.arange(len(offset), device=offset.device), offset[:, 0], offset[:, 1])
        prototypes, masks = windows.cut(canvas(torch.stack([self.prototypes, self.masks], 1), geometry)).unbind(-1)
        return PrototypeBank(prototypes.contiguous(), masks.contiguous(), self.background), offset

    @staticmethod
    def load(path: str | Path) -> PrototypeBank:
        """Read `prototypes`, `masks` and, if it is there, `background` from a safetensors file, as they are."""
        tensors, _ = load_tensors(Path(path), "give a safetensors file")
        missing = [name for name in ("prototypes", "masks") if name not in tensors]
        if missing:
            raise PcdnetError(f"{path} holds {sorted(tensors)} but no {missing[0]}; give a file of a prototype bank")
        for name, values in tensors.items():
            if not values.is_floating_point() or not torch.isfinite(values).all():
                raise PcdnetError(f"{name} in {path} holds values that are no finite numbers; use a sound file")
        return PrototypeBank(tensors["prototypes"], tensors["masks"], tensors.get("background"))

    def save(self, path: str | Path) -> None:
        """Write a safetensors file that `load` reads, whole or not at all."""
        save_tensors(Path(path), self.tensors())


def soft_clamp(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Clamp to [0, 1] with a slight slope outside, so that values that left can come back in training.

    A gradient that leads back passes whole. Through the slope alone it would be lost: Adam measures steps by the
    gradients that a value had before, when it was inside.
    """
    clamped: Tensor = _SoftClamp.apply(x)  # type: ignore[no-untyped-call]
    return clamped


class _SoftClamp(torch.autograd.Function):
    """The authors' clamp, and the gradient of it that leads back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(0, 1) + LEAK * (x.clamp(max=0) + (x - 1).clamp(min=0))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        leaves = ((x < 0) & (gradient > 0)) | ((x > 1) & (gradient < 0))
        return torch.where(leaves, LEAK * gradient, gradient)
