"""What the pixels that two objects share say about which of them is in front, as `overlap` describes it.

Everything is read within the boxes around masks, where these lie in the image: elsewhere masks are zero, or nothing
counts. Windows Y (C h w) and Q (h w) begin at the top left of such a part of the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled
from pcdnet.model.compiled.problem import Array

TINY, SAME, OPAQUE = 1e-12, 1e-6, 0.5
"""As in `evidence`, `overlap` and `composition`."""

Sides = tuple[int, int, int, int]
"""Top, left, bottom and right of a part of the image."""
Scene = tuple[Array, Array, Array]
"""An image and what is behind all objects (C H W), and what of the image counts (H W)."""
Bank = tuple[Array, Array, Array]
"""Prototypes and masks (P h w), and top, left, height and width of the boxes around masks (P 4)."""
Objects = tuple[Array, Array]
"""Prototype, row and column (N 3), front to back, and colours (N C); a negative prototype stands for none."""
Room = tuple[Array, Array, Array, Array, Array]
"""To work in: windows Y (C h w), Q (h w) and what is behind (C h w); values (C h*w) and weights (2 h*w) of pixels."""


@compiled
def sides(bank: Bank, thing: Array) -> Sides:
    """The box around an object's mask, in the image or not."""
    top, left, height, width = bank[2][thing[0]]
    return thing[1] + top, thing[2] + left, thing[1] + top + height, thing[2] + left + width


@compiled
def common(one: Sides, two: Sides) -> Sides:
    """What two parts have in common; it ends where it begins if that is nothing."""
    top, left = max(one[0], two[0]), max(one[1], two[1])
    return top, left, max(top, min(one[2], two[2])), max(left, min(one[3], two[3]))


@compiled
def inner(scene: Scene, bank: Bank, thing: Array) -> Sides:
    """The box around an object's mask, as far as it lies in the image."""
    H, W = scene[2].shape
    return common(sides(bank, thing), (0, 0, H, W))


@compiled
def touching(bank: Bank, things: Array, near: Array) -> bool:
    """Whether the boxes around two objects' masks share a pixel, for all pairs (N N) and for any."""
    N, found = len(things), False
    near[:] = False
    for one in range(N):
        if things[one, 0] < 0:
            continue
        box = sides(bank, things[one])
        for two in range(one + 1, N):
            if things[two, 0] >= 0:
                top, left, bottom, right = common(box, sides(bank, things[two]))
                near[one, two] = near[two, one] = top < bottom and left < right
                found |= near[one, two]
    return found


@compiled
def overlaps(scene: Scene, bank: Bank, one: Array, two: Array) -> bool:
    """Whether two masks, above a half, share a pixel of the image."""
    top, left, bottom, right = common(inner(scene, bank, one), sides(bank, two))
    inside, M, m = scene[2], bank[1][one[0]], bank[1][two[0]]
    for y in range(top, bottom):
        for x in range(left, right):
            if M[y - one[1], x - one[2]] > OPAQUE and m[y - two[1], x - two[2]] > OPAQUE and inside[y, x] > 0:
                return True
    return False


@compiled
def order_evidence(
    scene: Scene, bank: Bank, objects: Objects, near: Array, pair: tuple[int, int], most: float, refit: bool, room: Room
) -> Any:
    """By how much the pixels that two objects share speak for their order; with `refit` colours are found anew."""
    (front, back), C = pair, objects[1].shape[1]
    tints = np.empty((2, C), objects[1].dtype)
    tints[0], tints[1] = objects[1][front], objects[1][back]
    if refit:
        _unhidden(scene, bank, objects, near, (back, front), back, room)
        _colour(scene, bank, objects[0], (back, front), most, room, tints[1])
    _unhidden(scene, bank, objects, near, (front, back), back, room)
    if refit:
        _colour(scene, bank, objects[0], (front, back), most, room, tints[0])
    part = common(inner(scene, bank, objects[0][front]), sides(bank, objects[0][back]))
    _behind(scene, bank, objects, near, pair, part, room[2])
    count, values, weights = _rises(scene, bank, objects[0], pair, part, tints, room), room[3][0], room[4][0]
    if count == 0:
        return 0.0
    # The mean of the lower and the upper median: the two orders of a pair must say the same.
    weights[:count] = 1
    lower = middle(values, weights, count)
    values[:count] = -values[:count]
    return count * (lower - middle(values, weights, count)) / 2


@compiled
def uncover(scene: Scene, part: Sides, origin: tuple[int, int], Y: Array, Q: Array) -> None:
    """The planes Y and Q with nothing in front, in a part of the image."""
    (image, _, inside), (top, left, bottom, right) = scene, part
    for y in range(top, bottom):
        to, begin, end = y - origin[0], left - origin[1], right - origin[1]
        Q[to, begin:end] = inside[y, left:right]
        for c in range(len(image)):
            Y[c, to, begin:end] = image[c, y, left:right]


@compiled
def occlude(bank: Bank, thing: Array, tint: Array, part: Sides, origin: tuple[int, int], Y: Array, Q: Array) -> None:
    """Update planes behind one more object, in a part of its box; see `evidence.occluded`."""
    p, row, column = thing
    top, left, bottom, right = part
    width = right - left
    for y in range(top, bottom):
        to, begin, end = y - origin[0], left - origin[1], right - origin[1]
        T, M = bank[0][p, y - row, left - column : right - column], bank[1][p, y - row, left - column : right - column]
        rest = Q[to, begin:end]
        for c in range(len(tint)):
            line, factor = Y[c, to, begin:end], tint[c]
            for x in range(width):
                line[x] = (1 - M[x]) * (line[x] - rest[x] * M[x] * T[x] * factor)
        for x in range(width):
            rest[x] *= (1 - M[x]) * (1 - M[x])


@compiled
def _unhidden(
    scene: Scene, bank: Bank, objects: Objects, near: Array, pair: tuple[int, int], back: int, room: Room
) -> None:
    """Y and Q in the box of the first of a pair, behind third objects; those between the two count as in front."""
    (things, colour), (slot, other) = objects, pair
    box = inner(scene, bank, things[slot])
    origin = box[0], box[1]
    uncover(scene, box, origin, room[0], room[1])
    for n in range(back):
        if near[slot, n] and n != other:
            part = common(box, sides(bank, things[n]))
            occlude(bank, things[n], colour[n], part, origin, room[0], room[1])


@compiled
def _colour(
    scene: Scene, bank: Bank, things: Array, pair: tuple[int, int], most: float, room: Room, found: Array
) -> None:
    """The colour of the first of a pair by the pixels that it alone covers; it stays if there are none."""
    (Y, Q, _, values, weights), ground = room, scene[1]
    (p, row, column), (other, down, right) = things[pair[0]], things[pair[1]]
    (T, M, hides), (h, w), count = (bank[0][p], bank[1][p], bank[1][other]), bank[1].shape[1:], 0
    top, left, bottom, end = inner(scene, bank, things[pair[0]])
    for y in range(top, bottom):
        for x in range(left, end):
            mask = M[y - row, x - column]
            MT, q = mask * T[y - row, x - column], Q[y - top, x - left]
            if not (mask > OPAQUE and q > OPAQUE and MT > 0):
                continue
            if 0 <= y - down < h and 0 <= x - right < w and hides[y - down, x - right] > OPAQUE:
                continue
            weights[0, count] = MT
            for c in range(len(found)):
                rest = Y[c, y - top, x - left] / q - (1 - mask) * ground[c, y, x]
                values[c, count] = rest / max(MT, TINY)
            count += 1
    for c in range(len(found) if count else 0):
        weights[1, :count] = weights[0, :count]
        found[c] = min(max(middle(values[c], weights[1], count), 0.0), most)


@compiled
def _behind(
    scene: Scene, bank: Bank, objects: Objects, near: Array, pair: tuple[int, int], part: Sides, picture: Array
) -> None:
    """The background and the objects that stand on it behind a pair, in a part of the image."""
    (things, colour), (front, back), (top, left, bottom, right) = objects, pair, part
    for c in range(len(picture)):
        for y in range(top, bottom):
            picture[c, y - top, : right - left] = scene[1][c, y, left:right]
    for n in range(len(things) - 1, back, -1):
        if not near[front, n]:
            continue
        p, row, column = things[n]
        first, begin, last, end = common(part, sides(bank, things[n]))
        for y in range(first, last):
            T, M = (
                bank[0][p, y - row, begin - column : end - column],
                bank[1][p, y - row, begin - column : end - column],
            )
            for c in range(len(picture)):
                under, factor = picture[c, y - top, begin - left : end - left], colour[n, c]
                for x in range(end - begin):
                    under[x] += M[x] * (T[x] * factor - under[x])


@compiled
def _rises(
    scene: Scene, bank: Bank, things: Array, pair: tuple[int, int], part: Sides, tints: Array, room: Room
) -> int:
    """How much the error rises if the back one comes first, in so many pixels that both cover and that tell."""
    (Y, Q, picture, values, _), count = room, 0
    one, two = things[pair[0]], things[pair[1]]
    top, left, _, _ = inner(scene, bank, one)
    for y in range(part[0], part[2]):
        for x in range(part[1], part[3]):
            M, m = bank[1][one[0], y - one[1], x - one[2]], bank[1][two[0], y - two[1], x - two[2]]
            if not (M > OPAQUE and m > OPAQUE):
                continue
            T, t = bank[0][one[0], y - one[1], x - one[2]], bank[0][two[0], y - two[1], x - two[2]]
            rise = Q[0, 0] * 0
            for c in range(len(Y)):
                behind, own, other = picture[c, y - part[0], x - part[1]], T * tints[0, c], t * tints[1, c]
                now, then = behind + m * (other - behind), behind + M * (own - behind)
                now, then = now + M * (own - now), then + m * (other - then)
                rise += (then - now) * (Q[y - top, x - left] * (then + now) - 2 * Y[c, y - top, x - left])
            if abs(rise) > SAME:
                values[0, count] = rise
                count += 1
    return count


@compiled
def middle(values: Array, weights: Array, count: int) -> Any:
    """The first of so many values, sorted, up to which they have half of the weight; both change their order."""
    half, below, first, last = 0.0, 0.0, 0, count - 1
    for n in range(count):
        half += weights[n]
    half /= 2
    while first < last:
        pivot, i, j = values[(first + last) // 2], first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                weights[i], weights[j] = weights[j], weights[i]
                i, j = i + 1, j - 1
        lower = below
        for n in range(first, j + 1):
            lower += weights[n]
        if lower >= half:
            last = j
            continue
        below = lower
        for n in range(j + 1, i):
            below += weights[n]
        if below >= half:
            return pivot
        first = i
    return values[first]
