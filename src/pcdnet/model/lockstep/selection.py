"""Greedy selection in lockstep: an image that is done goes on choosing, but what it chooses is not painted."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from pcdnet.model.lockstep import looks
from pcdnet.model.selection import EMPTY, Selection, SelectionInput


def select(given: SelectionInput, script: Int[Tensor, "B N"] | None, *, advantages: bool) -> Selection:
    """As in `selection`, with all candidates measured anew for every choice."""
    candidates, images, config = given.candidates, given.images, given.plan.config
    (B, T), N, C = candidates.row.shape, config.max_objects, images.shape[1]
    device, place = images.device, given.place()
    every, kinds = torch.arange(B, device=device), candidates.prototype(torch.arange(T, device=device))
    evidence, quadratics, available = given.evidence(), given.unmeasured(), candidates.exists.clone()
    alive = torch.ones(B, dtype=torch.bool, device=device)
    result = Selection(
        torch.full((B, N), EMPTY, device=device),
        images.new_zeros(B, N, C),
        images.new_zeros(B, N),
        images.new_zeros(B, N),
    )
    script = result.candidate.clone() if script is None else script
    before, best, reduction = images.new_zeros(B, T), torch.zeros_like(every), images.new_zeros(B)
    for n in range(N):
        if n in looks(N) and not alive.any():
            break
        given.measure_all(quadratics, evidence)
        if advantages:
            after = quadratics.bound().where(available, 0)
            if n > 0:
                rival = kinds != candidates.prototype(best)[:, None]
                taken = (before - after).where(rival, 0).amax(dim=1).clamp(min=0)
                result.advantage[:, n - 1] = (reduction - taken).where(alive, 0)
            before = after
        allowed = given.visible(quadratics, available)
        best = given.palette.best(quadratics, allowed, place)
        forced = alive & (script[:, n] != EMPTY)
        best = torch.where(forced, script[:, n], best)
        colour = given.palette.colours(quadratics, every, best)
        reduction = quadratics.at(every, best).error_reduction(colour)
        pays = allowed[every, best] & (reduction >= config.min_error_reduction) & (reduction > 0)
        alive = alive & (pays | forced)
        colour, reduction = colour.where(alive[:, None], 0), reduction.where(alive, 0)
        result.candidate[:, n], result.colour[:, n] = best.where(alive, EMPTY), colour
        result.error_reduction[:, n] = reduction
        available[every, best] &= ~alive
        given.occlude(evidence, every, best, colour, alive)
    return result
