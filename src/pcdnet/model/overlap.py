"""Overlap: what the pixels that two objects share say about which of them is in front.

A pair is looked at in the frames of its two objects, both ways round, with the same other objects in front of it and
behind it. Each is coloured by the pixels that it alone covers: an object that is partly hidden gets a wrong colour
where it is taken for the front one. Everything is read from windows, and the cost goes with the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.composition import OPAQUE
from pcdnet.model.evidence import TINY, best_colour, colour_coefficients, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.peaks import DEVICE_BYTES
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.windows import Windows, canvas, inside_of

PAIR_BYTES = 1 << 20
"""Pairs are looked at in chunks whose windows have about this size, so that they stay in the cache."""
SAME = 1e-6
"""Pixels in which the two orders differ by less than this squared error say nothing."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of objects: in which image, and in which slots, the front one first."""

    image: Int[Tensor, "m"]
    front: Int[Tensor, "m"]
    back: Int[Tensor, "m"]

    def __getitem__(self, which: Bool[Tensor, "m"] | slice) -> Pairs:
        """Some of the pairs."""
        if isinstance(which, Tensor):
            which = which.nonzero()[:, 0]
        return Pairs(self.image[which], self.front[which], self.back[which])

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Objects as they lie in frames: their own, or those of others."""

    mask: Float[Tensor, "m h w 1"]
    prototype: Float[Tensor, "m h w 1"]

    def over(self, under: Float[Tensor, "m h w C"], colour: Float[Tensor, "m C"]) -> Float[Tensor, "m h w C"]:
        """The objects painted over something."""
        return under + self.mask * (self.prototype * colour[:, None, None] - under)


@dataclass(frozen=True, slots=True)
class Stack:
    """Placed objects in the tight frames of the search, front to back, and the images that they should explain."""

    placement: Placement
    plan: SearchPlan
    prototype: Int[Tensor, "B N"]
    row: Int[Tensor, "B N"]
    column: Int[Tensor, "B N"]
    touching: Bool[Tensor, "B N N"]
    """Whether the boxes around two objects' masks share a pixel."""
    images: Float[Tensor, "B Y X planes"]
    """The images on padded canvases, and a plane that is 1 inside the image."""
    bare: Float[Tensor, "B Y X C"]
    """What is behind all objects."""
    bank: Float[Tensor, "P rows columns 2"]
    """Masks and prototypes with room on every side: objects in the frames of others are cut from these."""

    @staticmethod
    def of(
        images: Float[Tensor, "B C H W"],
        bare: Float[Tensor, "B C H W"],
        plan: SearchPlan,
        placement: Placement,
    ) -> Stack:
        """The objects of a placement in images over what is behind them."""
        prototype, row, column = tight_frames(plan, placement)
        return Stack(
            placement,
            plan,
            prototype,
            row,
            column,
            touching(plan, placement),
            torch.cat([canvas(images, plan.geometry), inside_of(images, plan.geometry, plan.seen)], dim=-1),
            canvas(bare, plan.geometry),
            canvas(torch.stack([plan.tight.masks, plan.tight.prototypes], dim=1), _around(plan)),
        )

    def moved(self, image: Int[Tensor, "b"], placement: Placement) -> Stack:
        """The same for some of the images, with their objects in other slots."""
        prototype, row, column = tight_frames(self.plan, placement)
        near, images, bare = touching(self.plan, placement), self.images[image], self.bare[image]
        return Stack(placement, self.plan, prototype, row, column, near, images, bare, self.bank)

    def windows(self, image: Int[Tensor, "m"], slot: Int[Tensor, "m"]) -> Windows:
        """The frames of the named objects."""
        return Windows(self.plan.geometry, image, self.row[image, slot], self.column[image, slot])

    def shapes(self, image: Int[Tensor, "m"], slot: Int[Tensor, "m"], frame: Int[Tensor, "m"]) -> Shapes:
        """The objects of some slots as they lie in the frames of those in the slots `frame`."""
        row, column = (at[image, frame] - at[image, slot] for at in (self.row, self.column))
        cut = Windows(_around(self.plan), self.prototype[image, slot], row, column).cut(self.bank)
        return Shapes(cut[..., :1], cut[..., 1:])

    def colours(
        self,
        Y: Float[Tensor, "m h w C"],
        Q: Float[Tensor, "m h w 1"],
        bare: Float[Tensor, "m h w C"],
        shapes: Shapes,
        given: Float[Tensor, "m C"],
    ) -> Float[Tensor, "m C"]:
        """The colours of objects behind what Y and Q let through, as selection finds them.

        Colours that do not depend on what is in front, the network's and none, are the given ones.
        """
        config = self.plan.config
        if config.colour != "least_squares":
            return given
        found: Tensor = best_colour(*colour_coefficients(Y, Q, bare, shapes.prototype, shapes.mask), config.max_colour)
        return found

    def overlapping(self) -> Pairs:
        """The pairs whose masks, above a half, share a pixel of the image."""
        pairs = Pairs(*self.touching.triu().nonzero(as_tuple=True))
        shared = [self._share(part) for part in self.chunks(pairs)]
        return pairs[torch.cat(shared)] if shared else pairs

    def _share(self, pairs: Pairs) -> Bool[Tensor, "m"]:
        inside = self.windows(pairs.image, pairs.front).cut(self.images)[..., -1:] > 0
        one = self.shapes(pairs.image, pairs.front, pairs.front).mask > OPAQUE
        two = self.shapes(pairs.image, pairs.back, pairs.front).mask > OPAQUE
        return (inside & one & two).flatten(1).any(dim=1)

    def chunks(self, pairs: Pairs) -> Iterator[Pairs]:
        """The pairs, a few at a time."""
        (h, w), planes = self.plan.geometry.frame, self.images.shape[-1]
        at_once = DEVICE_BYTES if in_lockstep(self.images) else PAIR_BYTES
        most = max(1, at_once // (h * w * planes * self.images.element_size()))
        return (pairs[start : start + most] for start in range(0, len(pairs), most))


def tight_frames(plan: SearchPlan, placement: Placement) -> tuple[Tensor, Tensor, Tensor]:
    """Prototype, and row and column of the tight frame, of every object; any where there is none."""
    prototype = placement.prototype.clamp(min=0)
    top, left = plan.offset[prototype].unbind(-1)
    return prototype, placement.row + top, placement.column + left


def touching(plan: SearchPlan, placement: Placement) -> Bool[Tensor, "B N N"]:
    """Whether the boxes around two objects' masks share a pixel; no object touches itself."""
    prototype, row, column = tight_frames(plan, placement)
    box, exists = plan.boxes[prototype], placement.exists
    top, left = row + box[..., 0], column + box[..., 1]
    bottom, right = top + box[..., 2], left + box[..., 3]
    one = (top[:, :, None] < bottom[:, None]) & (left[:, :, None] < right[:, None]) & exists[:, :, None]
    return one & one.transpose(1, 2) & ~torch.eye(exists.shape[1], dtype=torch.bool, device=exists.device)


def order_evidence(stack: Stack, pairs: Pairs) -> Float[Tensor, "m"]:
    """By how much the pixels that the two objects of each pair share speak for their order; negative: against it.

    It is the squared error that the other order would add in the median pixel, times their number: where a prototype
    fits an object badly, in a highlight or a hole, a few pixels would otherwise outvote all others.
    """
    parts = [_order_evidence(stack, part) for part in stack.chunks(pairs)]
    return torch.cat(parts) if parts else stack.images.new_zeros(0)


def _order_evidence(stack: Stack, pairs: Pairs) -> Float[Tensor, "m"]:
    front = _View.of(stack, pairs, pairs.front, pairs.back)
    back = _View.of(stack, pairs, pairs.back, pairs.front)
    colours = [view.colour(stack.plan.config) for view in (front, back)]
    rise = front.rise(front.behind(stack, pairs, pairs.front), *colours)
    shared = (front.own.mask[..., 0] > OPAQUE) & (front.other.mask[..., 0] > OPAQUE) & (rise.abs() > SAME)
    rise = rise.where(shared, torch.nan).flatten(1)
    # The mean of the lower and the upper median: the two orders of a pair must say the same.
    median = (rise.nanmedian(dim=1).values - (-rise).nanmedian(dim=1).values) / 2
    return shared.flatten(1).sum(dim=1) * median.nan_to_num()


@dataclass(frozen=True, slots=True)
class _View:
    """The frames of one object of every pair, with the other one, and with what is in front of and behind the pair."""

    Y: Float[Tensor, "m h w C"]
    Q: Float[Tensor, "m h w 1"]
    bare: Float[Tensor, "m h w C"]
    own: Shapes
    other: Shapes
    given: Float[Tensor, "m C"]
    """The colour that the object has."""
    farther: Bool[Tensor, "m N"]
    """Which slots hold objects that touch it behind the pair."""

    @staticmethod
    def of(stack: Stack, pairs: Pairs, slot: Int[Tensor, "m"], other: Int[Tensor, "m"]) -> _View:
        """The frames of the objects in `slot`; what stands between the two of a pair counts as in front of it.

        So a pair is judged by the pixels alone in which no third object takes part.
        """
        image, colours = pairs.image, stack.placement.colour
        windows = stack.windows(image, slot)
        content, bare = windows.cut(stack.images), windows.cut(stack.bare)
        Y, Q = content[..., :-1], content[..., -1:]
        third = stack.touching[image, slot].scatter(1, other[:, None], False)
        number = torch.arange(third.shape[1], device=image.device)
        for m, n in _one_by_one(third & (number < pairs.back[:, None])):
            shapes = stack.shapes(image[m], n, slot[m])
            texture = shapes.prototype * colours[image[m], n][:, None, None]
            Y[m], Q[m] = occluded(Y[m], Q[m], shapes.mask, texture)
        own, second = stack.shapes(image, slot, slot), stack.shapes(image, other, slot)
        behind = third & (number > pairs.back[:, None])
        return _View(Y, Q, bare, own, second, colours[image, slot], behind)

    def behind(self, stack: Stack, pairs: Pairs, slot: Int[Tensor, "m"]) -> Float[Tensor, "m h w C"]:
        """The background and the objects that stand on it behind the pair."""
        picture = self.bare.clone()
        for m, n in reversed(_one_by_one(self.farther)):
            shapes = stack.shapes(pairs.image[m], n, slot[m])
            picture[m] = shapes.over(picture[m], stack.placement.colour[pairs.image[m], n])
        return picture

    def colour(self, config: ModelConfig) -> Float[Tensor, "m C"]:
        """The colour of the object by the pixels that it alone covers, so that it is the same in either order.

        Of all colours it leaves the least absolute error: that is a weighted median, and no few pixels bend it.
        """
        if config.colour != "least_squares":
            return self.given
        M, MT = self.own.mask, self.own.mask * self.own.prototype
        alone = (M > OPAQUE) & (self.other.mask <= OPAQUE) & (self.Q > OPAQUE) & (MT > 0)
        rest = self.Y / self.Q.clamp(min=TINY) - (1 - M) * self.bare
        ratio = (rest / MT.clamp(min=TINY)).where(alone, 0).flatten(1, 2)
        ratio, order = ratio.sort(dim=1)
        weight = MT.where(alone, 0).flatten(1, 2).expand_as(ratio).gather(1, order).cumsum(dim=1)
        middle = (weight < weight[:, -1:] / 2).sum(dim=1, keepdim=True).clamp(max=ratio.shape[1] - 1)
        found = ratio.gather(1, middle)[:, 0].clamp(0, config.max_colour)
        return found.where(weight[:, -1] > 0, self.given)

    def rise(
        self, behind: Float[Tensor, "m h w C"], own: Float[Tensor, "m C"], other: Float[Tensor, "m C"]
    ) -> Float[Tensor, "m h w"]:
        """How much the error of every pixel rises if the other object comes first, in these colours."""
        now = self.own.over(self.other.over(behind, other), own)
        then = self.other.over(self.own.over(behind, own), other)
        return ((then - now) * (self.Q * (then + now) - 2 * self.Y)).sum(dim=-1)


def _one_by_one(which: Bool[Tensor, "m N"]) -> list[tuple[Int[Tensor, "k"], Int[Tensor, "k"]]]:
    """The named objects of every pair, front to back: the first of each pair, then the second, as indices."""
    pair, slot = which.nonzero(as_tuple=True)
    place = which.cumsum(dim=1)[pair, slot]
    counts = torch.bincount(place).tolist()[1:]
    order = place.argsort(stable=True)
    return list(zip(torch.split(pair[order], counts), torch.split(slot[order], counts), strict=True))


def _around(plan: SearchPlan) -> Geometry:
    """How a frame lies around another one that it touches."""
    frame = plan.geometry.frame
    return Geometry(frame, frame, frame)
