"""Plots: what a census counted, as pictures: how many objects images have, how large objects are, in which kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64, UInt8
from markupsafe import Markup

from pcdnet.colours import as_hex
from pcdnet.output.charts import Frame, described

if TYPE_CHECKING:
    from pcdnet.output.census import Census

BINS = 12
"""Columns of a histogram at most."""
MOST_DOTS = 300
"""Dots of the picture of sizes at most: others are drawn together with their neighbours."""
SPARK_WIDTH, SPARK_HEIGHT = 72, 22
"""Size of a histogram in a table, in its own units."""

Plot = tuple[str, str, Markup]
"""A name, a note and the picture itself."""


def plots(census: Census, colours: UInt8[np.ndarray, "K 3"]) -> Iterator[Plot]:
    """Counts, sizes and areas of all objects; `colours` are those of the kinds. Nothing where nothing was found."""
    total = census.everything
    yield "objects in an image", f"{census.images:,} images", histogram(total.counts, "images by their objects")
    if len(total.areas):
        yield "height over width", "pixels seen", sizes(census, colours)
        yield "area", "pixels seen of an object", histogram(total.areas, "objects by their area")


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


def _spark(counts: list[int], ranges: list[str]) -> Markup:
    """A histogram that fits a table; columns of few images can be seen all the same."""
    step, most = SPARK_WIDTH / len(ranges), max(1, *counts)
    bars = [
        f'<rect x="{step * n:.1f}" y="{SPARK_HEIGHT - height:.1f}" width="{0.85 * step:.1f}" height="{height:.1f}"/>'
        for n, count in enumerate(counts)
        if count and (height := max(0.8, SPARK_HEIGHT * count / most))
    ]
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(ranges, counts, strict=True) if count)
    words = described(f"images by their number of these objects: {told or 'none'}")
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
