"""Figures: the prototypes, and scenes taken apart, as pictures for a page or a paper.

Matplotlib's objects are used without pyplot, so nothing global stays changed and no display is needed. Every panel is
a whole number of dots per pixel: nothing is smoothed, and equal pixels come out equally large. Sheets are at most as
wide as the text of a paper, where the frames of the images allow it.
"""

from __future__ import annotations

import colorsys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
    "e69f00", "56b4e9", "009e73", "f0e442", "0072b2", "d55e00", "cc79a7", "6024ff",
    "00ff90", "6078ff", "48ffff", "d82448", "a8f0c0", "a82478", "ffa860", "ff7890",
    "904800", "7890f0", "f06048", "c000a8", "7824d8", "48d8f0", "904860", "f0a8c0",
    "d8a878", "9048d8", "2460ff", "c0f060", "d82424", "ff00c0", "f0c000", "d8a8d8",
)
# fmt: on
PALETTE: UInt8[np.ndarray, "32 3"] = np.array([tuple(bytes.fromhex(text)) for text in _HEX], dtype=np.uint8)
"""Colours of the prototypes, far apart from each other, from black, white and grey, for the colour-blind too.

The first seven are those of Okabe and Ito; each of the others lies farthest from all before it, as people with
normal sight, protanopia and deuteranopia see them.
"""

SUFFIXES = (".png", ".svg", ".pdf")
"""What `save_figure` can write."""
LAYERS = 6
"""Objects of a scene that are shown one by one on whole canvases at most."""
SMALL = 64
"""Images wider than this are not drawn once for every object; their objects are cut out."""
CUT_OUTS = 60
"""Objects of a scene that are cut out at most."""
FAINTEST = 0.2
"""Pixels with a mask below this do not make a cut-out larger."""

_DPI = 300
_TEXT_WIDTH = 2100  # dots: 7 inches, as wide as the text of a page with two columns
_INK, _FAINT = "#333333", "#707070"
_PANEL, _CUT_OUT = 210, 70  # dots: of a panel's shorter side at least, of a cut-out's longer side
_GAP, _EDGE, _HEADER, _LINE = 18, 12, 42, 7  # dots between panels, around the sheet, of a title, of a frame
_POINTS = 7.5
_LABEL, _STEP, _NUMBER = 145, _GAP + 2 * _LINE, 28  # dots left of prototypes, between them, above a cut-out
_SMALL_POINTS = 6
_LETTER = 0.62 * _POINTS / 72 * _DPI  # dots of a letter
_ABREAST = 10  # prototypes side by side, if there are so many
_SHADES = (0.0, 0.5, -0.3, 0.25, -0.15)  # towards white where positive, towards black where negative


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


def prototype_sheet(
    prototypes: Float[np.ndarray, "P h w"], masks: Float[np.ndarray, "P h w"], names: Sequence[str] | None = None
) -> Figure:
    """The prototypes with their masks below them, each framed in the colour that it has in semantic maps.

    Above them are their numbers, or names if these are given; names too long for the place are cut.
    """
    bank = _Bank(prototypes, masks, names)
    sheet = _Sheet(height=2 * _EDGE + bank.height, width=2 * _EDGE + bank.width)
    bank.draw(sheet, _EDGE, _EDGE)
    return sheet.figure


def decomposition_sheet(
    images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition], layers: int | None = None
) -> Figure:
    """A row per scene: the image, its reconstruction, object by object front to back, and the label maps.

    `layers` is how many objects are shown one by one: as many as there are, but at most 6, if not given.
    Prototypes have the colours of `prototype_sheet` in the semantic map; the n-th object from the front has the
    colour of the n-th heading in the instance map.
    """
    _check(images, decompositions)
    if layers is None:
        layers = min(LAYERS, max(len(found) for found in decompositions))
    headings = ["image", "reconstruction", *(f"object {i + 1}" for i in range(layers)), "semantic", "instances"]
    inks = [_INK] * 2 + [f"#{bytes(c // 4 * 3).hex()}" for c in instance_colours(layers)] + [_INK] * 2
    rows = [panels(image, found, layers) for image, found in zip(images, decompositions, strict=True)]
    # Wider gaps part the whole pictures from the single objects, and those from the maps.
    return _table(rows, headings, inks, _scale(images.shape[2]), breaks=(2, 2 + layers)).figure


def object_sheet(
    images: Float[np.ndarray, "n H W C"],
    decompositions: Sequence[Decomposition],
    prototypes: Float[np.ndarray, "P h w"],
    masks: Float[np.ndarray, "P h w"],
    *,
    behind: float = 0.0,
) -> Figure:
    """A row per scene: the image, its reconstruction, and its objects alone, front to back, whole even where hidden.

    Of small images with few objects each object has a canvas of its own. Objects of others are cut out, in the
    frames of their prototypes, over a grey of value `behind`, each framed in the colour of its prototype.
    """
    _check(images, decompositions)
    _, _, W, _ = images.shape
    most = max(len(found) for found in decompositions)
    whole = W <= SMALL and most <= LAYERS
    if not whole:
        rows, columns = tight_frame(masks)
        prototypes, masks = prototypes[:, rows, columns], masks[:, rows, columns]
    alone = [object_pictures(found, prototypes, masks, behind=behind, canvas=whole) for found in decompositions]
    pairs = [[as_rgb(image), as_rgb(found.reconstruction)] for image, found in zip(images, decompositions, strict=True)]
    headings = ["image", "reconstruction"]
    if whole:
        table = [[*pair, *objects, *[None] * (most - len(objects))] for pair, objects in zip(pairs, alone, strict=True)]
        headings += [f"object {i + 1}" for i in range(most)]
        return _table(table, headings, [_INK] * len(headings), _scale(W), breaks=(2,)).figure
    kinds = [found.prototypes for found in decompositions]
    return _pulled_apart(pairs, alone, kinds, prototypes.shape[1:], _fitting(W, 4))


def segmentation_sheet(
    images: Float[np.ndarray, "n H W C"],
    decompositions: Sequence[Decomposition],
    prototypes: Float[np.ndarray, "P h w"],
    masks: Float[np.ndarray, "P h w"],
    names: Sequence[str] | None = None,
) -> Figure:
    """A row per scene: the image, its reconstruction, and the label maps; below them the prototypes as a legend.

    Both maps have the colours of the prototypes. In the instance map objects of a kind differ in shade, and a black
    line parts all objects.
    """
    _check(images, decompositions)
    headings = ["image", "reconstruction", "semantic", "instances"]
    scale = _fitting(images.shape[2], len(headings))
    rows = []
    for image, found in zip(images, decompositions, strict=True):
        *first, _ = panels(image, found, 0)
        rows.append([*first, _outlined(found, max(1, int(scale)))])
    width = int(len(headings) * (images.shape[2] * scale + _GAP))
    bank = _Bank(prototypes, masks, names, widest=max(width, _TEXT_WIDTH // 2))
    sheet = _table(rows, headings, [_INK] * 4, scale, below=bank.height + 2 * _GAP, least=2 * _EDGE + bank.width)
    bank.draw(sheet, sheet.height - _EDGE - bank.height, (sheet.width - bank.width) // 2)
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


def object_pictures(
    found: Decomposition,
    prototypes: Float[np.ndarray, "P h w"],
    masks: Float[np.ndarray, "P h w"],
    *,
    behind: float = 0.0,
    canvas: bool = False,
) -> list[UInt8[np.ndarray, "H W 3"]]:
    """Every object alone over a grey, front to back, whole even where others hide it.

    Each comes in the frame of its prototype or, with `canvas`, at its place in a picture as large as the image.
    """
    (H, W), (h, w) = found.instances.shape, prototypes.shape[1:]
    pictures = []
    for prototype, (row, column), colour in zip(found.prototypes, found.positions, found.colours, strict=True):
        mask = masks[prototype][..., None].clip(0, 1)
        picture = mask * prototypes[prototype][..., None] * colour + (1 - mask) * behind
        if canvas:
            # Frames may hang over the border, by less than their size.
            wide = np.full((H + 2 * h, W + 2 * w, picture.shape[2]), behind)
            wide[row + h : row + 2 * h, column + w : column + 2 * w] = picture
            picture = wide[h : h + H, w : w + W]
        pictures.append(as_rgb(picture))
    return pictures


def tight_frame(masks: Float[np.ndarray, "P h w"]) -> tuple[slice, slice]:
    """The rows and columns of the smallest frame outside which no mask shows anything; all, if no mask ever does."""
    seen = masks > FAINTEST
    rows, columns = np.flatnonzero(seen.any(axis=(0, 2))), np.flatnonzero(seen.any(axis=(0, 1)))
    if len(rows) == 0:
        return slice(None), slice(None)
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def as_rgb(picture: Float[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 3"]:
    """A picture of values in [0, 1], grey or RGB, as 8-bit RGB."""
    colours = np.round(255 * picture.clip(0, 1)).astype(np.uint8)
    return np.broadcast_to(colours, (*colours.shape[:2], 3))


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a PNG, SVG or PDF file, by its suffix, whole or not at all; in SVG and PDF text stays text."""
    path = Path(path)
    kind = checked_suffix(path)
    # Without dates and random names inside, the same picture gives the same file; a user's style must not crop it.
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind)
    with (
        whole_file(path) as file,
        rc_context({"svg.hashsalt": "pcdnet", "savefig.bbox": None, "svg.fonttype": "none", "pdf.fonttype": 42}),
        warnings.catch_warnings(),
    ):
        # A name may have letters that matplotlib's own font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(file, format=kind[1:], dpi=figure.dpi, metadata=undated)


def checked_suffix(path: Path) -> str:
    """The kind of picture that a file's name asks for, if it is one of `SUFFIXES`."""
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise PcdnetError(f"{path} is no kind of picture known here; end it with one of {', '.join(SUFFIXES)}")
    return kind


def _check(images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition]) -> None:
    if len(images) == 0 or len(decompositions) != len(images):
        raise PcdnetError(
            f"{len(images)} images and {len(decompositions)} decompositions make no sheet; "
            f"give at least one image and a decomposition for each"
        )


def _scale(side: int) -> int:
    """Dots per pixel that make a side of so many pixels long enough for a heading."""
    return -(-_PANEL // side)


def _fitting(side: int, count: int) -> float:
    """Dots per pixel with which so many panels fit the width of the text: a whole number, unless images are larger."""
    widest = (_TEXT_WIDTH - 2 * _EDGE) // count - _GAP
    return min(widest // side, max(_scale(side), 3)) or widest / side


def _outlined(found: Decomposition, scale: int) -> UInt8[np.ndarray, "h w 3"]:
    """Who is where, enlarged: shades of the colours of the prototypes, and black lines between objects."""
    seen = np.zeros(len(found), np.intp)
    for n, kind in enumerate(found.prototypes):
        seen[n] = np.count_nonzero(found.prototypes[:n] == kind)
    shade = np.array(_SHADES)[seen % len(_SHADES)][:, None]
    colours = prototype_colours(found.prototypes) / 255
    colours = np.where(shade > 0, colours + shade * (1 - colours), colours * (1 + shade))
    labels = found.instances.repeat(scale, axis=0).repeat(scale, axis=1)
    picture = np.concatenate([np.zeros((1, 3)), colours])[labels]
    if scale > 1:
        for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
            line = (labels[one] != labels[other]) & (labels[one] > 0) & (labels[other] > 0)
            picture[one][line] = picture[other][line] = 0
    return as_rgb(picture)


def _table(
    rows: Sequence[Sequence[UInt8[np.ndarray, "_ _ 3"] | None]],
    headings: Sequence[str],
    inks: Sequence[str],
    scale: float,
    *,
    breaks: Sequence[int] = (),
    below: int = 0,
    least: int = 0,
) -> _Sheet:
    """A sheet with a row of panels per scene under headings; wider gaps before the columns that `breaks` names.

    `below` is room for other things below the rows, `least` the width of the sheet at least, both in dots.
    """
    assert rows[0][0] is not None
    size = _size(rows[0][0], scale)
    wide = len(headings) * (size[1] + _GAP) - _GAP + len(breaks) * _GAP
    width = max(least, wide + 2 * _EDGE)
    first = (width - wide) // 2
    lefts = [first + i * (size[1] + _GAP) + _GAP * sum(i >= b for b in breaks) for i in range(len(headings))]
    sheet = _Sheet(height=2 * _EDGE + _HEADER + len(rows) * (size[0] + _GAP) - _GAP + below, width=width)
    for left, heading, ink in zip(lefts, headings, inks, strict=True):
        sheet.text(_EDGE + _HEADER - 10, left + size[1] / 2, heading, ink, vertical="bottom")
    for row, pictures in enumerate(rows):
        for left, picture in zip(lefts, pictures, strict=True):
            if picture is not None:
                sheet.panel(_EDGE + _HEADER + row * (size[0] + _GAP), left, size, picture)
    return sheet


def _pulled_apart(
    pairs: Sequence[Sequence[UInt8[np.ndarray, "_ _ 3"]]],
    alone: Sequence[Sequence[UInt8[np.ndarray, "h w 3"]]],
    kinds: Sequence[Integer[np.ndarray, "_"]],
    frame: tuple[int, int],
    scale: float,
) -> Figure:
    """A row per scene: two panels, and beside them a grid of cut-outs, numbered front to back."""
    size = _size(pairs[0][0], scale)
    left = _EDGE + 2 * (size[1] + _GAP) + _GAP
    room = max(_TEXT_WIDTH - _EDGE - left, 4 * (frame[1] + _GAP))
    # Cut-outs may stand a little taller than wide images, or they would be tiny beside them.
    grid = _Grid.fitting(frame, min(CUT_OUTS, max(map(len, alone))), room, max(size[0], size[1] * 3 // 5))
    heights = [max(size[0], grid.height(min(CUT_OUTS, len(objects)))) for objects in alone]
    sheet = _Sheet(height=2 * _EDGE + _HEADER + sum(heights) + 2 * _GAP * (len(pairs) - 1), width=left + room + _EDGE)
    for n, heading in enumerate(("image", "reconstruction")):
        centre = _EDGE + n * (size[1] + _GAP) + size[1] / 2
        sheet.text(_EDGE + _HEADER - 10, centre, heading, _INK, vertical="bottom")
    sheet.text(_EDGE + _HEADER - 10, left + room / 2, "objects, front to back", _INK, vertical="bottom")
    top = _EDGE + _HEADER
    for pair, objects, colours, height in zip(pairs, alone, map(prototype_colours, kinds), heights, strict=True):
        for n, picture in enumerate(pair):
            sheet.panel(top, _EDGE + n * (size[1] + _GAP), size, picture)
        for n, picture in enumerate(objects[:CUT_OUTS]):
            grid.draw(sheet, top, left, n, picture, colours[n])
        top += height + 2 * _GAP
    return sheet.figure


def _size(picture: UInt8[np.ndarray, "_ _ 3"], scale: float) -> tuple[int, int]:
    """Height and width of a panel, in dots."""
    return max(1, round(picture.shape[0] * scale)), max(1, round(picture.shape[1] * scale))


@dataclass(frozen=True, slots=True)
class _Grid:
    """Small framed pictures of one size, with numbers above them, in rows."""

    columns: int
    size: tuple[int, int]

    @staticmethod
    def fitting(frame: tuple[int, int], count: int, width: int, height: int) -> _Grid:
        """The grid of the largest pictures with which so many fit into a place, or of the smallest readable ones."""
        smallest = max(1, -(-_CUT_OUT // max(frame)))
        for scale in range(max(smallest, _PANEL // min(frame)), smallest - 1, -1):
            size = (frame[0] * scale, frame[1] * scale)
            grid = _Grid(max(1, (width + _GAP) // (size[1] + 2 * _LINE + _GAP)), size)
            if grid.height(count) <= height:
                break
        return grid

    def height(self, count: int) -> int:
        """Dots that so many pictures take from top to bottom."""
        return -(-count // self.columns) * self._row

    @property
    def _row(self) -> int:
        return self.size[0] + 2 * _LINE + _NUMBER

    def draw(
        self,
        sheet: _Sheet,
        top: int,
        left: int,
        n: int,
        picture: UInt8[np.ndarray, "h w 3"],
        colour: UInt8[np.ndarray, "3"],
    ) -> None:
        """Draw the n-th picture of a grid whose corner is at `top`, `left`."""
        top += n // self.columns * self._row + _NUMBER + _LINE
        left += n % self.columns * (self.size[1] + 2 * _LINE + _GAP) + _LINE
        sheet.text(
            top - _LINE - 2, left + self.size[1] / 2, str(n + 1), _FAINT, vertical="bottom", points=_SMALL_POINTS
        )
        sheet.panel(top, left, self.size, picture, frame=(_LINE, colour))


class _Bank:
    """Prototypes over their masks, in bands of equal length."""

    def __init__(
        self,
        prototypes: Float[np.ndarray, "P h w"],
        masks: Float[np.ndarray, "P h w"],
        names: Sequence[str] | None,
        widest: int = _TEXT_WIDTH - 2 * _EDGE,
    ) -> None:
        P = len(prototypes)
        if P == 0 or masks.shape != prototypes.shape:
            raise PcdnetError(
                f"prototypes of shape {prototypes.shape} and masks of shape {masks.shape} make no sheet; "
                f"give at least one prototype and a mask of the same size for each"
            )
        self._pictures = (prototypes * masks, masks)  # where nothing is painted, values mean nothing
        self._names = [str(p) for p in range(P)] if names is None else names
        h, w = prototypes.shape[1:]
        room = (widest - _LABEL) // min(P, _ABREAST) - _STEP
        scale = max(-(-_CUT_OUT // max(h, w)), min(_scale(min(h, w)), room // w))
        self._size = h * scale, w * scale
        bands = -(-P // max(1, (widest - _LABEL) // (self._size[1] + _STEP)))
        self._columns = -(-P // bands)
        self._band = _HEADER + 2 * (self._size[0] + _STEP) + _GAP
        self.height = bands * self._band - 2 * _GAP
        self.width = _LABEL + self._columns * (self._size[1] + _STEP) - _GAP

    def draw(self, sheet: _Sheet, top: int, left: int) -> None:
        """Draw them, with the names of the two rows at the left."""
        (h, w), P = self._size, len(self._pictures[0])
        for p, colour in enumerate(prototype_colours(np.arange(P))):
            y = top + _HEADER + p // self._columns * self._band + _LINE
            x = left + _LABEL + p % self._columns * (w + _STEP) + _LINE
            sheet.text(y - _LINE - 6, x + w / 2, _short(self._names[p], w + _GAP), _FAINT, vertical="bottom")
            for row, pictures in enumerate(self._pictures):
                if p % self._columns == 0:
                    name = ("prototype", "mask")[row]
                    sheet.text(y + h / 2, left + _LABEL / 2, name, _INK, vertical="center", points=_SMALL_POINTS)
                sheet.panel(y, x, (h, w), as_rgb(pictures[p][..., None]), frame=(_LINE, colour))
                y += h + _STEP


def _short(name: str, dots: int) -> str:
    """A name, cut if it is longer than so many dots."""
    most = max(3, int(dots / _LETTER))
    return name if len(name) <= most else f"{name[: most - 1]}…"


class _Sheet:
    """A figure on which things are placed by dots from the top left."""

    def __init__(self, *, height: int, width: int) -> None:
        self.figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
        FigureCanvasAgg(self.figure)
        self.height, self.width = height, width

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
        smaller = size[1] < picture.shape[1]
        image = BboxImage(place, interpolation="hanning" if smaller else "nearest", origin="upper")
        image.set_data(picture)
        self.figure.add_artist(image)

    def text(
        self,
        bottom: float,
        centre: float,
        words: str,
        ink: str,
        *,
        vertical: str,
        points: float = _POINTS,
    ) -> None:
        """Write words around a centre, above (or, vertically centred, at) a height."""
        self.figure.text(
            centre / self.width,
            1 - bottom / self.height,
            words,
            color=ink,
            fontsize=points,
            ha="center",
            va=vertical,
            parse_math=False,  # a name is plain text, dollars and all
        )

    def _box(self, top: int, left: int, size: tuple[int, int]) -> Bbox:
        """The box in shares of the figure, from its bottom left, as matplotlib has it."""
        H, W, bottom = self.height, self.width, self.height - top - size[0]
        return Bbox.from_bounds(left / W, bottom / H, size[1] / W, size[0] / H)
