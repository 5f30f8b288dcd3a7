"""Depth: objects that overlap, in the order that the pixels which they share speak for.

Greedy selection takes the object that removes most error first, and so calls it the nearest: of two objects that
overlap this is chance. Here every overlapping pair is judged by itself (see `overlap`). Objects that touch, directly
or through others, form a group. The pairs of a group, those with the clearest evidence first, make one consistent
order, and it is adopted if the error of the group falls. Groups share no pixel, so each keeps its slots in the whole
order: what touches nothing never moves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.evidence import error_fall, occluded
from pcdnet.model.overlap import Pairs, Stack, order_evidence, touching
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.selection import replaced, subset

LEAST_CHANGE, LEAST_SHARE = 1e-3, 1e-6
"""An order must lower the squared error by at least this much, and by this share of what the group explains: less may
be rounding."""
SWEEPS = 3
"""How often pairs are judged at most: anew where objects around them have changed places."""

Edge = tuple[int, int, float]
"""The slots of two objects, the one that belongs in front first, and how much the other order would cost."""


def in_depth_order(
    images: Float[Tensor, "B C H W"],
    behind: Float[Tensor, "B C H W"],
    plan: SearchPlan,
    placement: Placement,
    max_colour: float | None,
) -> Placement:
    """The same objects, in the order that explains the images best; where it changes, colours are found anew.

    Least squares colours objects up to `max_colour`; with None their colours stay. No image is explained worse.
    """
    image = touching(plan, placement).flatten(1).any(dim=1).nonzero()[:, 0]
    for _ in range(SWEEPS):
        if len(image) == 0:
            break
        stack = Stack.of(images[image], behind[image], plan, subset(placement, image), max_colour)
        pairs = stack.overlapping()
        moves = _moves(stack, pairs, order_evidence(stack, pairs))
        changed, ordered = _moved(stack, moves)
        image = image[changed]
        placement = replaced(placement, image, subset(ordered, changed))
    return placement


def consistent_order(slots: list[int], edges: list[Edge]) -> list[int]:
    """The slots, front to back, as the edges want them, the strongest first; one that contradicts those is ignored.

    Of objects that could both come next, the first one does.
    """
    ahead = dict.fromkeys(slots, 0)  # of every slot those that must come before it, as bits
    for front, back, _ in sorted(edges, key=lambda edge: -edge[2]):
        if ahead[front] >> back & 1:
            continue
        before = ahead[front] | 1 << front
        for slot in slots:
            if slot == back or ahead[slot] >> back & 1:
                ahead[slot] |= before
    order: list[int] = []
    placed = 0
    while len(order) < len(slots):
        order.append(next(slot for slot in slots if not placed >> slot & 1 and not ahead[slot] & ~placed))
        placed |= 1 << order[-1]
    return order


@dataclass(frozen=True, slots=True)
class _Moves:
    """Groups in a new order: every object of them, with the slots it comes from and goes to, front to back."""

    image: Int[Tensor, "n"]
    source: Int[Tensor, "n"]
    target: Int[Tensor, "n"]
    group: Int[Tensor, "n"]
    step: Int[Tensor, "n"]
    """The how-manieth it is of its image."""


def _moves(stack: Stack, pairs: Pairs, rise: Float[Tensor, "m"]) -> _Moves:
    """The groups in which some pair is the wrong way round, as they should be ordered."""
    wrong = torch.zeros(len(stack.row), dtype=torch.bool, device=rise.device)
    wrong[pairs.image[rise <= -LEAST_CHANGE]] = True
    rows: list[tuple[int, int, int, int, int]] = []
    number = 0
    for b in wrong.nonzero()[:, 0].tolist():
        which = pairs.image == b
        part = pairs[which]
        edges = [
            (i, j, max(d, 0.0)) if d > -LEAST_CHANGE else (j, i, -d)
            for i, j, d in zip(part.front.tolist(), part.back.tolist(), rise[which].tolist(), strict=True)
        ]
        step = 0
        for slots in _groups(stack.touching[b].tolist()):
            order = consistent_order(slots, [edge for edge in edges if edge[0] in slots])
            if order == slots:
                continue
            rows += [(b, source, target, number, step + n) for n, (source, target) in enumerate(zip(order, slots, strict=True))]
            step, number = step + len(slots), number + 1
    table = torch.tensor(rows, dtype=torch.long, device=rise.device).reshape(-1, 5)
    return _Moves(*table.unbind(1))


def _groups(touching: list[list[bool]]) -> list[list[int]]:
    """The slots of objects that touch each other, directly or through others; those that touch nothing are left out."""
    groups: list[list[int]] = []
    left = {n for n, row in enumerate(touching) if any(row)}
    while left:
        group, fresh = set[int](), {min(left)}
        while fresh:
            group |= fresh
            fresh = {n for slot in fresh for n, near in enumerate(touching[slot]) if near} - group
        groups.append(sorted(group))
        left -= group
    return groups


def _moved(stack: Stack, moves: _Moves) -> tuple[Int[Tensor, "k"], Placement]:
    """The placement with the moves of every group that is explained better then, and the images that changed."""
    old = stack.placement
    colour, reduction = _valued(stack, moves)
    worthless = moves.group[reduction <= 0]
    pays = ~torch.isin(moves.group, worthless)
    image, source, target = moves.image[pays], moves.source[pays], moves.target[pays]
    fields = {}
    for field in dataclasses.fields(Placement):
        values = getattr(old, field.name)
        fields[field.name] = values.clone()
        fields[field.name][image, target] = values[image, source]
    fields["colour"][image, target] = colour[pays]
    fields["error_reduction"][image, target] = reduction[pays]
    return image.unique(), Placement(**fields)


def _valued(stack: Stack, moves: _Moves) -> tuple[Float[Tensor, "n C"], Float[Tensor, "n"]]:
    """The colours of the moved objects, and how much each reduces the error behind those before it, as in selection."""
    planes = stack.images.clone()
    colour = stack.placement.colour[moves.image, moves.source].clone()
    reduction = torch.zeros_like(colour[:, 0])
    for step in range(int(moves.step.max()) + 1 if len(moves.step) else 0):
        n = (moves.step == step).nonzero()[:, 0]
        image, slot = moves.image[n], moves.source[n]
        windows, shapes = stack.windows(image, slot), stack.shapes(image, slot, slot)
        content, bare = windows.cut(planes), windows.cut(stack.bare)
        Y, Q = content[..., :-1], content[..., -1:]
        colour[n] = stack.colours(Y, Q, bare, shapes, colour[n])
        texture = shapes.prototype * colour[n][:, None, None]
        reduction[n] = error_fall(Y, Q, bare, shapes.mask, texture).sum(dim=(1, 2, 3))
        windows.paste(planes, torch.cat(occluded(Y, Q, shapes.mask, texture), dim=-1))
    return colour, reduction
