"""Pictures with exact ground truth: shapes are painted over a ground, and what is seen of each is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import matplotlib
import numpy as np
from jaxtyping import Bool, Float64, Int64, Num
from PIL import Image, ImageDraw, ImageFont

COVERED, OPAQUE = 0.25, 0.5
"""Coverage from which an anti-aliased pixel belongs to a shape, and from which it hides what is behind it."""
FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"

Box: TypeAlias = tuple[int, int, int, int]
"""Top, left, height and width."""
Colour: TypeAlias = tuple[float, ...]


class Shape(NamedTuple):
    """What a sign covers, pixel by pixel, and where its first pixel is from the point that it is drawn at."""

    alpha: Float64[np.ndarray, "h w"]
    top: int
    left: int


class Thing(NamedTuple):
    """A shape at a place: the row and column of its first pixel."""

    kind: int
    alpha: Float64[np.ndarray, "h w"]
    row: int
    column: int
    colour: Colour


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroundTruth:
    """The objects of one picture."""

    boxes: Float64[np.ndarray, "n 4"]
    """Top, left, height and width of what is seen of each."""
    whole: Float64[np.ndarray, "n 4"]
    """The same as if nothing were in front of it."""
    kinds: Int64[np.ndarray, "n"]
    """The kind of each, as an index into `Pictures.kinds`."""
    depths: Int64[np.ndarray, "n"]
    """0 is nearest the viewer."""
    counted: Bool[np.ndarray, "n"]
    """Which objects count: those of which half or more is seen."""

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pictures:
    """Pictures, and what is in each of them."""

    images: list[Num[np.ndarray, "H W *C"]]
    ground_truth: list[GroundTruth]
    kinds: tuple[str, ...]


@lru_cache(maxsize=256)
def sign(letter: str, size: int, font: str = "DejaVuSans") -> Shape:
    """A letter or symbol, anti-aliased."""
    # The other layout engine is not in every build of Pillow, and would move letters.
    face = ImageFont.truetype(str(FONTS / f"{font}.ttf"), size, layout_engine=ImageFont.Layout.BASIC)
    canvas = Image.new("L", (4 * size, 4 * size))
    ImageDraw.Draw(canvas).text((size, 2 * size), letter, font=face, fill=255, anchor="ls")
    top, left, height, width = bounds(np.asarray(canvas) > 0)
    alpha = np.asarray(canvas)[top : top + height, left : left + width] / 255
    return Shape(alpha, top - 2 * size, left - size)


@lru_cache(maxsize=256)
def advance(letter: str, size: int, font: str = "DejaVuSans") -> int:
    """Pixels from the beginning of a letter to that of the next."""
    face = ImageFont.truetype(str(FONTS / f"{font}.ttf"), size, layout_engine=ImageFont.Layout.BASIC)
    return round(face.getlength(letter))


def bounds(pixels: Bool[np.ndarray, "H W"]) -> Box:
    """The smallest box around all pixels that are set; nothing is in a box without height and width."""
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return 0, 0, 0, 0
    return int(rows[0]), int(columns[0]), int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1


def compose(
    ground: Float64[np.ndarray, "H W C"], things: Sequence[Thing]
) -> tuple[Float64[np.ndarray, "H W C"], GroundTruth]:
    """Paint things, front to back, over a ground; things outside the picture are no part of the ground truth."""
    image, hidden = ground.copy(), np.zeros(ground.shape[:2], dtype=bool)
    rows = []
    for depth, thing in enumerate(things):
        place, part = _window(thing, hidden.shape)
        alpha = thing.alpha[part]
        whole, seen = alpha >= COVERED, (alpha >= COVERED) & ~hidden[place]
        hidden[place] |= alpha >= OPAQUE
        if seen.any():
            share = seen.sum() / (thing.alpha >= COVERED).sum()
            boxes = (_moved(bounds(seen), place), _moved(bounds(whole), place))
            rows.append((*boxes, thing.kind, depth, share >= 0.5))
    for thing in reversed(things):
        place, part = _window(thing, hidden.shape)
        alpha = thing.alpha[part][..., None]
        image[place] = alpha * np.array(thing.colour) + (1 - alpha) * image[place]
    return image, GroundTruth(
        boxes=np.array([row[0] for row in rows], dtype=float).reshape(-1, 4),
        whole=np.array([row[1] for row in rows], dtype=float).reshape(-1, 4),
        kinds=np.array([row[2] for row in rows], dtype=np.int64),
        depths=np.array([row[3] for row in rows], dtype=np.int64),
        counted=np.array([row[4] for row in rows], dtype=bool),
    )


def scatter(
    rng: np.random.Generator, sizes: Sequence[tuple[int, int]], picture: tuple[int, int], gap: int
) -> list[tuple[int, int]]:
    """Random places for boxes of these sizes, with a gap around each; it ends where one finds no place."""
    taken = np.zeros((0, 4), dtype=int)
    places = []
    for height, width in sizes:
        for _ in range(200):
            top = int(rng.integers(gap, picture[0] - height - gap + 1))
            left = int(rng.integers(gap, picture[1] - width - gap + 1))
            box = np.array([top - gap, left - gap, top + height + gap, left + width + gap])
            if not ((taken[:, :2] < box[2:]).all(axis=1) & (taken[:, 2:] > box[:2]).all(axis=1)).any():
                taken = np.vstack([taken, [top, left, top + height, left + width]])
                places.append((top, left))
                break
        else:
            break
    return places


def _window(thing: Thing, size: tuple[int, ...]) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """The part of the picture that a thing lies on, and the part of the thing that lies on the picture."""
    place, part = [], []
    for start, length, limit in zip((thing.row, thing.column), thing.alpha.shape, size, strict=True):
        first, last = min(max(start, 0), limit), max(min(start + length, limit), 0)
        place.append(slice(first, max(first, last)))
        part.append(slice(first - start, max(first, last) - start))
    return (place[0], place[1]), (part[0], part[1])


def _moved(box: Box, place: tuple[slice, slice]) -> Box:
    """A box of a window as a box of the picture."""
    return box[0] + place[0].start, box[1] + place[1].start, box[2], box[3]
