"""Problem: what compiled loops choose from, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
"""Numbers, or whether something is so; shapes are said where it matters."""


def as_array(values: Tensor) -> Array:
    """A tensor without gradient as an array, its numbers one after the other."""
    array: Array = values.detach().contiguous().numpy()
    return array


@dataclass(frozen=True, slots=True)
class Problem:
    """What is chosen from, as arrays."""

    behind: Array
    """What is behind all objects, on canvases (b C Y X), of which one may stand for all; empty for black."""
    bank: tuple[Array, Array]
    """Prototypes and masks (P h w) in tight frames."""
    kernels: Array
    """The weights of `evidence.kernel_stack`."""
    boxes: Array
    """Of every prototype top, left, height and width of the box around its mask (P 4)."""
    places: tuple[Array, Array, Array]
    """Of every candidate (B T) row and column of its frame on the canvas, and whether it exists."""
    place: Array
    """Of candidates (B T) that are as good as each other the one of the least counts."""
    peaks: int
    """Candidates of a prototype."""
    colours: tuple[float, float]
    """The smallest and the largest colour."""
    area: Array
    """Mask area (B T) that must be visible; empty where it does not matter."""
