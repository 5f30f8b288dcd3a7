"""Contexts: what can be seen of each object of an image between what is in front of it and what is behind it.

What is left of an image when all other objects are taken away shows best what one of them is. So each of them can be
looked for anew in a part of the image around it: over what is behind it, and only where nothing is in front.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.composition import compose, instance_labels
from pcdnet.model.geometry import Geometry
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.sprites import posed_sprites
from pcdnet.model.windows import Frames, Windows, canvas


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """Parts of images around objects, one for each object."""

    image: Int[Tensor, "n"]
    """Which image each is a part of."""
    row: Int[Tensor, "n"]
    """Where it begins there."""
    column: Int[Tensor, "n"]
    place: Int[Tensor, "n 2"]
    """Top left of the object's frame in its part."""
    shown: Float[Tensor, "n C h w"]
    behind: Float[Tensor, "n C h w"]
    """What is behind the object."""
    clear: Float[Tensor, "n 1 h w"]
    """1 where nothing is in front of it."""

    @staticmethod
    def of(
        images: Float[Tensor, "B C H W"],
        ground: Float[Tensor, "B C H W"],
        plan: SearchPlan,
        frame: tuple[int, int],
        found: Placement,
        which: Bool[Tensor, "B N"],
    ) -> Contexts:
        """Those of some of the objects that are found over the ground, in posed frames."""
        image, n = which.nonzero(as_tuple=True)
        size, part = (images.shape[-2], images.shape[-1]), context_size((images.shape[-2], images.shape[-1]), frame)
        corners = zip((found.row[image, n], found.column[image, n]), size, part, frame, strict=True)
        row, column = ((first + (outer - own) // 2).clamp(0, whole - own) for first, whole, own, outer in corners)
        windows, flat = Windows(Geometry(size, part, (0, 0)), image, row, column), Geometry(size, size, (0, 0))
        shown, behind = (windows.cut(canvas(each, flat)).permute(0, 3, 1, 2).contiguous() for each in (images, ground))
        clear = torch.ones_like(shown[:, 0])
        if plan.seen is not None:
            everywhere = dataclasses.replace(windows, image=torch.zeros_like(image))
            clear = everywhere.cut(canvas(plan.seen, flat))[..., 0]
        index = found.prototype.clamp(min=0)
        sprites, masks = posed_sprites(plan.bank.prototypes[index], plan.bank.masks[index], found, plan.config)
        order = torch.arange(which.shape[1], device=n.device)
        front, back = (
            _frames(found, image, row, column, part, frame, side) for side in (order < n[:, None], order > n[:, None])
        )
        behind = compose(sprites[image], masks[image], found.colour[image], back, behind)
        clear = clear * (instance_labels(masks[image], front) == 0)
        place = torch.stack([found.row[image, n] - row, found.column[image, n] - column], dim=1)
        return Contexts(image, row, column, place, shown, behind, clear[:, None])

    def in_images(self, things: PosedCandidates) -> PosedCandidates:
        """Candidates in these parts, as candidates in their images."""
        n = things.image
        row, column = things.row + self.row[n], things.column + self.column[n]
        return dataclasses.replace(things, image=self.image[n], row=row, column=column)


def context_size(image: tuple[int, int], frame: tuple[int, int]) -> tuple[int, int]:
    """Height and width of contexts in images of a size: whatever is seen in part may reach as far as its frame."""
    return min(image[0], frame[0]), min(image[1], frame[1])


def _frames(
    found: Placement,
    image: Int[Tensor, "n"],
    row: Int[Tensor, "n"],
    column: Int[Tensor, "n"],
    part: tuple[int, int],
    frame: tuple[int, int],
    those: Bool[Tensor, "n N"],
) -> Frames:
    """Where those of the objects that share a pixel with the parts of their images lie in these."""
    down, right = found.row[image] - row[:, None], found.column[image] - column[:, None]
    near = (down > -frame[0]) & (down < part[0]) & (right > -frame[1]) & (right < part[1])
    return Frames(Geometry.touching(part, frame), down, right, found.exists[image] & near & those)
