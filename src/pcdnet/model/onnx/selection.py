"""Selection in ONNX: a loop that chooses, one after the other, the candidates that explain the image best.

As in `pcdnet.model.selection` only candidates that overlap what was chosen are measured again. Beside the evidence it
paints, front to back: what the objects show so far, how much is seen through them, and whose pixel it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcdnet.model.composition import OPAQUE, painted_behind
from pcdnet.model.onnx.evidence import EvidenceGraph, cells
from pcdnet.model.onnx.graph import (
    BOOL,
    INT,
    Value,
    cast,
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
from pcdnet.model.onnx.localization import least_squares, numbers
from pcdnet.model.onnx.loop import Round, loop
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.plan import VISIBLE_SLACK, SearchPlan
from pcdnet.model.selection import EMPTY


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Objects front to back, and what they paint; after the last object come EMPTY and zeros."""

    prototype: Value
    """(B N): which prototype, or EMPTY."""
    corner: Value
    """(B N 2): row and column of the tight frame on the canvas."""
    colour: Value
    """(B N C): factor per channel."""
    error_reduction: Value
    """(B N): how much the squared error fell with it."""
    painted: Value
    """(B C H W): what the objects show, over black."""
    clear: Value
    """(B 1 H W): how much of what is behind is seen through them."""
    labels: Value
    """(B H W): 0, or n + 1 for the n-th object from the front, where its mask is opaque."""


def select(images: Value, batch: int, plan: SearchPlan, places: Places, colours: Value | None) -> Chosen:
    """Greedy selection that ends where no candidate reduces the error enough; colours of None are least squares."""
    config, geometry = plan.config, plan.geometry
    walk = _Walk(images, batch, plan, places, colours)
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
        clear=part(picture, 1, C, C + 1),
        labels=reshape(cast(part(picture, 1, C + 1, C + 2), INT), B, H, W),
    )


def _filled(x: Value, objects: int, shape: tuple[int, ...], fill: int) -> Value:
    """The results of the rounds there were, (n B ...), as (B N ...)."""
    rest = x.graph.constant(np.full((objects, *shape), fill), x.kind)
    return transpose(part(concat([x, rest], 0), 0, 0, objects), 1, 0, *range(2, len(shape) + 1))


class _Walk:
    """The rounds of the selection, and what does not change between them."""

    def __init__(self, images: Value, batch: int, plan: SearchPlan, places: Places, colours: Value | None) -> None:
        bank, geometry, config, graph = plan.tight, plan.geometry, plan.config, images.graph
        P, K, (Y, X) = len(bank.prototypes), places.peaks, geometry.canvas
        self._config, self._geometry, self._colours = config, geometry, colours
        self._shape = batch, P * K
        self._prototypes, self._masks = (
            graph.constant(numbers(x).reshape(P, -1, 1)) for x in (bank.prototypes, bank.masks)
        )
        self._evidence = EvidenceGraph(graph, plan, batch)
        self._prototype = graph.constant(np.tile(np.repeat(np.arange(P), K), batch))
        self._places = reshape(concat([unsqueeze(x, -1) for x in (places.row, places.column)], -1), -1, 2)
        self._cell = reshape(places.row * X + places.column + np.arange(batch)[:, None] * (Y * X), -1)
        box = plan.boxes.cpu().numpy().repeat(K, axis=0)
        self._top, self._left = places.row + box[:, 0], places.column + box[:, 1]
        self._bottom, self._right = self._top + box[:, 2], self._left + box[:, 3]
        planes = self._evidence.opening(images)
        picture = expand(
            graph.constant(np.array([0.0] * config.channels + [1.0, 0.0])), batch * Y * X, config.channels + 2
        )
        measured = self._evidence.measure(planes, self._cell, self._prototype)
        # Before anything is chosen, what is seen of a candidate is what lies inside the image.
        self._least = self._visible(measured) * (config.min_visible * (1 - VISIBLE_SLACK))
        self.start = [planes, picture, measured, places.exists]
        """Evidence, picture, the candidates' coefficients, and which of them are left."""

    def round(self, number: Value, state: list[Value]) -> Round:
        """Take, in every image where one pays, the best candidate as the next in front of all to come."""
        planes, picture, measured, left = state
        colours, reductions = self._reductions(measured)
        allowed = left & (self._visible(measured) >= self._least) if self._config.min_visible > 0 else left
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
        planes = put(planes, window, self._evidence.occlude(gather(planes, window), window, mask, texture))
        picture = put(picture, window, self._paint(gather(picture, window), mask, texture, number))
        left = left & node("Not", node("Equal", best, np.arange(T), gives=BOOL))
        stale = self._overlapping(best) & left & pays
        again = reshape(node("NonZero", reshape(stale, -1), gives=INT), -1)
        fresh = self._evidence.measure(planes, gather(self._cell, again), gather(self._prototype, again))
        flat = reshape(pays, -1)
        found = [
            where(flat, p, EMPTY),
            where(pays, gather(self._places, chosen), 0),
            where(pays, colour, 0),
            where(flat, reshape(reduction, -1), 0),
        ]
        return Round(some(flat, 0), [planes, picture, put(measured, again, fresh), left], found)

    def _reductions(self, measured: Value) -> tuple[Value, Value]:
        """The candidates' colours, (B T C), and by how much they would reduce the error in them, (B T)."""
        C = self._config.channels
        a, q = (reshape(part(measured, 1, i, j), *self._shape, -1) for i, j in ((0, C), (C, C + 1)))
        colour = self._colours
        if colour is None:
            colour = least_squares(a, q, self._config.max_colour)
        reductions = total(colour * (2 * a - colour * q), 2)
        if self._config.background:
            reductions = reductions - reshape(part(measured, 1, C + 2, C + 3), *self._shape)
        return colour, reductions

    def _visible(self, measured: Value) -> Value:
        """The visible area of each candidate, (B T)."""
        C = self._config.channels
        return reshape(part(measured, 1, C + 1, C + 2), *self._shape)

    def _paint(self, window: Value, mask: Value, texture: Value, number: Value) -> Value:
        """The picture in windows with one more object behind all others."""
        C = self._config.channels
        shown, clear, label = (part(window, 2, i, j) for i, j in ((0, C), (C, C + 1), (C + 1, C + 2)))
        free = (label < 0.5) & (mask > OPAQUE)
        label = where(free, cast(number, label.kind) + 1, label)
        return concat([*painted_behind(shown, clear, mask, texture), label], 2)

    def _overlapping(self, best: Value) -> Value:
        """Which candidates share a pixel with the chosen one, by the boxes around their masks: (B T)."""
        top, left, bottom, right = (pick(x, best, 1) for x in (self._top, self._left, self._bottom, self._right))
        return (self._top < bottom) & (top < self._bottom) & (self._left < right) & (left < self._right)
