"""Selection: choose, one after the other, the candidates that explain the image best."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import Palette
from pcdnet.model.evidence import EvidenceKernels, Quadratics, planes_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import canvas, cut, paste

EMPTY = -1
"""Stands where no candidate was chosen."""


@dataclass(frozen=True, slots=True)
class SelectionInput:
    """What selection chooses from: images, a bank, the candidates and their colours. It carries no gradient."""

    images: Float[Tensor, "B C H W"]
    bank: PrototypeBank
    geometry: Geometry
    candidates: Candidates
    palette: Palette
    kernels: EvidenceKernels
    min_error_reduction: float
    min_seen: Float[Tensor, "B T"] | None = None
    """Mask area that must be seen of every candidate; None where it does not matter."""

    def of(self, image: Int[Tensor, "n"]) -> SelectionInput:
        """The same search for some of the images."""
        return dataclasses.replace(
            self,
            images=self.images[image],
            candidates=self.candidates.of(image),
            palette=self.palette.of(image),
            min_seen=None if self.min_seen is None else self.min_seen[image],
        )

    def seen(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
        """Those of the allowed candidates of which enough would be seen."""
        return allowed if self.min_seen is None else allowed & (quadratics.seen >= self.min_seen)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen candidates of a batch of images, front to back; EMPTY candidates come last."""

    candidate: Int[Tensor, "B N"]
    colour: Float[Tensor, "B N C"]
    error_reduction: Float[Tensor, "B N"]
    """How much the squared error fell when the object was added behind those before it; 0 where empty."""
    advantage: Float[Tensor, "B N"]
    """How much of that reduction no candidate of another prototype could have had; 0 where it was not measured."""

    def of(self, image: Int[Tensor, "n"]) -> Selection:
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


def select(
    search: SelectionInput, objects: int, script: Int[Tensor, "B N"] | None = None, *, advantages: bool = False
) -> Selection:
    """Greedy selection (algorithm 1 of the paper) that ends where the best reduction is below `min_error_reduction`.

    A `script` of candidates, EMPTY-padded, is followed first: this is how a revised choice is valued. With `advantages`
    it is also measured, for all but the last object, how much better the choice was than any other prototype.
    """
    geometry, candidates, C = search.geometry, search.candidates, search.images.shape[1]
    B, T = candidates.row.shape
    planes, behind = opening(search)
    quadratics = Quadratics.zeros(planes, T, C)
    available = candidates.exists.clone()
    stale = available
    alive = torch.arange(B, device=planes.device)
    result = Selection(
        torch.full((B, objects), EMPTY, device=planes.device),
        planes.new_zeros(B, objects, C),
        planes.new_zeros(B, objects),
        planes.new_zeros(B, objects),
    )
    before, best, reduction = planes.new_zeros(B, T), torch.zeros_like(alive), planes.new_zeros(B)
    for n in range(objects):
        # Transposed, pairs come out sorted by candidate, and so by prototype.
        candidate, row = stale.T.nonzero(as_tuple=True)
        search.kernels.update(planes, geometry, candidates, alive[row], candidate, quadratics)
        if advantages:
            after = quadratics.bound().where(available, 0)
            if n > 0:
                # What a choice took away from a rival is what the rival would have gained in its place.
                taken = (before - after)[alive]
                kinds = candidates.prototype(torch.arange(T, device=alive.device))
                rival = kinds != candidates.prototype(best)[:, None]
                result.advantage[alive, n - 1] = reduction - taken.where(rival, 0).amax(dim=1).clamp(min=0)
            before = after
        allowed = search.seen(quadratics, available)
        best = search.palette.best(quadratics, allowed)[alive]
        forced = script[alive, n] != EMPTY if script is not None else torch.zeros_like(alive, dtype=torch.bool)
        if script is not None:
            best = torch.where(forced, script[alive, n], best)
        colour = search.palette.colours(quadratics, alive, best)
        reduction = quadratics.error_reduction(alive, best, colour)
        pays = (allowed[alive, best] & (reduction >= search.min_error_reduction) & (reduction > 0)) | forced
        alive, best, colour, reduction = alive[pays], best[pays], colour[pays], reduction[pays]
        if len(alive) == 0:
            break
        result.candidate[alive, n], result.colour[alive, n], result.error_reduction[alive, n] = best, colour, reduction
        available[alive, best] = False
        add_in_front(planes, behind, search, alive, best, colour)
        stale = overlapping(search, alive, best) & available[alive]
    return result


def opening(search: SelectionInput) -> tuple[Float[Tensor, "B Y X planes"], Float[Tensor, "1 Y X C"] | None]:
    """The planes of evidence before anything is chosen, and the canvas of what is behind (None for black)."""
    geometry, background = search.geometry, search.bank.background
    Y = canvas(search.images, geometry)
    Q = canvas(torch.ones_like(search.images[:, :1]), geometry)
    behind = None if background is None else canvas(background[None], geometry)
    return planes_of(Y, Q, None if behind is None else behind.expand_as(Y)), behind


def add_in_front(
    planes: Float[Tensor, "B Y X planes"],
    behind: Float[Tensor, "b Y X C"] | None,
    search: SelectionInput,
    image: Int[Tensor, "n"],
    candidate: Int[Tensor, "n"],
    colour: Float[Tensor, "n C"],
) -> None:
    """Take objects, one an image, as the next in front of everything to come: update the evidence in place."""
    candidates, geometry, C = search.candidates, search.geometry, colour.shape[-1]
    row, column = candidates.row[image, candidate], candidates.column[image, candidate]
    p = candidates.prototype(candidate)
    M = search.bank.masks[p][..., None]
    T = search.bank.prototypes[p][..., None] * colour[:, None, None]
    window = cut(planes, geometry, image, row, column)
    Y, Q = window[..., :C], window[..., C : C + 1]
    # With tau' = tau (1 - M) and X' = X - tau M T the planes follow from themselves; tau is never needed.
    Y, Q = (1 - M) * (Y - Q * M * T), Q * (1 - M).square()
    B = None
    if behind is not None:
        B = cut(behind, geometry, image if len(behind) > 1 else torch.zeros_like(image), row, column)
    paste(planes, geometry, image, row, column, planes_of(Y, Q, B))


def inside(masks: Float[Tensor, "P h w"], candidates: Candidates, image: tuple[int, int]) -> Float[Tensor, "B T"]:
    """How much of each candidate's mask area lies in the image."""
    h, w = masks.shape[-2:]
    areas = torch.nn.functional.pad(masks.cumsum(1).cumsum(2), (1, 0, 1, 0))
    p = candidates.prototype(torch.arange(candidates.row.shape[1], device=masks.device))
    top, left = (-candidates.row).clamp(0, h), (-candidates.column).clamp(0, w)
    bottom, right = (image[0] - candidates.row).clamp(0, h), (image[1] - candidates.column).clamp(0, w)
    return areas[p, bottom, right] - areas[p, top, right] - areas[p, bottom, left] + areas[p, top, left]


def overlapping(search: SelectionInput, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> Bool[Tensor, "n T"]:
    """Which candidates share a pixel with a given one in the same image, by the boxes around their masks."""
    candidates = search.candidates
    boxes = torch.tensor(search.kernels.boxes, device=image.device).repeat_interleave(candidates.peaks, dim=0)
    top, left = candidates.row[image] + boxes[:, 0], candidates.column[image] + boxes[:, 1]
    bottom, right = top + boxes[:, 2], left + boxes[:, 3]
    which = candidate[:, None]
    return (
        (top < bottom.gather(1, which))
        & (top.gather(1, which) < bottom)
        & (left < right.gather(1, which))
        & (left.gather(1, which) < right)
    )
