"""Placement: which objects were chosen and where, in the frames of the bank."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.evidence import best_colour, colour_coefficients, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.selection import EMPTY, Selection
from pcdnet.model.windows import canvas, cut, paste


@dataclass(frozen=True, slots=True)
class Placement:
    """Objects of a batch of images, front to back; where there are fewer than N, the last are EMPTY."""

    prototype: Int[Tensor, "B N"]
    """Which prototype, or EMPTY."""
    row: Int[Tensor, "B N"]
    """Top row of its frame."""
    column: Int[Tensor, "B N"]
    """Left column of its frame."""
    colour: Float[Tensor, "B N C"]
    """Factor per channel on the grey prototype."""
    error_reduction: Float[Tensor, "B N"]
    """How much the squared error fell when it was added behind those before it."""
    advantage: Float[Tensor, "B N"]
    """How much of that no other prototype could have had; measured in training, 0 otherwise."""

    @property
    def exists(self) -> Bool[Tensor, "B N"]:
        """True where there is an object."""
        return self.prototype != EMPTY

    def subset(self, image: Int[Tensor, "n"]) -> Placement:
        """The objects of some of the images."""
        return self._map(lambda values: values[image])

    def in_front_of(self, others: Placement) -> Placement:
        """These objects and, behind them, all of the others; of these, the first ones that there is room for."""
        room = (~others.exists).sum(dim=1, keepdim=True)
        mine = self.exists & (torch.arange(self.exists.shape[1], device=room.device) < room)
        both = torch.cat([mine, others.exists], dim=1)
        order = (~both).long().argsort(dim=1, stable=True)[:, : mine.shape[1]]
        chosen = Placement(*(torch.cat(pair, dim=1) for pair in zip(self._values(), others._values(), strict=True)))
        picked = chosen._map(lambda values: values[torch.arange(len(order), device=order.device)[:, None], order])
        return dataclasses.replace(picked, prototype=torch.where(both.gather(1, order), picked.prototype, EMPTY))

    def _values(self) -> tuple[Tensor, ...]:
        return self.prototype, self.row, self.column, self.colour, self.error_reduction, self.advantage

    def _map(self, function: Callable[[Tensor], Tensor]) -> Placement:
        return Placement(*map(function, self._values()))

    def replaced(self, image: Int[Tensor, "n"], by: Placement, where: Bool[Tensor, "n"]) -> Placement:
        """The placement with some images' objects replaced by those of `by`, where that is asked for."""
        image = image[where]
        return Placement(
            self.prototype.index_copy(0, image, by.prototype[where]),
            self.row.index_copy(0, image, by.row[where]),
            self.column.index_copy(0, image, by.column[where]),
            self.colour.index_copy(0, image, by.colour[where]),
            self.error_reduction.index_copy(0, image, by.error_reduction[where]),
            self.advantage.index_copy(0, image, by.advantage[where]),
        )


def to_placement(candidates: Candidates, selection: Selection, offset: Int[Tensor, "P 2"]) -> Placement:
    """The chosen candidates as objects; `offset` leads from the frames of the search to those of the bank."""
    exists = selection.candidate != EMPTY
    index = selection.candidate.clamp(min=0)
    p = candidates.prototype(index)
    row = candidates.row.gather(1, index) - offset[p, 0]
    column = candidates.column.gather(1, index) - offset[p, 1]
    return Placement(
        torch.where(exists, p, EMPTY),
        torch.where(exists, row, 0),
        torch.where(exists, column, 0),
        selection.colour,
        selection.error_reduction,
        selection.advantage,
    )


def least_squares_colours(
    images: Float[Tensor, "B C H W"],
    background: Float[Tensor, "b C H W"] | None,
    prototypes: Float[Tensor, "B N h w"],
    masks: Float[Tensor, "B N h w"],
    placement: Placement,
    geometry: Geometry,
    max_colour: float,
) -> Float[Tensor, "B N C"]:
    """The closed-form colours of placed objects, differentiable in their own prototypes and masks.

    An object's colour fits what those in front of it let through; they and the background are held fixed (at its
    best a colour does not change the error, so little is lost). See `evidence`.
    """
    C = images.shape[1]
    with torch.no_grad():
        behind = None if background is None else canvas(background.detach(), geometry)
        planes = torch.cat([canvas(images, geometry), canvas(torch.ones_like(images[:, :1]), geometry)], dim=-1)
    colours = torch.zeros_like(placement.colour)
    for n in range(placement.row.shape[1]):
        image = placement.exists[:, n].nonzero()[:, 0]
        row, column = placement.row[image, n], placement.column[image, n]
        T, M = prototypes[image, n][..., None], masks[image, n][..., None]
        window = cut(planes, geometry, image, row, column)
        Y, Q = window[..., :C], window[..., C:]
        B = None if behind is None else cut(behind, geometry, image, row, column)
        colour = best_colour(*colour_coefficients(Y, Q, B, T, M), max_colour)
        colours = colours.index_put((image, torch.full_like(image, n)), colour)
        with torch.no_grad():
            now = torch.cat(occluded(Y, Q, M, T * colour[:, None, None]), dim=-1)
            paste(planes, geometry, image, row, column, now)
    return colours
