"""Inspection: look inside the search, at the localization maps and at what greedy selection did step by step.

It walks the same search as the network, one image at a time, and keeps what the network only passes through.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.model.poses.inspection import (
    Candidacy,
    CoarseMaps,
    PoseValues,
    fitted_candidacy,
    proposed_candidacy,
    proposed_things,
    variant_candidacy,
)
from pcdnet.model.poses.sprites import upright_positions
from pcdnet.model.selection import EMPTY, SelectionInput, select

RIVALS = 5
"""Rivals that are reported at every step, each of another prototype."""
SAME = 1e-3
"""Positions, and errors by share, that differ by less are the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A candidate, as it stands at some moment of the selection."""

    prototype: int
    """Which prototype would be put there."""
    position: tuple[float, float]
    """Top row and left column of its frame, upright."""
    height: float | None
    """The height of the localization map there; None of a candidate that was fitted and lies between its cells."""
    colour: tuple[float, ...]
    """The colour that it would have at this moment."""
    error_reduction: float
    """How much the squared error would fall at this moment."""
    pose: PoseValues | None = None
    """How it is turned, scaled and mirrored, where the model has poses."""
    proposed: PoseValues | None = None
    """The coarse pose from which it was fitted, if it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A moment of greedy selection: what was chosen, and what else there was."""

    error: float
    """The squared error before the choice."""
    chosen: Proposal | None
    """What was chosen; None where selection ended."""
    rivals: tuple[Proposal, ...]
    """The best of the others, at most one of each prototype, best first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """What the search did with one image."""

    proposals: tuple[Proposal, ...]
    """All candidates before anything was chosen, prototype by prototype, the highest peak first; in coarse poses where
    they are fitted afterwards."""
    steps: tuple[Step, ...]
    """The choices in their order, also those that the border cuts off; the last step chooses nothing."""
    error: float
    """The squared error of the final decomposition, refined and in depth order, without objects that do not count."""
    refined: bool
    """Whether refinement, or another depth order, made something else of these steps."""
    fitted: bool = False
    """Whether the steps choose among poses that were fitted to the image one by one, and not among the proposals."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedPose:
    """A coarse pose of a prototype, and how well it fits where it fits best."""

    pose: PoseValues
    height: float
    """The highest value of its localization map."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Localization:
    """Where one prototype could be in one image, in one coarse pose."""

    heat: Float[Tensor, "rows columns"]
    """How well it fits at every admissible position: by default the best channel's phase correlation."""
    origin: tuple[int, int]
    """The position of the prototype's frame that the first cell stands for; the next cell is `step` pixels further."""
    middle: tuple[float, float]
    """Where the middle of the prototype lies, in pixels from its frame's corner."""
    step: int = 1
    """Pixels from cell to cell: posed objects may be searched for in pictures of half the size."""
    poses: tuple[TriedPose, ...] = ()
    """All coarse poses of the prototype; none where the model has no poses."""
    pose: int | None = None
    """Which of them this map is of."""


@torch.inference_mode()
def inspect(model: PCDNet, image: Float[Tensor, "C H W"]) -> Inspection:
    """Repeat greedy selection on one image of values in [0, 1], in evaluation mode, and report every step.

    Where poses are fitted, it is repeated as it was the first time, before the chosen objects are fitted together.
    """
    image = model.seen(image[None])[0]
    walk, proposals = _walk(model, image)
    found = select(walk.given)
    steps, order = [], []
    for t in found.candidate[0].tolist():
        if t == EMPTY:
            break
        steps.append(walk.step(t))
        order.append(t)
        walk.choose(t)
    steps.append(walk.step(None))
    error, refined = _end(model, image, walk, steps, order)
    fitted = any(step.chosen.proposed is not None for step in steps if step.chosen is not None)
    return Inspection(proposals=proposals, steps=tuple(steps), error=error, refined=refined, fitted=fitted)


@torch.inference_mode()
def locate(model: PCDNet, image: Float[Tensor, "C H W"], prototype: int, pose: int | None = None) -> Localization:
    """The localization map in which the search finds the places of a prototype.

    Where the model has poses it is that of a coarse `pose`, by its number; by default the one that fits best.
    """
    image, corner = _in_field(model, image)
    plan = model.plan((image.shape[1], image.shape[2]))
    own = model.own_backgrounds(image[None])
    if model.config.posed:
        maps = CoarseMaps.of(model.look(plan, training=False, refined=False).search)
        return _locate_posed(maps, image, own, corner, prototype, pose)
    (down, right), (top, left) = corner, plan.offset[prototype].tolist()
    (h, w), (my, mx) = plan.geometry.frame, plan.geometry.padding
    return Localization(
        heat=plan.localizer.maps(image[None], own)(slice(0, 1), slice(prototype, prototype + 1))[0, 0],
        origin=(down - my - top, right - mx - left),
        middle=(top + h / 2, left + w / 2),
    )


def _locate_posed(
    maps: CoarseMaps,
    image: Float[Tensor, "C H W"],
    own: Float[Tensor, "1 C H W"] | None,
    corner: tuple[int, int],
    prototype: int,
    pose: int | None,
) -> Localization:
    """One pose at a time: all maps at once would fill the memory."""

    def heat(number: int) -> Float[Tensor, "rows columns"]:
        variant = maps.variant(prototype, number)
        return maps.maps(image[None], own, slice(variant, variant + 1))[0]

    heights = [float(heat(number).max()) for number in range(len(maps.coarse))]
    if pose is None:
        pose = max(range(len(heights)), key=heights.__getitem__)
    elif not 0 <= pose < len(heights):
        raise PcdnetError(f"there is no pose {pose}; give a number of 0 to {len(heights) - 1}")
    variant = maps.variant(prototype, pose)
    row, column = maps.upright((0, 0), variant)
    tried = zip(maps.coarse, heights, strict=True)
    return Localization(
        heat=heat(pose),
        origin=(row + corner[0], column + corner[1]),
        middle=maps.middle(variant),
        step=maps.shrunk,
        poses=tuple(TriedPose(pose=PoseValues.of(each), height=height) for each, height in tried),
        pose=pose,
    )


def _end(
    model: PCDNet, image: Float[Tensor, "C H W"], walk: _Walk, steps: list[Step], order: list[int]
) -> tuple[float, bool]:
    """The error of the final decomposition, and whether it is another than that of the steps."""
    config = model.config
    plain = config.restarts == 0 and not config.depth_order and config.min_inside == 0 and config.max_unexplained == 1
    if plain and not config.posed:
        return steps[-1].error, False
    layers = model.explain(image[None], None, training=False, refined=True)
    where = layers.placement
    error = float((layers.reconstruction[0] - image).square().sum())
    exists = where.exists[0]
    places = upright_positions(where, config)[0, exists].tolist()
    kept = [[p, *place] for p, place in zip(where.prototype[0, exists].tolist(), places, strict=True)]
    pairs = zip(order, [step.chosen for step in steps if step.chosen is not None], strict=True)
    chosen = [[thing.prototype, *thing.position] for t, thing in pairs if walk.reported(t)]
    if len(kept) != len(chosen) or not config.posed:
        return error, kept != chosen
    # What is fitted comes out in other roundings.
    apart = (
        abs(one - other)
        for some, others in zip(kept, chosen, strict=True)
        for one, other in zip(some, others, strict=True)
    )
    return error, max(apart, default=0.0) > SAME or abs(error - steps[-1].error) > SAME * max(1.0, error)


def _in_field(model: PCDNet, image: Float[Tensor, "C H W"]) -> tuple[Float[Tensor, "C h w"], tuple[int, int]]:
    """What the search looks at of an image, and where in the image that starts."""
    field, shown = model.field, model.shown()
    inside = image if field is None else field.cut(image)
    return inside if shown is None else inside * shown[0], (0, 0) if field is None else (field.top, field.left)


def _walk(model: PCDNet, image: Float[Tensor, "C H W"]) -> tuple[_Walk, tuple[Proposal, ...]]:
    """Greedy selection of one image before its first choice, and what there was before any candidate was fitted."""
    inside, corner = _in_field(model, image)
    plan, own = model.plan((inside.shape[1], inside.shape[2])), model.own_backgrounds(inside[None])
    behind = model.weights().clamped().behind(image) if own is None else own[0]
    error = float((image - behind).square().sum())
    if not model.config.posed:
        given = model.selection_input(inside[None], plan, model.config.peaks_per_prototype, own)
        walk = _Walk(given, _upright_candidacy(given, inside, own), corner, error)
        return walk, walk.proposals()
    look = model.look(plan, training=False, refined=False)
    if look.search.variants is not None:
        given = model.selection_input(inside[None], look.search.variants.plan, model.config.peaks_per_prototype, own)
        walk = _Walk(given, variant_candidacy(look, given, inside[None], own), corner, error)
        return walk, walk.proposals()
    things = proposed_things(look, inside[None], own)
    fitted = fitted_candidacy(look, inside[None], own, things)
    if len(things) == 0:
        return _Walk(fitted.given, fitted, corner, error), ()
    proposed = proposed_candidacy(look, inside[None], own, things)
    return _Walk(fitted.given, fitted, corner, error), _Walk(proposed.given, proposed, corner, error).proposals()


def _upright_candidacy(
    given: SelectionInput, image: Float[Tensor, "C H W"], own: Float[Tensor, "1 C H W"] | None
) -> Candidacy:
    """What candidates of a search without poses stand for."""
    plan, where = given.plan, given.candidates
    kinds = where.prototype(torch.arange(where.row.shape[1], device=image.device))
    places = torch.stack([where.row[0], where.column[0]], dim=1) - plan.offset[kinds]
    (my, mx), maps = (
        plan.geometry.padding,
        plan.localizer.maps(image[None], own)(slice(0, 1), slice(0, len(plan.boxes))),
    )
    heights = maps[0][kinds, where.row[0] + my, where.column[0] + mx].tolist()
    return Candidacy(given, kinds.tolist(), [(row, column) for row, column in places.tolist()], heights, None)


class _Walk:
    """Greedy selection of one image, one choice at a time; between choices all candidates can be compared."""

    def __init__(self, given: SelectionInput, things: Candidacy, corner: tuple[int, int], error: float) -> None:
        # Where in the image the searched part starts is added to all positions.
        self.given, self._things, self._corner = given, things, corner
        self._evidence, self._error = given.evidence(), error
        self._free = given.candidates.exists[0].clone()
        self._all = torch.arange(len(self._free), device=self._free.device)
        self._measure()

    def proposals(self) -> tuple[Proposal, ...]:
        """All candidates as they stand now."""
        return tuple(self._proposal(t) for t in self._free.nonzero()[:, 0].tolist())

    def reported(self, t: int) -> bool:
        """Whether an object is not cut off too much by the border."""
        plan, where, candidate = self.given.plan, self.given.candidates, self._all[t]
        return bool(plan.reported(where.prototype(candidate), where.row[0, t], where.column[0, t]))

    def step(self, chosen: int | None) -> Step:
        """This moment, at which a candidate, or none, is chosen."""
        rivals: dict[int, int] = {}
        for t in self._reductions.argsort(descending=True, stable=True).tolist():
            if self._allowed[t] and t != chosen:
                rivals.setdefault(self._things.prototypes[t], t)
        return Step(
            error=self._error,
            chosen=None if chosen is None else self._proposal(chosen),
            rivals=tuple(self._proposal(t) for t in list(rivals.values())[:RIVALS]),
        )

    def choose(self, chosen: int) -> None:
        """Put a candidate behind those that were chosen before."""
        image, candidate = torch.zeros_like(self._all[:1]), self._all[chosen : chosen + 1]
        self.given.occlude(self._evidence, image, candidate, self._colours[candidate])
        self._error = max(0.0, self._error - float(self._reductions[chosen]))  # rounding must not make it negative
        self._free[chosen] = False
        self._measure()

    def _measure(self) -> None:
        """By how much every candidate would reduce the error now, and in which colour."""
        given, quadratics, image = self.given, self.given.unmeasured(), torch.zeros_like(self._all)
        given.measure(quadratics, self._evidence, image, self._all)
        self._colours = given.palette.colours(quadratics, image, self._all)
        self._allowed = given.visible(quadratics, self._free[None])[0].tolist()
        self._reductions = quadratics.error_reduction(self._colours[None])[0]

    def _proposal(self, t: int) -> Proposal:
        things, (row, column) = self._things, self._things.positions[t]
        return Proposal(
            prototype=things.prototypes[t],
            position=(row + self._corner[0], column + self._corner[1]),
            height=None if things.heights is None else things.heights[t],
            colour=tuple(self._colours[t].tolist()),
            error_reduction=float(self._reductions[t]),
            pose=None if things.poses is None else things.poses[t],
            proposed=None if things.proposed is None else things.proposed[t],
        )
