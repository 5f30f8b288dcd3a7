"""Objects that overlap in one consistent order, image by image, as `depth` describes it."""

from __future__ import annotations

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.overlap import (
    TINY,
    Bank,
    Objects,
    Room,
    Scene,
    Sides,
    inner,
    occlude,
    order_evidence,
    overlaps,
    touching,
    uncover,
)
from pcdnet.model.compiled.problem import Array

LEAST_CHANGE, SWEEPS = 1e-3, 3
"""As in `depth`."""


def ordered(
    planes: tuple[Array, Array, Array], bank: Bank, things: Array, values: tuple[Array, Array], most: float, refit: bool
) -> tuple[Array, Array, Array]:
    """The slots (B N) that objects had before; and, in their order, their colours and error reductions.

    Planes are images (B C H W), what is behind them (b C H W) and what of them counts (b H W); things are prototype,
    row and column in tight frames (B N 3); values their colours (B N C) and error reductions (B N). Colours up to
    `most` are found anew with `refit`.
    """
    slots = np.tile(np.arange(things.shape[1]), (len(things), 1))
    things, colour, removed = things.copy(), values[0].copy(), values[1].copy()

    def work(start: int, stop: int) -> None:
        _ordered((start, stop), planes, bank, things, (colour, removed), most, refit, slots)

    share(work, len(things))
    return slots, colour, removed


@compiled
def _ordered(
    ends: tuple[int, int],
    planes: tuple[Array, Array, Array],
    bank: Bank,
    things: Array,
    values: tuple[Array, Array],
    most: float,
    refit: bool,
    slots: Array,
) -> None:
    """Images from the first end to the second."""
    (images, behind, inside), (colour, removed) = planes, values
    (_, C, H, W), (h, w), N, kind = images.shape, bank[1].shape[1:], things.shape[1], images.dtype
    windows = np.empty((C, h, w), kind), np.empty((h, w), kind), np.empty((C, h, w), kind)
    room = windows[0], windows[1], windows[2], np.empty((C, h * w), kind), np.empty((2, h * w), kind)
    left = np.empty((C, H, W), kind), np.empty((H, W), kind)
    near, open_slots, seen = np.empty((N, N), np.bool_), np.empty(N, np.bool_), np.empty(N, np.bool_)
    for b in range(ends[0], ends[1]):
        scene = images[b], behind[b % len(behind)], inside[b % len(inside)]
        objects = things[b], colour[b]
        open_slots[:] = True
        for _ in range(SWEEPS):
            if not touching(bank, things[b], near):
                break
            edges, strength, wrong = _edges(scene, bank, objects, near, open_slots, most, refit, room)
            open_slots[:], seen[:], again = False, False, False
            for n in range(N if wrong else 0):
                if seen[n]:
                    continue
                group = _group(near, n, seen)
                order = consistent_order(group, edges, strength)
                if np.all(order == group):
                    continue
                new = _valued(scene, bank, objects, order, most, refit, left)
                if not np.all(new[1] > 0):
                    continue
                _move(group, order, new, (things[b], slots[b], colour[b], removed[b]))
                # Two that have changed places would be judged as before: only larger groups are looked at again.
                if len(group) > 2:
                    open_slots[group], again = True, True
            if not again:
                break


@compiled
def _edges(
    scene: Scene, bank: Bank, objects: Objects, near: Array, among: Array, most: float, refit: bool, room: Room
) -> tuple[Array, Array, bool]:
    """Which object of each overlapping pair belongs in front, by how much, and whether any pair is the wrong way round.

    Pairs are those whose front object is among some.
    """
    things, N, count, wrong = objects[0], len(near), 0, False
    for front in range(N):
        for back in range(front + 1, N):
            count += near[front, back]
    edges, strength, count = np.empty((count, 2), np.int64), np.empty(count, scene[0].dtype), 0
    for front in range(N):
        for back in range(front + 1, N):
            if not (among[front] and near[front, back] and overlaps(scene, bank, things[front], things[back])):
                continue
            by = order_evidence(scene, bank, objects, near, (front, back), most, refit, room)
            if by > -LEAST_CHANGE:
                edges[count, 0], edges[count, 1], strength[count] = front, back, max(by, 0.0)
            else:
                edges[count, 0], edges[count, 1], strength[count], wrong = back, front, -by, True
            count += 1
    return edges[:count], strength[:count], wrong


@compiled
def _group(near: Array, first: int, seen: Array) -> Array:
    """The slots of objects that touch an object, directly or through others, and its own; all are seen now."""
    member = np.zeros(len(near), np.bool_)
    fresh, count = np.empty(len(near), np.int64), 1
    fresh[0], member[first], n = first, True, 0
    while n < count:
        for slot in range(len(near)):
            if near[fresh[n], slot] and not member[slot]:
                fresh[count], member[slot] = slot, True
                count += 1
        n += 1
    seen |= member
    return np.nonzero(member)[0]


@compiled
def consistent_order(slots: Array, edges: Array, strength: Array) -> Array:
    """Some slots, front to back, as the edges between them want it, the strongest first; see `depth`."""
    N = slots.max() + 1
    ahead, member = np.zeros((N, N), np.bool_), np.zeros(N, np.bool_)  # which come before each
    member[slots] = True
    for n in np.argsort(-strength, kind="mergesort"):
        front, back = edges[n]
        if front >= N or not member[front] or ahead[front, back] or ahead[back, front]:
            continue
        ahead[back, front] = True
        for slot in slots:
            if slot == back or ahead[slot, back]:
                ahead[slot] |= ahead[front]
                ahead[slot, front] = True
    order = np.empty_like(slots)
    for n in range(len(slots)):
        for slot in slots:
            if member[slot] and not np.any(ahead[slot] & member):
                order[n], member[slot] = slot, False
                break
    return order


@compiled
def _valued(
    scene: Scene, bank: Bank, objects: Objects, order: Array, most: float, refit: bool, left: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The colours and error reductions that selection would find for objects in an order; `left` is to work in."""
    (things, given), (Y, Q) = objects, left
    colour, removed = given[order], np.empty(len(order), given.dtype)
    for slot in order:
        uncover(scene, inner(scene, bank, things[slot]), (0, 0), Y, Q)
    for n in range(len(order)):
        thing, part = things[order[n]], inner(scene, bank, things[order[n]])
        removed[n] = 0
        for c in range(len(Y)):
            a, q, fall = _coefficients(Y[c], Q, scene[1][c], bank, thing, part, colour[n, c])
            if refit:
                colour[n, c] = min(max(a / max(q, TINY), 0.0), most)
                _, _, fall = _coefficients(Y[c], Q, scene[1][c], bank, thing, part, colour[n, c])
            removed[n] += fall
        occlude(bank, thing, colour[n], part, (0, 0), Y, Q)
    return colour, removed


@compiled
def _coefficients(
    Y: Array, Q: Array, ground: Array, bank: Bank, thing: Array, part: Sides, tint: float
) -> tuple[float, float, float]:
    """In one channel the coefficients a and q of `evidence`, and how much the error falls in a given colour."""
    p, row, column = thing
    a, q, fall = 0.0, 0.0, 0.0
    for y in range(part[0], part[2]):
        for x in range(part[1], part[3]):
            T, M = bank[0][p, y - row, x - column], bank[1][p, y - row, x - column]
            rest, change = Y[y, x] - Q[y, x] * ground[y, x], M * (T * tint - ground[y, x])
            a += (rest + Q[y, x] * M * ground[y, x]) * M * T
            q += Q[y, x] * M * T * M * T
            fall += change * (2 * rest - Q[y, x] * change)
    return a, q, fall


@compiled
def _move(to: Array, source: Array, new: tuple[Array, Array], objects: tuple[Array, Array, Array, Array]) -> None:
    """Objects into other slots, with new colours and error reductions."""
    things, slots, colour, removed = objects
    moved, before = things[source], slots[source]
    for n in range(len(to)):
        things[to[n]], slots[to[n]] = moved[n], before[n]
        colour[to[n]], removed[to[n]] = new[0][n], new[1][n]
