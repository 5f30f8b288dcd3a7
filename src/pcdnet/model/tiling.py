"""Tiling: pictures that are larger than what a model learned from, searched in tiles that overlap.

What limits the search of an image, objects and peaks, is meant for images as large as those of training: in tiles it
grows with their area. Memory goes with a tile, but for what is asked for of the whole picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Int32
from numpy.typing import NDArray
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.model.background.patches import PatchedSurface
from pcdnet.model.batch import to_batch
from pcdnet.model.composition import changed
from pcdnet.model.engine import Engine
from pcdnet.model.geometry import Pieces
from pcdnet.model.plan import SearchPlan
from pcdnet.model.posed import frame_corner, poses_frame
from pcdnet.model.stitching import Found, Stamps, error_of, painted, stitch

WHOLE = 512
"""Sides up to which a picture is searched in one piece where it is not known what a model learned from."""
FRAMES, LEAST, MOST = 16, 256, 1024
"""Sides of tiles: so many of the smallest frame that holds every object, but no less and no more pixels than this."""
FEWEST_FRAMES = 6
"""Frames that a tile has at least, however large they are."""
REACH = 1.5
"""Frames from a core to the end of its tile: what is cut off there is misread as far as half a frame inside, and
objects that overlap what is misread reach one further."""
MOST_PEAKS = 128
"""Tiles are smaller where more peaks of a prototype would have to be compared with each other."""
AT_ONCE, POSED_AT_ONCE = 1 << 20, 1 << 17
"""Pixels of the tiles that are searched together; where objects lie in poses, several such batches side by side."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a picture is cut into tiles, and how they are searched."""

    rows: Pieces
    columns: Pieces
    config: ModelConfig
    """The model's, with limits for tiles."""
    patch: tuple[int, int]
    """Height and width of the parts of the picture that have a plain background of their own."""

    @staticmethod
    def of(engine: Engine, size: tuple[int, int], learned: tuple[int, int] | None) -> Tiling | None:
        """The tiles of a picture of that size; None where it is searched in one piece.

        `learned` is the size of the images that the model learned from, if that is known.
        """
        if engine.config.background not in ("black", "plain"):
            return None
        if max(size) <= WHOLE if learned is None else size[0] * size[1] <= learned[0] * learned[1]:
            return None
        frame = poses_frame(engine.weights().clamped().tight()[0].frame, engine.config)
        sides = [_side(engine.config, frame[axis], learned, axis) for axis in (0, 1)]
        rows, columns = (
            Pieces.spread(length, side, ceil(2 * REACH * frame[axis]))
            for axis, (length, side) in enumerate(zip(size, sides, strict=True))
        )
        # What is cut off where tiles end is found in them, too.
        reach = [
            axis.piece + (side if len(axis.starts) > 1 else 0)
            for axis, side in zip((rows, columns), frame, strict=True)
        ]
        share = 1.0 if learned is None else max(1.0, reach[0] * reach[1] / (learned[0] * learned[1]))
        config = engine.config.scaled(share)
        return Tiling(rows, columns, config, learned or (WHOLE, WHOLE))

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a tile."""
        return self.rows.piece, self.columns.piece

    @property
    def corners(self) -> list[tuple[int, int]]:
        """Top and left of every tile, row by row."""
        return [(top, left) for top in self.rows.starts for left in self.columns.starts]


def _side(config: ModelConfig, frame: int, learned: tuple[int, int] | None, axis: int) -> int:
    """The side of tiles along an axis."""
    side = max(LEAST, min(MOST, FRAMES * frame))
    if learned is not None:
        dense = int((MOST_PEAKS / config.peaks_per_prototype) ** 0.5 * learned[axis])
        side = max(min(side, dense), learned[axis])
    return max(side, FEWEST_FRAMES * frame)


@torch.inference_mode()
def decompose_tiles(
    engine: Engine, picture: NDArray[np.generic], tiling: Tiling, *, name: str, refined: bool, background: bool
) -> Decomposition:
    """Explain a picture (H W C of uint8, or of floats from 0 to 1) as in one piece.

    `background` keeps what is behind the objects, where the model makes it for each picture.
    """
    plan = engine.tile_plan(tiling.size, tiling.config)
    whole = _Whole(engine, picture, tiling, plan, _stamps(plan))
    (H, W), C = picture.shape[:2], engine.config.channels
    surface = whole.surface() if engine.config.background == "plain" else None
    found = whole.found(surface, refined and surface is None)
    labels = np.zeros((H, W), np.int32)
    if surface is not None:
        # Objects that cover much of a picture bend the surface a little: without them it is straight. What they are
        # need not be known exactly for that, so only the second search is refined.
        painted(found, whole.stamps, None, labels)
        surface = whole.surface(labels > 0)
        found = whole.found(surface, refined)
        labels[:] = 0
    made = np.zeros((H, W, C), np.float32) if surface is None else whole.drawn(surface)
    by_change = engine.config.labels == "change"
    behind = made.copy() if by_change or (background and surface is not None) else None
    painted(found, whole.stamps, made, labels)
    if by_change:
        labels *= changed(made, behind, 2)
    decomposition = Decomposition(
        prototype_ids=found.prototype.astype(np.int32),
        positions=_positions(found),
        colours=found.colour,
        error_reductions=found.error_reduction,
        instances=labels,
        reconstruction=made,
        error=error_of(made, whole.look),
        name=name,
        background=behind if background and surface is not None else None,
    )
    return decomposition if found.pose is None else decomposition.with_poses(found.pose[:, :3])


def _positions(found: Found) -> Int32[np.ndarray, "n 2"] | Float32[np.ndarray, "n 2"]:
    """Where the upright frames of objects begin; at whole pixels if all do."""
    if found.pose is None or not found.pose[:, 3:].any():
        return found.position.astype(np.int32)
    return np.asarray(found.position + found.pose[:, 3:], np.float32)


def _stamps(plan: SearchPlan) -> Stamps:
    """The prototypes, to be painted."""
    bank, boxes = plan.bank.to_numpy(), plan.boxes.clone()
    boxes[:, :2] += plan.offset
    return Stamps(bank.prototypes, bank.masks, boxes.cpu().numpy(), plan.config)


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """A picture with what its tiles are searched for."""

    engine: Engine
    picture: NDArray[np.generic]
    tiling: Tiling
    plan: SearchPlan
    stamps: Stamps

    def look(self, row: int, column: int, size: tuple[int, int]) -> Float32[np.ndarray, "h w C"]:
        """A part of the picture, as values from 0 to 1."""
        part = self.picture[row : row + size[0], column : column + size[1]]
        return part.astype(np.float32) / np.float32(255) if part.dtype == np.uint8 else part.astype(np.float32)

    def parts(self, corners: Sequence[Sequence[int]], size: tuple[int, int]) -> Float[Tensor, "B C h w"]:
        """Equally large parts of the picture, as the model takes them."""
        (h, w), like = size, self.engine.prototypes
        stack = np.stack([self.picture[row : row + h, column : column + w] for row, column in corners])
        return to_batch(stack, self.engine.config.channels).to(like.device, like.dtype)

    def surface(self, covered: Bool[np.ndarray, "H W"] | None = None) -> PatchedSurface:
        """The plain background, by the pixels that are not covered."""

        def hidden(corners: Int[Tensor, "B 2"], size: tuple[int, int]) -> Bool[Tensor, "B h w"]:
            assert covered is not None
            shown = [covered[row : row + size[0], left : left + size[1]] for row, left in corners.tolist()]
            return torch.from_numpy(np.stack(shown)).to(self.engine.prototypes.device)

        return PatchedSurface.fit(
            (self.picture.shape[0], self.picture.shape[1]),
            self.tiling.patch,
            lambda corners, size: self.parts(corners.tolist(), size),
            None if covered is None else hidden,
        )

    def drawn(self, surface: PatchedSurface) -> Float32[np.ndarray, "H W C"]:
        """The background of the whole picture."""
        H, W, C = self.picture.shape
        background = np.empty((H, W, C), np.float32)
        for top in range(0, H, self.tiling.rows.piece):
            for left in range(0, W, self.tiling.columns.piece):
                part = background[top : top + self.tiling.rows.piece, left : left + self.tiling.columns.piece]
                part[...] = _shown(surface, top, left, (part.shape[0], part.shape[1]))
        return background

    def found(self, surface: PatchedSurface | None, refined: bool) -> Found:
        """The objects of the picture, front to back."""
        found, C = self._in_tiles(surface, refined), self.engine.config.channels
        return stitch(
            found,
            self.stamps,
            (self.tiling.rows.seams(), self.tiling.columns.seams()),
            self.look,
            lambda row, column, size: (
                np.zeros((*size, C), np.float32) if surface is None else _shown(surface, row, column, size)
            ),
            (self.picture.shape[0], self.picture.shape[1]),
            self.engine.config.min_error_reduction,
        )

    def _in_tiles(self, surface: PatchedSurface | None, refined: bool) -> Found:
        """The objects of every tile."""
        (h, w), corners, C = self.tiling.size, self.tiling.corners, self.engine.config.channels
        # Room for all is taken at once: many small results would keep large ones' memory from being used again.
        posed = self.plan.config.posed
        found, count = Found.room(len(corners) * self.tiling.config.max_objects, C, posed=posed), 0
        at_once = max(1, (POSED_AT_ONCE if posed else AT_ONCE) // (h * w))

        def search(start: int) -> Any:
            some = corners[start : start + at_once]
            images = self.parts(some, (h, w))
            own = None if surface is None else torch.stack([surface.picture(*corner, (h, w)) for corner in some])
            with torch.inference_mode():  # which another thread is not in by itself
                return self.engine.search(images, own, self.plan, refined=refined).on_host()

        starts = range(0, len(corners), at_once)
        for start, where in zip(starts, self.engine.each(search, starts), strict=True):
            for b, corner in enumerate(corners[start : start + at_once]):
                n = int(where.exists[b].sum())
                place = slice(count, count + n)
                found.prototype[place] = where.prototype[b, :n].numpy()
                found.position[place] = torch.stack([where.row[b, :n], where.column[b, :n]], dim=1).numpy()
                found.position[place] += corner
                if found.pose is not None:
                    found.position[place] += frame_corner(self.plan.bank.frame, self.plan.config)
                    found.pose[place] = where.pose[b, :n].float().numpy()
                found.colour[place] = where.colour[b, :n].float().numpy()
                found.error_reduction[place] = where.error_reduction[b, :n].float().numpy()
                found.tile[place], found.rank[place] = start + b, np.arange(n)
                count += n
        return found.part(np.arange(count))


def _shown(surface: PatchedSurface, row: int, column: int, size: tuple[int, int]) -> Float32[np.ndarray, "h w C"]:
    """A part of the background, channels last."""
    return surface.picture(row, column, size).permute(1, 2, 0).float().cpu().numpy()
