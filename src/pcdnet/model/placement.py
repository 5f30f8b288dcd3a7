"""Placement: which objects were chosen and where, in the frames of the bank."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.geometry import Geometry
from pcdnet.model.plan import SearchPlan
from pcdnet.model.selection import EMPTY, Selection, SelectionInput
from pcdnet.model.windows import Frames


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
    pose: Float[Tensor, "B N pose"]
    """How it is turned, scaled, mirrored and moved by less than a pixel (see `poses`), and its frame is that of posed
    objects; of no length where objects have no poses."""

    @property
    def exists(self) -> Bool[Tensor, "B N"]:
        """True where there is an object."""
        return self.prototype != EMPTY

    def on_host(self) -> Placement:
        """The same where its numbers can be read one by one."""
        return Placement(*(getattr(self, field.name).cpu() for field in dataclasses.fields(Placement)))

    def frames(self, image_size: tuple[int, int], frame: tuple[int, int]) -> Frames:
        """The same places as frames of a bank, for whoever paints in images of this size."""
        return Frames(Geometry.touching(image_size, frame), self.row, self.column, self.exists)


def in_front(found: Placement, others: Placement) -> Placement:
    """Found objects and, behind them, all of the others; of those found, the first ones that there is room for."""
    room = (~others.exists).sum(dim=1, keepdim=True)
    fit = found.exists & (torch.arange(found.exists.shape[1], device=room.device) < room)
    names = [field.name for field in dataclasses.fields(Placement)]
    both = Placement(*(torch.cat([getattr(found, name), getattr(others, name)], dim=1) for name in names))
    return _packed(both, torch.cat([fit, others.exists], dim=1), fit.shape[1])


def reported(found: Placement, plan: SearchPlan) -> Placement:
    """The objects that the border does not cut off too much (`config.min_inside`), in their order.

    The others take part in the search all the same: without them, wrong ones would explain what is seen of them.
    """
    if plan.config.min_inside == 0:
        return found
    p = found.prototype.clamp(min=0)
    top, left = plan.offset[p].unbind(-1)
    return _packed(found, found.exists & plan.reported(p, found.row + top, found.column + left), p.shape[1])


def shifted(objects: Placement, down: int, right: int) -> Placement:
    """The objects elsewhere."""
    there = objects.exists
    row, column = torch.where(there, objects.row + down, 0), torch.where(there, objects.column + right, 0)
    return dataclasses.replace(objects, row=row, column=column)


def kept(objects: Placement, those: Bool[Tensor, "B N"]) -> Placement:
    """Some of the objects, in their order."""
    return _packed(objects, those, those.shape[1])


def _packed(objects: Placement, kept: Bool[Tensor, "B n"], count: int) -> Placement:
    """The first `count` of the kept objects, EMPTY last."""
    order = (~kept).long().argsort(dim=1, stable=True)[:, :count]
    image = torch.arange(len(order), device=order.device)[:, None]
    there = kept.gather(1, order)

    def packed(name: str) -> Tensor:
        values: Tensor = getattr(objects, name)[image, order]
        return values.where(there if values.ndim == 2 else there[..., None], EMPTY if name == "prototype" else 0)

    return Placement(*(packed(field.name) for field in dataclasses.fields(Placement)))


def to_placement(given: SelectionInput, selection: Selection) -> Placement:
    """The chosen candidates as objects, from the frames of the search to those of the bank."""
    candidates, index = given.candidates, selection.candidate.clamp(min=0)
    exists, p = selection.candidate != EMPTY, candidates.prototype(index)
    top, left = given.plan.offset[p].unbind(-1)
    return Placement(
        torch.where(exists, p, EMPTY),
        torch.where(exists, candidates.row.gather(1, index) - top, 0),
        torch.where(exists, candidates.column.gather(1, index) - left, 0),
        selection.colour,
        selection.error_reduction,
        selection.advantage,
        selection.colour[..., :0],
    )
