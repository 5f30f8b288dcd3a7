"""Placed objects fitted together; `poses.polishing` says what is done and why.

Here objects take their steps one after the other, each between those in front of it and those behind it as they are by
then, so an image is explained better after every step. How a sprite changes is the slope of the interpolation itself.
Whoever hardly moves any more waits until something beside it has moved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.arranging import overlap
from pcdnet.model.compiled.fitting import (
    ANGLE,
    DOWN,
    MIRRORED,
    RIGHT,
    SCALE,
    TINY,
    between_pixels,
    hardly,
    solve,
    within,
)
from pcdnet.model.compiled.problem import Array

STILL = 0.01
"""Pixels by which a step moves no part of an object that hardly moves any more."""
SLACK = 2
"""Pixels beyond the reach of an object in which a step is judged."""


class Rules(NamedTuple):
    """How poses are fitted."""

    free: tuple[int, ...]
    """Which of their numbers may change."""
    numbers: tuple[float, ...]
    """How far: degrees, logarithm of the size, pixels; the smallest and the largest size, and angle; the smallest and
    the largest colour."""
    damping: tuple[float, float, float]
    """At the start, and the factors after a step that helped and one that did not."""
    radius: float
    """How far a prototype reaches from the middle of its frame."""
    steps: int
    coloured: bool
    """Whether colours follow by least squares; otherwise they stay."""


class Things(NamedTuple):
    """The objects of one image, front to back, as they are now."""

    prototype: Array
    middle: Array
    """Row and column of the middles of their frames (N 2), before they are moved by less than a pixel."""
    pose: Array
    colour: Array
    box: Array
    """Top, bottom, left and right of where each can be seen (N 4)."""
    sprite: Array
    """Paint and mask of each there (N 2 y x)."""


def polish(
    images: tuple[Array, Array, Array],
    bank: Array,
    things: tuple[Array, Array, Array, Array, Array],
    frame: tuple[int, int],
    rules: Rules,
) -> tuple[Array, Array]:
    """Poses and colours.

    Images are (B C H W), with what is behind their objects and what is seen of them (H W). The bank is prototypes with
    their masks (P 2 h w); things are prototypes (B N), negative where there is none, rows and columns of frames, poses
    (B N 5) and colours (B N C). Poses may have moved by more than a pixel.
    """
    prototype, row, column, pose, colour = things
    poses, colours = pose.copy(), colour.copy()
    free = np.array(rules.free, np.int64)
    # As `fitting.within` has them: it reads the first seven.
    numbers = np.array([*rules.numbers, *rules.damping, rules.radius], np.float64)
    largest = max(rules.numbers[4], 1.0)
    side = 2 * (math.ceil(min(rules.radius * largest, 1e6)) + SLACK + 2) + 1
    size = min(side, frame[0] + 2 * SLACK + 4), min(side, frame[1] + 2 * SLACK + 4)

    def work(first: int, last: int) -> None:
        ends, places = (first, last), (prototype, row, column)
        _polish(ends, images, bank, places, frame, size, poses, colours, free, numbers, rules.steps, rules.coloured)

    share(work, len(poses))
    return poses, colours


@compiled
def _polish(
    ends: tuple[int, int],
    images: tuple[Array, Array, Array],
    bank: Array,
    places: tuple[Array, Array, Array],
    frame: tuple[int, int],
    size: tuple[int, int],
    poses: Array,
    colours: Array,
    free: Array,
    numbers: Array,
    steps: int,
    coloured: bool,
) -> None:
    """Images from the first end to the second."""
    (pictures, grounds, seen), (prototypes, rows, columns) = images, places
    (C, H, W), N, F = pictures.shape[1:], poses.shape[1], len(free)
    kind = pictures.dtype
    front, through = np.zeros((C, *size), kind), np.zeros(size, kind)
    under, tried = np.zeros((C, *size), kind), np.zeros((2, *size), kind)
    normal, slope, step, new, tint = np.zeros((F, F)), np.zeros(F), np.zeros(F), np.zeros(5), np.zeros(C)
    start, damping, still = np.zeros((N, 5)), np.zeros(N), np.zeros(N, np.bool_)
    for b in range(ends[0], ends[1]):
        picture, ground = pictures[b] * seen, grounds[b if len(grounds) > 1 else 0]
        middle = np.zeros((N, 2))
        for n in range(N):
            middle[n, 0] = rows[b, n] + (frame[0] - 1) / 2
            middle[n, 1] = columns[b, n] + (frame[1] - 1) / 2
        things = Things(
            prototypes[b], middle, poses[b], colours[b], np.zeros((N, 4), np.int64), np.zeros((N, 2, *size), kind)
        )
        for n in range(N):
            start[n] = things.pose[n]
            damping[n], still[n] = numbers[9], False
            if things.prototype[n] >= 0:
                reach_of(things, n, numbers, size, (H, W))
                draw(bank, things, n, things.pose[n], things.sprite[n])
        for n in range(N):
            if things.prototype[n] >= 0 and coloured:
                around(things, ground, seen, n, front, through, under)
                fit_colour(picture, things.box[n], things.sprite[n], front, through, under, numbers, things.colour[n])
        for _ in range(steps):
            moving = False
            for n in range(N):
                if things.prototype[n] < 0 or still[n]:
                    continue
                around(things, ground, seen, n, front, through, under)
                cost = equations(bank, picture, things, n, front, through, under, free, normal, slope, coloured)
                solve(normal, slope, damping[n], step)
                new[:] = things.pose[n]
                for k in range(F):
                    if free[k] == SCALE:
                        new[SCALE] *= math.exp(step[k])
                    else:
                        new[free[k]] += min(max(step[k], -numbers[2]), numbers[2]) if free[k] != ANGLE else step[k]
                start[n, DOWN], start[n, RIGHT] = things.pose[n, DOWN], things.pose[n, RIGHT]  # they follow
                within(new, start[n], free, numbers)
                draw(bank, things, n, new, tried)
                tint[:] = things.colour[n]
                if coloured:
                    fit_colour(picture, things.box[n], tried, front, through, under, numbers, tint)
                if error_of(picture, things.box[n], tried, front, through, under, tint) < cost:
                    moving = True
                    still[n] = hardly(things.pose[n], new, numbers[12], STILL)
                    things.pose[n], things.colour[n] = new, tint
                    reach_of(things, n, numbers, size, (H, W))
                    draw(bank, things, n, new, things.sprite[n])
                    damping[n] *= numbers[10]
                    if not still[n]:
                        for m in range(N):
                            still[m] = still[m] and not overlap(things.box[n], things.box[m])
                else:
                    damping[n] *= numbers[11]
                    still[n] = hardly(things.pose[n], new, numbers[12], STILL)
            if not moving:
                break


@compiled
def reach_of(things: Any, n: int, numbers: Array, size: tuple[int, int], image: tuple[int, int]) -> None:
    """Where an object may be seen now and after a step."""
    pose, box = things.pose[n], things.box[n]
    for side in range(2):
        middle = things.middle[n, side] + pose[DOWN + side]
        reach = min(numbers[12] * pose[SCALE] + SLACK, (size[side] - 2) / 2)
        first, last = math.floor(middle - reach), math.ceil(middle + reach) + 1
        box[2 * side] = min(max(0, first), image[side])
        box[2 * side + 1] = min(max(box[2 * side], last), image[side], box[2 * side] + size[side])


@compiled
def draw(bank: Array, things: Any, n: int, pose: Array, sprite: Array) -> None:
    """An object in a pose, in its box."""
    picture, box = bank[things.prototype[n]], things.box[n]
    (h, w), angle, scale = picture.shape[1:], pose[ANGLE] * math.pi / 180, max(pose[SCALE], 1e-3)
    cosine, sine, side = math.cos(angle) / scale, math.sin(angle) / scale, 1 - 2 * pose[MIRRORED]
    for i in range(box[1] - box[0]):
        down = box[0] + i - things.middle[n, 0] - pose[DOWN]
        for j in range(box[3] - box[2]):
            right = box[2] + j - things.middle[n, 1] - pose[RIGHT]
            y = sine * right + cosine * down + (h - 1) / 2
            x = side * (cosine * right - sine * down) + (w - 1) / 2
            sprite[0, i, j], sprite[1, i, j] = between_pixels(picture, y, x)


@compiled
def around(things: Any, ground: Array, seen: Array, n: int, front: Array, through: Array, under: Array) -> None:
    """What is in front of an object and what is behind it, in its box."""
    box, C = things.box[n], len(ground)
    for y in range(box[0], box[1]):
        for x in range(box[2], box[3]):
            i, j = y - box[0], x - box[2]
            through[i, j] = seen[y, x]
            for c in range(C):
                front[c, i, j], under[c, i, j] = 0, ground[c, y, x]
    for m in range(n):
        mine = things.box[m]
        if things.prototype[m] < 0 or not overlap(box, mine):
            continue
        for y in range(max(box[0], mine[0]), min(box[1], mine[1])):
            for x in range(max(box[2], mine[2]), min(box[3], mine[3])):
                mask = things.sprite[m, 1, y - mine[0], x - mine[2]]
                if mask == 0:
                    continue
                i, j = y - box[0], x - box[2]
                texture = through[i, j] * mask * things.sprite[m, 0, y - mine[0], x - mine[2]]
                for c in range(C):
                    front[c, i, j] += things.colour[m, c] * texture
                through[i, j] *= 1 - mask
    for m in range(len(things.prototype) - 1, n, -1):
        mine = things.box[m]
        if things.prototype[m] < 0 or not overlap(box, mine):
            continue
        for y in range(max(box[0], mine[0]), min(box[1], mine[1])):
            for x in range(max(box[2], mine[2]), min(box[3], mine[3])):
                mask = things.sprite[m, 1, y - mine[0], x - mine[2]]
                if mask == 0:
                    continue
                i, j, texture = y - box[0], x - box[2], things.sprite[m, 0, y - mine[0], x - mine[2]]
                for c in range(C):
                    under[c, i, j] += mask * (things.colour[m, c] * texture - under[c, i, j])


@compiled
def fit_colour(
    picture: Array, box: Array, sprite: Array, front: Array, through: Array, under: Array, numbers: Array, colour: Array
) -> None:
    """The colour that fits an object best between what is in front of it and what is behind it."""
    C, norm = len(colour), 0.0
    made = np.zeros(C)
    for i in range(box[1] - box[0]):
        for j in range(box[3] - box[2]):
            mask, clear = sprite[1, i, j], through[i, j]
            tint = clear * mask * sprite[0, i, j]
            if tint == 0:
                continue
            norm += tint * tint
            for c in range(C):
                rest = picture[c, box[0] + i, box[2] + j] - front[c, i, j] - clear * (1 - mask) * under[c, i, j]
                made[c] += tint * rest
    for c in range(C):
        colour[c] = min(max(made[c] / max(norm, TINY), numbers[7]), numbers[8])


@compiled
def error_of(
    picture: Array, box: Array, sprite: Array, front: Array, through: Array, under: Array, colour: Array
) -> Any:
    """The squared error that is left in a box."""
    total = 0.0
    for i in range(box[1] - box[0]):
        for j in range(box[3] - box[2]):
            paint, mask, clear = sprite[0, i, j], sprite[1, i, j], through[i, j]
            for c in range(len(colour)):
                shown = under[c, i, j] + mask * (colour[c] * paint - under[c, i, j])
                total += (picture[c, box[0] + i, box[2] + j] - front[c, i, j] - clear * shown) ** 2
    return total


@compiled
def equations(
    bank: Array,
    picture: Array,
    things: Any,
    n: int,
    front: Array,
    through: Array,
    under: Array,
    free: Array,
    normal: Array,
    slope: Array,
    coloured: bool,
) -> Any:
    """The normal equations of a step, after what a change of colour explains is taken out; the error that is left."""
    proto, pose, box, sprite, colour = (
        bank[things.prototype[n]],
        things.pose[n],
        things.box[n],
        things.sprite[n],
        things.colour[n],
    )
    (h, w), C, F = proto.shape[1:], len(colour), len(free)
    angle, scale = pose[ANGLE] * math.pi / 180, max(pose[SCALE], 1e-3)
    cosine, sine, side = math.cos(angle) / scale, math.sin(angle) / scale, 1 - 2 * pose[MIRRORED]
    normal[:], slope[:] = 0, 0
    changes, tinted, rests = np.zeros((2, F)), np.zeros((F, C)), np.zeros(C)
    made = np.zeros(F)
    norm, total = 0.0, 0.0
    for i in range(box[1] - box[0]):
        down = box[0] + i - things.middle[n, 0] - pose[DOWN]
        for j in range(box[3] - box[2]):
            paint, mask, clear = sprite[0, i, j], sprite[1, i, j], through[i, j]
            right = box[2] + j - things.middle[n, 1] - pose[RIGHT]
            across, along = cosine * right - sine * down, sine * right + cosine * down
            y, x = along + (h - 1) / 2, side * across + (w - 1) / 2
            inner = clear > 0 and y > -1 and y < h and x > -1 and x < w
            if inner:
                top, before = math.floor(y), math.floor(x)
                dy, dx = y - top, x - before
                for layer in range(2):
                    a = proto[layer, top, before] if top >= 0 and before >= 0 else 0.0
                    b = proto[layer, top, before + 1] if top >= 0 and before + 1 < w else 0.0
                    c = proto[layer, top + 1, before] if top + 1 < h and before >= 0 else 0.0
                    d = proto[layer, top + 1, before + 1] if top + 1 < h and before + 1 < w else 0.0
                    by_y = (1 - dx) * (c - a) + dx * (d - b)
                    by_x = (1 - dy) * (b - a) + dy * (d - c)
                    for k in range(F):
                        if free[k] == ANGLE:
                            changes[layer, k] = (by_y * across - by_x * side * along) * (math.pi / 180)
                        elif free[k] == SCALE:
                            changes[layer, k] = -by_y * along - by_x * side * across
                        elif free[k] == DOWN:
                            changes[layer, k] = -by_y * cosine + by_x * side * sine
                        else:
                            changes[layer, k] = -by_y * sine - by_x * side * cosine
            tint = clear * mask * paint
            norm += tint * tint
            for c in range(C):
                texture, behind = colour[c] * paint, under[c, i, j]
                shown = behind + mask * (texture - behind)
                rest = picture[c, box[0] + i, box[2] + j] - front[c, i, j] - clear * shown
                total += rest * rest
                rests[c] += tint * rest
                if not inner:
                    continue
                for k in range(F):
                    made[k] = clear * (changes[1, k] * (texture - behind) + mask * colour[c] * changes[0, k])
                for k in range(F):
                    slope[k] += made[k] * rest
                    tinted[k, c] += made[k] * tint
                    for m in range(k + 1):
                        normal[k, m] += made[k] * made[m]
    if coloured:
        for k in range(F):
            for c in range(C):
                slope[k] -= tinted[k, c] * rests[c] / max(norm, TINY)
                for m in range(k + 1):
                    normal[k, m] -= tinted[k, c] * tinted[m, c] / max(norm, TINY)
    for k in range(F):
        for m in range(k):
            normal[m, k] = normal[k, m]
    return total
