"""Tiles: pictures that are too large, too few or too different in size to learn from, cut into equal squares.

Nothing is known of the objects yet, so tiles are large, and rather overlap more where there would be few of them. They
are taken where something is. Their order is drawn by lot, always the same, so that the first of them are a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, prod

import numpy as np
from jaxtyping import Bool, Float, Int32, Int64, UInt8

from pcdnet.data.intake import check_memory
from pcdnet.errors import PcdnetError, Setting
from pcdnet.scene import Boxes, Scenes

SIDES = (192, 160, 128, 96)
"""Sides that are tried, from the usual one down to where there are ENOUGH tiles: objects have about a third of it."""
LARGEST = 256
"""The side where there would be more than MOST of the usual one."""
LEAST = 32
"""Tiles are no smaller than this, whatever the pictures are."""
OVERLAPS = (2, 4, 8)
"""Tiles begin so many times a side; more often only where there are not ENOUGH."""
ENOUGH, FEWEST = 40, 10
"""Tiles to learn and validate with; fewer than the latter are not worth cutting."""
MOST = 2000
"""Tiles at most: automatic training looks at about as many images, and they take at most 400 MB."""
SMALL = 0.25
"""Share of the pictures that may be smaller than a tile; they are skipped."""
EMPTY = 0.1
"""Tiles are left out if their strongest edge has less than this share of what is found where something is ..."""
NOISE = 2.0
"""... and less than so many times what is found in the emptiest tenth of the tiles."""
CELL = 4
"""Edges are sought between squares of so many pixels, in which noise averages out."""

Size = tuple[int, int]


def chosen_side(sizes: Sequence[Size]) -> int | None:
    """The side of the tiles for pictures of these sizes; None where they do not give enough of any size."""
    room = sorted(map(min, sizes))[min(len(sizes) - 1, ceil(SMALL * len(sizes)))]
    side = min(SIDES[-1], room)
    if room >= LARGEST and _count(sizes, SIDES[0], OVERLAPS[0]) > MOST:
        side = LARGEST
    else:
        fitting = (each for each in SIDES if each <= room and _count(sizes, each, OVERLAPS[-1]) >= ENOUGH)
        side = next(fitting, side)
    return side if side >= LEAST and _count(sizes, side, OVERLAPS[-1]) >= FEWEST else None


def cut(
    pictures: Callable[[], Iterable[UInt8[np.ndarray, "_ _ _"]]],
    sizes: Sequence[Size],
    channels: int,
    side: int,
    ignore: tuple[int, int, int, int] | None = None,
) -> tuple[UInt8[np.ndarray, "N side side C"], Int32[np.ndarray, "N 3"]]:
    """The tiles of the pictures, and of each the number of its picture, its top and its left.

    The pictures are gone through twice, so that one is held at a time; `sizes` are theirs, as far as is known before.
    Tiles that overlap the part to `ignore` are left out.
    """
    overlap = next((each for each in OVERLAPS if _count(sizes, side, each) >= ENOUGH), OVERLAPS[-1])
    places, edges = [], []
    for number, picture in enumerate(pictures()):
        corners = [place for place in _corners(picture.shape[:2], side, overlap) if not _overlaps(place, side, ignore)]
        places += [(number, top, left) for top, left in corners]
        edges += _strongest_edges(picture, corners, side)
    if not places and ignore is not None:
        problem = f"no tile of {side}x{side} lies outside of the part to ignore"
        raise PcdnetError(f"{problem}; give a smaller part as ", Setting("ignore"))
    chosen = np.array(places, np.int32).reshape(-1, 3)[_worth(np.array(edges))]
    shape = (len(chosen), side, side, channels)
    check_memory(prod(shape), f"{len(chosen)} tiles")
    images = np.empty(shape, np.uint8)
    for number, picture in enumerate(pictures()):
        for slot in np.flatnonzero(chosen[:, 0] == number):
            _, top, left = chosen[slot]
            images[slot] = picture[top : top + side, left : left + side]
    return images, chosen


def tiled(scenes: Scenes, side: int, ignore: tuple[int, int, int, int] | None = None) -> Scenes:
    """Scenes cut into tiles, with their ground truth."""
    N, H, W, C = scenes.images.shape
    images, places = cut(lambda: iter(scenes.images), [(H, W)] * N, C, side, ignore)
    parts = [(n, slice(top, top + side), slice(left, left + side)) for n, top, left in places.tolist()]
    return Scenes(
        images=images,
        labels=None if scenes.labels is None else np.stack([scenes.labels[part] for part in parts]),
        boxes=None if scenes.boxes is None else tile_boxes(scenes.boxes, places, side),
        kinds=scenes.kinds,
        scored=scenes.scored,
        names=tile_names(scenes.names or [str(n) for n in range(N)], places),
        name=f"{scenes.name}, in tiles of {side}x{side}",
        places=places,
    )


def tile_names(names: Sequence[str], places: Int32[np.ndarray, "N 3"]) -> tuple[str, ...]:
    """The names of tiles: that of the picture, and where in it they begin."""
    return tuple(f"{names[number]}@{top},{left}" for number, top, left in places.tolist())


def tile_boxes(boxes: Sequence[Boxes], places: Int32[np.ndarray, "N 3"], side: int) -> list[Boxes]:
    """The true boxes of tiles, of those of whole pictures."""
    return [boxes[number].within((top, left, side, side)) for number, top, left in places.tolist()]


def apart(
    places: Int32[np.ndarray, "N 3"], side: int, kept: int
) -> tuple[Bool[np.ndarray, "N"], Bool[np.ndarray, "N"]]:
    """Which tiles to learn from, and which `kept` to keep apart: those of the last pictures, or of a last corner.

    The tiles that overlap one that is kept apart are neither, unless that would be more than half of all, as it is in
    one small picture.
    """
    number, corners = places[:, 0], places[:, 1:]
    farthest = np.zeros((number.max() + 1, 2), np.int32)
    np.maximum.at(farthest, number, corners)
    farness = np.where(farthest[number] == 0, 1, corners / np.maximum(farthest[number], 1)).min(axis=1)
    held = np.zeros(len(places), bool)
    held[np.lexsort((farness, number))[-kept:]] = True
    near = np.zeros(len(places), bool)
    for n, *corner in places[held]:
        near |= (number == n) & (abs(corners - corner) < side).all(axis=1)
    near &= ~held
    return ~(held | near) if 2 * near.sum() <= len(places) else ~held, held


def _count(sizes: Sequence[Size], side: int, overlap: int) -> int:
    """How many tiles there are of that side."""
    return sum(prod(_steps(length, side, overlap) for length in size) for size in sizes)


def _steps(length: int, side: int, overlap: int) -> int:
    """How many tiles lie along a picture's side."""
    return 0 if length < side else 1 + ceil((length - side) * overlap / side)


def _corners(size: tuple[int, ...], side: int, overlap: int) -> list[tuple[int, int]]:
    """Top and left of every tile of a picture, evenly spread from border to border."""
    rows, columns = (
        np.linspace(0, max(0, length - side), _steps(length, side, overlap)).round().astype(int).tolist()
        for length in size
    )
    return [(top, left) for top in rows for left in columns]


def _overlaps(corner: tuple[int, int], side: int, part: tuple[int, int, int, int] | None) -> bool:
    """Whether a tile has pixels of a part of its picture."""
    if part is None:
        return False
    top, left, height, width = part
    return top - side < corner[0] < top + height and left - side < corner[1] < left + width


def _strongest_edges(picture: UInt8[np.ndarray, "H W C"], corners: Sequence[Size], side: int) -> list[float]:
    """The strongest edge in every tile: uneven light has weak ones only, and one object counts as much as many."""
    if not corners:
        return []
    H, W, C = picture.shape
    cells = picture[: H // CELL * CELL, : W // CELL * CELL].reshape(H // CELL, CELL, W // CELL, CELL, C)
    means = cells.mean(axis=(1, 3, 4), dtype=np.float32)
    down, right = (np.abs(np.diff(means, axis=axis)) for axis in (0, 1))
    edges = np.maximum(down[:, :-1], right[:-1])
    return [
        float(edges[top // CELL : (top + side) // CELL - 1, left // CELL : (left + side) // CELL - 1].max())
        for top, left in corners
    ]


def _worth(edges: Float[np.ndarray, "n"]) -> Int64[np.ndarray, "N"]:
    """Which tiles to take, in an order that is drawn by lot: at most MOST of those in which something is.

    Where these are not ENOUGH, the others follow by their edges.
    """
    if len(edges) == 0:
        return np.zeros(0, np.int64)
    lot = np.random.default_rng(0).permutation(len(edges))
    emptiest, something = np.quantile(edges, [0.1, 0.98])
    full = edges >= min(max(NOISE * emptiest, 1.0), EMPTY * something)
    if full.sum() < ENOUGH:
        full[np.argsort(-edges, kind="stable")[:ENOUGH]] = True
    chosen: Int64[np.ndarray, "N"] = lot[full[lot]][:MOST]
    return chosen
