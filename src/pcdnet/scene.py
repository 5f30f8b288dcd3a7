"""Scene and Scenes: images with, where it is known, the truth about what is in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32, Integer, UInt8

from pcdnet.errors import PcdnetError


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scene:
    """An image with optional truth; every data source yields these."""

    image: Float32[np.ndarray, "H W C"]
    """Values in [0, 1]; C is 1 (grey) or 3 (RGB)."""

    labels: Int32[np.ndarray, "H W"] | None = None
    """True instance of every pixel: 0 is background, 1, 2, ... are objects. None where it is not known."""

    name: str = ""
    """Where the scene comes from, for messages and output files."""

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] not in (1, 3):
            raise PcdnetError(
                f"scene {self.name!r} has an image of shape {self.image.shape}; "
                f"give height x width x channels with 1 or 3 channels"
            )
        if self.labels is not None and self.labels.shape != self.image.shape[:2]:
            raise PcdnetError(
                f"scene {self.name!r} has labels of shape {self.labels.shape} for an image of "
                f"{self.image.shape[:2]}; give one label per pixel"
            )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scenes:
    """Many images of one size, as training and evaluation want them."""

    images: UInt8[np.ndarray, "N H W C"]
    """Values of 0 to 255; C is 1 (grey) or 3 (RGB)."""

    labels: Integer[np.ndarray, "N H W"] | None = None
    """True instance of every pixel: 0 is background, 1, 2, ... are objects. None where it is not known."""

    name: str = ""
    """Where the scenes come from, for messages."""

    def __len__(self) -> int:
        return len(self.images)

    def first(self, count: int) -> Scenes:
        """The first so many scenes, or all if there are fewer."""
        labels = None if self.labels is None else self.labels[:count]
        return Scenes(images=self.images[:count], labels=labels, name=self.name)
