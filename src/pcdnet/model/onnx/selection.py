"""Selection in ONNX: a loop that chooses, one after the other, the candidates that explain the image best.

As in `pcdnet.model.selection` only candidates that overlap what was chosen are weighed again. Beside the evidence it
paints, front to back: what the objects show so far, how much shines through them, and who is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import TINY
from pcdnet.model.geometry import Geometry, support
from pcdnet.model.onnx.evidence import EvidenceKernels, cells
from pcdnet.model.onnx.graph import (
    BOOL,
    INT,
    Value,
    cast,
    clip,
    concat,
    expand,
    gather,
    node,
    part,
    pick,
    put,
    reshape,
    some,
    total,
    transpose,
    unsqueeze,
    where,
)
from pcdnet.model.onnx.localization import numbers
from pcdnet.model.onnx.loop import Round, loop
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.selection import EMPTY

HAIR = 1e-4
"""Share of the area that must be seen which may be missing, so that rounding does not matter; as in the network."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Objects front to back, and what they paint; after the last object come EMPTY and zeros."""

    prototype: Value
    """(B N): which prototype, or EMPTY."""
    corner: Value
    """(B N 2): row and column of the tight frame on the canvas."""
    colour: Value
    """(B N C): reduction per channel."""
    error_reduction: Value
    """(B N): how much the squared error fell with it."""
    painted: Value
    """(B C H W): what the objects show, over black."""
    shining: Value
    """(B 1 H W): how much of what is behind shines through them."""
    labels: Value
    """(B H W): 0, or n + 1 for the n-th object from the front, where its mask is above one half."""


def select(
    images: Value,
    batch: int,
    bank: PrototypeBank,
    geometry: Geometry,
    places: Places,
    colours: Value | None,
    config: ModelConfig,
) -> Chosen:
    """Greedy selection that ends where the best reduction is below `min_error_reduction`; colours of None are solved for."""
    walk = _Walk(images, batch, bank, geometry, places, colours, config)
    (_, picture, _, _), found = loop(config.max_objects, walk.start, walk.round)
    B, C, (Y, X), (my, mx), (H, W) = batch, config.channels, geometry.canvas, geometry.padding, geometry.image
    picture = transpose(reshape(picture, B, Y, X, C + 2), 0, 3, 1, 2)
    picture = part(part(picture, 2, my, my + H), 3, mx, mx + W)
    prototype, corner, colour, reduction = (
        _filled(x, config.max_objects, shape, fill)
        for x, shape, fill in zip(found, ((B,), (B, 2), (B, C), (B,)), (EMPTY, 0, 0, 0), strict=True)
    )
    return Chosen(
        prototype=prototype,
        corner=corner,
        colour=colour,
        error_reduction=reduction,
        painted=part(picture, 1, 0, C),
        shining=part(picture, 1, C, C + 1),
        labels=reshape(cast(part(picture, 1, C + 1, C + 2), INT), B, H, W),
    )


def _filled(x: Value, objects: int, shape: tuple[int, ...], fill: int) -> Value:
    """The results of the rounds there were, (n B ...), as (B N ...)."""
    rest = x.graph.constant(np.full((objects, *shape), fill), x.kind)
    return transpose(part(concat([x, rest], 0), 0, 0, objects), 1, 0, *range(2, len(shape) + 1))


class _Walk:
    """The rounds of the selection, and what does not change between them."""

    def __init__(
        self,
        images: Value,
        batch: int,
        bank: PrototypeBank,
        geometry: Geometry,
        places: Places,
        colours: Value | None,
        config: ModelConfig,
    ) -> None:
        P, K, (Y, X), graph = len(bank.prototypes), places.peaks, geometry.canvas, images.graph
        self._config, self._geometry, self._colours = config, geometry, colours
        self._shape = batch, P * K
        self._prototypes, self._masks = (
            graph.constant(numbers(x).reshape(P, -1, 1)) for x in (bank.prototypes, bank.masks)
        )
        self._scales = EvidenceKernels(graph, bank, geometry, batch, config.channels)
        self._prototype = graph.constant(np.tile(np.repeat(np.arange(P), K), batch))
        self._places = reshape(concat([unsqueeze(x, -1) for x in (places.row, places.column)], -1), -1, 2)
        self._cell = reshape(places.row * X + places.column + np.arange(batch)[:, None] * (Y * X), -1)
        box = np.repeat(np.array(support(bank.masks)), K, axis=0)
        self._top, self._left = places.row + box[:, 0], places.column + box[:, 1]
        self._bottom, self._right = self._top + box[:, 2], self._left + box[:, 3]
        planes = self._scales.opening(images)
        picture = expand(
            graph.constant(np.array([0.0] * config.channels + [1.0, 0.0])), batch * Y * X, config.channels + 2
        )
        weighed = self._scales.update(planes, self._cell, self._prototype)
        # Before anything is chosen, what is seen of a candidate is what lies inside the image.
        self._least = self._seen(weighed) * (config.min_visible * (1 - HAIR))
        self.start = [planes, picture, weighed, places.exists]
        """Evidence, picture, what candidates would reduction, and which of them are left."""

    def round(self, number: Value, state: list[Value]) -> Round:
        """Take, in every image where one pays, the best candidate as the next in front of all to come."""
        planes, picture, weighed, left = state
        colours, reductions = self._reductions(weighed)
        allowed = left & (self._seen(weighed) >= self._least) if self._config.min_visible > 0 else left
        reductions = where(allowed, reductions, -np.inf)
        best = node("ArgMax", reductions, attributes={"axis": 1}, gives=INT)
        reduction = pick(reductions, best, 1)
        pays = (reduction >= self._config.min_error_reduction) & (reduction > 0)
        B, T = self._shape
        chosen = reshape(best, -1) + np.arange(B) * T
        p, colour = gather(self._prototype, chosen), gather(reshape(colours, B * T, -1), chosen)
        window = cells(gather(self._cell, chosen), self._geometry.frame, self._geometry.canvas[1])
        # Where nothing pays, what is taken has no mask, and so changes nothing.
        mask = where(unsqueeze(pays, -1), gather(self._masks, p), 0)
        texture = gather(self._prototypes, p) * unsqueeze(colour, 1)
        planes = put(planes, window, self._scales.covered(gather(planes, window), window, mask, texture))
        picture = put(picture, window, self._paint(gather(picture, window), mask, texture, number))
        left = left & node("Not", node("Equal", best, np.arange(T), gives=BOOL))
        stale = self._overlapping(best) & left & pays
        again = reshape(node("NonZero", reshape(stale, -1), gives=INT), -1)
        fresh = self._scales.update(planes, gather(self._cell, again), gather(self._prototype, again))
        flat = reshape(pays, -1)
        found = [
            where(flat, p, EMPTY),
            where(pays, gather(self._places, chosen), 0),
            where(pays, colour, 0),
            where(flat, reshape(reduction, -1), 0),
        ]
        return Round(some(flat, 0), [planes, picture, put(weighed, again, fresh), left], found)

    def _reductions(self, weighed: Value) -> tuple[Value, Value]:
        """The candidates' colours, (B T C), and what they would reduction in them, (B T)."""
        C = self._config.channels
        a, q, k = (reshape(part(weighed, 1, i, j), *self._shape, -1) for i, j in ((0, C), (C, C + 1), (C + 2, C + 3)))
        colour = self._colours
        if colour is None:
            colour = clip(a / node("Max", q, TINY), 0, self._config.max_colour)
        return colour, total(colour * (2 * a - colour * q), 2) - reshape(k, *self._shape)

    def _seen(self, weighed: Value) -> Value:
        """How much of each candidate would be seen, (B T)."""
        C = self._config.channels
        return reshape(part(weighed, 1, C + 1, C + 2), *self._shape)

    def _paint(self, window: Value, mask: Value, texture: Value, number: Value) -> Value:
        """The picture in windows with one more object behind all others."""
        C = self._config.channels
        shown, shining, label = (part(window, 2, i, j) for i, j in ((0, C), (C, C + 1), (C + 1, C + 2)))
        free = (label < 0.5) & (mask > 0.5)
        label = where(free, cast(number, label.kind) + 1, label)
        return concat([shown + shining * mask * texture, shining * (1 - mask), label], 2)

    def _overlapping(self, best: Value) -> Value:
        """Which candidates share a pixel with the chosen one, by the boxes around their masks: (B T)."""
        top, left, bottom, right = (pick(x, best, 1) for x in (self._top, self._left, self._bottom, self._right))
        return (self._top < bottom) & (top < self._bottom) & (self._left < right) & (left < self._right)
