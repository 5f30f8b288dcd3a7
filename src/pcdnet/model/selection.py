"""Selection: choose, one after the other, the candidates that explain the image best."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, fields
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.colour import Palette
from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import Problem, as_array
from pcdnet.model.evidence import Evidence, Quadratics, occluded
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from pcdnet.model.windows import Windows, canvas

EMPTY = -1
"""Stands where no candidate was chosen."""


@dataclass(frozen=True, slots=True)
class SelectionInput:
    """What selection chooses from: images, the plan of the search, candidates and their colours; no gradient."""

    images: Float[Tensor, "B C H W"]
    plan: SearchPlan
    candidates: Candidates
    palette: Palette
    min_area: Float[Tensor, "B T"] | None
    """Mask area that must be visible of every candidate; None where it does not matter."""
    own: Float[Tensor, "B C H W"] | None = None
    """Backgrounds of the images other than the bank's."""

    def behind(self) -> Float[Tensor, "B C H W"]:
        """What is behind the objects of every image."""
        shared = self.plan.bank.behind(self.images[0]) if self.own is None else self.own
        return shared.expand_as(self.images)

    def evidence(self) -> Evidence:
        """The evidence before anything is chosen."""
        geometry = self.plan.geometry
        behind = self.plan.behind if self.own is None else canvas(self.own, geometry)
        return Evidence.opening(self.images, geometry, behind, self.plan.seen)

    def subset(self, image: Int[Tensor, "n"]) -> SelectionInput:
        """The same for some of the images."""
        return dataclasses.replace(
            self,
            images=self.images[image],
            candidates=self.candidates.subset(image),
            palette=self.palette.subset(image),
            min_area=None if self.min_area is None else self.min_area[image],
            own=None if self.own is None else self.own[image],
        )

    def windows(self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> Windows:
        """The frames of the named (image, candidate) pairs."""
        where = self.candidates
        return Windows(self.plan.geometry, image, where.row[image, candidate], where.column[image, candidate])

    def place(self) -> Int[Tensor, "B T"]:
        """Which of candidates that are as good as each other counts: the one of the least."""
        where = self.candidates
        place: Tensor = self.plan.place_of(where.row, where.column, where.peaks)
        return place

    def unmeasured(self) -> Quadratics:
        """Coefficients of all candidates, none of them measured yet."""
        (B, C), T = self.images.shape[:2], self.candidates.row.shape[1]
        return Quadratics(self.images.new_zeros(B, T, C + 3))

    def measure(
        self,
        quadratics: Quadratics,
        evidence: Evidence,
        image: Int[Tensor, "n"],
        candidate: Int[Tensor, "n"],
    ) -> None:
        """Update the coefficients of the named (image, candidate) pairs, which come sorted by candidate."""
        prototype, windows = self.candidates.prototype(candidate), self.windows(image, candidate)
        found = self.plan.kernels.measure(evidence.planes, windows, prototype)
        quadratics.values[image, candidate, : found.shape[1]] = found

    def measure_all(self, quadratics: Quadratics, evidence: Evidence) -> None:
        """Update the coefficients of all candidates."""
        where = self.candidates
        found = self.plan.kernels.measure_all(evidence.planes, self.plan.geometry, where.row, where.column)
        quadratics.values[..., : found.shape[-1]] = found

    def occlude(
        self,
        evidence: Evidence,
        image: Int[Tensor, "n"],
        candidate: Int[Tensor, "n"],
        colour: Float[Tensor, "n C"],
        there: Bool[Tensor, "n"] | None = None,
    ) -> None:
        """Take objects, one an image, as the next in front of everything to come: update the evidence in place.

        With `there` only some of them are there.
        """
        windows, p = self.windows(image, candidate), self.candidates.prototype(candidate)
        masks, prototypes = self.plan.tight.masks[p][..., None], self.plan.tight.prototypes[p][..., None]
        masks = masks if there is None else masks * there[:, None, None, None]
        evidence.paste(windows, *occluded(*evidence.cut(windows), masks, prototypes * colour[:, None, None]))

    def visible(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
        """Those of the allowed candidates of which enough would be visible."""
        return allowed if self.min_area is None else allowed & (quadratics.visible >= self.min_area)


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen candidates of a batch of images, front to back; EMPTY candidates come last."""

    candidate: Int[Tensor, "B N"]
    colour: Float[Tensor, "B N C"]
    error_reduction: Float[Tensor, "B N"]
    """How much the squared error fell when the object was added behind those before it; 0 where empty."""
    advantage: Float[Tensor, "B N"]
    """How much of that no candidate of another prototype could have had; 0 where it was not measured."""


Batch = TypeVar("Batch")
"""A dataclass of tensors, such as a Selection, each with the images of a batch along its first axis."""


def subset(batch: Batch, image: Tensor) -> Batch:
    """The same for some of the images, by number or by a mask."""
    names = [field.name for field in fields(batch)]  # type: ignore[arg-type]
    image = image.nonzero()[:, 0] if image.dtype == torch.bool else image
    return type(batch)(*(getattr(batch, name)[image] for name in names))


def replaced(batch: Batch, image: Int[Tensor, "n"], by: Batch) -> Batch:
    """The same with other values for some of the images."""
    names = [field.name for field in fields(batch)]  # type: ignore[arg-type]
    return type(batch)(*(getattr(batch, name).index_copy(0, image, getattr(by, name)) for name in names))


def select(given: SelectionInput, script: Int[Tensor, "B N"] | None = None, *, advantages: bool = False) -> Selection:
    """Greedy selection (algorithm 1 of the paper) that ends where no candidate reduces the error enough.

    A `script` of candidates, EMPTY-padded, is followed first: this is how a revised choice is valued. With
    `advantages` it is also measured, for all but the last object, how much better the choice was than any other
    prototype.
    """
    if usable(given.images) and given.palette.limits is not None:
        return _compiled(given, script, advantages)
    if in_lockstep(given.images):
        from pcdnet.model.lockstep.selection import select as all_at_once

        return all_at_once(given, script, advantages=advantages)
    candidates, images, config = given.candidates, given.images, given.plan.config
    (B, T), N, C = candidates.row.shape, config.max_objects, images.shape[1]
    evidence = given.evidence()
    quadratics = given.unmeasured()
    available = candidates.exists.clone()
    stale, alive = available, torch.arange(B, device=images.device)
    result = Selection(
        torch.full((B, N), EMPTY, device=images.device),
        images.new_zeros(B, N, C),
        images.new_zeros(B, N),
        images.new_zeros(B, N),
    )
    script = result.candidate.clone() if script is None else script
    before, best, reduction = images.new_zeros(B, T), torch.zeros_like(alive), images.new_zeros(B)
    place = given.place()
    for n in range(N):
        # Transposed, pairs come out sorted by candidate, and so by prototype.
        candidate, row = stale.T.nonzero(as_tuple=True)
        given.measure(quadratics, evidence, alive[row], candidate)
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
        best = given.palette.best(quadratics, allowed, place)[alive]
        forced = script[alive, n] != EMPTY
        best = torch.where(forced, script[alive, n], best)
        colour = given.palette.colours(quadratics, alive, best)
        reduction = quadratics.at(alive, best).error_reduction(colour)
        pays = (allowed[alive, best] & (reduction >= config.min_error_reduction) & (reduction > 0)) | forced
        alive, best, colour, reduction = alive[pays], best[pays], colour[pays], reduction[pays]
        if len(alive) == 0:
            break
        result.candidate[alive, n], result.colour[alive, n], result.error_reduction[alive, n] = best, colour, reduction
        available[alive, best] = False
        given.occlude(evidence, alive, best, colour)
        stale = overlapping(given, alive, best) & available[alive]
    return result


def _compiled(given: SelectionInput, script: Int[Tensor, "B N"] | None, advantages: bool) -> Selection:
    """The same by compiled loops."""
    from pcdnet.model.compiled import selection as loops

    (B, C, *_), N, least = given.images.shape, given.plan.config.max_objects, given.plan.config.min_error_reduction
    behind = given.plan.behind if given.own is None else canvas(given.own, given.plan.geometry)
    behind = None if behind is None else behind.permute(0, 3, 1, 2).contiguous()
    problem, planes = as_arrays(given, behind), _plane_by_plane(given, behind)
    script = torch.full((B, N), EMPTY) if script is None else script
    found = loops.select(problem, as_array(planes), as_array(script), C, least, advantages=advantages)
    return Selection(*map(torch.from_numpy, found))


def _plane_by_plane(given: SelectionInput, behind: Float[Tensor, "b C Y X"] | None) -> Float[Tensor, "B planes Y X"]:
    """The planes of the evidence before anything is chosen, one after the other."""
    (B, C, H, W), geometry, seen = given.images.shape, given.plan.geometry, given.plan.seen
    my, mx = geometry.padding
    planes = given.images.new_zeros(B, C + 1 if behind is None else 2 * C + 3, *geometry.canvas)
    inside = planes[:, :, my : my + H, mx : mx + W]
    inside[:, :C] = given.images
    inside[:, C] = 1 if seen is None else seen[:, 0]
    if behind is not None:
        Y, QB = planes[:, :C], planes[:, C + 1 : 2 * C + 1]
        torch.mul(planes[:, C : C + 1], behind, out=QB)
        planes[:, 2 * C + 1], planes[:, 2 * C + 2] = (Y * behind).sum(1), (QB * behind).sum(1)
    return planes


def as_arrays(given: SelectionInput, behind: Float[Tensor, "b C Y X"] | None) -> Problem:
    """What compiled loops choose from, over what is behind all objects; None is black."""
    plan, candidates, (my, mx) = given.plan, given.candidates, given.plan.geometry.padding
    none, limits = given.images.new_zeros(0, 1, 1, 1), given.palette.limits
    assert limits is not None
    return Problem(
        as_array(none if behind is None else behind),
        (as_array(plan.tight.prototypes), as_array(plan.tight.masks)),
        as_array(plan.kernels.stack(over_black=behind is None)),
        as_array(plan.boxes),
        (as_array(candidates.row + my), as_array(candidates.column + mx), as_array(candidates.exists)),
        as_array(given.place()),
        candidates.peaks,
        limits,
        as_array(none.flatten(1) if given.min_area is None else given.min_area),
    )


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
