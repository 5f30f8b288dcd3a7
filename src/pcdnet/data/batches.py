"""Batches: images gathered by their size, as a model explains many equally large ones faster than one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from pcdnet.data.inputs import Input

MOST_IMAGES = 64
"""Images of a batch at most."""
MOST_PIXELS = 2**21
"""Pixels of a batch at most, unless it is one image."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Picture:
    """An image on its way to the model."""

    image: UInt8[np.ndarray, "H W C"]
    """Its pixels, as the model wants them."""
    source: Input
    """The input that it came from."""
    number: int
    """Which of the input's images it is."""

    @property
    def name(self) -> str:
        """Its name in results."""
        return self.source.image_name(self.number)


class Batches:
    """Images that wait for others of their size; no more of them wait than a few batches hold."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, ...], list[Picture]] = {}
        self._pixels = 0

    def add(self, picture: Picture) -> list[Picture]:
        """Let an image wait, and take out a batch if it is time: of a size that is full, or the largest."""
        shape = picture.image.shape
        pixels = shape[0] * shape[1]
        same = self._waiting.setdefault(shape, [])
        same.append(picture)
        self._pixels += pixels
        if len(same) >= min(MOST_IMAGES, MOST_PIXELS // pixels):
            return self._take(shape)
        if self._pixels > 2 * MOST_PIXELS or sum(map(len, self._waiting.values())) >= 4 * MOST_IMAGES:
            return self._take(max(self._waiting, key=lambda shape: len(self._waiting[shape])))
        return []

    def rest(self) -> Iterator[list[Picture]]:
        """The batches that are left at the end."""
        while self._waiting:
            yield self._take(next(iter(self._waiting)))

    def _take(self, shape: tuple[int, ...]) -> list[Picture]:
        batch = self._waiting.pop(shape)
        self._pixels -= len(batch) * shape[0] * shape[1]
        return batch
