"""Which candidates explain an image, in which order of depth; `poses.arranging` says what is done and why.

What a candidate would do at each place of the order is measured in the box around its mask, between the objects there
that touch it, and measured again only after something in or beside that box has changed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array

TINY = 1e-12
NONE = -1
"""Stands where there is no candidate."""
NOTHING, REMOVE, ADD, REPLACE, BEHIND = range(5)
"""The steps."""


class Rules(NamedTuple):
    """What pays."""

    least: float
    """By how much an object must reduce the error."""
    change: float
    """By how much a step must."""
    colours: tuple[float, float]
    """The smallest and the largest colour."""
    steps: int
    """After the first choice, at most."""


class Scene(NamedTuple):
    """An image and the candidates that there are in it."""

    picture: Array
    ground: Array
    seen: Array
    paint: Array
    """Prototypes of the bank (P h w), its masks, and of which each candidate (T) is."""
    masks: Array
    prototype: Array
    place: Array
    """Row and column of the frame of each (T 2)."""
    boxes: Array
    """Top, bottom, left and right of what is seen of each in the image (T 4)."""
    area: Array
    """How much of each must be visible (T)."""
    low: float
    high: float


class Room(NamedTuple):
    """Memory for what is worked on: planes of one box."""

    front: Array
    """What is painted in front (C h w)."""
    through: Array
    """How much shows through it (h w)."""
    under: Array
    """What is behind each place of the order (N + 2, C h w)."""
    colour: Array


def arrange(
    images: tuple[Array, Array, Array],
    bank: tuple[Array, Array, Array],
    candidates: tuple[Array, Array, Array, Array],
    area: Array,
    start: Array,
    rules: Rules,
) -> tuple[Array, Array]:
    """The candidates of every image (B N), front to back, NONE last, and their colours (B N C).

    Images are (B C H W), with what is behind their objects and what is seen of them (H W); the bank is prototypes and
    masks (P h w) in tight frames and the boxes around the masks (P 4); candidates (B T) are rows, columns, whether they
    exist, and of which prototype each (T) is. Where `area` is empty, it does not matter how much of them is visible.
    """
    (B, N), C = start.shape, images[0].shape[1]
    found, colours = np.full((B, N), NONE, np.int64), np.zeros((B, N, C), images[0].dtype)
    numbers = np.array([rules.least, rules.change, *rules.colours], np.float64)

    def work(first: int, last: int) -> None:
        _arrange((first, last), images, bank, candidates, area, start, numbers, rules.steps, found, colours)

    share(work, B)
    return found, colours


@compiled
def _arrange(
    ends: tuple[int, int],
    images: tuple[Array, Array, Array],
    bank: tuple[Array, Array, Array],
    candidates: tuple[Array, Array, Array, Array],
    area: Array,
    start: Array,
    numbers: Array,
    steps: int,
    found: Array,
    colours: Array,
) -> None:
    """Images from the first end to the second."""
    (pictures, grounds, seen), (paint, masks, tight) = images, bank
    rows, columns, exists, prototypes = candidates
    N, (C, H, W), (h, w) = start.shape[1], pictures.shape[1:], masks.shape[1:]
    least, change = numbers[0], numbers[1]
    kind = masks.dtype
    room = Room(
        np.zeros((C, h, w), kind), np.zeros((h, w), kind), np.zeros((N + 2, C, h, w), kind), np.zeros(C, np.float64)
    )
    order, tints, costs = np.full(N + 1, NONE, np.int64), np.zeros((N + 1, C)), np.zeros(N + 1)
    for b in range(ends[0], ends[1]):
        which = np.flatnonzero(exists[b])
        T = len(which)
        place, boxes = np.zeros((T, 2), np.int64), np.zeros((T, 4), np.int64)
        areas, used = np.zeros(T), np.zeros(T, np.bool_)
        for t in range(T):
            place[t, 0], place[t, 1] = rows[b, which[t]], columns[b, which[t]]
            box = tight[prototypes[which[t]]]
            boxes[t, 0], boxes[t, 2] = max(0, place[t, 0] + box[0]), max(0, place[t, 1] + box[1])
            boxes[t, 1] = max(boxes[t, 0], min(H, place[t, 0] + box[0] + box[2]))
            boxes[t, 3] = max(boxes[t, 2], min(W, place[t, 1] + box[1] + box[3]))
            areas[t] = area[b, which[t]] if len(area) else 0.0
        scene = Scene(
            pictures[b] * seen,
            grounds[b if len(grounds) > 1 else 0],
            seen,
            paint,
            masks,
            prototypes[which],
            place,
            boxes,
            areas,
            numbers[2],
            numbers[3],
        )
        k = 0
        for n in range(N):
            for t in range(T if start[b, n] != NONE else 0):
                if which[t] == start[b, n]:
                    order[k], used[t] = t, True
                    tints[k] = 0
                    k += 1
        recolour(scene, order, tints, k, room)
        if k == 0:
            k = begin(scene, order, tints, used, least, N, room)
        # Of every candidate what it gains if it is added and if it takes the place of an object, and of which.
        added, instead = np.zeros(T), np.zeros(T)
        before, other = np.full(T, NONE, np.int64), np.full(T, NONE, np.int64)
        stale = np.ones(T, np.bool_)
        for _ in range(steps):
            for s in range(k):
                costs[s] = worth(scene, order, tints, k, s, room)
            step, at, by, most = NOTHING, NONE, NONE, change
            for s in range(k):
                if least - costs[s] > most:
                    step, at, most = REMOVE, s, least - costs[s]
            for t in range(T):
                if used[t]:
                    continue
                if stale[t]:
                    added[t], before[t], instead[t], other[t] = gains(scene, order, tints, costs, k, t, room)
                    stale[t] = False
                if k < N and added[t] - least > most:
                    step, at, by, most = ADD, place_of(order, k, before[t]), t, added[t] - least
                if instead[t] > most:
                    step, at, by, most = REPLACE, place_of(order, k, other[t]), t, instead[t]
            for s in range(k):
                behind = next_touching(scene, order, k, s)
                if behind < k:
                    gain = moved(scene, order, tints, k, s, behind, room) - costs[s]
                    if gain > most:
                        step, at, by, most = BEHIND, s, behind, gain
            if step == NOTHING:
                break
            touched = np.zeros(T, np.bool_)  # what is gained elsewhere has not changed
            touched[order[at] if step != ADD else by] = True
            if step == REPLACE:
                touched[by] = True
            k = take(order, tints, used, k, step, at, by)
            recolour(scene, order, tints, k, room)
            spread(boxes, order, k, touched, stale)
        for n in range(k):
            found[b, n] = which[order[n]]
            for c in range(C):
                colours[b, n, c] = tints[n, c]


@compiled
def begin(scene: Any, order: Array, tints: Array, used: Array, least: float, N: int, room: Any) -> int:
    """What leaves little where it is seen, behind each other; how many there are."""
    T, k = len(used), 0
    scores, stale = np.zeros(T), np.ones(T, np.bool_)
    while k < N:
        best, most = NONE, 0.0
        for t in range(T):
            if used[t]:
                continue
            if stale[t]:
                scores[t], stale[t] = unhidden(scene, order, tints, k, t, least, room), False
            if scores[t] > most:
                best, most = t, scores[t]
        if best == NONE:
            break
        unhidden(scene, order, tints, k, best, least, room)
        order[k], used[best] = best, True
        tints[k] = room.colour
        k += 1
        for t in range(T):
            stale[t] |= overlap(scene.boxes[t], scene.boxes[best])
    return k


@compiled
def unhidden(scene: Any, order: Array, tints: Array, k: int, t: int, least: float, room: Any) -> Any:
    """How much more a candidate behind all others explains than it leaves where it is seen; 0 if it does not pay."""
    between(scene, order, tints, k, scene.boxes[t], k, k, room)
    visible, lower = fit(scene, t, room.front, room.through, room.under[0], room.colour)
    left = reduction(scene, t, room.front, room.through, room.under[0], room.colour)[1]
    return lower - left if lower >= least and visible >= scene.area[t] else 0.0


@compiled
def take(order: Array, tints: Array, used: Array, k: int, step: int, at: int, by: int) -> int:
    """Change the order in place; how many objects there are then."""
    C = tints.shape[1]
    if step == REMOVE:
        used[order[at]] = False
        for n in range(at, k - 1):
            order[n] = order[n + 1]
            tints[n] = tints[n + 1]
        return k - 1
    if step == REPLACE:
        used[order[at]], used[by] = False, True
        order[at] = by
        return k
    if step == ADD:
        for n in range(k, at, -1):
            order[n] = order[n - 1]
            tints[n] = tints[n - 1]
        order[at], used[by] = by, True
        tints[at] = 0
        return k + 1
    one, colour = order[at], np.zeros(C)
    colour[:] = tints[at]
    for n in range(at, by):
        order[n] = order[n + 1]
        tints[n] = tints[n + 1]
    order[by] = one
    tints[by] = colour
    return k


@compiled
def spread(boxes: Array, order: Array, k: int, touched: Array, stale: Array) -> None:
    """Mark as stale what is beside anything touched, and beside objects beside it: their colours change."""
    T = len(stale)
    for t in range(T):
        if touched[t]:
            for s in range(k):
                touched[order[s]] |= overlap(boxes[order[s]], boxes[t])
    for t in range(T):
        if touched[t]:
            for n in range(T):
                stale[n] |= overlap(boxes[n], boxes[t])


@compiled
def place_of(order: Array, k: int, t: int) -> int:
    """Where a candidate is in the order; the end for none."""
    for n in range(k):
        if order[n] == t:
            return n
    return k


@compiled
def next_touching(scene: Any, order: Array, k: int, s: int) -> int:
    """The first object behind another one that touches it; k if there is none."""
    for n in range(s + 1, k):
        if overlap(scene.boxes[order[s]], scene.boxes[order[n]]):
            return n
    return k


@compiled
def overlap(one: Array, other: Array) -> Any:
    """Whether two boxes share a pixel."""
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


@compiled
def cover(scene: Any, box: Array, t: int, tint: Array, front: Array, through: Array) -> None:
    """One more object in front of what is to come, in a box."""
    mine, p, row, column, C = scene.boxes[t], scene.prototype[t], scene.place[t, 0], scene.place[t, 1], len(tint)
    masks, paint, top, start = scene.masks, scene.paint, box[0], box[2]
    left, right = max(start, mine[2]), min(box[3], mine[3])
    for y in range(max(top, mine[0]), min(box[1], mine[1])):
        for c in range(C):
            colour = tint[c]
            for x in range(left, right):
                share_of = through[y - top, x - start] * masks[p, y - row, x - column]
                front[c, y - top, x - start] += colour * share_of * paint[p, y - row, x - column]
        for x in range(left, right):
            through[y - top, x - start] *= 1 - masks[p, y - row, x - column]


@compiled
def lay(scene: Any, box: Array, t: int, tint: Array, under: Array) -> None:
    """One more object over what is behind it, in a box."""
    mine, p, row, column, C = scene.boxes[t], scene.prototype[t], scene.place[t, 0], scene.place[t, 1], len(tint)
    masks, paint, top, start = scene.masks, scene.paint, box[0], box[2]
    left, right = max(start, mine[2]), min(box[3], mine[3])
    for y in range(max(top, mine[0]), min(box[1], mine[1])):
        for c in range(C):
            colour = tint[c]
            for x in range(left, right):
                more = colour * paint[p, y - row, x - column] - under[c, y - top, x - start]
                under[c, y - top, x - start] += masks[p, y - row, x - column] * more


@compiled
def bare(scene: Any, box: Array, front: Array, through: Array, under: Array) -> None:
    """A box with nothing in it yet."""
    seen, ground, top, start = scene.seen, scene.ground, box[0], box[2]
    for y in range(top, box[1]):
        for x in range(start, box[3]):
            through[y - top, x - start] = seen[y, x]
        for c in range(len(front)):
            for x in range(start, box[3]):
                front[c, y - top, x - start] = 0
                under[c, y - top, x - start] = ground[c, y, x]


@compiled
def between(scene: Any, order: Array, tints: Array, k: int, box: Array, before: int, after: int, room: Any) -> None:
    """What is in front of one place of the order, and what is behind another one, in a box."""
    bare(scene, box, room.front, room.through, room.under[0])
    for n in range(before):
        if overlap(box, scene.boxes[order[n]]):
            cover(scene, box, order[n], tints[n], room.front, room.through)
    for n in range(k - 1, after - 1, -1):
        if overlap(box, scene.boxes[order[n]]):
            lay(scene, box, order[n], tints[n], room.under[0])


@compiled
def fit(scene: Any, t: int, front: Array, through: Array, under: Array, colour: Array) -> tuple[Any, Any]:
    """The colour that fits a candidate best between what is in front and behind.

    Returned are how much of it is visible, and by how much it lowers the squared error in that colour: over what is
    painted without it, and as what it does not let through is no longer to be seen.
    """
    box, p, row, column, C = scene.boxes[t], scene.prototype[t], scene.place[t, 0], scene.place[t, 1], len(colour)
    masks, paint, picture, top, start = scene.masks, scene.paint, scene.picture, box[0], box[2]
    norm, visible, lower = 0.0, 0.0, 0.0
    colour[:] = 0
    for y in range(top, box[1]):
        for x in range(start, box[3]):
            share_of = through[y - top, x - start] * masks[p, y - row, x - column]
            tint = share_of * paint[p, y - row, x - column]
            visible += share_of
            norm += tint * tint
        for c in range(C):
            fits = 0.0
            for x in range(start, box[3]):
                clear, below = through[y - top, x - start], under[c, y - top, x - start]
                less = clear * masks[p, y - row, x - column] * below
                first = picture[c, y, x] - front[c, y - top, x - start] - clear * below
                rest = first + less
                fits += clear * masks[p, y - row, x - column] * paint[p, y - row, x - column] * rest
                lower -= less * (first + rest)
            colour[c] += fits
    for c in range(C):
        best = min(max(colour[c] / max(norm, TINY), scene.low), scene.high)
        lower += best * (2 * colour[c] - best * norm)
        colour[c] = best
    return visible, lower


@compiled
def reduction(scene: Any, t: int, front: Array, through: Array, under: Array, colour: Array) -> Any:
    """By how much a candidate in a colour lowers the squared error, and what it leaves where it is seen."""
    box, p, row, column, C = scene.boxes[t], scene.prototype[t], scene.place[t, 0], scene.place[t, 1], len(colour)
    masks, paint, picture, top, start = scene.masks, scene.paint, scene.picture, box[0], box[2]
    lower, left = 0.0, 0.0
    for y in range(top, box[1]):
        for c in range(C):
            tint = colour[c]
            for x in range(start, box[3]):
                clear, below = through[y - top, x - start], under[c, y - top, x - start]
                mask = masks[p, y - row, x - column]
                first = picture[c, y, x] - front[c, y - top, x - start] - clear * below
                then = first - clear * mask * (tint * paint[p, y - row, x - column] - below)
                lower += first * first - then * then
                left += mask * then * then if clear > 0 else 0.0
    return lower, left


@compiled
def recolour(scene: Any, order: Array, tints: Array, k: int, room: Any) -> None:
    """The colours of all objects anew, front to back."""
    for s in range(k):
        between(scene, order, tints, k, scene.boxes[order[s]], s, s + 1, room)
        fit(scene, order[s], room.front, room.through, room.under[0], room.colour)
        tints[s] = room.colour


@compiled
def worth(scene: Any, order: Array, tints: Array, k: int, s: int, room: Any) -> Any:
    """By how much an object lowers the error."""
    between(scene, order, tints, k, scene.boxes[order[s]], s, s + 1, room)
    return reduction(scene, order[s], room.front, room.through, room.under[0], tints[s])[0]


@compiled
def moved(scene: Any, order: Array, tints: Array, k: int, s: int, behind: int, room: Any) -> Any:
    """By how much an object would lower the error behind another one."""
    one = order[s]
    box = scene.boxes[one]
    bare(scene, box, room.front, room.through, room.under[0])
    for n in range(behind + 1):
        if n != s and overlap(box, scene.boxes[order[n]]):
            cover(scene, box, order[n], tints[n], room.front, room.through)
    for n in range(k - 1, behind, -1):
        if overlap(box, scene.boxes[order[n]]):
            lay(scene, box, order[n], tints[n], room.under[0])
    visible, lower = fit(scene, one, room.front, room.through, room.under[0], room.colour)
    return lower if visible >= scene.area[one] else -np.inf


@compiled
def gains(scene: Any, order: Array, tints: Array, costs: Array, k: int, t: int, room: Any) -> Any:
    """The most that a candidate gains if it is added, and before which one; and in the place of which one."""
    box, under, colour = scene.boxes[t], room.under, room.colour
    near = np.zeros(k, np.int64)
    m = 0
    for n in range(k):
        if overlap(box, scene.boxes[order[n]]):
            near[m] = n
            m += 1
    bare(scene, box, room.front, room.through, under[m])
    for n in range(m - 1, -1, -1):
        under[n, :, : box[1] - box[0], : box[3] - box[2]] = under[n + 1, :, : box[1] - box[0], : box[3] - box[2]]
        lay(scene, box, order[near[n]], tints[near[n]], under[n])
    added, before, instead, other = -np.inf, NONE, -np.inf, NONE
    for n in range(m + 1):
        visible, lower = fit(scene, t, room.front, room.through, under[n], colour)
        if visible >= scene.area[t] and lower > added:
            added, before = lower, order[near[n]] if n < m else NONE
        if n == m:
            break
        visible, lower = fit(scene, t, room.front, room.through, under[n + 1], colour)
        if visible >= scene.area[t] and lower - costs[near[n]] > instead:
            instead, other = lower - costs[near[n]], order[near[n]]
        cover(scene, box, order[near[n]], tints[near[n]], room.front, room.through)
    return added, before, instead, other
