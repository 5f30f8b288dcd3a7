"""Figures: the prototypes, and scenes taken apart, as pictures.

Matplotlib's objects are used without pyplot, so nothing global stays changed and no display is needed. Every panel is
a whole number of dots per pixel: nothing is smoothed, and equal pixels come out equally large.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Integer, UInt8
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox, TransformedBbox

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.files import whole_file

# fmt: off
_HEX = (
    "e63946", "3b78e0", "3cb45a", "fabe1e", "e400fc", "24d8fc", "f09ce4", "90e000",
    "fc6c00", "903cfc", "9cf0b4", "c08400", "00a8b4", "fc00a8", "90a8fc", "fc9c84",
    "6c8400", "b454a8", "00906c", "a8cc30", "fc6c9c", "00d824", "e4f060", "c078fc",
    "c06c78", "fc6cf0", "a884c0", "8460cc", "00d8b4", "c05400", "c0b46c", "00fc90",
)
# fmt: on
PALETTE: UInt8[np.ndarray, "32 3"] = np.array([tuple(bytes.fromhex(text)) for text in _HEX], dtype=np.uint8)
"""Colours of the prototypes, from the first on far apart from each other, from black, white and grey."""

SUFFIXES = (".png", ".svg", ".pdf")
"""What `save_figure` can write."""

_DPI = 200
_INK, _FAINT = "#333333", "#8a8a8a"
_PANEL, _WIDEST = 140, 1750  # dots: of a panel's shorter side at least, of a band of prototypes at most
_GAP, _EDGE, _HEADER = 12, 24, 44  # dots between panels, around the sheet, above the panels for a title
_POINTS = 7.5


def prototype_colours(kinds: Integer[np.ndarray, "*any"]) -> UInt8[np.ndarray, "*any 3"]:
    """The colour of every prototype; after 32 of them colours come again."""
    colours: UInt8[np.ndarray, "*any 3"] = PALETTE[kinds % len(PALETTE)]
    return colours


def instance_colours(count: int) -> UInt8[np.ndarray, "count 3"]:
    """Pastel colours for the first objects of any image, so that they are not mistaken for prototypes'."""
    # Steps of the golden ratio never come back to a hue, and neighbours lie far apart.
    hues = [(0.56 + n * 0.618034) % 1 for n in range(count)]
    colours = [colorsys.hsv_to_rgb(hue, 0.45, (1.0, 0.86)[n // 8 % 2]) for n, hue in enumerate(hues)]
    return np.round(255 * np.array(colours).reshape(count, 3)).astype(np.uint8)


def prototype_sheet(prototypes: Float[np.ndarray, "P h w"], masks: Float[np.ndarray, "P h w"]) -> Figure:
    """The prototypes with their masks below them, each framed in the colour that it has in semantic maps."""
    P, h, w = prototypes.shape
    if P == 0 or masks.shape != prototypes.shape:
        raise PcdnetError(
            f"prototypes of shape {prototypes.shape} and masks of shape {masks.shape} make no sheet; "
            f"give at least one prototype and a mask of the same size for each"
        )
    line, room, label = 5, 30, 52  # dots: the frames, above every band for the numbers, left of it for its names
    scale, gap = _scale(min(h, w)), _GAP + 2 * line
    size = (h * scale, w * scale)
    bands = -(-P // max(1, _WIDEST // (size[1] + gap)))
    columns = -(-P // bands)  # bands are as equally long as can be
    band_height = room + 2 * (size[0] + gap) + _GAP
    sheet = _Sheet(
        height=2 * _EDGE + bands * band_height - gap - _GAP + line,
        width=2 * _EDGE + label + columns * (size[1] + gap) - gap + 2 * line,
    )
    for p, colour in enumerate(prototype_colours(np.arange(P))):
        top = _EDGE + room + (p // columns) * band_height
        left = _EDGE + label + line + (p % columns) * (size[1] + gap)
        sheet.text(top - line - 7, left + size[1] / 2, str(p), _FAINT, vertical="bottom")
        for picture in (prototypes[p], masks[p]):
            sheet.panel(top, left, size, as_rgb(picture[..., None]), frame=(line, colour))
            top += size[0] + gap
    for band in range(bands):
        top = _EDGE + room + band * band_height + size[0] / 2
        for name in ("prototype", "mask"):
            sheet.text(top, _EDGE + 14, name, _INK, vertical="center", rotation=90)
            top += size[0] + gap
    return sheet.figure


def decomposition_sheet(
    images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition], layers: int | None = None
) -> Figure:
    """A row per scene: the image, its reconstruction, object by object front to back, and the label maps.

    `layers` is how many objects are shown one by one: as many as there are, but at most 6, if not given.
    Prototypes have the colours of `prototype_sheet` in the semantic map; the n-th object from the front has the
    colour of the n-th heading in the instance map.
    """
    n, H, W, _ = images.shape
    if n == 0 or len(decompositions) != n:
        raise PcdnetError(
            f"{n} images and {len(decompositions)} decompositions make no sheet; "
            f"give at least one image and a decomposition for each"
        )
    if layers is None:
        layers = min(6, max(len(found) for found in decompositions))
    headings = ["image", "reconstruction", *(f"object {i + 1}" for i in range(layers)), "semantic", "instances"]
    inks = [_INK] * 2 + [f"#{bytes(c // 4 * 3).hex()}" for c in instance_colours(layers)] + [_INK] * 2
    size = (H * _scale(W), W * _scale(W))
    # Wider gaps part the whole pictures from the single objects, and those from the maps.
    lefts = [_EDGE + i * (size[1] + _GAP) + _GAP * ((i >= 2) + (i >= 2 + layers)) for i in range(len(headings))]
    sheet = _Sheet(height=_EDGE + _HEADER + n * (size[0] + _GAP) - _GAP + _EDGE, width=lefts[-1] + size[1] + _EDGE)
    for left, heading, ink in zip(lefts, headings, inks, strict=True):
        sheet.text(_EDGE + _HEADER - 12, left + size[1] / 2, heading, ink, vertical="bottom")
    for row, (image, found) in enumerate(zip(images, decompositions, strict=True)):
        top = _EDGE + _HEADER + row * (size[0] + _GAP)
        for left, picture in zip(lefts, panels(image, found, layers), strict=True):
            if picture is not None:
                sheet.panel(top, left, size, picture)
    return sheet.figure


def panels(
    image: Float[np.ndarray, "H W C"], found: Decomposition, layers: int
) -> list[UInt8[np.ndarray, "H W 3"] | None]:
    """The pictures of one scene on `decomposition_sheet`; None where it has fewer objects than `layers`."""
    painted = as_rgb(found.reconstruction)
    single = [
        np.where((found.instances == i + 1)[..., None], painted, np.uint8(0)) if i < len(found) else None
        for i in range(layers)
    ]
    black = np.zeros((1, 3), np.uint8)
    instances = np.concatenate([black, instance_colours(len(found))])[found.instances]
    semantics = np.concatenate([black, prototype_colours(found.prototypes)])[found.instances]
    return [as_rgb(image), painted, *single, semantics, instances]


def as_rgb(picture: Float[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 3"]:
    """A picture of values in [0, 1], grey or RGB, as 8-bit RGB."""
    colours = np.round(255 * picture.clip(0, 1)).astype(np.uint8)
    return np.broadcast_to(colours, (*colours.shape[:2], 3))


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a PNG, SVG or PDF file, by its suffix, whole or not at all."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise PcdnetError(f"{path} is no kind of picture known here; end it with one of {', '.join(SUFFIXES)}")
    # Without dates and random names inside, the same picture gives the same file; a user's style must not crop it.
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind)
    with whole_file(path) as file, rc_context({"svg.hashsalt": "pcdnet", "savefig.bbox": None}):
        figure.savefig(file, format=kind[1:], dpi=figure.dpi, metadata=undated)


def _scale(side: int) -> int:
    """Dots per pixel that make a side of so many pixels long enough for a heading."""
    return -(-_PANEL // side)


class _Sheet:
    """A figure on which things are placed by dots from the top left."""

    def __init__(self, *, height: int, width: int) -> None:
        self.figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self._height, self._width = height, width

    def panel(
        self,
        top: int,
        left: int,
        size: tuple[int, int],
        picture: UInt8[np.ndarray, "H W 3"],
        frame: tuple[int, UInt8[np.ndarray, "3"]] | None = None,
    ) -> None:
        """Show a picture in a box of so many dots, with a frame of so many dots of a colour around it."""
        if frame is not None:
            line, colour = frame
            edges = self._box(top - line, left - line, (size[0] + 2 * line, size[1] + 2 * line)).bounds
            self.figure.add_artist(Rectangle(edges[:2], *edges[2:], facecolor=colour / 255, linewidth=0, zorder=-1))
        # Axes would do the same, at many times the cost.
        place = TransformedBbox(self._box(top, left, size), self.figure.transFigure)
        image = BboxImage(place, interpolation="nearest", origin="upper")
        image.set_data(picture)
        self.figure.add_artist(image)

    def text(self, bottom: float, centre: float, words: str, ink: str, *, vertical: str, rotation: float = 0) -> None:
        """Write words around a centre, above (or, vertically centred, at) a height."""
        self.figure.text(
            centre / self._width,
            1 - bottom / self._height,
            words,
            color=ink,
            fontsize=_POINTS,
            ha="center",
            va=vertical,
            rotation=rotation,
        )

    def _box(self, top: int, left: int, size: tuple[int, int]) -> Bbox:
        """The box in shares of the figure, from its bottom left, as matplotlib has it."""
        H, W, bottom = self._height, self._width, self._height - top - size[0]
        return Bbox.from_bounds(left / W, bottom / H, size[1] / W, size[0] / H)
