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
    from pcdnet.output.census import Census, Counted

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
        yield "height and width", "pixels that are seen; larger dots are more objects", sizes(census, colours)
        yield "area", "pixels that are seen of an object", histogram(total.areas, "objects by their area")


def histogram(values: Int64[np.ndarray, "n"], words: str) -> Markup:
    """How many values lie where, as columns with their ranges below."""
    counts, ranges = binned(values, BINS)
    frame = Frame((0, 1), (0, max(1, *counts)), names=_thinned(ranges))
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(ranges, counts, strict=True))
    return frame.picture(frame.columns(counts), words=f"{words}: {told}")


def spark(counted: Counted) -> Markup:
    """How many images have how many objects of a kind, as a histogram that fits a table."""
    counts, ranges = binned(counted.counts, BINS)
    step, most = SPARK_WIDTH / len(counts), max(1, *counts)
    bars = [
        f'<rect x="{step * n:.1f}" y="{SPARK_HEIGHT * (1 - count / most):.1f}" width="{0.85 * step:.1f}" '
        f'height="{max(0.8, SPARK_HEIGHT * count / most):.1f}"/>'
        for n, count in enumerate(counts)
        if count
    ]
    told = ", ".join(f"{name}: {count:,}" for name, count in zip(ranges, counts, strict=True) if count)
    words = described(f"images by their number of these objects: {told}")
    return Markup(f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" {words}>{"".join(bars)}</svg>')


def binned(values: Int64[np.ndarray, "n"], bins: int) -> tuple[list[int], list[str]]:
    """How many whole numbers lie in each of some equal ranges, and the ranges in words; none is `bins` or more."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    low = 0 if high < bins else low
    step = -(-(high - low + 1) // bins)
    counts = np.bincount((values - low) // step, minlength=(high - low) // step + 1).tolist()
    starts = [low + step * n for n in range(len(counts))]
    return counts, [f"{start}" if step == 1 else f"{start}-{start + step - 1}" for start in starts]


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
