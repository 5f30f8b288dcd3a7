"""Selection: choose, one after the other, the candidates that explain the image best."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.colour import Palette
from pcdnet.model.evidence import Quadratics, occluded, planes_of
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from pcdnet.model.windows import canvas, cut, paste, uncanvas

EMPTY = -1
"""Stands where no candidate was chosen."""


@dataclass(frozen=True, slots=True)
class SelectionInput:
    """What selection chooses from: images, the plan of the search, candidates and their colours; no gradient."""

    images: Float[Tensor, "B C H W"]
    plan: SearchPlan
    behind: Float[Tensor, "b Y X C"] | None
    """What stands behind all objects, on padded canvases: one for all images or one for each; None for black."""
    candidates: Candidates
    palette: Palette
    min_area: Float[Tensor, "B T"] | None
    """Mask area that must be visible of every candidate; None where it does not matter."""

    def subset(self, image: Int[Tensor, "n"]) -> SelectionInput:
        """The same for some of the images."""
        return dataclasses.replace(
            self,
            images=self.images[image],
            behind=self.behind if self.behind is None or len(self.behind) == 1 else self.behind[image],
            candidates=self.candidates.subset(image),
            palette=self.palette.subset(image),
            min_area=None if self.min_area is None else self.min_area[image],
        )

    def bare_error(self) -> Float[Tensor, "B"]:
        """The squared error of the images without any object."""
        if self.behind is None:
            return self.images.square().flatten(1).sum(1)
        return (self.images - uncanvas(self.behind, self.plan.geometry)).square().flatten(1).sum(1)

    def visible(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
        """Those of the allowed candidates of which enough would be visible."""
        return allowed if self.min_area is None else allowed & (quadratics.visible >= self.min_area)

    def measure(
        self,
        quadratics: Quadratics,
        planes: Float[Tensor, "B Y X planes"],
        image: Int[Tensor, "n"],
        candidate: Int[Tensor, "n"],
    ) -> None:
        """Update the coefficients of the named (image, candidate) pairs, which come sorted by candidate."""
        self.plan.kernels.update(quadratics, planes, self.plan.geometry, self.candidates, image, candidate)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen candidates of a batch of images, front to back; EMPTY candidates come last."""

    candidate: Int[Tensor, "B N"]
    colour: Float[Tensor, "B N C"]
    error_reduction: Float[Tensor, "B N"]
    """How much the squared error fell when the object was added behind those before it; 0 where empty."""
    advantage: Float[Tensor, "B N"]
    """How much of that no candidate of another prototype could have had; 0 where it was not measured."""

    def subset(self, image: Int[Tensor, "n"]) -> Selection:
        """The selection for some of the images."""
        return Selection(self.candidate[image], self.colour[image], self.error_reduction[image], self.advantage[image])

    def replaced(self, image: Int[Tensor, "n"], by: Selection) -> Selection:
        """The selection with some of the images chosen anew."""
        return Selection(
            self.candidate.index_copy(0, image, by.candidate),
            self.colour.index_copy(0, image, by.colour),
            self.error_reduction.index_copy(0, image, by.error_reduction),
            self.advantage.index_copy(0, image, by.advantage),
        )


def select(given: SelectionInput, script: Int[Tensor, "B N"] | None = None, *, advantages: bool = False) -> Selection:
    """Greedy selection (algorithm 1 of the paper) that ends where no candidate reduces the error enough.

    A `script` of candidates, EMPTY-padded, is followed first: this is how a revised choice is valued. With
    `advantages` it is also measured, for all but the last object, how much better the choice was than any other
    prototype.
    """
    candidates, C, config = given.candidates, given.images.shape[1], given.plan.config
    (B, T), N = candidates.row.shape, config.max_objects
    planes = opening_planes(given)
    quadratics = Quadratics.zeros(planes, T, C)
    available = candidates.exists.clone()
    stale = available
    alive = torch.arange(B, device=planes.device)
    result = Selection(
        torch.full((B, N), EMPTY, device=planes.device),
        planes.new_zeros(B, N, C),
        planes.new_zeros(B, N),
        planes.new_zeros(B, N),
    )
    before, best, reduction = planes.new_zeros(B, T), torch.zeros_like(alive), planes.new_zeros(B)
    for n in range(N):
        # Transposed, pairs come out sorted by candidate, and so by prototype.
        candidate, row = stale.T.nonzero(as_tuple=True)
        given.measure(quadratics, planes, alive[row], candidate)
        if advantages:
            after = quadratics.bound().where(available, 0)
            if n > 0:
                # What a choice took away from a rival is what the rival would have removed in its place.
                taken = (before - after)[alive]
                kinds = candidates.prototype(torch.arange(T, device=alive.device))
                rival = kinds != candidates.prototype(best)[:, None]
                result.advantage[alive, n - 1] = reduction - taken.where(rival, 0).amax(dim=1).clamp(min=0)
            before = after
        allowed = given.visible(quadratics, available)
        best = given.palette.best(quadratics, allowed)[alive]
        forced = script[alive, n] != EMPTY if script is not None else torch.zeros_like(alive, dtype=torch.bool)
        if script is not None:
            best = torch.where(forced, script[alive, n], best)
        colour = given.palette.colours(quadratics, alive, best)
        reduction = quadratics.error_reduction(alive, best, colour)
        pays = (allowed[alive, best] & (reduction >= config.min_error_reduction) & (reduction > 0)) | forced
        alive, best, colour, reduction = alive[pays], best[pays], colour[pays], reduction[pays]
        if len(alive) == 0:
            break
        result.candidate[alive, n], result.colour[alive, n], result.error_reduction[alive, n] = best, colour, reduction
        available[alive, best] = False
        occlude(planes, given.behind, given, alive, best, colour)
        stale = overlapping(given, alive, best) & available[alive]
    return result


def opening_planes(given: SelectionInput) -> Float[Tensor, "B Y X planes"]:
    """The planes of evidence before anything is chosen."""
    geometry, behind = given.plan.geometry, given.behind
    Y = canvas(given.images, geometry)
    Q = canvas(torch.ones_like(given.images[:, :1]), geometry)
    return planes_of(Y, Q, None if behind is None else behind.expand_as(Y))


def occlude(
    planes: Float[Tensor, "B Y X planes"],
    behind: Float[Tensor, "b Y X C"] | None,
    given: SelectionInput,
    image: Int[Tensor, "n"],
    candidate: Int[Tensor, "n"],
    colour: Float[Tensor, "n C"],
) -> None:
    """Take objects, one an image, as the next in front of everything to come: update the planes in place.

    `behind` is what stands behind all objects, one canvas for all images or one for each; None for black.
    """
    candidates, plan, C = given.candidates, given.plan, colour.shape[-1]
    row, column = candidates.row[image, candidate], candidates.column[image, candidate]
    p = candidates.prototype(candidate)
    M = plan.tight.masks[p][..., None]
    T = plan.tight.prototypes[p][..., None] * colour[:, None, None]
    window = cut(planes, plan.geometry, image, row, column)
    Y, Q = occluded(window[..., :C], window[..., C : C + 1], M, T)
    B = None if behind is None else cut(behind, plan.geometry, image, row, column)
    paste(planes, plan.geometry, image, row, column, planes_of(Y, Q, B))


def overlapping(given: SelectionInput, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> Bool[Tensor, "n T"]:
    """Which candidates share a pixel with a given one in the same image, by the boxes around their masks."""
    candidates = given.candidates
    boxes = given.plan.boxes.repeat_interleave(candidates.peaks, dim=0)
    top, left = candidates.row[image] + boxes[:, 0], candidates.column[image] + boxes[:, 1]
    bottom, right = top + boxes[:, 2], left + boxes[:, 3]
    which = candidate[:, None]
    return (
        (top < bottom.gather(1, which))
        & (top.gather(1, which) < bottom)
        & (left < right.gather(1, which))
        & (left.gather(1, which) < right)
    )
