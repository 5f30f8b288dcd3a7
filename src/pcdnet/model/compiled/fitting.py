"""Poses of candidates fitted one by one; the steps are those of `poses.fitting`, which says what is done and why."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array

TINY = 1e-12
ANGLE, SCALE, MIRRORED, DOWN, RIGHT = 0, 1, 2, 3, 4
"""As in `poses.pose`."""


class Rules(NamedTuple):
    """How poses are fitted."""

    free: tuple[int, ...]
    """Which of their numbers may change."""
    reach: tuple[float, float, float]
    """How far: degrees, logarithm of the size, pixels."""
    ends: tuple[float, float, float, float]
    """The smallest and the largest size, and angle."""
    colours: tuple[float, float]
    """The smallest and the largest colour."""
    outlier: float
    least_contrast: float
    damping: tuple[float, float, float]
    """At the start, and the factors after a step that helped and one that did not."""
    blur: int
    steps: int
    robust: bool
    radius: float
    """How far a prototype reaches from the middle of its frame; infinite if it is not known."""
    still: float
    """Pixels by which a step moves no part of what hardly moves any more: it is not moved again."""


def fit(pictures: Array, poses: Array, seen: tuple[Array, Array, Array], rules: Rules) -> tuple[Array, Array]:
    """The poses fitted, and what each explains; the other arrays are as `poses.fitting.fits` has them."""
    fitted, (shown, behind, inside), gains = poses.copy(), seen, np.zeros(len(poses), poses.dtype)
    free = np.array(rules.free, np.int64)
    numbers = np.array(
        [
            *rules.reach,
            *rules.ends,
            *rules.colours,
            rules.outlier,
            rules.least_contrast,
            *rules.damping,
            rules.radius,
            rules.still,
        ],
        np.float64,
    )

    def work(start: int, stop: int) -> None:
        ends, here = (start, stop), (shown, behind, inside)
        _fit(ends, pictures, fitted, gains, *here, free, numbers, rules.blur, rules.steps, rules.robust)

    share(work, len(poses))
    return fitted, gains


@compiled
def _fit(
    ends: tuple[int, int],
    pictures: Array,
    poses: Array,
    gains: Array,
    shown: Array,
    behind: Array,
    inside: Array,
    free: Array,
    numbers: Array,
    blur: int,
    steps: int,
    robust: bool,
) -> None:
    """Candidates from the first end to the second."""
    C, Y, X = shown.shape[1:]
    F, kind = len(free), shown.dtype
    sprites, weights = np.zeros((2, 2, Y, X), kind), np.zeros((2, Y, X), kind)
    bare, blocks = np.zeros((2, Y, X), kind), np.zeros((F + 2, C, Y // blur + 3, X // blur + 3))
    colour, new_colour = np.zeros(C, np.float64), np.zeros(C, np.float64)
    normal, slope, step = np.zeros((F, F)), np.zeros(F), np.zeros(F)
    start, pose, new = np.zeros(5), np.zeros(5), np.zeros(5)
    sharp = (steps + 1) // 2 if robust else 0
    for n in range(ends[0], ends[1]):
        start[:] = poses[n]
        pose[:] = poses[n]
        # What a candidate cannot reach does not change.
        largest = max(start[SCALE], min(start[SCALE] * math.exp(numbers[1]), numbers[4]))
        reach = min(numbers[14] * largest + numbers[2] + 2, 1e6)
        top, left = max(0, int((Y - 1) / 2 - reach)), max(0, int((X - 1) / 2 - reach))
        top, left = top - top % blur, left - left % blur  # so blocks are the same, however much is left out
        bottom, right = Y - top, X - left
        sprite, tried = sprites[0, :, top:bottom, left:right], sprites[1, :, top:bottom, left:right]
        weight, new_weight = weights[0, top:bottom, left:right], weights[1, top:bottom, left:right]
        here = (
            pictures[n],
            shown[n, :, top:bottom, left:right],
            behind[n, :, top:bottom, left:right],
            inside[n, top:bottom, left:right],
            bare[:, top:bottom, left:right],
        )
        resample(here[0], pose, numbers[14], sprite)
        first_colour(here[1], here[2], here[3], sprite, pose, numbers, robust, colour, weight)
        scale = contrast(here[2], here[3], sprite, colour, numbers)
        first = uncover(here[1], here[2], here[3], scale, robust, here[4])
        cost = look(here[1], here[2], here[3], here[4], sprite, pose, numbers[14], colour, scale, robust, weight)
        damping, number = numbers[11], 0
        while number < steps:
            if number < sharp:
                blurred_equations(
                    here[1], here[2], here[3], sprite, pose, numbers[14], colour, weight, free, blur, blocks
                )
                equations(blocks, (bottom - top, right - left), F, blur, normal, slope)
            else:
                sharp_equations(
                    here[1], here[2], here[3], sprite, pose, numbers[14], colour, weight, free, normal, slope
                )
            solve(normal, slope, damping, step)
            new[:] = pose
            for k in range(F):
                if free[k] == SCALE:
                    new[SCALE] *= math.exp(step[k])
                else:
                    new[free[k]] += step[k]
            within(new, start, free, numbers)
            still = hardly(pose, new, numbers[14], numbers[15])
            resample(here[0], new, numbers[14], tried)
            weighted_colour(here[1], here[2], tried, new, numbers, weight, new_colour)
            new_cost = look(
                here[1], here[2], here[3], here[4], tried, new, numbers[14], new_colour, scale, robust, new_weight
            )
            if new_cost < cost:
                pose[:], colour[:], cost = new, new_colour, new_cost
                sprite, tried, weight, new_weight = tried, sprite, new_weight, weight
                damping *= numbers[12]
            else:
                damping *= numbers[13]
            number += 1
            if still:
                number = sharp if number <= sharp else steps
        poses[n], gains[n] = pose, first - cost


@compiled
def hardly(pose: Array, new: Array, radius: float, least: float) -> Any:
    """Whether no part of an object moves by as much, in pixels."""
    turned = abs(new[ANGLE] - pose[ANGLE]) * math.pi / 180 * radius * pose[SCALE]
    grown = abs(new[SCALE] - pose[SCALE]) * radius
    return max(turned, grown, abs(new[DOWN] - pose[DOWN]), abs(new[RIGHT] - pose[RIGHT])) < least


@compiled
def span(pose: Array, radius: float, more: float, i: int, Y: int, X: int) -> tuple[int, int]:
    """The columns of a row in which something may be seen of an object, or so many pixels beside it."""
    reach = (radius + 1) * pose[SCALE] + more
    down, middle = i - (Y - 1) / 2 - pose[DOWN], (X - 1) / 2 + pose[RIGHT]
    if abs(down) >= reach:
        return 0, 0
    half = min(math.sqrt(reach * reach - down * down), 1e6)
    first = max(0, math.ceil(middle - half))
    return first, max(first, min(X, math.floor(middle + half) + 1))


@compiled
def resample(picture: Array, pose: Array, radius: float, sprite: Array) -> None:
    """A picture of two layers in its pose."""
    (h, w), (Y, X) = picture.shape[1:], sprite.shape[1:]
    angle, scale = pose[ANGLE] * math.pi / 180, max(pose[SCALE], 1e-3)
    cosine, sine, side = math.cos(angle) / scale, math.sin(angle) / scale, 1 - 2 * pose[MIRRORED]
    for i in range(Y):
        down = i - (Y - 1) / 2 - pose[DOWN]
        first, last = span(pose, radius, 0, i, Y, X)
        sprite[:, i, :first], sprite[:, i, last:] = 0, 0
        for j in range(first, last):
            right = j - (X - 1) / 2 - pose[RIGHT]
            y = sine * right + cosine * down + (h - 1) / 2
            x = side * (cosine * right - sine * down) + (w - 1) / 2
            sprite[0, i, j], sprite[1, i, j] = between_pixels(picture, y, x)


@compiled
def between_pixels(picture: Array, y: float, x: float) -> tuple[float, float]:
    """Both layers of a picture at a place between its pixels, interpolated linearly; black around."""
    h, w = picture.shape[1:]
    if y <= -1 or y >= h or x <= -1 or x >= w:
        return 0.0, 0.0
    top, left = math.floor(y), math.floor(x)
    dy, dx = y - top, x - left
    upper, lower, before, after = top >= 0, top + 1 < h, left >= 0, left + 1 < w
    a, b, c, d = (1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx
    paint, mask = 0.0, 0.0
    if upper and before:
        paint += a * picture[0, top, left]
        mask += a * picture[1, top, left]
    if upper and after:
        paint += b * picture[0, top, left + 1]
        mask += b * picture[1, top, left + 1]
    if lower and before:
        paint += c * picture[0, top + 1, left]
        mask += c * picture[1, top + 1, left]
    if lower and after:
        paint += d * picture[0, top + 1, left + 1]
        mask += d * picture[1, top + 1, left + 1]
    return paint, mask


@compiled
def weighted_colour(
    shown: Array, behind: Array, sprite: Array, pose: Array, numbers: Array, weight: Array, colour: Array
) -> None:
    """The colour that fits what is seen, by the weights of pixels."""
    C, Y, X = shown.shape
    if numbers[7] == numbers[8]:
        colour[:] = numbers[7]
        return
    norm = 0.0
    colour[:] = 0
    for i in range(Y):
        first, last = span(pose, numbers[14], 0, i, Y, X)
        for j in range(first, last):
            tint = sprite[0, i, j] * sprite[1, i, j]
            if tint == 0 or weight[i, j] == 0:
                continue
            norm += weight[i, j] * tint * tint
            for c in range(C):
                colour[c] += weight[i, j] * tint * (shown[c, i, j] - (1 - sprite[1, i, j]) * behind[c, i, j])
    for c in range(C):
        colour[c] = min(max(colour[c] / max(norm, TINY), numbers[7]), numbers[8])


@compiled
def first_colour(
    shown: Array,
    behind: Array,
    inside: Array,
    sprite: Array,
    pose: Array,
    numbers: Array,
    robust: bool,
    colour: Array,
    weight: Array,
) -> None:
    """The colour at the start: robustly, by those pixels of the body that agree with most of them."""
    Y, X = inside.shape
    if not robust:
        weight[:] = inside
        weighted_colour(shown, behind, sprite, pose, numbers, weight, colour)
        return
    for i in range(Y):
        for j in range(X):
            weight[i, j] = inside[i, j] if sprite[1, i, j] > 0.5 else 0
    weighted_colour(shown, behind, sprite, pose, numbers, weight, colour)
    away, count = np.zeros(Y * X), 0
    for i in range(Y):
        for j in range(X):
            if sprite[1, i, j] > 0.5 and inside[i, j] > 0:
                away[count] = misfit(shown, behind, sprite, colour, i, j)
                count += 1
    if count == 0:
        colour[:] = min(max(0.0, numbers[7]), numbers[8])
        return
    typical = np.sort(away[:count])[(count - 1) // 2]
    for i in range(Y):
        for j in range(X):
            body = sprite[1, i, j] > 0.5 and inside[i, j] > 0
            weight[i, j] = 1 if body and misfit(shown, behind, sprite, colour, i, j) <= typical else 0
    weighted_colour(shown, behind, sprite, pose, numbers, weight, colour)


@compiled
def misfit(shown: Array, behind: Array, sprite: Array, colour: Array, i: int, j: int) -> Any:
    """The squared error of a pixel, over all channels."""
    total = 0.0
    for c in range(len(colour)):
        made = (1 - sprite[1, i, j]) * behind[c, i, j] + colour[c] * sprite[0, i, j] * sprite[1, i, j]
        total += (shown[c, i, j] - made) ** 2
    return total


@compiled
def contrast(behind: Array, inside: Array, sprite: Array, colour: Array, numbers: Array) -> Any:
    """The squared error from which on a pixel hardly counts."""
    C, Y, X = behind.shape
    total, area = 0.0, 0.0
    for i in range(Y):
        for j in range(X):
            share_of = sprite[1, i, j] * inside[i, j]
            if share_of == 0:
                continue
            area += share_of
            for c in range(C):
                total += share_of * (colour[c] * sprite[0, i, j] - behind[c, i, j]) ** 2
    return max(numbers[9] * total / max(area, 1e-6), numbers[10] * C)


@compiled
def uncover(shown: Array, behind: Array, inside: Array, scale: float, robust: bool, bare: Array) -> Any:
    """What is left of the error where nothing is painted, and how much each pixel counts there; the sum of the former."""
    (C, Y, X), total = shown.shape, 0.0
    for i in range(Y):
        for j in range(X):
            error = 0.0
            for c in range(C):
                error += (shown[c, i, j] - behind[c, i, j]) ** 2
            error *= inside[i, j] ** 2
            share_of = 1 / (1 + error / scale) if robust else 1.0
            bare[0, i, j], bare[1, i, j] = error * share_of, inside[i, j] * share_of * share_of
            total += error * share_of
    return total


@compiled
def look(
    shown: Array,
    behind: Array,
    inside: Array,
    bare: Array,
    sprite: Array,
    pose: Array,
    radius: float,
    colour: Array,
    scale: float,
    robust: bool,
    weight: Array,
) -> Any:
    """What is left of the error, and into `weight` how much each pixel counts."""
    Y, X = inside.shape
    cost = 0.0
    for i in range(Y):
        first, last = span(pose, radius, 0, i, Y, X)
        for j in range(first):
            cost += bare[0, i, j]
            weight[i, j] = bare[1, i, j]
        for j in range(last, X):
            cost += bare[0, i, j]
            weight[i, j] = bare[1, i, j]
        for j in range(first, last):
            if sprite[1, i, j] == 0 or inside[i, j] == 0:
                cost += bare[0, i, j]
                weight[i, j] = bare[1, i, j]
                continue
            error = misfit(shown, behind, sprite, colour, i, j) * inside[i, j] ** 2
            share_of = 1 / (1 + error / scale) if robust else 1.0
            cost += error * share_of
            weight[i, j] = inside[i, j] * share_of * share_of
    return cost


@compiled
def change(sprite: Array, i: int, j: int, down: float, right: float, free: Array, changes: Array) -> None:
    """How paint and mask of a pixel change with each free number."""
    Y, X = sprite.shape[1:]
    for layer in range(2):
        above = sprite[layer, i - 1, j] if i > 0 else 0.0
        below = sprite[layer, i + 1, j] if i < Y - 1 else 0.0
        before = sprite[layer, i, j - 1] if j > 0 else 0.0
        after = sprite[layer, i, j + 1] if j < X - 1 else 0.0
        d, r = (below - above) / 2, (after - before) / 2
        for k in range(len(free)):
            if free[k] == ANGLE:
                changes[layer, k] = (d * right - r * down) * (math.pi / 180)
            elif free[k] == SCALE:
                changes[layer, k] = -d * down - r * right
            else:
                changes[layer, k] = -d if free[k] == DOWN else -r


@compiled
def sharp_equations(
    shown: Array,
    behind: Array,
    inside: Array,
    sprite: Array,
    pose: Array,
    radius: float,
    colour: Array,
    weight: Array,
    free: Array,
    normal: Array,
    slope: Array,
) -> None:
    """The normal equations of a step, after what a change of colour explains is taken out."""
    (C, Y, X), F = shown.shape, len(free)
    changes, made, tinted, rests = np.zeros((2, F)), np.zeros(F), np.zeros((F, C)), np.zeros(C)
    normal[:], slope[:], norm = 0, 0, 0.0
    for i in range(Y):
        down = i - (Y - 1) / 2 - pose[DOWN]
        first, last = span(pose, radius, 1, i, Y, X)
        for j in range(first, last):
            if weight[i, j] == 0:
                continue
            change(sprite, i, j, down, j - (X - 1) / 2 - pose[RIGHT], free, changes)
            paint, mask, counts = sprite[0, i, j], sprite[1, i, j], weight[i, j]
            still = mask == 0
            for k in range(F):
                still = still and changes[0, k] == 0 and changes[1, k] == 0
            if still:
                continue
            tint = mask * paint
            norm += counts * tint * tint
            for c in range(C):
                texture = colour[c] * paint
                left = (shown[c, i, j] - (1 - mask) * behind[c, i, j] - texture * mask) * inside[i, j]
                rests[c] += counts * tint * left
                for k in range(F):
                    made[k] = changes[1, k] * (texture - behind[c, i, j]) + mask * colour[c] * changes[0, k]
                for k in range(F):
                    slope[k] += counts * made[k] * left
                    tinted[k, c] += counts * made[k] * tint
                    for m in range(k + 1):
                        normal[k, m] += counts * made[k] * made[m]
    norm = max(norm, TINY)
    for k in range(F):
        for c in range(C):
            slope[k] -= tinted[k, c] * rests[c] / norm
            for m in range(k + 1):
                normal[k, m] -= tinted[k, c] * tinted[m, c] / norm
    for k in range(F):
        for m in range(k):
            normal[m, k] = normal[k, m]


@compiled
def blurred_equations(
    shown: Array,
    behind: Array,
    inside: Array,
    sprite: Array,
    pose: Array,
    radius: float,
    colour: Array,
    weight: Array,
    free: Array,
    blur: int,
    blocks: Array,
) -> None:
    """How what is painted changes with each free number and with the colour, and what is left: sums of small blocks."""
    (C, Y, X), F = shown.shape, len(free)
    changes, reach = np.zeros((2, F)), blur // 2
    blocks[:] = 0
    for i in range(Y):
        down = i - (Y - 1) / 2 - pose[DOWN]
        first, last = span(pose, radius, 1 + 3 * blur, i, Y, X)  # blocks that are painted in part are seen as a whole
        for j in range(first, last):
            if weight[i, j] == 0:
                continue
            change(sprite, i, j, down, j - (X - 1) / 2 - pose[RIGHT], free, changes)
            y, x, root = (i + reach) // blur, (j + reach) // blur, math.sqrt(weight[i, j])
            paint, mask = sprite[0, i, j], sprite[1, i, j]
            for c in range(C):
                texture = colour[c] * paint
                for k in range(F):
                    made = changes[1, k] * (texture - behind[c, i, j]) + mask * colour[c] * changes[0, k]
                    blocks[k, c, y, x] += root * made
                blocks[F, c, y, x] += root * mask * paint
                left = shown[c, i, j] - (1 - mask) * behind[c, i, j] - texture * mask
                blocks[F + 1, c, y, x] += root * left * inside[i, j]


@compiled
def equations(blocks: Array, size: tuple[int, int], F: int, blur: int, normal: Array, slope: Array) -> None:
    """The normal equations of a step, blurred, after what a change of colour explains is taken out."""
    C, (Y, X) = blocks.shape[1], size
    normal[:], slope[:] = 0, 0
    reach = blur // 2
    cells = (Y + 2 * reach) // blur - 1, (X + 2 * reach) // blur - 1
    values, tints = np.zeros(F + 2), np.zeros(F + 2)
    for c in range(C):
        tints[:] = 0
        for i in range(cells[0]):
            for j in range(cells[1]):
                for k in range(F + 2):
                    here = (
                        blocks[k, c, i, j]
                        + blocks[k, c, i + 1, j]
                        + blocks[k, c, i, j + 1]
                        + blocks[k, c, i + 1, j + 1]
                    )
                    values[k] = here / (4 * blur * blur)
                for k in range(F + 2):
                    tints[k] += values[k] * values[F]
                for k in range(F):
                    slope[k] += values[k] * values[F + 1]
                    for m in range(k + 1):
                        normal[k, m] += values[k] * values[m]
        norm = max(tints[F], TINY)
        for k in range(F):
            slope[k] -= tints[k] * tints[F + 1] / norm
            for m in range(k + 1):
                normal[k, m] -= tints[k] * tints[m] / norm
    for k in range(F):
        for m in range(k):
            normal[m, k] = normal[k, m]


@compiled
def solve(normal: Array, slope: Array, damping: float, step: Array) -> None:
    """The damped step."""
    F, most = len(slope), 0.0
    for k in range(F):
        most = max(most, normal[k, k])
    stiff, rest = normal.copy(), slope.copy()
    for k in range(F):
        stiff[k, k] += damping * normal[k, k] + 1e-9 + 1e-6 * most
    for k in range(F):  # the matrix is positive definite: no pivots are needed
        for m in range(k + 1, F):
            share_of = stiff[m, k] / stiff[k, k]
            for n in range(k, F):
                stiff[m, n] -= share_of * stiff[k, n]
            rest[m] -= share_of * rest[k]
    for k in range(F - 1, -1, -1):
        total = rest[k]
        for m in range(k + 1, F):
            total -= stiff[k, m] * step[m]
        step[k] = total / stiff[k, k]


@compiled
def within(pose: Array, start: Array, free: Array, numbers: Array) -> None:
    """The pose brought back to where it may be."""
    for k in range(len(free)):
        each = free[k]
        if each == SCALE:
            apart = math.log(pose[SCALE] / start[SCALE])
            apart = min(max(apart, -numbers[1]), numbers[1])
            pose[SCALE] = min(max(start[SCALE] * math.exp(apart), numbers[3]), numbers[4])
        else:
            reach = numbers[0] if each == ANGLE else numbers[2]
            pose[each] = start[each] + min(max(pose[each] - start[each], -reach), reach)
        low, high = numbers[5], numbers[6]
        if each == ANGLE and high - low < 360:
            turned = low + (pose[ANGLE] - low) % 360
            if turned > high:
                turned = high if 2 * (turned - high) < 360 - (high - low) else low
            pose[ANGLE] = turned
