"""Refinement: where greedy selection leaves an error, reconsider its choices.

Greedy selection never takes a choice back, not even an early one that covers parts of two objects. Two moves fix
that: a *sweep* takes out each object in whose frame an error is left and puts in the best candidate near it, or
none; a *restart* removes one object, with all that lies near it, and selects anew around the rest.
"""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.composition import paint
from pcdnet.model.evidence import Quadratics, planes_of
from pcdnet.model.selection import EMPTY, Selection, SelectionInput, occlude, overlapping, select
from pcdnet.model.windows import canvas, cut, paste

LEAST_CHANGE = 1e-3
"""A change must reduce the squared error by at least this much (or by `min_error_reduction`): less may be rounding."""
SWEEPS = 2
"""Rounds of sweeps at most; a third hardly ever finds anything to change."""
CROWD = 8
"""Images with more objects get no restarts: there they cost much and, measured, bring nothing over sweeps."""


def unexplained(given: SelectionInput, selection: Selection) -> Int[Tensor, "n"]:
    """The images whose error is not below the smallest change that counts: no other can reduction anything."""
    error = given.bare_error() - selection.error_reduction.sum(1)
    return (error >= _least(given)).nonzero()[:, 0]


def refine(given: SelectionInput, selection: Selection, restarts: int) -> Selection:
    """A selection that explains every image at least as well as the given one: sweeps, then restarts."""
    selection = sweep(given, selection)
    objects = selection.candidate.shape[1]
    removed = torch.zeros_like(given.candidates.exists)
    for restart in range(restarts):
        if restart <= objects:
            # In the first round each object is removed alone, later one after the other for good.
            removed = torch.zeros_like(removed)
        images = unexplained(given, selection)
        candidate = selection.candidate[images, restart % objects]
        counts = (selection.candidate[images] != EMPTY).sum(dim=1)
        fit = (candidate != EMPTY) & (counts <= CROWD)
        images, candidate = images[fit], candidate[fit]
        if len(images) == 0:
            continue
        removed[images, candidate] = True
        part = given.subset(images)
        new = _restart(part, selection.subset(images), candidate, removed[images])
        selection = _adopt(selection, images, sweep(part, new))
    return selection


def sweep(given: SelectionInput, selection: Selection) -> Selection:
    """Reconsider each object with the others fixed, until nothing improves."""
    images = unexplained(given, selection)
    for _ in range(SWEEPS):
        if len(images) == 0:
            break
        part, old = given.subset(images), selection.subset(images)
        script = _sweep(part, old)
        changed = (script != old.candidate).any(dim=1).nonzero()[:, 0]
        if len(changed) == 0:
            break
        # The sweep colours an object for all its neighbours, selection only for those in front: value what holds.
        new = select(part.subset(changed), script[changed])
        images = images[changed]
        selection = _adopt(selection, images, new)
    return selection


def _least(given: SelectionInput) -> float:
    return max(given.plan.config.min_error_reduction, LEAST_CHANGE)


def _adopt(selection: Selection, images: Int[Tensor, "n"], new: Selection) -> Selection:
    """The selection with those of the images chosen anew that are better explained now."""
    better = new.error_reduction.sum(1) - selection.error_reduction[images].sum(1) >= LEAST_CHANGE
    return selection.replaced(images[better], new.subset(better.nonzero()[:, 0]))


def _restart(
    given: SelectionInput, selection: Selection, candidate: Int[Tensor, "B"], removed: Bool[Tensor, "B T"]
) -> Selection:
    """Select anew without the removed candidates; objects that do not touch the last one removed stay."""
    image = torch.arange(len(candidate), device=candidate.device)
    near = overlapping(given, image, candidate) | removed
    kept = selection.candidate.clone()
    kept[near.gather(1, kept.clamp(min=0))] = EMPTY
    exists = given.candidates.exists & ~removed
    fewer = dataclasses.replace(given, candidates=dataclasses.replace(given.candidates, exists=exists))
    return select(fewer, _packed(kept))


def _packed(script: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """The same candidates in the same order, EMPTY last."""
    return script.gather(1, (script == EMPTY).long().argsort(dim=1, stable=True))


def _sweep(given: SelectionInput, selection: Selection) -> Int[Tensor, "B N"]:
    """Reconsider the objects once, front to back; the revised candidates."""
    candidates = given.candidates
    script, colours = selection.candidate.clone(), selection.colour.clone()
    N, C = colours.shape[1:]
    planes, behind, covered = _painted(given, selection)
    quadratics = Quadratics.zeros(planes, candidates.row.shape[1], C)
    exists = script != EMPTY
    available = candidates.exists.clone()
    chosen, slot = exists.nonzero(as_tuple=True)
    available[chosen, script[chosen, slot]] = False
    doubtful = exists & (_error_in_frames(given, selection, behind) >= _least(given))
    for n in range(N):
        image = exists[:, n].nonzero()[:, 0]
        if len(image) == 0:
            break
        _uncover(planes, behind, given, image, script[image, n], covered[image, n])
        image = doubtful[:, n].nonzero()[:, 0]
        if len(image):
            current = script[image, n]
            available[image, current] = True
            allowed = torch.zeros_like(available)
            allowed[image] = overlapping(given, image, current) & available[image]
            candidate, which = allowed.T.nonzero(as_tuple=True)
            given.measure(quadratics, planes, which, candidate)
            best = given.palette.best(quadratics, given.visible(quadratics, allowed))[image]
            colour = given.palette.colours(quadratics, image, best)
            now = quadratics.error_reduction(image, current, colours[image, n])
            then = quadratics.error_reduction(image, best, colour)
            better = then.clamp(min=0) - now >= _least(given)
            script[image, n] = torch.where(better, torch.where(then > 0, best, EMPTY), current)
            colours[image, n] = torch.where(better[:, None], colour, colours[image, n])
        image = (script[:, n] != EMPTY).nonzero()[:, 0]
        available[image, script[image, n]] = False
        occlude(planes, behind, given, image, script[image, n], colours[image, n])
    return _packed(script)


def _error_in_frames(
    given: SelectionInput, selection: Selection, picture: Float[Tensor, "B Y X C"]
) -> Float[Tensor, "B N"]:
    """The squared error that is left in the frame of every object."""
    candidates, geometry = given.candidates, given.plan.geometry
    error = (canvas(given.images, geometry) - picture).square().sum(dim=-1, keepdim=True)
    left = torch.zeros_like(selection.error_reduction)
    for n in range(left.shape[1]):
        image = (selection.candidate[:, n] != EMPTY).nonzero()[:, 0]
        candidate = selection.candidate[image, n]
        row, column = candidates.row[image, candidate], candidates.column[image, candidate]
        left[image, n] = cut(error, geometry, image, row, column).sum(dim=(1, 2, 3))
    return left


def _uncover(
    planes: Float[Tensor, "B Y X planes"],
    behind: Float[Tensor, "B Y X C"],
    given: SelectionInput,
    image: Int[Tensor, "n"],
    candidate: Int[Tensor, "n"],
    covered: Float[Tensor, "n h w C"],
) -> None:
    """Take the nearest object out of what is behind, in place: show again what its frame covered."""
    geometry, C = given.plan.geometry, covered.shape[-1]
    row, column = given.candidates.row[image, candidate], given.candidates.column[image, candidate]
    paste(behind, geometry, image, row, column, covered)
    window = cut(planes, geometry, image, row, column)
    paste(planes, geometry, image, row, column, planes_of(window[..., :C], window[..., C : C + 1], covered))


def _painted(
    given: SelectionInput, selection: Selection
) -> tuple[Float[Tensor, "B Y X planes"], Float[Tensor, "B Y X C"], Float[Tensor, "B N h w C"]]:
    """Evidence with every object still behind, the picture they make, and what each object's frame covered."""
    geometry, candidates, bank = given.plan.geometry, given.candidates, given.plan.tight
    Y = canvas(given.images, geometry)
    behind = torch.zeros_like(Y) if given.behind is None else given.behind.expand_as(Y).clone()
    index = selection.candidate.clamp(min=0)
    p, row, column = candidates.prototype(index), candidates.row.gather(1, index), candidates.column.gather(1, index)
    textures = bank.prototypes[p][..., None] * selection.colour[:, :, None, None]
    covered = paint(behind, textures, bank.masks[p], row, column, selection.candidate != EMPTY, geometry)
    Q = canvas(torch.ones_like(given.images[:, :1]), geometry)
    return planes_of(Y, Q, behind), behind, covered
