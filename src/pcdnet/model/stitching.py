"""Stitching: the objects of overlapping tiles as those of one picture, without seams or doubles.

Every object belongs to the tile in whose core its middle lies; cores share no pixel. What the neighbours know of it
says who is in front where objects of two tiles overlap. Where two tiles do not agree about what lies at their seam,
the error decides: an object stays if the picture is worse without it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Int32
from scipy.spatial import cKDTree

from pcdnet.config import ModelConfig
from pcdnet.model.composition import OPAQUE
from pcdnet.model.posed import Pose, posed_sprite

SAME = 0.5
"""Objects that two tiles found are the same if their boxes share so much of what they cover together."""
NEAR = 0.25
"""Objects whose middle is outside of the core by at most this share of their sides may be of the core all the same."""

KEPT = 4096
"""Posed objects that are held ready to be painted again."""

Look = Callable[[int, int, tuple[int, int]], Float32[np.ndarray, "h w C"]]
"""Shows the part of a picture that begins at a row and a column and has a size."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Objects, in the frames of the bank and in pixels of the whole picture."""

    prototype: Int[np.ndarray, "n"]
    position: Int[np.ndarray, "n 2"]
    colour: Float32[np.ndarray, "n C"]
    error_reduction: Float32[np.ndarray, "n"]
    tile: Int[np.ndarray, "n"]
    """The tile that they were found in."""
    rank: Int[np.ndarray, "n"]
    """How far from the front they are among the objects of that tile."""
    pose: Float32[np.ndarray, "n 5"] | None = None
    """Angle, scale, 1 for a mirror image, and how much further down and right than their positions they lie; positions
    are then those of upright frames. None where the model has no poses."""

    @staticmethod
    def room(count: int, channels: int, *, posed: bool = False) -> Found:
        """Room for so many objects, to be filled."""
        prototype, tile, rank = np.zeros((3, count), np.int64)
        position, colour = np.zeros((count, 2), np.int64), np.zeros((count, channels), np.float32)
        pose = np.zeros((count, 5), np.float32) if posed else None
        return Found(prototype, position, colour, np.zeros(count, np.float32), tile, rank, pose)

    def pose_of(self, n: int) -> Pose:
        """Where the n-th object lies, and how."""
        assert self.pose is not None
        (row, column), (angle, scale, mirrored, down, right) = self.position[n].tolist(), self.pose[n].tolist()
        return Pose(row + down, column + right, angle, scale, mirrored > 0)

    def __len__(self) -> int:
        return len(self.prototype)

    def part(self, which: Int[np.ndarray, "m"] | Bool[np.ndarray, "n"]) -> Found:
        """Some of them, in the order given."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if self.pose is None:
            del values["pose"]
        return Found(**{name: each[which] for name, each in values.items()})


@dataclass(frozen=True, slots=True, eq=False)
class _Stamp:
    """What is painted of an object: grey values and mask, and where they lie in the picture."""

    row: int
    column: int
    prototype: Float32[np.ndarray, "y x"]
    mask: Float32[np.ndarray, "y x"]


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """Prototypes ready to be painted one at a time: only what is under the mask."""

    prototypes: Float32[np.ndarray, "P h w"]
    masks: Float32[np.ndarray, "P h w"]
    boxes: Int[np.ndarray, "P 4"]
    """Top, left, height and width of every mask in its frame."""
    config: ModelConfig | None = None
    """That of a model whose objects have poses."""
    _kept: dict[tuple[int, Pose], _Stamp] = field(default_factory=dict)
    _places: dict[tuple[int, Pose], tuple[int, int, int, int]] = field(default_factory=dict)

    def places(self, found: Found) -> Int[np.ndarray, "n 4"]:
        """Top, left, height and width of objects in the picture; of what is opaque where they have poses."""
        if found.pose is not None:
            return np.array([self._place(found, n) for n in range(len(found))], np.int64).reshape(-1, 4)
        boxes = self.boxes[found.prototype]
        return np.concatenate([found.position + boxes[:, :2], boxes[:, 2:]], axis=1)

    def paint(
        self,
        found: Found,
        n: int,
        picture: Float32[np.ndarray, "H W C"] | None,
        corner: tuple[int, int] = (0, 0),
        labels: Int32[np.ndarray, "H W"] | None = None,
    ) -> None:
        """Paint an object over a part of the picture that begins at a corner, and write n + 1 where it is opaque."""
        stamp, shown = self._stamp(found, n), picture if labels is None else labels
        assert shown is not None
        (row, column), (h, w) = (stamp.row - corner[0], stamp.column - corner[1]), stamp.mask.shape
        up, down = max(0, -row), min(h, shown.shape[0] - row)
        start, stop = max(0, -column), min(w, shown.shape[1] - column)
        if up >= down or start >= stop:
            return
        inside = slice(up, down), slice(start, stop)
        where, mask = (slice(row + up, row + down), slice(column + start, column + stop)), stamp.mask[inside]
        if picture is not None:
            texture = stamp.prototype[inside][..., None] * found.colour[n]
            picture[where] += mask[..., None] * (texture - picture[where])
        if labels is not None:
            labels[where][mask > OPAQUE] = n + 1

    def _place(self, found: Found, n: int) -> tuple[int, int, int, int]:
        """Where the opaque pixels of an object in a pose lie."""
        key = int(found.prototype[n]), found.pose_of(n)
        if key not in self._places:
            self._places[key] = _opaque(self._stamp(found, n))
        return self._places[key]

    def _stamp(self, found: Found, n: int) -> _Stamp:
        """What is painted of an object; what was resampled for it is kept for a while."""
        p = int(found.prototype[n])
        if found.pose is None:
            top, left, h, w = self.boxes[p].tolist()
            row, column = (found.position[n] + (top, left)).tolist()
            inside = p, slice(top, top + h), slice(left, left + w)
            return _Stamp(row, column, self.prototypes[inside], self.masks[inside])
        key = p, found.pose_of(n)
        if key not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            layers = torch.from_numpy(self.prototypes[p]), torch.from_numpy(self.masks[p])
            sprite = posed_sprite(layers[0], layers[1], key[1], self.config)
            self._kept[key] = _Stamp(sprite.row, sprite.column, sprite.prototype.numpy(), sprite.mask.numpy())
        return self._kept[key]


def _opaque(stamp: _Stamp) -> tuple[int, int, int, int]:
    """Top, left, height and width of the opaque pixels in the picture; of all where none is."""
    opaque = stamp.mask > OPAQUE
    if not opaque.any():
        return stamp.row, stamp.column, *stamp.mask.shape
    rows, columns = np.flatnonzero(opaque.any(axis=1)), np.flatnonzero(opaque.any(axis=0))
    top, left = int(rows[0]), int(columns[0])
    return stamp.row + top, stamp.column + left, int(rows[-1]) + 1 - top, int(columns[-1]) + 1 - left


def stitch(
    found: Found,
    stamps: Stamps,
    seams: tuple[list[float], list[float]],
    image: Look,
    behind: Look,
    size: tuple[int, int],
    least: float,
) -> Found:
    """The objects of the picture, front to back, from what was found in the tiles between `seams`, row by row.

    `image` shows the picture and `behind` what is behind all objects; `least` is the smallest fall of the squared
    error that justifies an object.
    """
    places = stamps.places(found)
    middle = places[:, :2] + places[:, 2:] / 2
    cores = np.stack([np.searchsorted(lines, middle[:, axis], "right") for axis, lines in enumerate(seams)], axis=1)
    owned = cores @ (len(seams[1]) + 1, 1) == found.tile
    pairs = _overlapping(places)
    twins = _twins(found, places, owned, pairs)
    alone = ~owned & (twins < 0) & _nearly_inside(found, places, seams)
    known: dict[tuple[int, int], int] = {}  # by object and tile: how far from the front the tile has it
    for n in np.flatnonzero(owned | alone | (twins >= 0)).tolist():
        known[int(twins[n]) if twins[n] >= 0 else n, int(found.tile[n])] = int(found.rank[n])
    here = owned | alone
    pairs = pairs[here[pairs].all(axis=1)]
    before, doubtful = _judged(found, pairs, known)
    order = _front_to_back(found, np.flatnonzero(here), before)
    doubtful |= set(np.flatnonzero(alone).tolist())
    dropped = _dropped(found, stamps, order, pairs, doubtful, image, behind, size, least)
    return found.part(np.array([n for n in order if n not in dropped], np.int64))


def _overlapping(places: Int[np.ndarray, "n 4"]) -> Int[np.ndarray, "m 2"]:
    """The pairs of boxes that share a pixel."""
    if len(places) < 2:
        return np.zeros((0, 2), np.int64)
    middle, sides = places[:, :2] + places[:, 2:] / 2, places[:, 2:]
    pairs = cKDTree(middle / sides.max(axis=0)).query_pairs(1.0, p=np.inf, output_type="ndarray")
    one, two = pairs.T
    share = (2 * abs(middle[one] - middle[two]) < sides[one] + sides[two]).all(axis=1)
    return np.asarray(pairs[share], np.int64)


def _twins(
    found: Found, places: Int[np.ndarray, "n 4"], owned: Bool[np.ndarray, "n"], pairs: Int[np.ndarray, "m 2"]
) -> Int[np.ndarray, "n"]:
    """Of every object that its tile does not own the same one as another tile has it, which does; or -1."""
    across = pairs[(found.tile[pairs[:, 0]] != found.tile[pairs[:, 1]]) & (owned[pairs].sum(axis=1) == 1)]
    guest = np.where(owned[across[:, 0]], across[:, 1], across[:, 0])
    host = across.sum(axis=1) - guest
    starts = np.maximum(places[guest, :2], places[host, :2])
    ends = np.minimum(places[guest, :2] + places[guest, 2:], places[host, :2] + places[host, 2:])
    shared = (ends - starts).prod(axis=1)
    alike = shared / (places[guest, 2:].prod(axis=1) + places[host, 2:].prod(axis=1) - shared)
    score = alike + (found.prototype[guest] == found.prototype[host])
    twins = np.full(len(found), -1)
    best = np.argsort(score, kind="stable")
    best = best[alike[best] >= SAME]
    twins[guest[best]] = host[best]  # the last one written is the best
    return twins


def _nearly_inside(
    found: Found, places: Int[np.ndarray, "n 4"], seams: tuple[list[float], list[float]]
) -> Bool[np.ndarray, "n"]:
    """Whether the middle of an object is in the core of its tile, or next to it."""
    inside = np.ones(len(found), bool)
    for axis, (lines, number) in enumerate(zip(seams, divmod(found.tile, len(seams[1]) + 1), strict=True)):
        bounds = np.array([-np.inf, *lines, np.inf])
        middle, slack = places[:, axis] + places[:, 2 + axis] / 2, NEAR * places[:, 2 + axis]
        inside &= (bounds[number] - slack <= middle) & (middle <= bounds[number + 1] + slack)
    return inside


def _judged(
    found: Found, pairs: Int[np.ndarray, "m 2"], known: dict[tuple[int, int], int]
) -> tuple[dict[int, list[int]], set[int]]:
    """Which objects are behind each, and which are doubtful: they overlap one that their own tile does not have."""
    behind: dict[int, list[int]] = defaultdict(list)
    doubtful: set[int] = set()
    for one, two in pairs.tolist():
        ranks = [(known.get((one, tile)), known.get((two, tile))) for tile in found.tile[[one, two]].tolist()]
        views = [a < b for a, b in ranks if a is not None and b is not None]
        if len(views) < 2:
            doubtful |= {one, two}
        # Both tiles are right where they agree; otherwise whoever explains more is in front.
        first = views[0] if views and len(set(views)) == 1 else found.error_reduction[one] >= found.error_reduction[two]
        behind[one if first else two].append(two if first else one)
    return behind, doubtful


def _front_to_back(found: Found, objects: Int[np.ndarray, "n"], behind: dict[int, list[int]]) -> list[int]:
    """All objects so that each comes before those behind it; otherwise the largest error reduction first."""
    waiting = dict.fromkeys(objects.tolist(), 0)
    for others in behind.values():
        for other in others:
            waiting[other] += 1
    reduction = found.error_reduction
    ready = [(-float(reduction[n]), n) for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    rest = iter(sorted(waiting, key=lambda n: (-float(reduction[n]), n)))
    order: list[int] = []
    while len(order) < len(waiting):
        # Three tiles can contradict each other in a circle: it is opened at its largest error reduction.
        n = heapq.heappop(ready)[1] if ready else next(n for n in rest if waiting[n] > 0)
        waiting[n] = -1
        order.append(n)
        for other in behind.get(n, ()):
            waiting[other] -= 1 if waiting[other] > 0 else 0
            if waiting[other] == 0:
                heapq.heappush(ready, (-float(reduction[other]), other))
    return order


def _dropped(
    found: Found,
    stamps: Stamps,
    order: list[int],
    pairs: Int[np.ndarray, "m 2"],
    doubtful: set[int],
    image: Look,
    behind: Look,
    size: tuple[int, int],
    least: float,
) -> set[int]:
    """The doubtful objects without which the picture is explained as well, or nearly so."""
    depth = {n: place for place, n in enumerate(order)}
    near: dict[int, list[int]] = {n: [n] for n in doubtful}
    for one, two in pairs.tolist():
        for n, other in ((one, two), (two, one)):
            if n in near:
                near[n].append(other)
    places, dropped = stamps.places(found), set[int]()

    def worth(n: int) -> float:
        corner = np.maximum(places[n, :2], 0)
        height, width = (np.minimum(places[n, :2] + places[n, 2:], size) - corner).tolist()
        row, column = corner.tolist()
        if min(height, width) <= 0:
            return 0.0
        wanted, errors = image(row, column, (height, width)), []
        for hidden in (True, False):
            picture = behind(row, column, (height, width)).copy()
            for other in sorted(near[n], key=depth.__getitem__, reverse=True):
                if other not in dropped and not (hidden and other == n):
                    stamps.paint(found, other, picture, (row, column))
            errors.append(float(np.square(picture - wanted, dtype=np.float64).sum()))
        return errors[0] - errors[1]

    for n in sorted(doubtful, key=lambda n: (worth(n), n)):
        value = worth(n)
        if value < least or value <= 0:
            dropped.add(n)
    return dropped


def painted(
    found: Found, stamps: Stamps, picture: Float32[np.ndarray, "H W C"] | None, labels: Int32[np.ndarray, "H W"]
) -> None:
    """Paint all objects, in place: over what is behind them, and in labels of which 0 is background."""
    for n in reversed(range(len(found))):
        stamps.paint(found, n, picture, labels=labels)


def error_of(picture: Float[np.ndarray, "H W C"], image: Look, rows: int = 256) -> float:
    """The squared error of a picture, some rows at a time."""
    H, W = picture.shape[:2]
    error = 0.0
    for top in range(0, H, rows):
        part = picture[top : top + rows]
        error += float(np.square(part - image(top, 0, (len(part), W))).sum(dtype=np.float64))
    return error
