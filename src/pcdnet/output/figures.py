"""Figures: the prototypes, and decomposed scenes, as pictures for a page or a paper.

`sheet` says how things are placed, `colours` in which colours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int64, UInt8
from matplotlib import rc_context
from matplotlib.figure import Figure

from pcdnet.colours import as_hex, as_rgb, coloured, instance_colours, prototype_colours
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.names import first_of_each
from pcdnet.output.sheet import EDGE, GAP, HEADER, INK, TEXT_WIDTH, Bands, Grid, Sheet, fitting_scale, readable_scale

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
PAIR = ("image", "reconstruction")
"""What every row of scenes begins with."""
SHADES = (0.0, 0.5, -0.3, 0.25, -0.15)
"""Objects of a kind differ by these: towards white where positive, towards black where negative."""


def prototype_sheet(bank: BankArrays, names: Sequence[str] | None = None) -> Figure:
    """The prototypes with their masks below them, each framed in the colour that it has in semantic maps.

    Above them are their numbers, or names if these are given; names too long for the place are cut. Prototypes of one
    name have the colour of the first.
    """
    bands = Bands(bank, names)
    sheet = Sheet(height=2 * EDGE + bands.height, width=2 * EDGE + bands.width)
    bands.draw(sheet, EDGE, EDGE)
    return sheet.figure


def decomposition_sheet(images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition]) -> Figure:
    """A row per scene: the image, its reconstruction, object by object front to back (at most 6), and the label maps.

    Prototypes have the colours of `prototype_sheet` in the semantic map; the n-th object from the front has the
    colour of the n-th heading in the instance map.
    """
    scenes = _paired(images, decompositions)
    layers = min(LAYERS, max(map(len, decompositions)))
    inks = {f"object {n}": as_hex(colour // 4 * 3) for n, colour in enumerate(instance_colours(layers), start=1)}
    rows = []
    for image, found in scenes:
        whole, painted, *maps = panels(image, found).values()
        seen = [np.where((found.instances == n + 1)[..., None], painted, np.uint8(0)) for n in range(len(found))]
        rows.append([[whole, painted], seen, maps])
    headings = [dict.fromkeys(PAIR, INK), inks, dict.fromkeys(("semantic", "instances"), INK)]
    return _table(rows, headings, readable_scale(images.shape[2])).figure


def object_sheet(
    images: Float[np.ndarray, "n H W C"],
    decompositions: Sequence[Decomposition],
    bank: BankArrays,
    names: Sequence[str] | None = None,
) -> Figure:
    """A row per scene: the image, its reconstruction, and its objects alone, front to back, whole even where hidden.

    Of small images with few objects each object has a canvas of its own. Objects of others are cut out, in the
    frames of their prototypes, each framed in the colour of its prototype, or of the first that has the same name.
    """
    pairs = [[as_rgb(image), as_rgb(found.reconstruction)] for image, found in _paired(images, decompositions)]
    width, most = images.shape[2], max(map(len, decompositions))
    if width > SMALL or most > LAYERS:
        return _pulled_apart(pairs, decompositions, bank, _first(bank, names), fitting_scale(width, 4))
    headings = [dict.fromkeys(PAIR, INK), dict.fromkeys((f"object {n + 1}" for n in range(most)), INK)]
    rows = [
        (pair, object_pictures(found, bank, canvas=True)) for pair, found in zip(pairs, decompositions, strict=True)
    ]
    return _table(rows, headings, readable_scale(width)).figure


def segmentation_sheet(
    images: Float[np.ndarray, "n H W C"],
    decompositions: Sequence[Decomposition],
    bank: BankArrays,
    names: Sequence[str] | None = None,
) -> Figure:
    """A row per scene: the image, its reconstruction, and the label maps; below them the prototypes as a legend.

    Both maps have the colours of the prototypes, those of one name the same. In the instance map objects of a kind
    differ in shade, and a black line parts all objects.
    """
    first = _first(bank, names)
    headings = dict.fromkeys((*PAIR, "semantic", "instances"), INK)
    scale = fitting_scale(images.shape[2], len(headings))
    rows = [
        [[*list(panels(image, found, first).values())[:3], _outlined(found, first, max(1, int(scale)))]]
        for image, found in _paired(images, decompositions)
    ]
    width = int(len(headings) * (images.shape[2] * scale + GAP))
    bands = Bands(bank, names, widest=max(width, TEXT_WIDTH // 2))
    sheet = _table(rows, [headings], scale, below=bands.height + 2 * GAP, least=2 * EDGE + bands.width)
    bands.draw(sheet, sheet.height - EDGE - bands.height, (sheet.width - bands.width) // 2)
    return sheet.figure


def panels(
    image: Float[np.ndarray, "H W C"], found: Decomposition, first: Int64[np.ndarray, "P"] | None = None
) -> dict[str, UInt8[np.ndarray, "H W 3"]]:
    """A scene in whole pictures: the image, its reconstruction, and its label maps, semantics and instances.

    `first` is the prototype that each has its colour from; by default each has its own.
    """
    kinds = found.prototype_ids if first is None else first[found.prototype_ids]
    return {
        "image": as_rgb(image),
        "reconstruction": as_rgb(found.reconstruction),
        "semantics": coloured(found.instances, prototype_colours(kinds)),
        "instances": coloured(found.instances, instance_colours(len(found))),
    }


def object_pictures(found: Decomposition, bank: BankArrays, *, canvas: bool) -> list[UInt8[np.ndarray, "H W 3"]]:
    """Every object alone, front to back, whole even where others hide it.

    Each is cut out or, with `canvas`, at its place in a picture as large as the image. Behind it is black or, where the
    background is not, grey, which shows dark objects and bright ones alike.
    """
    black = bank.background is None and found.background is None
    behind, pictures = 0.0 if black else 0.5, []
    cut = tight_frame(bank.masks)
    for ((row, column), prototype, mask), colour in zip(_placed(found, bank), found.colours, strict=True):
        mask = mask[..., None].clip(0, 1)
        picture = mask * prototype[..., None] * colour + (1 - mask) * behind
        if canvas:
            # Frames may hang over the border, by less than their size.
            (H, W), (h, w) = found.instances.shape, mask.shape[:2]
            wide = np.full((H + 2 * h, W + 2 * w, picture.shape[2]), behind)
            wide[row + h : row + 2 * h, column + w : column + 2 * w] = picture
            picture = wide[h : h + H, w : w + W]
        elif found.posed:
            picture = _padded(picture[tight_frame(mask[None, ..., 0])], bank.masks[0][cut].shape, behind)
        else:
            picture = picture[cut]
        pictures.append(as_rgb(picture))
    return pictures


def _placed(found: Decomposition, bank: BankArrays) -> Iterator[tuple[tuple[int, int], np.ndarray, np.ndarray]]:
    """Where every object lies, with its prototype and its mask as they are painted."""
    if found.posed or found.positions.dtype.kind == "f":
        from pcdnet.model.posed import posed_arrays  # needs torch, which takes its time

        yield from posed_arrays(bank, found)
        return
    for p, (row, column) in zip(found.prototype_ids.tolist(), found.positions.tolist(), strict=True):
        yield (row, column), bank.prototypes[p], bank.masks[p]


def _padded(picture: Float[np.ndarray, "y x C"], like: tuple[int, ...], behind: float) -> Float[np.ndarray, "h w C"]:
    """A picture in the middle of one with the proportions of another, as all are shown in panels of one size."""
    y, x = picture.shape[:2]
    height, width = max(y, round(x * like[0] / like[1])), max(x, round(y * like[1] / like[0]))
    top, left = (height - y) // 2, (width - x) // 2
    room = ((top, height - y - top), (left, width - x - left), (0, 0))
    return np.pad(picture, room, constant_values=behind)


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


def _paired(
    images: Float[np.ndarray, "n H W C"], decompositions: Sequence[Decomposition]
) -> list[tuple[Float[np.ndarray, "H W C"], Decomposition]]:
    if len(images) == 0 or len(decompositions) != len(images):
        raise PcdnetError(
            f"{len(images)} images and {len(decompositions)} decompositions make no sheet; "
            f"give at least one image and a decomposition for each"
        )
    return list(zip(images, decompositions, strict=True))


def _first(bank: BankArrays, names: Sequence[str] | None) -> Int64[np.ndarray, "P"]:
    """For every prototype the one that it has its colour from: the first of the same name."""
    return first_of_each(names or map(str, range(len(bank.masks))))


def _outlined(found: Decomposition, first: Int64[np.ndarray, "P"], scale: int) -> UInt8[np.ndarray, "h w 3"]:
    """Who is where, enlarged: shades of the colours of the prototypes, and black lines between objects."""
    kinds = first[found.prototype_ids]
    before = [np.count_nonzero(kinds[:n] == kind) for n, kind in enumerate(kinds)]  # objects of the same kind
    shade = np.array([SHADES[n % len(SHADES)] for n in before])[:, None]
    colours = prototype_colours(kinds) / 255
    colours = np.where(shade > 0, colours + shade * (1 - colours), colours * (1 + shade))
    labels = found.instances.repeat(scale, axis=0).repeat(scale, axis=1)
    picture = coloured(labels, as_rgb(colours[None])[0])
    if scale > 1:
        for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
            line = (labels[one] != labels[other]) & (labels[one] > 0) & (labels[other] > 0)
            picture[one][line] = picture[other][line] = 0
    return picture


def _size(picture: UInt8[np.ndarray, "_ _ 3"], scale: float) -> tuple[int, int]:
    """Height and width of a panel, in dots."""
    return max(1, round(picture.shape[0] * scale)), max(1, round(picture.shape[1] * scale))


def _table(
    rows: Sequence[Sequence[Sequence[UInt8[np.ndarray, "_ _ 3"]]]],
    headings: Sequence[Mapping[str, str]],
    scale: float,
    *,
    below: int = 0,
    least: int = 0,
) -> Sheet:
    """A sheet with a row of panels per scene under headings of several colours, both in groups with wider gaps between.

    `below` is room for other things below the rows, `least` the width of the sheet at least, both in dots.
    """
    height, width = size = _size(rows[0][0][0], scale)
    wide = sum(map(len, headings)) * (width + GAP) + (len(headings) - 2) * GAP
    tall = HEADER + len(rows) * (height + GAP) - GAP + below
    sheet = Sheet(height=tall + 2 * EDGE, width=max(least, wide + 2 * EDGE))
    left, lefts = (sheet.width - wide) // 2, []
    for group in headings:
        lefts.append([left + n * (width + GAP) for n in range(len(group))])
        left += len(group) * (width + GAP) + GAP
        for place, (heading, ink) in zip(lefts[-1], group.items(), strict=True):
            sheet.text(EDGE + HEADER - 10, place + width / 2, heading, ink)
    for row, groups in enumerate(rows):
        for places, pictures in zip(lefts, groups, strict=True):
            for place, picture in zip(places, pictures, strict=False):  # a scene may have fewer or more objects
                sheet.panel(EDGE + HEADER + row * (height + GAP), place, size, picture)
    return sheet


def _pulled_apart(
    pairs: Sequence[Sequence[UInt8[np.ndarray, "_ _ 3"]]],
    found: Sequence[Decomposition],
    bank: BankArrays,
    first: Int64[np.ndarray, "P"],
    scale: float,
) -> Figure:
    """A row per scene: two panels, and beside them a grid of cut-outs, numbered front to back."""
    alone = [object_pictures(one, bank, canvas=False)[:CUT_OUTS] for one in found]
    frame = bank.masks[0][tight_frame(bank.masks)].shape
    size = _size(pairs[0][0], scale)
    lefts = (EDGE, EDGE + size[1] + GAP)
    left = EDGE + 2 * (size[1] + GAP) + GAP
    room = max(TEXT_WIDTH - EDGE - left, 4 * (frame[1] + GAP))
    # Cut-outs may stand a little taller than wide images, or they would be tiny beside them.
    grid = Grid.fitting(frame, max(map(len, alone)), room, max(size[0], size[1] * 3 // 5))
    heights = [max(size[0], grid.height(len(objects))) for objects in alone]
    sheet = Sheet(height=2 * EDGE + HEADER + sum(heights) + 2 * GAP * (len(pairs) - 1), width=left + room + EDGE)
    for place, heading in zip(lefts, PAIR, strict=True):
        sheet.text(EDGE + HEADER - 10, place + size[1] / 2, heading)
    sheet.text(EDGE + HEADER - 10, left + room / 2, "objects, front to back")
    top = EDGE + HEADER
    for pair, objects, one, height in zip(pairs, alone, found, heights, strict=True):
        for place, picture in zip(lefts, pair, strict=True):
            sheet.panel(top, place, size, picture)
        grid.draw(sheet, top, left, objects, first[one.prototype_ids].tolist())
        top += height + 2 * GAP
    return sheet.figure
