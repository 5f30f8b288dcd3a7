"""Plots: what a census counted, as pictures: how many objects images have, how large objects are, in which kinds.

Of a model with poses also how objects are turned and scaled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64, UInt8
from markupsafe import Markup

from pcdnet.colours import as_hex
from pcdnet.output.charts import HEIGHT, WIDTH, Frame, described

if TYPE_CHECKING:
    from pcdnet.output.census import Census

BINS = 12
"""Columns of a histogram at most."""
MOST_DOTS = 300
"""Dots of the picture of sizes at most: others are drawn together with their neighbours."""
SPARK_WIDTH, SPARK_HEIGHT = 72, 22
"""Size of a histogram in a table, in its own units."""
ROSE = 22
"""Diameter of a rose in a table, and half the size of its letters elsewhere."""

Plot = tuple[str, str, Markup]
"""A name, a note and the picture itself."""


def plots(census: Census, colours: UInt8[np.ndarray, "K 3"]) -> Iterator[Plot]:
    """Counts, sizes and areas of all objects; `colours` are those of the kinds. Nothing where nothing was found."""
    total = census.everything
    yield "objects in an image", f"{census.images:,} images", histogram(total.counts, "images by their objects")
    if len(total.areas):
        yield "height over width", "pixels seen", sizes(census, colours)
        yield "area", "pixels seen of an object", histogram(total.areas, "objects by their area")
    if total.poses is not None and total.poses.turned:
        yield "angle", "degrees counter-clockwise", large_rose(total.poses.directions)
    if total.poses is not None and total.poses.scaled:
        yield "scale", "per cent of the prototype", histogram(total.poses.percents, "objects by their size in per cent")


def histogram(values: Int64[np.ndarray, "n"], words: str) -> Markup:
    """How many values lie where, as columns with their ranges below."""
    counts, ranges = binned(values, BINS)
    frame = Frame((0, 1), (0, max(1, *counts)), names=_thinned(ranges))
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(ranges, counts, strict=True))
    return frame.picture(frame.columns(counts), words=f"{words}: {told}")


def sparks(census: Census) -> list[Markup]:
    """For every kind how many images have how many of its objects, as histograms that fit a table.

    All have the same columns, so that kinds can be compared.
    """
    every = np.array([counted.counts for counted in census.kinds], np.int64).reshape(len(census.kinds), census.images)
    low, step, ranges = _ranges(every.ravel(), BINS)
    return [_spark(np.bincount((counts - low) // step, minlength=len(ranges)).tolist(), ranges) for counts in every]


def roses(census: Census) -> list[Markup]:
    """For every kind how its objects are turned, as roses that fit a table; none where nothing is turned."""
    total, radius = census.everything.poses, ROSE / 2
    if total is None or not total.turned:
        return []
    every = [np.zeros(1, np.int64) if one.poses is None else one.poses.directions for one in census.kinds]
    return [
        Markup(
            f'<svg class="rose" viewBox="{-radius:g} {-radius:g} {ROSE} {ROSE}" {described(_directions(counts))}>'
            f'<circle class="grid" r="{radius - 0.5:g}"/>{_petals(counts, radius - 0.5)}</svg>'
        )
        for counts in every
    ]


def size_sparks(census: Census) -> list[Markup]:
    """For every kind how large its objects are, in per cent of their prototypes; none where none is scaled."""
    total = census.everything.poses
    if total is None or not total.scaled:
        return []
    low, step, ranges = _ranges(total.percents, BINS)
    every = [np.zeros(0, np.int64) if one.poses is None else one.poses.percents for one in census.kinds]
    words = "objects by their size in per cent"
    return [_spark(np.bincount((v - low) // step, minlength=len(ranges)).tolist(), ranges, words) for v in every]


def large_rose(counts: Int64[np.ndarray, "sectors"]) -> Markup:
    """How many objects are turned in which direction: the area of a petal is their number, 0 is to the right."""
    radius, middle = HEIGHT / 2 - ROSE, WIDTH / 2
    places = [(middle + radius + 6, 4, "start", 0), (middle, -radius - 6, "middle", 90)]
    places += [(middle - radius - 6, 4, "end", 180), (middle, radius + 16, "middle", 270)]
    words = "".join(f'<text x="{x:g}" y="{y:g}" text-anchor="{at}">{angle}°</text>' for x, y, at, angle in places)
    rings = f'<path class="grid" d="M{-radius:g} 0H{radius:g}M0 {-radius:g}V{radius:g}"/>'
    rings += f'<circle class="grid" r="{radius:g}"/><circle class="grid" r="{radius / 2:g}"/>'
    return Markup(
        f'<svg viewBox="0 {-HEIGHT / 2:g} {WIDTH} {HEIGHT}" {described(_directions(counts))}>{words}'
        f'<g transform="translate({middle:g} 0)">{rings}{_petals(counts, radius)}</g></svg>'
    )


def _petals(counts: Int64[np.ndarray, "sectors"], radius: float) -> str:
    """Sectors around 0, 0, counter-clockwise from the right, whose areas are counts."""
    half, petals = 0.9 * math.pi / len(counts), []
    for n, count in enumerate(counts.tolist()):
        length, angle = radius * math.sqrt(count / max(1, *counts.tolist())), 2 * math.pi * n / len(counts)
        ends = [(length * math.cos(angle + way), -length * math.sin(angle + way)) for way in (-half, half)]
        (x, y), (right, up) = ends
        arc = f"A{length:.1f} {length:.1f} 0 0 0 {right:.1f} {up:.1f}"
        petals.append(f'<path class="petal" d="M0 0L{x:.1f} {y:.1f}{arc}Z"/>' if count else "")
    return "".join(petals)


def _directions(counts: Int64[np.ndarray, "sectors"]) -> str:
    """Directions with their counts, in words."""
    named = ((360 * n / len(counts), count) for n, count in enumerate(counts.tolist()) if count)
    return f"objects by their angle in degrees: {', '.join(f'{at:g}: {count:,}' for at, count in named) or 'none'}"


def _spark(counts: list[int], ranges: list[str], what: str = "images by their number of these objects") -> Markup:
    """A histogram that fits a table; columns of few images can be seen all the same."""
    step, most = SPARK_WIDTH / len(ranges), max(1, *counts)
    bars = [
        f'<rect x="{step * n:.1f}" y="{SPARK_HEIGHT - height:.1f}" width="{0.85 * step:.1f}" height="{height:.1f}"/>'
        for n, count in enumerate(counts)
        if count and (height := max(0.8, SPARK_HEIGHT * count / most))
    ]
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(ranges, counts, strict=True) if count)
    words = described(f"{what}: {told or 'none'}")
    return Markup(f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" {words}>{"".join(bars)}</svg>')


def binned(values: Int64[np.ndarray, "n"], bins: int) -> tuple[list[int], list[str]]:
    """How many whole numbers lie in each of some equal ranges, and the ranges in words; no more than `bins`."""
    low, step, ranges = _ranges(values, bins)
    return np.bincount((values - low) // step, minlength=len(ranges)).tolist(), ranges


def _ranges(values: Int64[np.ndarray, "n"], bins: int) -> tuple[int, int, list[str]]:
    """Equal ranges over whole numbers: where they begin, how wide they are, and what they are called."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    low = 0 if high < bins else low
    step = -(-(high - low + 1) // bins)
    starts = range(low, high + 1, step)
    return low, step, [f"{start}" if step == 1 else f"{start}-{start + step - 1}" for start in starts]


def sizes(census: Census, colours: UInt8[np.ndarray, "K 3"]) -> Markup:
    """Height over width of what is seen of objects, a dot for those of one kind and size, in the kind's colour."""
    cell, dots = 1, Counter[tuple[int, int, int]]()
    while not dots or len(dots) > MOST_DOTS:
        dots = Counter()
        for number, counted in enumerate(census.kinds):
            for height, width in (counted.sizes // cell * cell).tolist():
                dots[number, height, width] += 1
        cell *= 2
        if cell > int(census.everything.sizes.max()):
            break
    heights, widths = census.everything.sizes.T.tolist()
    frame = Frame((0, *widths), (0, *heights))
    most, drawn = max(dots.values()), []
    for (number, height, width), count in dots.most_common(MOST_DOTS):
        radius = 2 + 7 * (count / most) ** 0.5
        place = f'cx="{frame.across(width):.1f}" cy="{frame.up(height):.1f}" r="{radius:.1f}"'
        drawn.append(f'<circle class="size" style="fill: {as_hex(colours[number])}" {place}/>')
    middle = np.median(census.everything.sizes, axis=0)
    return frame.picture(*drawn, words=f"height over width; in the middle {middle[0]:g} x {middle[1]:g} pixels")


def _thinned(names: list[str]) -> list[str]:
    """Every n-th of the names, so that they have room beside each other."""
    room = 50 // max(map(len, names))
    stride = -(-len(names) // max(1, room))
    return [name if n % stride == 0 else "" for n, name in enumerate(names)]
