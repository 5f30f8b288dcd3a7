"""Posed candidates: prototypes in poses at places of images, which may explain what is there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.placement import Placement
from pcdnet.model.poses.pose import DOWN, RIGHT
from pcdnet.model.selection import EMPTY


@dataclass(frozen=True, slots=True, eq=False)
class PosedCandidates:
    """Things to try in a batch of images, one after the other."""

    image: Int[Tensor, "n"]
    """Which image."""
    prototype: Int[Tensor, "n"]
    row: Int[Tensor, "n"]
    """Top row of the frame of posed objects."""
    column: Int[Tensor, "n"]
    """Its left column."""
    pose: Float[Tensor, "n 5"]

    def __len__(self) -> int:
        return len(self.image)

    def part(self, which: Int[Tensor, "m"] | Bool[Tensor, "n"] | slice) -> PosedCandidates:
        """Some of them."""
        return PosedCandidates(*(getattr(self, field.name)[which] for field in dataclasses.fields(PosedCandidates)))

    def and_(self, others: PosedCandidates) -> PosedCandidates:
        """These and, after them, others."""
        names = [field.name for field in dataclasses.fields(PosedCandidates)]
        return PosedCandidates(*(torch.cat([getattr(self, name), getattr(others, name)]) for name in names))

    def settled(self, *, subpixel: bool) -> PosedCandidates:
        """The same with frames where they lie nearest, moved by less than a pixel; by nothing without `subpixel`."""
        pose = self.pose.clone()
        whole = pose[:, [DOWN, RIGHT]].round()
        pose[:, DOWN] -= whole[:, 0]
        pose[:, RIGHT] -= whole[:, 1]
        if not subpixel:
            pose[:, [DOWN, RIGHT]] = 0
        row, column = self.row + whole[:, 0].long(), self.column + whole[:, 1].long()
        return PosedCandidates(self.image, self.prototype, row, column, pose)

    @staticmethod
    def placed(objects: Placement) -> PosedCandidates:
        """The objects of a placement, image by image and front to back."""
        image, n = objects.exists.nonzero(as_tuple=True)
        where = (objects.prototype, objects.row, objects.column, objects.pose)
        return PosedCandidates(image, *(values[image, n] for values in where))

    def among(self, objects: Placement) -> Placement:
        """A placement whose prototypes are the numbers of posed candidates, with these in their place."""
        index, exists = objects.prototype.clamp(min=0), objects.exists
        values = self if len(self) else self.nothing()

        def found(each: Tensor, empty: int) -> Tensor:
            chosen = each[index]
            there = exists if chosen.ndim == 2 else exists[..., None]
            return chosen.where(there, torch.full_like(chosen, empty))

        return dataclasses.replace(
            objects,
            prototype=found(values.prototype, EMPTY),
            row=found(values.row, 0),
            column=found(values.column, 0),
            pose=found(values.pose, 0),
        )

    def nothing(self) -> PosedCandidates:
        """One that stands for none, so that there is something to point at."""
        none = self.image.new_zeros(1)
        return PosedCandidates(none, none, none, none, self.pose.new_zeros(1, self.pose.shape[1]))
