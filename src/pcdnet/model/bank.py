"""Bank: the prototypes, their masks and the background, as values ready for use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from pcdnet.decomposition import BankArrays
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.model.geometry import support

LEAK = 0.01
"""Slope of the soft clamp outside [0, 1]: small, but enough for a gradient to lead back."""


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
        _check_shapes(self.prototypes, self.masks, self.background)

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width of the prototypes' frames."""
        return self.prototypes.shape[1], self.prototypes.shape[2]

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
        return mine.keys() == theirs.keys() and all(_same(mine[name], theirs[name]) for name in mine)

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
        P, h, w = self.masks.shape
        y = (offset[:, :1] + torch.arange(height, device=offset.device))[:, :, None]
        x = (offset[:, 1:] + torch.arange(width, device=offset.device))[:, None, :]
        inside = (y >= 0) & (y < h) & (x >= 0) & (x < w)
        p = torch.arange(P, device=offset.device)[:, None, None]
        y, x = y.clamp(0, h - 1), x.clamp(0, w - 1)
        prototypes = torch.where(inside, self.prototypes[p, y, x], 0)
        return PrototypeBank(prototypes, torch.where(inside, self.masks[p, y, x], 0), self.background), offset

    @staticmethod
    def load(path: str | Path) -> PrototypeBank:
        """Read `prototypes`, `masks` and, if it is there, `background` from a safetensors file, as they are."""
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise PcdnetError(f"cannot read the bank {path}: {error}; give a safetensors file") from None
        missing = [name for name in ("prototypes", "masks") if name not in tensors]
        if missing:
            raise PcdnetError(f"{path} holds {sorted(tensors)} but no {missing[0]}; give a file of a prototype bank")
        for name, tensor in tensors.items():
            if not tensor.is_floating_point() or not torch.isfinite(tensor).all():
                raise PcdnetError(f"{name} in {path} holds values that are no finite numbers; use a sound file")
        bank = tensors["prototypes"], tensors["masks"], tensors.get("background")
        _check_shapes(*bank)
        return PrototypeBank(*bank)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file that `load` reads, whole or not at all."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors().items()}
        with whole_file(path) as file:
            file.write(save(tensors))


def _check_shapes(prototypes: Tensor, masks: Tensor, background: Tensor | None) -> None:
    if prototypes.ndim != 3 or prototypes.shape != masks.shape:
        raise PcdnetError(
            f"prototypes of shape {tuple(prototypes.shape)} and masks of shape {tuple(masks.shape)} do not fit; "
            f"both must be prototypes x height x width"
        )
    if background is not None and background.ndim != 3:
        raise PcdnetError(f"the background has shape {tuple(background.shape)}; give channels x height x width")


def _same(one: Tensor, two: Tensor) -> bool:
    return one.device == two.device and one.dtype == two.dtype and torch.equal(one, two)


def soft_clamp(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """Clamp to [0, 1] with a slight slope outside, so that values that left can come back in training."""
    return x.clamp(0, 1) + LEAK * (x.clamp(max=0) + (x - 1).clamp(min=0))
