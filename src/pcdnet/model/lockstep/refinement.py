"""One sweep in lockstep: every image reconsiders its n-th object at the same time, if it has one."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.evidence import Evidence
from pcdnet.model.lockstep import looks
from pcdnet.model.selection import EMPTY, Selection, SelectionInput, overlapping


def sweep(
    given: SelectionInput,
    selection: Selection,
    behind: Float[Tensor, "B Y X C"],
    covered: Float[Tensor, "B N h w C"],
    doubtful: Bool[Tensor, "B N"],
    least: float,
) -> Int[Tensor, "B N"]:
    """The revised candidates, not packed yet.

    `behind` are the pictures that the objects make, of which each `covered` a part; a change must reduce the error by
    at least `least`.
    """
    script, colours = selection.candidate.clone(), selection.colour.clone()
    (B, N), T = script.shape, given.candidates.row.shape[1]
    every, exists = torch.arange(B, device=script.device), script != EMPTY
    evidence = Evidence.opening(given.images, given.plan.geometry, behind, given.plan.seen)
    quadratics, place = given.unmeasured(), given.place()
    taken = torch.zeros(B, T + 1, dtype=torch.bool, device=script.device)
    taken.scatter_(1, torch.where(exists, script, T), True)
    available = given.candidates.exists & ~taken[:, :T]
    for n in range(N):
        if n in looks(N) and not doubtful[:, n:].any():
            break
        here, open_ = exists[:, n], doubtful[:, n]
        current = script[:, n].clamp(min=0)
        windows = given.windows(every, current)
        windows.paste(behind, covered[:, n].where(here[:, None, None, None], windows.cut(behind)))
        evidence.paste(windows, *evidence.cut(windows))
        available[every, current] |= open_
        allowed = overlapping(given, every, current) & available & open_[:, None]
        given.measure_all(quadratics, evidence)
        allowed = given.visible(quadratics, allowed)
        best = given.palette.best(quadratics, allowed, place)
        colour = given.palette.colours(quadratics, every, best)
        now = quadratics.at(every, current).error_reduction(colours[:, n])
        then = quadratics.at(every, best).error_reduction(colour).where(allowed[every, best], 0)
        pays = open_ & (then.clamp(min=0) - now >= least)
        script[:, n] = torch.where(pays, best.where(then > 0, EMPTY), script[:, n])
        colours[:, n] = torch.where(pays[:, None], colour, colours[:, n])
        there, chosen = script[:, n] != EMPTY, script[:, n].clamp(min=0)
        available[every, chosen] &= ~there
        given.occlude(evidence, every, chosen, colours[:, n], there)
    return script
