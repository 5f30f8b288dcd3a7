"""Failures: every scene of Tetrominoes that is not labelled right, and why, decided by test.

The true objects are painted with the learned prototypes, in colours found as the search finds them. Of a wrong scene
this tells whether the search had something better to choose, and whether it could have chosen it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from PIL import Image, ImageDraw, ImageFont
from scipy.optimize import linear_sum_assignment

from pcdnet.colours import coloured, instance_colours
from pcdnet.data import tetrominoes
from pcdnet.data.tetrominoes import TetrominoScenes
from pcdnet.decomposition import Decomposition
from pcdnet.files import whole_file
from pcdnet.metrics import foreground_ari
from pcdnet.model.colour import least_squares_colours, network_colours
from pcdnet.model.geometry import Geometry
from pcdnet.model.inspection import inspect
from pcdnet.model.network import PCDNet
from pcdnet.model.windows import Frames

Reason = Literal["shape not learned", "wrong mask", "ambiguous cut", "missed place", "greedy mistake"]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""In the order in which they are asked for; the first that holds is the reason."""
LEARNED = 0.95
"""A shape is learned if a mask has this IoU with it; no two shapes have more than 0.6."""
EXACT = 0.01
"""Squared errors that differ by less are the same: a tenth of full scale in one channel of one pixel."""
GRID = (64, 64)
"""Holds two frames of 25x25 in any position to each other."""

SCALE, GAP, CAPTION, COLUMNS = 2, 4, 13, 6


class Fits(NamedTuple):
    """How well each prototype's mask fits each shape, at its best shift."""

    iou: Float[np.ndarray, "19 P"]
    shift: Int[np.ndarray, "19 P 2"]
    """Of the prototype's frame, from the frame that `true_prototypes` has the shape in."""


class Place(NamedTuple):
    """A prototype somewhere; row and column are those of its frame."""

    prototype: int
    row: int
    column: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A scene that is not labelled right."""

    scene: int
    """Its number among the scenes."""
    fg_ari: float
    """Below 1."""
    error: float
    """The squared error of the objects found."""
    true_error: float | None
    """That of the true objects, painted with the learned prototypes; None where a shape is not learned."""
    reason: Reason


def fits(model: PCDNet) -> Fits:
    """Compare all learned masks with all shapes, wherever either lies in its frame."""
    with torch.no_grad():
        learned = (model.bank().masks > 0.5).float()
    shapes = torch.from_numpy(tetrominoes.true_prototypes()[1])
    product = torch.fft.rfft2(shapes, s=GRID)[:, None] * torch.fft.rfft2(learned, s=GRID).conj()[None]
    overlap, at = torch.fft.irfft2(product, s=GRID).flatten(2).max(dim=-1)
    union = shapes.sum((1, 2))[:, None] + learned.sum((1, 2))[None] - overlap
    shift = torch.stack([at // GRID[1], at % GRID[1]], dim=-1)
    shift = torch.where(shift > GRID[0] // 2, shift - GRID[0], shift)  # circular: the far half are negative shifts
    return Fits((overlap / union).numpy(), shift.numpy())


def true_places(scenes: TetrominoScenes, scene: int, known: Fits) -> list[list[Place]]:
    """For each sprite of a scene every prototype that has learned its shape, where it belongs, the best first."""
    sprites = zip(scenes.shapes[scene], scenes.rows[scene], scenes.columns[scene], strict=True)
    return [
        [
            Place(int(p), *(int(n) for n in (row, column) + known.shift[shape, p] - _margin(int(shape))))
            for p in np.argsort(-known.iou[shape], kind="stable")
            if known.iou[shape, p] >= LEARNED
        ]
        for shape, row, column in sprites
    ]


def _margin(shape: int) -> Int[np.ndarray, "2"]:
    """Where the box of a shape begins in its frame of `true_prototypes`."""
    margin: Int[np.ndarray, "2"] = np.argwhere(tetrominoes.true_prototypes()[1][shape]).min(axis=0)
    return margin


@torch.no_grad()
def painted(model: PCDNet, image: Integer[np.ndarray, "H W 3"], places: Sequence[Place]) -> Decomposition:
    """The image explained by given objects, in the colours that the model finds for them."""
    bank, size = model.weights().clamped(), (image.shape[0], image.shape[1])
    prototype, row, column = torch.tensor(places)[None].unbind(-1)
    frames = Frames(Geometry.touching(size, bank.frame), row, column, torch.ones_like(row, dtype=torch.bool))
    pixels, masks = torch.from_numpy(image).permute(2, 0, 1)[None] / 255, bank.masks[prototype]
    if model.config.colour == "none":
        colours = torch.ones(1, len(places), 3)
    elif model.colour is not None:
        colours = network_colours(pixels, masks, frames, model.colour)
    else:
        limit = model.config.max_colour
        colours = least_squares_colours(pixels, None, bank.prototypes[prototype], masks, frames, limit)
    things = [
        {"prototype": place.prototype, "position": place[1:], "colour": colour}
        for place, colour in zip(places, colours[0].tolist(), strict=True)
    ]
    return model.recompose(Decomposition.from_dict({"size": size, "objects": things}), image)


def failure(model: PCDNet, scenes: TetrominoScenes, scene: int, found: Decomposition, known: Fits) -> Failure | None:
    """Why a scene is not labelled right; None where it is."""
    fg_ari = foreground_ari(scenes.labels[scene], found.instances)
    if fg_ari == 1:
        return None
    image, places = scenes.images[scene], true_places(scenes, scene, known)
    true_error = painted(model, image, [some[0] for some in places]).error if all(places) else None
    reason = _reason(model, scenes, scene, found, places, true_error)
    return Failure(
        scene=scene,
        fg_ari=round(float(fg_ari), 5),
        error=round(found.error, 4),
        true_error=None if true_error is None else round(true_error, 4),
        reason=reason,
    )


def _reason(
    model: PCDNet,
    scenes: TetrominoScenes,
    scene: int,
    found: Decomposition,
    places: list[list[Place]],
    true_error: float | None,
) -> Reason:
    """The first reason that holds."""
    if true_error is None:
        return "shape not learned"
    chosen = {
        Place(p, row, column)
        for p, (row, column) in zip(found.prototype_ids.tolist(), found.positions.tolist(), strict=True)
    }
    missing = [some for some in places if chosen.isdisjoint(some)]
    if not missing:
        return "wrong mask"
    if found.error <= true_error + EXACT:
        return "ambiguous cut"
    proposals = inspect(model, torch.from_numpy(scenes.images[scene]).permute(2, 0, 1) / 255).proposals
    tried = {Place(one.prototype, *map(int, one.position)) for one in proposals}
    return "missed place" if any(tried.isdisjoint(some) for some in missing) else "greedy mistake"


def failures(model: PCDNet, scenes: TetrominoScenes, found: Sequence[Decomposition]) -> list[Failure]:
    """Every scene that is not labelled right."""
    known = fits(model)
    wrong = (failure(model, scenes, n, one, known) for n, one in enumerate(found))
    return [one for one in wrong if one is not None]


def draw(wrong: Sequence[Failure], scenes: TetrominoScenes, found: Sequence[Decomposition], path: Path) -> None:
    """All failed scenes in one picture: the image, its true objects and those found, and the reason below."""
    side = SCALE * tetrominoes.SIZE
    width, height = 3 * (side + GAP) + 2 * GAP, side + CAPTION + 2 * GAP
    columns = min(COLUMNS, max(1, len(wrong)))
    sheet = Image.new("RGB", (columns * width, -(-len(wrong) // columns) * height or 1), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for n, one in enumerate(wrong):
        top, left = n // columns * height + GAP, n % columns * width + GAP
        labels = scenes.labels[one.scene].astype(np.int32)
        seen = (labels, matched(labels, found[one.scene].instances))
        colours = instance_colours(max(int(some.max()) for some in seen))
        pictures = (scenes.images[one.scene], *(coloured(some, colours) for some in seen))
        for k, picture in enumerate(pictures):
            panel = Image.fromarray(picture).resize((side, side), Image.Resampling.NEAREST)
            sheet.paste(panel, (left + k * (side + GAP), top))
        pen.text((left, top + side + 1), f"{one.scene}: {one.reason}", fill="black", font=font)
    with whole_file(path) as file:
        # Few colours: a third of the size, and nobody sees it.
        sheet.quantize(64, dither=Image.Dither.NONE).save(file, format="png", optimize=True)


def matched(true: Int[np.ndarray, "H W"], found: Int[np.ndarray, "H W"]) -> Int[np.ndarray, "H W"]:
    """Labels renumbered such that what is found has the number of the true object that it overlaps most."""
    count, most = int(found.max()), int(true.max())
    overlap = np.array([[np.sum((found == n + 1) & (true == k + 1)) for k in range(most)] for n in range(count)])
    numbers = np.arange(count + 1) + most  # what belongs to no true object comes after those
    numbers[0] = 0
    if count:
        rows, columns = linear_sum_assignment(-overlap.reshape(count, most))
        numbers[rows + 1] = columns + 1
    renumbered: Int[np.ndarray, "H W"] = numbers.astype(np.int32)[found]
    return renumbered
