"""Selection in ONNX: a loop that chooses, one after the other, the candidates that explain the image best.

As in `pcdnet.model.selection` only candidates that overlap what was chosen are measured again. Beside the evidence it
paints, front to back: what the objects show so far, how much is seen through them, and whose pixel it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcdnet.model.colour import TIE
from pcdnet.model.composition import OPAQUE, painted_behind
from pcdnet.model.evidence import best_colour, error_reduction_of
from pcdnet.model.onnx.evidence import EvidenceGraph, cells
from pcdnet.model.onnx.graph import BOOL, INT, Value, concat, node, where
from pcdnet.model.onnx.localization import as_array
from pcdnet.model.onnx.loop import Round, loop
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.plan import SearchPlan
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
    picture = picture.reshape(B, Y, X, C + 2).permute(0, 3, 1, 2).slice(2, my, my + H).slice(3, mx, mx + W)
    painted, clear, labels = picture.split([C, 1, 1], 1)
    objects = [
        _filled(x, config.max_objects, shape, fill)
        for x, shape, fill in zip(found, ((B,), (B, 2), (B, C), (B,)), (EMPTY, 0, 0, 0), strict=True)
    ]
    labels = labels.to(INT).reshape(B, H * W)
    if config.min_inside > 0:
        objects, labels = _packed(objects, labels, (B, config.max_objects))
    prototype, corner, colour, reduction = objects
    return Chosen(
        prototype=prototype,
        corner=corner,
        colour=colour,
        error_reduction=reduction,
        painted=painted,
        clear=clear,
        labels=labels.reshape(B, H, W),
    )


def _filled(x: Value, objects: int, shape: tuple[int, ...], fill: int) -> Value:
    """The results of the rounds there were, (n B ...), as (B N ...)."""
    rest = x.graph.constant(np.full((objects, *shape), fill), x.dtype)
    return concat([x, rest], 0).slice(0, 0, objects).permute(1, 0, *range(2, len(shape) + 1))


def _packed(objects: list[Value], labels: Value, shape: tuple[int, int]) -> tuple[list[Value], Value]:
    """Objects, each (B N ...) and the first their prototypes, with EMPTY last; labels, (B pixels), follow them."""
    B, N = shape
    exists = (objects[0] >= 0).to(INT)
    _, order = (exists * N + np.arange(N)[::-1]).topk(N)
    flat = (order + np.arange(B)[:, None] * N).reshape(-1)
    packed = [
        x.reshape(B * N, *rest)[flat].reshape(B, N, *rest)
        for x, rest in zip(objects, ((), (2,), (-1,), ()), strict=True)
    ]
    counts = node("CumSum", exists, labels.graph.constant(1))
    return packed, concat([counts.slice(1, 0, 1) * 0, counts], 1).gather(1, labels)


class _Walk:
    """The rounds of the selection, and what does not change between them."""

    def __init__(self, images: Value, batch: int, plan: SearchPlan, places: Places, colours: Value | None) -> None:
        bank, C, graph = plan.tight, plan.config.channels, images.graph
        P, K, (Y, X) = len(bank.prototypes), places.peaks, plan.geometry.canvas
        self._plan, self._colours, self._shape = plan, colours, (batch, P * K)
        self._prototypes, self._masks = (
            graph.constant(as_array(x).reshape(P, -1, 1)) for x in (bank.prototypes, bank.masks)
        )
        self._evidence = EvidenceGraph(graph, plan, batch)
        self._prototype = graph.constant(np.tile(np.repeat(np.arange(P), K), batch))
        self._places = concat([x.unsqueeze(-1) for x in (places.row, places.column)], -1).reshape(-1, 2)
        self._cell = (places.row * X + places.column + np.arange(batch)[:, None] * (Y * X)).reshape(-1)
        box = plan.boxes.cpu().numpy().repeat(K, axis=0)
        self._top, self._left = places.row + box[:, 0], places.column + box[:, 1]
        self._bottom, self._right = self._top + box[:, 2], self._left + box[:, 3]
        self._place = plan.place_of(places.row, places.column, K)
        planes = self._evidence.opening(images)
        picture = graph.constant(np.array([0.0] * C + [1.0, 0.0])).expand(batch * Y * X, C + 2)
        measured = self._evidence.measure(planes, self._cell, self._prototype)
        # Before anything is chosen, what is seen of a candidate is what lies inside the image.
        inside = self._coefficients(measured)[2]
        self._least = inside * plan.min_visible
        self._reported = inside >= as_array(plan.min_inside).repeat(K)
        self.start = [planes, picture, measured, places.exists]
        """Evidence, picture, the candidates' coefficients, and which of them are left."""

    def round(self, number: Value, state: list[Value]) -> Round:
        """Take, in every image where one pays, the best candidate as the next in front of all to come."""
        (planes, picture, measured, left), config, (B, T) = state, self._plan.config, self._shape
        a, q, visible, k = self._coefficients(measured)
        colours = best_colour(a, q, config.max_colour) if self._colours is None else self._colours
        allowed = left & (visible >= self._least) if config.min_visible > 0 else left
        reductions = where(allowed, error_reduction_of(a, q, k, colours), -np.inf)
        most = reductions.amax(1).unsqueeze(1)
        place = where(reductions >= most - node("Abs", most) * TIE, self._place, np.iinfo(np.int64).max)
        best = node("ArgMin", place, attributes={"axis": 1}, dtype=INT)
        reduction = reductions.gather(1, best)
        pays = (reduction >= config.min_error_reduction) & (reduction > 0)
        chosen = best.reshape(-1) + np.arange(B) * T
        p, colour = self._prototype[chosen], colours.reshape(B * T, -1)[chosen]
        window = cells(self._cell[chosen], self._plan.geometry)
        # Where nothing pays, what is taken has no mask, and so changes nothing; what is not reported is not painted.
        shown = pays & self._reported.gather(1, best) if config.min_inside > 0 else pays
        mask, painted = (where(x.unsqueeze(-1), self._masks[p], 0) for x in (pays, shown))
        texture = self._prototypes[p] * colour.unsqueeze(1)
        planes = self._evidence.occlude(planes, window, mask, texture)
        picture = picture.index_put(window, self._paint(picture[window], painted, texture, number))
        left = left & node("Not", node("Equal", best, np.arange(T), dtype=BOOL))
        stale = self._overlapping(best) & left & pays
        again = node("NonZero", stale.reshape(-1), dtype=INT).reshape(-1)
        fresh = self._evidence.measure(planes, self._cell[again], self._prototype[again])
        flat = shown.reshape(-1)
        found = [
            where(flat, p, EMPTY),
            where(shown, self._places[chosen], 0),
            where(shown, colour, 0),
            where(flat, reduction.reshape(-1), 0),
        ]
        return Round(pays.reshape(-1).any(0), [planes, picture, measured.index_put(again, fresh), left], found)

    def _coefficients(self, measured: Value) -> tuple[Value, Value, Value, Value]:
        """The candidates' a, (B T C), q, visible area and k, each (B T)."""
        a, *rest = measured.split([self._plan.config.channels, 1, 1, 1], 1)
        q, visible, k = (x.reshape(*self._shape) for x in rest)
        return a.reshape(*self._shape, -1), q, visible, k

    def _paint(self, window: Value, mask: Value, texture: Value, number: Value) -> Value:
        """The picture in windows with one more object behind all others."""
        shown, clear, label = window.split([self._plan.config.channels, 1, 1], 2)
        free = (label < 0.5) & (mask > OPAQUE)
        label = where(free, number.to(label.dtype) + 1, label)
        return concat([*painted_behind(shown, clear, mask, texture), label], 2)

    def _overlapping(self, best: Value) -> Value:
        """Which candidates share a pixel with the chosen one, by the boxes around their masks: (B T)."""
        top, left, bottom, right = (x.gather(1, best) for x in (self._top, self._left, self._bottom, self._right))
        return (self._top < bottom) & (top < self._bottom) & (self._left < right) & (left < self._right)
