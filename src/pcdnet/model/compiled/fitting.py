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
        _fit(ends, pictures, fitted, gains, *here, free, numbers, rules.steps, rules.robust)

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
    steps: int,
    robust: bool,
) -> None:
    """Candidates from the first end to the second."""
    C, Y, X = shown.shape[1:]
    F, kind = len(free), shown.dtype
    sprites, weights = np.zeros((2, 2, Y + 2, X + 2), kind), np.zeros((2, Y, X), kind)
    bare = np.zeros((2, Y, X), kind)
    colour, new_colour = np.zeros(C, np.float64), np.zeros(C, np.float64)
    normal, slope, step, radius = np.zeros((F, F)), np.zeros(F), np.zeros(F), numbers[14]
    start, pose, new = np.zeros(5), np.zeros(5), np.zeros(5)
    for n in range(ends[0], ends[1]):
        start[:] = poses[n]
        pose[:] = poses[n]
        # What a candidate cannot reach does not change.
        largest = max(start[SCALE], min(start[SCALE] * math.exp(numbers[1]), numbers[4]))
        reach = min(radius * largest + numbers[2] + 2, 1e6)
        edge = max(0, int((Y - 1) / 2 - reach)), max(0, int((X - 1) / 2 - reach))
        picture, here, ground, clear = pictures[n], shown[n], behind[n], inside[n]
        sprite, tried, weight, new_weight = sprites[0], sprites[1], weights[0], weights[1]
        sprites[:] = 0
        resample(picture, pose, radius, edge, sprite)
        first_colour(here, ground, clear, sprite, pose, numbers, robust, colour, weight)
        scale = contrast(ground, clear, sprite, pose, numbers, colour)
        first = uncover(here, ground, clear, edge, scale, robust, bare)
        cost = look(here, ground, clear, bare, edge, sprite, pose, radius, colour, scale, robust, weight)
        damping = numbers[11]
        for _ in range(steps):
            equations(here, ground, clear, sprite, pose, radius, colour, weight, free, normal, slope)
            solve(normal, slope, damping, step)
            new[:] = pose
            for k in range(F):
                if free[k] == SCALE:
                    new[SCALE] *= math.exp(step[k])
                else:
                    new[free[k]] += step[k]
            within(new, start, free, numbers)
            still = hardly(pose, new, radius, numbers[15])
            resample(picture, new, radius, edge, tried)
            weighted_colour(here, ground, tried, new, numbers, weight, new_colour)
            new_cost = look(here, ground, clear, bare, edge, tried, new, radius, new_colour, scale, robust, new_weight)
            if new_cost < cost:
                pose[:], colour[:], cost = new, new_colour, new_cost
                sprite, tried, weight, new_weight = tried, sprite, new_weight, weight
                damping *= numbers[12]
            else:
                damping *= numbers[13]
            if still:
                break
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
def resample(picture: Array, pose: Array, radius: float, edge: tuple[int, int], sprite: Array) -> None:
    """A picture of two layers in its pose; sprites have an edge of nothing around them, so that all have neighbours."""
    (h, w), Y, X = picture.shape[1:], sprite.shape[1] - 2, sprite.shape[2] - 2
    angle, scale = pose[ANGLE] * math.pi / 180, max(pose[SCALE], 1e-3)
    cosine, sine, side = math.cos(angle) / scale, math.sin(angle) / scale, 1 - 2 * pose[MIRRORED]
    for i in range(edge[0], Y - edge[0]):
        down = i - (Y - 1) / 2 - pose[DOWN]
        first, last = span(pose, radius, 0, i, Y, X)
        for j in range(edge[1], X - edge[1]):
            if first <= j < last:
                right = j - (X - 1) / 2 - pose[RIGHT]
                y = sine * right + cosine * down + (h - 1) / 2
                x = side * (cosine * right - sine * down) + (w - 1) / 2
                sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1] = between_pixels(picture, y, x)
            else:
                sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1] = 0, 0


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
            tint = sprite[0, i + 1, j + 1] * sprite[1, i + 1, j + 1]
            norm += weight[i, j] * tint * tint
        for c in range(C):
            fits = 0.0
            for j in range(first, last):
                paint, mask = sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1]
                fits += weight[i, j] * paint * mask * (shown[c, i, j] - (1 - mask) * behind[c, i, j])
            colour[c] += fits
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
    away, count = np.zeros(Y * X), 0
    for n in range(2):
        for i in range(Y):
            first, last = span(pose, numbers[14], 0, i, Y, X)
            for j in range(first, last):
                body = sprite[1, i + 1, j + 1] > 0.5 and inside[i, j] > 0
                if n == 0 or not body:
                    weight[i, j] = inside[i, j] if body else 0
                    continue
                away[count] = misfit(shown, behind, sprite, colour, i, j)
                count += 1
        if n == 0:
            weighted_colour(shown, behind, sprite, pose, numbers, weight, colour)
    if count == 0:
        colour[:] = min(max(0.0, numbers[7]), numbers[8])
        return
    typical = np.sort(away[:count])[(count - 1) // 2]
    count = 0
    for i in range(Y):
        first, last = span(pose, numbers[14], 0, i, Y, X)
        for j in range(first, last):
            if sprite[1, i + 1, j + 1] > 0.5 and inside[i, j] > 0:
                weight[i, j] = 1 if away[count] <= typical else 0
                count += 1
    weighted_colour(shown, behind, sprite, pose, numbers, weight, colour)


@compiled
def misfit(shown: Array, behind: Array, sprite: Array, colour: Array, i: int, j: int) -> Any:
    """The squared error of a pixel, over all channels."""
    total, paint, mask = 0.0, sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1]
    for c in range(len(colour)):
        total += (shown[c, i, j] - (1 - mask) * behind[c, i, j] - colour[c] * paint * mask) ** 2
    return total


@compiled
def contrast(behind: Array, inside: Array, sprite: Array, pose: Array, numbers: Array, colour: Array) -> Any:
    """The squared error from which on a pixel hardly counts."""
    C, Y, X = behind.shape
    total, area = 0.0, 0.0
    for i in range(Y):
        first, last = span(pose, numbers[14], 0, i, Y, X)
        for j in range(first, last):
            area += sprite[1, i + 1, j + 1] * inside[i, j]
        for c in range(C):
            for j in range(first, last):
                share_of = sprite[1, i + 1, j + 1] * inside[i, j]
                total += share_of * (colour[c] * sprite[0, i + 1, j + 1] - behind[c, i, j]) ** 2
    return max(numbers[9] * total / max(area, 1e-6), numbers[10] * C)


@compiled
def uncover(
    shown: Array, behind: Array, inside: Array, edge: tuple[int, int], scale: float, robust: bool, bare: Array
) -> Any:
    """What is left of the error where nothing is painted, its sum, and how much each pixel counts there."""
    (C, Y, X), total = shown.shape, 0.0
    for i in range(edge[0], Y - edge[0]):
        for j in range(edge[1], X - edge[1]):
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
    edge: tuple[int, int],
    sprite: Array,
    pose: Array,
    radius: float,
    colour: Array,
    scale: float,
    robust: bool,
    weight: Array,
) -> Any:
    """What is left of the error, and into `weight` how much each pixel counts."""
    C, Y, X = shown.shape
    cost, errors = 0.0, np.zeros(X)
    for i in range(edge[0], Y - edge[0]):
        first, last = span(pose, radius, 0, i, Y, X)
        for j in range(edge[1], X - edge[1]):
            cost += bare[0, i, j]
            weight[i, j] = bare[1, i, j]
        for j in range(first, last):
            errors[j] = 0
        for c in range(C):
            tint = colour[c]
            for j in range(first, last):
                paint, mask = sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1]
                errors[j] += (shown[c, i, j] - (1 - mask) * behind[c, i, j] - tint * paint * mask) ** 2
        for j in range(first, last):
            error = errors[j] * inside[i, j] * inside[i, j]
            share_of = 1 / (1 + error / scale) if robust else 1.0
            cost += error * share_of - bare[0, i, j]
            weight[i, j] = inside[i, j] * share_of * share_of
    return cost


@compiled
def equations(
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
    """The normal equations of a step, after what a change of colour explains is taken out.

    All changes of a pixel follow from how it changes with a step down (`a`) and to the right (`b`), and from where it
    lies: so sums over a row of their products, and of these times where in the row a pixel lies, tell all.
    """
    (C, Y, X), F, turn = shown.shape, len(free), math.pi / 180
    products, slopes, tinted, rests = np.zeros((5, 5)), np.zeros(5), np.zeros((5, C)), np.zeros(C)
    norm = 0.0
    for i in range(Y):
        y = i - (Y - 1) / 2 - pose[DOWN]
        first, last = span(pose, radius, 1, i, Y, X)
        for c in range(C):
            tint = colour[c]
            aa, ab, bb, aax, abx, bbx, aaxx, abxx, bbxx = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            al, bl, alx, blx, at, bt, atx, btx, tl, tt = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(first, last):
                paint, mask, x = sprite[0, i + 1, j + 1], sprite[1, i + 1, j + 1], j - (X - 1) / 2 - pose[RIGHT]
                shade = tint * paint - behind[c, i, j]
                a = (sprite[1, i + 2, j + 1] - sprite[1, i, j + 1]) / 2 * shade
                a += mask * tint * (sprite[0, i + 2, j + 1] - sprite[0, i, j + 1]) / 2
                b = (sprite[1, i + 1, j + 2] - sprite[1, i + 1, j]) / 2 * shade
                b += mask * tint * (sprite[0, i + 1, j + 2] - sprite[0, i + 1, j]) / 2
                left = (shown[c, i, j] - (1 - mask) * behind[c, i, j] - tint * paint * mask) * inside[i, j]
                wa, wb, wt = weight[i, j] * a, weight[i, j] * b, weight[i, j] * mask * paint
                aa += wa * a
                ab += wa * b
                bb += wb * b
                aax += wa * a * x
                abx += wa * b * x
                bbx += wb * b * x
                aaxx += wa * a * x * x
                abxx += wa * b * x * x
                bbxx += wb * b * x * x
                al += wa * left
                bl += wb * left
                alx += wa * left * x
                blx += wb * left * x
                at += wt * a
                bt += wt * b
                atx += wt * a * x
                btx += wt * b * x
                tl += wt * left
                tt += wt * mask * paint
            products[DOWN, DOWN] += aa
            products[RIGHT, DOWN] += ab
            products[RIGHT, RIGHT] += bb
            products[DOWN, ANGLE] += turn * (y * ab - aax)
            products[RIGHT, ANGLE] += turn * (y * bb - abx)
            products[DOWN, SCALE] += y * aa + abx
            products[RIGHT, SCALE] += y * ab + bbx
            products[ANGLE, ANGLE] += turn * turn * (aaxx - 2 * y * abx + y * y * bb)
            products[SCALE, SCALE] += y * y * aa + 2 * y * abx + bbxx
            products[SCALE, ANGLE] += turn * (y * y * ab + y * bbx - y * aax - abxx)
            slopes[DOWN] -= al
            slopes[RIGHT] -= bl
            slopes[ANGLE] += turn * (alx - y * bl)
            slopes[SCALE] -= y * al + blx
            tinted[DOWN, c] -= at
            tinted[RIGHT, c] -= bt
            tinted[ANGLE, c] += turn * (atx - y * bt)
            tinted[SCALE, c] -= y * at + btx
            rests[c] += tl
            norm += tt / C
    norm = max(norm, TINY)
    for k in range(F):
        one = free[k]
        slope[k] = slopes[one]
        for c in range(C):
            slope[k] -= tinted[one, c] * rests[c] / norm
        for m in range(k + 1):
            other = free[m]
            normal[k, m] = products[max(one, other), min(one, other)]
            for c in range(C):
                normal[k, m] -= tinted[one, c] * tinted[other, c] / norm
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
