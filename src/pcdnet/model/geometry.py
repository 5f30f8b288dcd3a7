"""Geometry: how frames, images, padded canvases and Fourier grids lie over each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.fft import next_fast_len
from torch import Tensor

from pcdnet.errors import PcdnetError, Setting


class Box(NamedTuple):
    """A rectangle within a frame."""

    top: int
    left: int
    height: int
    width: int

    def cut(self, frames: Float[Tensor, "*any h w"]) -> Float[Tensor, "*any y x"]:
        """What lies in the rectangle."""
        return frames[..., self.top : self.top + self.height, self.left : self.left + self.width]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of one kind of image and one kind of prototype; positions are (row, column) of a frame's top left.

    A frame may hang over the border by the padding. Canvases are padded by it on every side, so that the
    window of every admissible position exists and a position (r, c) starts at canvas cell (r, c) + padding.
    """

    image: tuple[int, int]
    frame: tuple[int, int]
    padding: tuple[int, int]

    @staticmethod
    def for_overhang(image: tuple[int, int], frame: tuple[int, int], overhang: float) -> Geometry:
        """The geometry of images and prototype frames whose share `overhang` may leave the image."""
        (H, W), (h, w) = image, frame
        if h > H or w > W:
            raise PcdnetError(
                f"prototypes of {h}x{w} are larger than the images ({H}x{W}); use ",
                Setting("model.prototype_size", (min(h, H), min(w, W))),
                " or larger images",
            )
        return Geometry(image, frame, (int(overhang * h), int(overhang * w)))

    @staticmethod
    def touching(image: tuple[int, int], frame: tuple[int, int]) -> Geometry:
        """The geometry in which whole frames are painted: any frame that shares a pixel with the image fits."""
        return Geometry(image, frame, (frame[0] - 1, frame[1] - 1))

    @property
    def canvas(self) -> tuple[int, int]:
        """Height and width of a padded canvas."""
        return self.image[0] + 2 * self.padding[0], self.image[1] + 2 * self.padding[1]

    @property
    def positions(self) -> tuple[int, int]:
        """How many rows and columns a frame can start at."""
        return self.canvas[0] - self.frame[0] + 1, self.canvas[1] - self.frame[1] + 1

    def admits(self, row: int, column: int) -> bool:
        """Whether a frame can start there."""
        return 0 <= row + self.padding[0] < self.positions[0] and 0 <= column + self.padding[1] < self.positions[1]

    @property
    def grid(self) -> tuple[int, int]:
        """Size of the Fourier grid: shifts are circular on it, and the padding keeps an object that leaves
        on the left from coming back on the right."""
        return fast_size(self.image[0] + self.padding[0]), fast_size(self.image[1] + self.padding[1])


@dataclass(frozen=True, slots=True)
class Pieces:
    """Equally long pieces that overlap along one side of a picture, evenly spread from border to border."""

    length: int
    """Of the side."""
    piece: int
    """Length of a piece."""
    starts: tuple[int, ...]
    """Where they begin."""

    @staticmethod
    def spread(length: int, piece: int, overlap: int) -> Pieces:
        """As few pieces as share at least that many pixels with their neighbours."""
        piece = min(length, piece)
        count = 1 + -(-(length - piece) // max(1, piece - overlap))
        return Pieces(length, piece, tuple(round(n * (length - piece) / max(1, count - 1)) for n in range(count)))

    def seams(self) -> list[float]:
        """Between any two neighbours the middle of what they share."""
        return [(before + self.piece + after) / 2 for before, after in pairwise(self.starts)]

    def across(self, start: int, size: int) -> slice:
        """Which pieces have a pixel of a part of the side."""
        shown = [n for n, first in enumerate(self.starts) if first < start + size and start < first + self.piece]
        return slice(shown[0], shown[-1] + 1)


def fast_size(least: int) -> int:
    """The smallest multiple of 8 with no prime factor above 5 that is at least so large.

    Measured: a real inverse FFT of 48 x 48 takes two thirds of the time of one of 45 x 45.
    """
    return 8 * int(next_fast_len(max(1, -(-least // 8)), real=True))


def support(masks: Float[Tensor, "P h w"] | Bool[Tensor, "P h w"]) -> list[Box]:
    """The box around each mask's non-zero pixels; one pixel where there is none."""
    used = masks.detach().cpu().numpy() != 0
    (top, bottom), (left, right) = (_ends(used.any(axis)) for axis in (2, 1))
    return [Box(*box) for box in np.stack([top, left, bottom - top, right - left], axis=1).tolist()]


def _ends(used: Bool[np.ndarray, "P n"]) -> tuple[Int[np.ndarray, "P"], Int[np.ndarray, "P"]]:
    """The first place in use, and the first after the last one; the first place alone where none is."""
    first, last = used.argmax(1), used.shape[1] - used[:, ::-1].argmax(1)
    return first, np.where(used.any(1), last, 1)
