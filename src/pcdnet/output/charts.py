"""Charts: numbers as SVG that takes its colours from the page around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 360, 200
"""Size of a picture, in its own units; pages stretch it."""
LARGEST = 1e100
"""Numbers beyond it have no place: their differences, and the ticks around them, may be more than a number can be."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 24
_BAR, _NAME, _SHARE = 22, 170, 46


class Frame:
    """The axes of a picture, in which points can be drawn.

    Parameters
    ----------
    xs, ys
        Numbers that must have a place.
    log_x, log_y
        Whether factors matter rather than differences.
    whole
        Whether whole numbers are counted across, from 0 on.
    names
        What is at 0, 1, 2, ... across, where that are no numbers.
    """

    def __init__(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        *,
        log_x: bool = False,
        log_y: bool = False,
        whole: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        self._log_x, self._log_y, self._whole, self._names = log_x, log_y, whole, names
        self._rows = _decades(min(ys), max(ys)) if log_y else _ticks(min(ys), max(ys))
        self._bottom, self._top = min(*ys, *self._rows), max(*ys, *self._rows)
        # Whole numbers fill the picture from edge to edge; others get ticks at both ends.
        columns = _decades(min(xs), max(xs)) if log_x else _ticks(min(xs), max(xs), whole=whole)
        self._columns = [x for x in columns if not whole or x <= max(xs)]
        self._start, self._end = (min(xs), max(xs)) if whole else (min(*xs, *columns), max(*xs, *columns))
        if names:
            self._columns, self._start, self._end = list(range(len(names))), -0.5, len(names) - 0.5

    def across(self, x: float) -> float:
        """Where a value is from left to right."""
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * _share(x, self._start, self._end, self._log_x)

    def up(self, y: float) -> float:
        """Where a value is from top to bottom."""
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * _share(y, self._bottom, self._top, self._log_y)

    def path(self, points: Points, kind: str = "curve") -> str:
        """A line through points, of a class of the page."""
        path = "M" + "L".join(f"{self.across(x):.1f} {self.up(y):.1f}" for x, y in points)
        return f'<path class="{kind}" d="{path}"/>'

    def dots(self, points: Points, kind: str = "", radius: float = 3) -> str:
        """A dot at every point, of a class of the page."""
        named = f' class="{kind}"' if kind else ""
        places = ((self.across(x), self.up(y)) for x, y in points)
        return "".join(f'<circle{named} cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>' for x, y in places)

    def columns(self, heights: Sequence[float]) -> str:
        """A column from the bottom at each of 0, 1, 2, ..., where that are names; none where there is nothing."""
        width = 0.9 * (self.across(1) - self.across(0)) if len(heights) > 1 else (WIDTH - _LEFT - _RIGHT) / 4
        tops = ((self.across(x) - width / 2, self.up(y)) for x, y in enumerate(heights) if y > 0)
        return "".join(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(0.5, self.up(self._bottom) - y):.1f}"/>'
            for x, y in tops
        )

    def picture(self, *marks: str, words: str = "") -> Markup:
        """The axes with what is drawn in them; marks are made of numbers only, and need no escaping.

        `words` say what it shows to those who do not see it.
        """
        grid = "".join(f"M{_LEFT} {self.up(y):.1f}H{WIDTH - _RIGHT}" for y in self._rows)
        ticks = [f'<text x="{_LEFT - 6}" y="{self.up(y) + 4:.1f}" text-anchor="end">{y:g}</text>' for y in self._rows]
        ticks += [
            f'<text x="{self.across(x):.1f}" y="{HEIGHT - 6}" text-anchor="middle">{self._word(x)}</text>'
            for x in self._columns
        ]
        return Markup(
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {described(words)}><path class="grid" d="{grid}"/>{"".join(ticks)}'
            f"{''.join(marks)}</svg>"
        )

    def _word(self, x: float) -> str:
        if self._names:
            return str(escape(self._names[int(x)]))
        return f"{x:,.0f}" if self._whole else f"{x:g}"


def bars(shares: Mapping[str, float]) -> Markup:
    """Shares as bars, one below the other, with their names; the largest has the full length."""
    most, rows = max(shares.values(), default=0) or 1, []
    for row, (name, share) in enumerate(shares.items()):
        top, length = row * _BAR, (WIDTH - _NAME - _SHARE) * share / most
        rows.append(
            f'<text x="{_NAME - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{_NAME}" y="{top + 4}" width="{length:.1f}" height="{_BAR - 8}"/>'
            f'<text x="{_NAME + length + 6:.1f}" y="{top + 15}">{100 * share:.0f} %</text>'
        )
    told = described(", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()))
    return Markup(f'<svg viewBox="0 0 {WIDTH} {max(1, len(shares)) * _BAR}" {told}>{"".join(rows)}</svg>')


def described(words: str) -> Markup:
    """What makes a picture say these words to those who do not see it; without words it is only for the eye."""
    return Markup('role="img" aria-label="{}"').format(words) if words else Markup('aria-hidden="true"')


def drawable(points: Points, *, log_x: bool = False, log_y: bool = False) -> Points:
    """The points that have a place: those up to `LARGEST` and, on axes of factors, as far above 0."""
    least = [1 / LARGEST if log else -LARGEST for log in (log_x, log_y)]
    return [(x, y) for x, y in points if least[0] <= x <= LARGEST and least[1] <= y <= LARGEST]


def wide(values: Sequence[float]) -> bool:
    """Whether numbers differ so much that factors say more than differences."""
    return min(values) > 0 and max(values) >= 10 * min(values)


def _share(value: float, low: float, high: float, log: bool) -> float:
    a, b, v = (math.log10(n) if log else n for n in (low, high, value))
    return (v - a) / ((b - a) or 1)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Three to six round numbers over a range."""
    span = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(span / 3))
    step = next(size * n for n in (1, 2, 5, 10) if span / (size * n) <= 5)
    if whole:
        step = max(step, 1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, max(last, first + 1) + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    stride = max(1, math.ceil((last - first) / 5))
    return [10.0**n for n in range(first, max(last, first + 1) + stride, stride)]
