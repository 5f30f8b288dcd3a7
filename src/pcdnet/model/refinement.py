"""Refinement: where greedy selection leaves an error, reconsider its choices.

Greedy selection never takes a choice back, not even an early one that covers parts of two objects. Two moves fix
that: a *sweep* takes out each object in whose frame an error is left and puts in the best candidate near it, or
none; a *restart* bans one object, or insists on a rival that was not chosen, and selects anew all that lies near it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.colour import first_of_best
from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.composition import paint
from pcdnet.model.evidence import Evidence
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.selection import (
    EMPTY,
    Selection,
    SelectionInput,
    as_arrays,
    overlapping,
    replaced,
    select,
    subset,
)
from pcdnet.model.windows import Frames, canvas, inside_of, uncanvas

LEAST_CHANGE = 1e-3
"""A change must reduce the squared error by at least this much (or by `min_error_reduction`): less may be rounding."""
SWEEPS = 2
"""Rounds of sweeps at most; a third hardly ever finds anything to change."""
MAX_DOUBTFUL_TO_RESTART = 8
"""Images with more objects in doubt get no restarts: there they cost much and, measured, bring nothing over sweeps."""


def unexplained(given: SelectionInput, selection: Selection) -> Int[Tensor, "n"]:
    """The images whose error is not below the smallest change that counts: no other can be explained better."""
    error = (given.images - given.behind()).square().flatten(1).sum(1) - selection.error_reduction.sum(1)
    return (error >= _least(given)).nonzero()[:, 0]


def refine(given: SelectionInput, selection: Selection, restarts: int) -> Selection:
    """A selection that explains every image at least as well as the given one: sweeps, then restarts.

    First an image is searched again without each of its doubtful objects, then, if an error is left, with each of so
    many rivals in front. Restarts of one kind are tried side by side, and the best is adopted if it is better.
    """
    selection = sweep(given, selection)
    for prepare in (_without_each, _with_each_rival):
        images = unexplained(given, selection)
        if len(images) == 0:
            break
        part, old = given.subset(images), subset(selection, images)
        tries = prepare(part, old, restarts)
        if len(tries.image) == 0:
            continue
        new = sweep(part.subset(tries.image), select(tries.given, tries.script))
        tried, best = _best(new, tries.image, len(images))
        selection = _adopt(selection, images[tried], subset(new, best))
    return selection


def sweep(given: SelectionInput, selection: Selection) -> Selection:
    """Reconsider each object with the others fixed, until nothing improves."""
    images = unexplained(given, selection)
    for _ in range(SWEEPS):
        if len(images) == 0:
            break
        part, old = given.subset(images), subset(selection, images)
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


def better(new: Selection, old: Selection) -> Bool[Tensor, "B"]:
    """Which images a new selection explains better, by more than rounding."""
    return new.error_reduction.sum(1) - old.error_reduction.sum(1) >= LEAST_CHANGE


def _adopt(selection: Selection, images: Int[Tensor, "n"], new: Selection) -> Selection:
    """The selection with those of the images chosen anew that are better explained now."""
    which = better(new, subset(selection, images)).nonzero()[:, 0]
    return replaced(selection, images[which], subset(new, which))


@dataclass(frozen=True, slots=True)
class _Restarts:
    """Searches to be tried side by side."""

    image: Int[Tensor, "m"]
    """Of which image each is."""
    given: SelectionInput
    """What each chooses from."""
    script: Int[Tensor, "m N"]
    """What each begins with."""


def _without_each(given: SelectionInput, selection: Selection, restarts: int) -> _Restarts:
    """Without one of the doubtful objects, for so many of them; objects that do not touch it stay."""
    doubtful = _doubtful(given, _explained(given, selection)[1])
    doubtful &= _few(doubtful)[:, None] & (doubtful.cumsum(dim=1) <= restarts)
    image, slot = doubtful.nonzero(as_tuple=True)
    part, gone = given.subset(image), selection.candidate[image, slot]
    exists = part.candidates.exists.clone()
    exists[torch.arange(len(gone), device=gone.device), gone] = False
    fewer = dataclasses.replace(part, candidates=dataclasses.replace(part.candidates, exists=exists))
    return _Restarts(image, fewer, _kept(part, selection.candidate[image], gone))


def _with_each_rival(given: SelectionInput, selection: Selection, restarts: int) -> _Restarts:
    """Behind one rival, for so many of them; objects that do not touch it stay.

    Rivals are the candidates that would reduce the error most in front of all objects. Where several fit exactly, as
    in things that touch and have one colour, the right one may be any of them, and greedy selection takes the first.
    """
    picture, left = _explained(given, selection)
    evidence = Evidence.opening(given.images, given.plan.geometry, picture, given.plan.seen)
    exists = given.candidates.exists & _few(_doubtful(given, left))[:, None]
    candidate, image = exists.T.nonzero(as_tuple=True)
    quadratics = given.unmeasured()
    given.measure(quadratics, evidence, image, candidate)
    colour = given.palette.colours(quadratics, image, candidate)
    worth = torch.full_like(quadratics.q, -torch.inf)
    worth[image, candidate] = quadratics.at(image, candidate).error_reduction(colour)
    place, every, rivals = given.place(), torch.arange(len(worth), device=worth.device), []
    for _ in range(restarts):
        rival = first_of_best(worth, place)
        rivals.append(torch.where(worth[every, rival] >= _least(given), rival, EMPTY))
        worth[every, rival] = -torch.inf
    image, slot = (torch.stack(rivals, dim=1) != EMPTY).nonzero(as_tuple=True)
    part, first = given.subset(image), torch.stack(rivals, dim=1)[image, slot]
    kept = _kept(part, selection.candidate[image], first)
    return _Restarts(image, part, torch.cat([first[:, None], kept], dim=1)[:, : kept.shape[1]])


def _kept(given: SelectionInput, chosen: Int[Tensor, "B N"], candidate: Int[Tensor, "B"]) -> Int[Tensor, "B N"]:
    """Those of the chosen candidates that do not touch a given one of their image, EMPTY last."""
    near = overlapping(given, torch.arange(len(candidate), device=candidate.device), candidate)
    return _packed(chosen.masked_fill(near.gather(1, chosen.clamp(min=0)), EMPTY))


def _doubtful(given: SelectionInput, left: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """The objects in whose frames so much of the error is left that a change may pay."""
    return left >= _least(given)


def _few(doubtful: Bool[Tensor, "B N"]) -> Bool[Tensor, "B"]:
    """The images with so few objects in doubt that restarts may pay."""
    return doubtful.sum(dim=1) <= MAX_DOUBTFUL_TO_RESTART


def _best(selection: Selection, row: Int[Tensor, "m"], rows: int) -> tuple[Int[Tensor, "k"], Int[Tensor, "k"]]:
    """The rows, of so many, that selections are for, and the selection of each that reduces the error most, or is the
    first that does as well."""
    worth, number = selection.error_reduction.sum(dim=1), torch.arange(len(row), device=row.device)
    table = worth.new_full((rows, len(row)), -torch.inf)
    table[row, number] = worth
    best = first_of_best(table, number.expand_as(table))
    tried = (table.amax(dim=1) > -torch.inf).nonzero()[:, 0]
    return tried, best[tried]


def _packed(script: Int[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """The same candidates in the same order, EMPTY last."""
    return script.gather(1, (script == EMPTY).long().argsort(dim=1, stable=True))


def _sweep(given: SelectionInput, selection: Selection) -> Int[Tensor, "B N"]:
    """Reconsider the objects once, front to back; the revised candidates."""
    if usable(given.images) and given.palette.limits is not None:
        return _packed(_swept(given, selection))
    behind, covered, left = _painted(given, selection)
    script, colours = selection.candidate.clone(), selection.colour.clone()
    exists = script != EMPTY
    if in_lockstep(script):
        from pcdnet.model.lockstep.refinement import sweep as all_at_once

        doubtful = exists & _doubtful(given, left)
        return _packed(all_at_once(given, selection, behind, covered, doubtful, _least(given)))
    evidence = Evidence.opening(given.images, given.plan.geometry, behind, given.plan.seen)
    quadratics = given.unmeasured()
    available = given.candidates.exists.clone()
    place = given.place()
    chosen, slot = exists.nonzero(as_tuple=True)
    available[chosen, script[chosen, slot]] = False
    doubtful = exists & _doubtful(given, left)
    for n in range(script.shape[1]):
        if not doubtful[:, n:].any():
            break
        image = exists[:, n].nonzero()[:, 0]
        # Take the object out of what is behind: show again what its frame covered.
        windows = given.windows(image, script[image, n])
        windows.paste(behind, covered[image, n])
        evidence.paste(windows, *evidence.cut(windows))
        image = doubtful[:, n].nonzero()[:, 0]
        if len(image):
            current = script[image, n]
            available[image, current] = True
            allowed = torch.zeros_like(available)
            allowed[image] = overlapping(given, image, current) & available[image]
            candidate, which = allowed.T.nonzero(as_tuple=True)
            given.measure(quadratics, evidence, which, candidate)
            allowed = given.visible(quadratics, allowed)
            best = given.palette.best(quadratics, allowed, place)[image]
            colour = given.palette.colours(quadratics, image, best)
            now = quadratics.at(image, current).error_reduction(colours[image, n])
            then = quadratics.at(image, best).error_reduction(colour).where(allowed[image, best], 0)
            pays = then.clamp(min=0) - now >= _least(given)
            script[image, n] = torch.where(pays, torch.where(then > 0, best, EMPTY), current)
            colours[image, n] = torch.where(pays[:, None], colour, colours[image, n])
        image = (script[:, n] != EMPTY).nonzero()[:, 0]
        available[image, script[image, n]] = False
        given.occlude(evidence, image, script[image, n], colours[image, n])
    return _packed(script)


def _swept(given: SelectionInput, selection: Selection) -> Int[Tensor, "B N"]:
    """The same by compiled loops, not packed yet."""
    from pcdnet.model.compiled.refinement import sweep as loops

    images, behind, inside = _canvases(given)
    problem, colour = as_arrays(given, behind), as_array(selection.colour)
    found = loops(problem, as_array(images), as_array(inside), colour, as_array(selection.candidate), _least(given))
    return torch.from_numpy(found)


def _canvases(
    given: SelectionInput,
) -> tuple[Float[Tensor, "B C Y X"], Float[Tensor, "b C Y X"], Float[Tensor, "1 Y X"]]:
    """The images, what is behind them and what of them counts, as compiled loops take them."""
    my, mx = given.plan.geometry.padding
    behind = given.behind() if given.own is not None else given.behind()[:1]
    images, behind = (pad(each, (mx, mx, my, my)) for each in (given.images, behind))
    return images, behind, inside_of(given.images[:1], given.plan.geometry, given.plan.seen)[..., 0]


def _explained(given: SelectionInput, selection: Selection) -> tuple[Float[Tensor, "B Y X C"], Float[Tensor, "B N"]]:
    """The pictures that the objects make, and the error that is left in the frame of each."""
    if not usable(given.images):
        picture, _, left = _painted(given, selection)
        return picture, left
    from pcdnet.model.compiled.refinement import explained as loops

    (my, mx), where, bank = given.plan.geometry.padding, given.candidates, given.plan.tight
    images, behind, inside = _canvases(given)
    pictures, errors = loops(
        (as_array(images), as_array(behind), as_array(inside)),
        (as_array(bank.prototypes), as_array(bank.masks)),
        (as_array(where.row + my), as_array(where.column + mx)),
        where.peaks,
        (as_array(selection.candidate), as_array(selection.colour)),
    )
    return torch.from_numpy(pictures).permute(0, 2, 3, 1).contiguous(), torch.from_numpy(errors)


def _painted(
    given: SelectionInput, selection: Selection
) -> tuple[Float[Tensor, "B Y X C"], Float[Tensor, "B N h w C"], Float[Tensor, "B N"]]:
    """The pictures that the objects make; of every object what its frame covered, and the error that is left there."""
    geometry, candidates, bank = given.plan.geometry, given.candidates, given.plan.tight
    picture = canvas(given.behind(), geometry)
    index, exists = selection.candidate.clamp(min=0), selection.candidate != EMPTY
    frames = Frames(geometry, candidates.row.gather(1, index), candidates.column.gather(1, index), exists)
    p = candidates.prototype(index)
    textures = bank.prototypes[p][..., None] * selection.colour[:, :, None, None]
    masks = bank.masks[p]
    masks = masks * exists[:, :, None, None] if in_lockstep(masks) else masks
    covered = paint(picture, textures, masks, frames)
    # What is painted outside the image is no error.
    error = canvas((given.images - uncanvas(picture, geometry)).square().sum(dim=1, keepdim=True), geometry)
    left = torch.zeros_like(selection.error_reduction)
    for n in range(left.shape[1]):
        windows = frames.nth(n)
        left[windows.image, n] = windows.cut(error).sum(dim=(1, 2, 3))
    return picture, covered, left.where(exists, 0)
