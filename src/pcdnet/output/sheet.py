"""Sheet: pictures and words placed on a figure by dots, and the groups of pictures that sheets are made of.

Matplotlib's objects are used without pyplot, so nothing global stays changed and no display is needed. Every panel is
a whole number of dots per pixel: nothing is smoothed, and equal pixels come out equally large. Sheets are at most as
wide as the text of a paper, where the frames of the images allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox, TransformedBbox

from pcdnet.colours import as_rgb, prototype_colours
from pcdnet.decomposition import BankArrays
from pcdnet.errors import PcdnetError
from pcdnet.names import first_of_each

DPI = 300
TEXT_WIDTH = 2100
"""Dots: 7 inches, as wide as the text of a page with two columns."""
INK, FAINT = "#333333", "#707070"
"""Colours of words that matter, and of numbers."""
PANEL, CUT_OUT = 210, 70
"""Dots of a panel's shorter side at least, and of a cut-out's longer side."""
GAP, EDGE, HEADER, LINE = 18, 12, 42, 7
"""Dots between panels, around the sheet, of a title, of a frame."""
POINTS, SMALL_POINTS = 7.5, 6
"""Sizes of letters."""
LABEL, STEP, NUMBER = 145, GAP + 2 * LINE, 28
"""Dots left of prototypes, between them, and above a cut-out."""
LETTER = 0.62 * POINTS / 72 * DPI
"""Dots of a letter, about."""
ABREAST = 10
"""Prototypes side by side, if there are so many."""


def readable_scale(side: int) -> int:
    """Dots per pixel that make a side of so many pixels long enough for a heading."""
    return -(-PANEL // side)


def fitting_scale(side: int, count: int) -> float:
    """Dots per pixel with which so many panels fit the width of the text: a whole number, unless images are larger."""
    widest = (TEXT_WIDTH - 2 * EDGE) // count - GAP
    return min(widest // side, max(readable_scale(side), 3)) or widest / side


class Sheet:
    """A figure on which things are placed by dots from the top left."""

    def __init__(self, *, height: int, width: int) -> None:
        self.figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self.height, self.width = height, width

    def panel(
        self, top: int, left: int, size: tuple[int, int], picture: UInt8[np.ndarray, "H W 3"], kind: int | None = None
    ) -> None:
        """Show a picture in a box of so many dots, in a frame of the colour of a prototype if one is named."""
        if kind is not None:
            x, y, w, h = self._box(top - LINE, left - LINE, (size[0] + 2 * LINE, size[1] + 2 * LINE)).bounds
            colour = prototype_colours(np.array(kind)) / 255
            self.figure.add_artist(Rectangle((x, y), w, h, facecolor=colour, linewidth=0, zorder=-1))
        # Axes would do the same, at many times the cost.
        place = TransformedBbox(self._box(top, left, size), self.figure.transFigure)
        smaller = size[1] < picture.shape[1]
        image = BboxImage(place, interpolation="hanning" if smaller else "nearest", origin="upper")
        image.set_data(picture)
        self.figure.add_artist(image)

    def text(
        self, bottom: float, centre: float, words: str, ink: str = INK, *, above: bool = True, points: float = POINTS
    ) -> None:
        """Write words around a centre, above a height or else at it."""
        place, vertical = (centre / self.width, 1 - bottom / self.height), "bottom" if above else "center"
        # A name is plain text, dollars and all.
        self.figure.text(*place, words, color=ink, fontsize=points, ha="center", va=vertical, parse_math=False)

    def _box(self, top: int, left: int, size: tuple[int, int]) -> Bbox:
        """The box in shares of the figure, from its bottom left, as matplotlib has it."""
        H, W, bottom = self.height, self.width, self.height - top - size[0]
        return Bbox.from_bounds(left / W, bottom / H, size[1] / W, size[0] / H)


@dataclass(frozen=True, slots=True)
class Grid:
    """Small framed pictures of one size, with numbers above them, in rows."""

    columns: int
    size: tuple[int, int]

    @staticmethod
    def fitting(frame: tuple[int, int], count: int, width: int, height: int) -> Grid:
        """The grid of the largest pictures with which so many fit into a place, or of the smallest readable ones."""
        smallest = max(1, -(-CUT_OUT // max(frame)))
        for scale in range(max(smallest, PANEL // min(frame)), smallest - 1, -1):
            size = (frame[0] * scale, frame[1] * scale)
            grid = Grid(max(1, (width + GAP) // (size[1] + STEP)), size)
            if grid.height(count) <= height:
                break
        return grid

    def height(self, count: int) -> int:
        """Dots that so many pictures take from top to bottom."""
        return -(-count // self.columns) * self._row

    @property
    def _row(self) -> int:
        return self.size[0] + 2 * LINE + NUMBER

    def draw(
        self, sheet: Sheet, top: int, left: int, pictures: Sequence[UInt8[np.ndarray, "h w 3"]], kinds: Iterable[int]
    ) -> None:
        """Draw pictures with their numbers, from a corner on, in frames of the colours of their prototypes."""
        w, first = self.size[1], top + NUMBER + LINE
        for n, (picture, kind) in enumerate(zip(pictures, kinds, strict=False)):
            y = first + n // self.columns * self._row
            x = left + n % self.columns * (w + STEP) + LINE
            sheet.text(y - LINE - 2, x + w / 2, str(n + 1), FAINT, points=SMALL_POINTS)
            sheet.panel(y, x, self.size, picture, kind)


class Bands:
    """Prototypes over their masks, in bands of equal length."""

    def __init__(self, bank: BankArrays, names: Sequence[str] | None, widest: int = TEXT_WIDTH - 2 * EDGE) -> None:
        prototypes, masks, _ = bank
        P = len(prototypes)
        if P == 0 or masks.shape != prototypes.shape:
            raise PcdnetError(
                f"prototypes of shape {prototypes.shape} and masks of shape {masks.shape} make no sheet; "
                f"give at least one prototype and a mask of the same size for each"
            )
        self._pictures = (prototypes * masks, masks)  # where nothing is painted, values mean nothing
        self._names = [str(p) for p in range(P)] if names is None else names
        self._kinds = first_of_each(self._names).tolist()
        h, w = prototypes.shape[1:]
        room = (widest - LABEL) // min(P, ABREAST) - STEP
        scale = max(-(-CUT_OUT // max(h, w)), min(readable_scale(min(h, w)), room // w))
        self._size = h * scale, w * scale
        bands = -(-P // max(1, (widest - LABEL) // (self._size[1] + STEP)))
        self._columns = -(-P // bands)
        self._band = HEADER + 2 * (self._size[0] + STEP) + GAP
        self.height = bands * self._band - 2 * GAP
        self.width = LABEL + self._columns * (self._size[1] + STEP) - GAP

    def draw(self, sheet: Sheet, top: int, left: int) -> None:
        """Draw them, with the names of the two rows at the left."""
        (h, w), P = self._size, len(self._pictures[0])
        for p in range(P):
            y = top + HEADER + p // self._columns * self._band + LINE
            x = left + LABEL + p % self._columns * (w + STEP) + LINE
            sheet.text(y - LINE - 6, x + w / 2, _short(self._names[p], w + GAP), FAINT)
            for row, pictures in enumerate(self._pictures):
                if p % self._columns == 0:
                    name = ("prototype", "mask")[row]
                    sheet.text(y + h / 2, left + LABEL / 2, name, above=False, points=SMALL_POINTS)
                sheet.panel(y, x, (h, w), as_rgb(pictures[p][..., None]), self._kinds[p])
                y += h + STEP


def _short(name: str, dots: int) -> str:
    """A name, cut if it is longer than so many dots."""
    most = max(3, int(dots / LETTER))
    return name if len(name) <= most else f"{name[: most - 1]}…"
