"""Depth: objects that overlap, in the order that the pixels which they share speak for.

Greedy selection takes the object that removes most error first, and so calls it the nearest: of two objects that
overlap this is chance. Here every overlapping pair is judged by itself (see `overlap`). Objects that touch, directly
or through others, form a group. The pairs of a group, those with the clearest evidence first, make one consistent
order; it is adopted if every object of the group still reduces the error there. Groups share no pixel, so each keeps
its slots in the whole order: what touches nothing never moves.

Where the bank fits the image, the squared error never rises. Where it does not, it may, a little: then the pixels know
better, see `order_evidence`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.evidence import error_fall, occluded
from pcdnet.model.overlap import Pairs, Stack, order_evidence, tight_frames, touching
from pcdnet.model.placement import Placement, to_placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.selection import EMPTY, Selection, SelectionInput, subset

LEAST_CHANGE = 1e-3
"""Evidence for another order must be at least this much: less may be rounding."""
SWEEPS = 3
"""How often pairs are judged at most: anew where objects around them have changed places."""

Edge = tuple[int, int, float]
"""The slots of two objects, the one that belongs in front first, and how much the other order would cost."""


def in_depth_order(
    images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"], plan: SearchPlan, placement: Placement
) -> Placement:
    """The same objects over what is behind them, each group in its order; where that is new, colours are found anew."""
    return _ordered(images, behind, plan, placement)[0]


def selected_in_depth_order(given: SelectionInput, selection: Selection) -> Selection:
    """The same for candidates that were chosen."""
    placement, slots = _ordered(given.images, given.behind(), given.plan, to_placement(given, selection))
    candidate = selection.candidate.gather(1, slots)
    return Selection(candidate, placement.colour, placement.error_reduction, placement.advantage)


def _ordered(
    images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"], plan: SearchPlan, placement: Placement
) -> tuple[Placement, Int[Tensor, "B N"]]:
    """The placement in its order, and the slots that objects had before."""
    if usable(images):
        return _compiled(images, behind, plan, placement)
    slots = torch.arange(placement.exists.shape[1], device=images.device).repeat(len(images), 1)
    image = touching(plan, placement).flatten(1).any(dim=1).nonzero()[:, 0]
    if len(image) == 0:
        return placement, slots
    stack = Stack.of(images[image], behind[image], plan, subset(placement, image))
    pairs = stack.overlapping()
    for _ in range(SWEEPS):
        moves = _worthwhile(stack, _moves(stack, pairs, order_evidence(stack, pairs)))
        rows = image[moves.image]
        placement = _moved(placement, rows, moves)
        slots[rows, moves.target] = slots[rows, moves.source]
        # Two objects that have changed places would be judged as before: only larger groups are looked at again.
        moved = torch.zeros_like(stack.placement.exists)
        moved[moves.image, moves.target] = moves.size > 2
        large = moved.any(dim=1).nonzero()[:, 0]
        if len(large) == 0:
            break
        image, moved = image[large], moved[large]
        stack = stack.moved(large, subset(placement, image))
        pairs = stack.overlapping()
        pairs = pairs[moved[pairs.image, pairs.front]]
    return placement, slots


def _compiled(
    images: Float[Tensor, "B C H W"], behind: Float[Tensor, "B C H W"], plan: SearchPlan, placement: Placement
) -> tuple[Placement, Int[Tensor, "B N"]]:
    """The same by compiled loops."""
    from pcdnet.model.compiled.depth import ordered as loops

    config, exists = plan.config, placement.exists
    prototype, row, column = tight_frames(plan, placement)
    things = torch.stack([torch.where(exists, prototype, EMPTY), row, column], dim=2)
    seen = images.new_ones(1, *images.shape[2:]) if plan.seen is None else plan.seen[0]
    behind = behind[:1] if behind.stride(0) == 0 else behind  # one for all
    planes = as_array(images), as_array(behind), as_array(seen)
    bank = as_array(plan.tight.prototypes), as_array(plan.tight.masks), as_array(plan.boxes)
    values = as_array(placement.colour), as_array(placement.error_reduction)
    found = loops(planes, bank, as_array(things), values, config.max_colour, config.colour == "least_squares")
    slots, colour, reduction = map(torch.from_numpy, found)
    prototype, row, column, advantage = (
        values.gather(1, slots)
        for values in (placement.prototype, placement.row, placement.column, placement.advantage)
    )
    pose = placement.pose.gather(1, slots[..., None].expand_as(placement.pose))
    return Placement(prototype, row, column, colour, reduction, advantage, pose), slots


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
    size: Int[Tensor, "n"]
    """How many objects its group has."""
    step: Int[Tensor, "n"]
    """Its number among the moved objects of its image; in the order of these numbers they come."""
    colour: Float[Tensor, "n C"]
    error_reduction: Float[Tensor, "n"]


def _moves(stack: Stack, pairs: Pairs, rise: Float[Tensor, "m"]) -> _Moves:
    """The groups in which some pair is the wrong way round, as they should be ordered."""
    edges: dict[int, list[Edge]] = {}
    table, near = torch.stack([pairs.image, pairs.front, pairs.back], dim=1).tolist(), stack.touching.cpu()
    for (b, front, back), by in zip(table, rise.tolist(), strict=True):
        edges.setdefault(b, []).append((front, back, max(by, 0.0)) if by > -LEAST_CHANGE else (back, front, -by))
    rows: list[tuple[int, int, int, int, int, int]] = []
    group = 0
    for b, mine in edges.items():
        if all(front < back for front, back, _ in mine):
            continue
        step = 0
        for slots in _groups(near[b].tolist()):
            order = consistent_order(slots, [edge for edge in mine if edge[0] in slots])
            if order == slots:
                continue
            places = enumerate(zip(order, slots, strict=True), start=step)
            rows += [(b, source, target, group, len(slots), n) for n, (source, target) in places]
            step, group = step + len(slots), group + 1
    rows.sort(key=lambda row: row[-1])
    columns = torch.tensor(rows, dtype=torch.long, device=rise.device).reshape(-1, 6).unbind(1)
    colours, reductions = stack.placement.colour, stack.placement.error_reduction
    return _Moves(*columns, colours[columns[:2]], reductions[columns[:2]])  # type: ignore[call-arg]  # six columns


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


def _worthwhile(stack: Stack, moves: _Moves) -> _Moves:
    """The moves of the groups in which every object still reduces the error, with their new values."""
    if len(moves.image) == 0:
        return moves
    valued = _valued(stack, moves)
    useless = torch.zeros_like(moves.group).index_add(0, moves.group, (valued.error_reduction <= 0).long())
    return subset(valued, useless[moves.group] == 0)


def _moved(placement: Placement, image: Int[Tensor, "n"], moves: _Moves) -> Placement:
    """The placement with some of its objects in other slots."""
    fields = {}
    for field in dataclasses.fields(Placement):
        values = getattr(placement, field.name)
        fields[field.name] = values.clone()
        fields[field.name][image, moves.target] = values[image, moves.source]
    fields["colour"][image, moves.target] = moves.colour
    fields["error_reduction"][image, moves.target] = moves.error_reduction
    return Placement(**fields)


def _valued(stack: Stack, moves: _Moves) -> _Moves:
    """The moves with the colours and error reductions that selection would find in the new order."""
    planes = stack.images.clone()
    colour, reduction = moves.colour.clone(), moves.error_reduction.clone()
    counts = torch.bincount(moves.step).tolist()
    for n in torch.split(torch.arange(len(moves.step), device=planes.device), counts):
        image, slot = moves.image[n], moves.source[n]
        windows, shapes = stack.windows(image, slot), stack.shapes(image, slot, slot)
        content, bare = windows.cut(planes), windows.cut(stack.bare)
        Y, Q = content[..., :-1], content[..., -1:]
        colour[n] = stack.colours(Y, Q, bare, shapes, colour[n])
        texture = shapes.prototype * colour[n][:, None, None]
        reduction[n] = error_fall(Y, Q, bare, shapes.mask, texture).sum(dim=(1, 2, 3))
        windows.paste(planes, torch.cat(occluded(Y, Q, shapes.mask, texture), dim=-1))
    return dataclasses.replace(moves, colour=colour, error_reduction=reduction)
