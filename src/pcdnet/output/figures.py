"""Figures: the prototypes, and decomposed scenes, as pictures for a page or a paper.

`sheet` says how things are placed, `colours` in which colours.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Integer, UInt8
from matplotlib import rc_context
from matplotlib.figure import Figure

from pcdnet.colours import as_rgb, instance_colours, prototype_colours
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.output.sheet import (
    EDGE,
    GAP,
    HEADER,
    INK,
    TEXT_WIDTH,
    Bands,
    Grid,
    Sheet,
    fitting_scale,
    panel_size,
    readable_scale,
)

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
SHADES = (0.0, 0.5, -0.3, 0.25, -0.15)
"""Objects of a kind differ by these: towards white where positive, towards black where negative."""


def prototype_sheet(
    prototypes: Float[np.ndarray, "P h w"], masks: Float[np.ndarray, "P h w"], names: Sequence[str] | None = None
) -> Figure:
    """The prototypes with their masks below them, each framed in the colour that it has in semantic maps.

    Above them are their numbers, or names if these are given; names too long for the place are cut.
    """
    bank = Bands(prototypes, masks, names)
    sheet = Sheet(height=2 * EDGE + bank.height, width=2 * EDGE + bank.width)
    bank.draw(sheet, EDGE, EDGE)
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
    inks = [INK] * 2 + [f"#{bytes(c // 4 * 3).hex()}" for c in instance_colours(layers)] + [INK] * 2
    rows = [panels(image, found, layers) for image, found in zip(images, decompositions, strict=True)]
    # Wider gaps part the whole pictures from the single objects, and those from the maps.
    return _table(rows, headings, inks, readable_scale(images.shape[2]), breaks=(2, 2 + layers)).figure


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
        return _table(table, headings, [INK] * len(headings), readable_scale(W), breaks=(2,)).figure
    kinds = [found.prototype_ids for found in decompositions]
    return _pulled_apart(pairs, alone, kinds, prototypes.shape[1:], fitting_scale(W, 4))


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
    scale = fitting_scale(images.shape[2], len(headings))
    rows = []
    for image, found in zip(images, decompositions, strict=True):
        *first, _ = panels(image, found, 0)
        rows.append([*first, _outlined(found, max(1, int(scale)))])
    width = int(len(headings) * (images.shape[2] * scale + GAP))
    bank = Bands(prototypes, masks, names, widest=max(width, TEXT_WIDTH // 2))
    sheet = _table(rows, headings, [INK] * 4, scale, below=bank.height + 2 * GAP, least=2 * EDGE + bank.width)
    bank.draw(sheet, sheet.height - EDGE - bank.height, (sheet.width - bank.width) // 2)
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
    semantics = np.concatenate([black, prototype_colours(found.prototype_ids)])[found.instances]
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
    for prototype, (row, column), colour in zip(found.prototype_ids, found.positions, found.colours, strict=True):
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


def _outlined(found: Decomposition, scale: int) -> UInt8[np.ndarray, "h w 3"]:
    """Who is where, enlarged: shades of the colours of the prototypes, and black lines between objects."""
    seen = np.zeros(len(found), np.intp)
    for n, kind in enumerate(found.prototype_ids):
        seen[n] = np.count_nonzero(found.prototype_ids[:n] == kind)
    shade = np.array(SHADES)[seen % len(SHADES)][:, None]
    colours = prototype_colours(found.prototype_ids) / 255
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
) -> Sheet:
    """A sheet with a row of panels per scene under headings; wider gaps before the columns that `breaks` names.

    `below` is room for other things below the rows, `least` the width of the sheet at least, both in dots.
    """
    assert rows[0][0] is not None
    size = panel_size(rows[0][0], scale)
    wide = len(headings) * (size[1] + GAP) - GAP + len(breaks) * GAP
    width = max(least, wide + 2 * EDGE)
    first = (width - wide) // 2
    lefts = [first + i * (size[1] + GAP) + GAP * sum(i >= b for b in breaks) for i in range(len(headings))]
    sheet = Sheet(height=2 * EDGE + HEADER + len(rows) * (size[0] + GAP) - GAP + below, width=width)
    for left, heading, ink in zip(lefts, headings, inks, strict=True):
        sheet.text(EDGE + HEADER - 10, left + size[1] / 2, heading, ink, vertical="bottom")
    for row, pictures in enumerate(rows):
        for left, picture in zip(lefts, pictures, strict=True):
            if picture is not None:
                sheet.panel(EDGE + HEADER + row * (size[0] + GAP), left, size, picture)
    return sheet


def _pulled_apart(
    pairs: Sequence[Sequence[UInt8[np.ndarray, "_ _ 3"]]],
    alone: Sequence[Sequence[UInt8[np.ndarray, "h w 3"]]],
    kinds: Sequence[Integer[np.ndarray, "_"]],
    frame: tuple[int, int],
    scale: float,
) -> Figure:
    """A row per scene: two panels, and beside them a grid of cut-outs, numbered front to back."""
    size = panel_size(pairs[0][0], scale)
    left = EDGE + 2 * (size[1] + GAP) + GAP
    room = max(TEXT_WIDTH - EDGE - left, 4 * (frame[1] + GAP))
    # Cut-outs may stand a little taller than wide images, or they would be tiny beside them.
    grid = Grid.fitting(frame, min(CUT_OUTS, max(map(len, alone))), room, max(size[0], size[1] * 3 // 5))
    heights = [max(size[0], grid.height(min(CUT_OUTS, len(objects)))) for objects in alone]
    sheet = Sheet(height=2 * EDGE + HEADER + sum(heights) + 2 * GAP * (len(pairs) - 1), width=left + room + EDGE)
    for n, heading in enumerate(("image", "reconstruction")):
        centre = EDGE + n * (size[1] + GAP) + size[1] / 2
        sheet.text(EDGE + HEADER - 10, centre, heading, INK, vertical="bottom")
    sheet.text(EDGE + HEADER - 10, left + room / 2, "objects, front to back", INK, vertical="bottom")
    top = EDGE + HEADER
    for pair, objects, colours, height in zip(pairs, alone, map(prototype_colours, kinds), heights, strict=True):
        for n, picture in enumerate(pair):
            sheet.panel(top, EDGE + n * (size[1] + GAP), size, picture)
        for n, picture in enumerate(objects[:CUT_OUTS]):
            grid.draw(sheet, top, left, n, picture, colours[n])
        top += height + 2 * GAP
    return sheet.figure
