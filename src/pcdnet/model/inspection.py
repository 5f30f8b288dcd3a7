"""Inspection: look inside the search, at the localization maps and at what greedy selection did step by step.

It walks the same search as the network, one image at a time, and keeps what the network only passes through.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.network import PCDNet
from pcdnet.model.selection import EMPTY, select

RIVALS = 5
"""Rivals that are reported at every step, each of another prototype."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A candidate, as it stands at some moment of the selection."""

    prototype: int
    """Which prototype would be put there."""
    position: tuple[int, int]
    """Top row and left column of its frame."""
    height: float
    """The height of the localization map there."""
    colour: tuple[float, ...]
    """The colour that it would have at this moment."""
    error_reduction: float
    """How much the squared error would fall at this moment."""


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
    """All candidates before anything was chosen, prototype by prototype, the highest peak first."""
    steps: tuple[Step, ...]
    """The choices in their order, also those that the border cuts off; the last step chooses nothing."""
    error: float
    """The squared error of the final decomposition, refined and in depth order, without objects that do not count."""
    refined: bool
    """Whether refinement, or another depth order, made something else of these steps."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Localization:
    """Where one prototype could be in one image."""

    heat: Float[Tensor, "rows columns"]
    """How well it fits at every admissible position: by default the best channel's phase correlation."""
    origin: tuple[int, int]
    """The position of the prototype's frame that the first cell stands for; the next cell is a pixel further."""
    middle: tuple[float, float]
    """Where the middle of the prototype lies, in pixels from its frame's corner."""


@torch.inference_mode()
def inspect(model: PCDNet, image: Float[Tensor, "C H W"]) -> Inspection:
    """Repeat greedy selection on one image of values in [0, 1], in evaluation mode, and report every step."""
    image = model.seen(image[None])[0]
    walk = _Walk(model, image)
    found = select(walk.given)
    steps, proposals = [], walk.proposals()
    for t in found.candidate[0].tolist():
        if t == EMPTY:
            break
        steps.append(walk.step(t))
        walk.choose(t)
    steps.append(walk.step(None))
    error, refined = _end(model, image, walk, steps)
    return Inspection(proposals=proposals, steps=tuple(steps), error=error, refined=refined)


@torch.inference_mode()
def locate(model: PCDNet, image: Float[Tensor, "C H W"], prototype: int) -> Localization:
    """The localization map in which the search finds the places of a prototype."""
    image, (down, right) = _in_field(model, image)
    plan = model.plan((image.shape[1], image.shape[2]))
    (top, left), (h, w), (my, mx) = plan.offset[prototype].tolist(), plan.geometry.frame, plan.geometry.padding
    return Localization(
        heat=plan.localizer.maps(image[None], model.own_backgrounds(image[None]))(
            slice(0, 1), slice(prototype, prototype + 1)
        )[0, 0],
        origin=(down - my - top, right - mx - left),
        middle=(top + h / 2, left + w / 2),
    )


def _end(model: PCDNet, image: Float[Tensor, "C H W"], walk: _Walk, steps: list[Step]) -> tuple[float, bool]:
    """The error of the final decomposition, and whether it is another than that of the steps."""
    config = model.config
    plain = config.restarts == 0 and not config.depth_order and config.min_inside == 0 and config.max_unexplained == 1
    if plain:
        return steps[-1].error, False
    layers = model.explain(image[None], None, training=False, refined=True)
    where = layers.placement
    kept = torch.stack([where.prototype[0], where.row[0], where.column[0]], dim=1)[where.exists[0]].tolist()
    places = [[step.chosen.prototype, *step.chosen.position] for step in steps if step.chosen is not None]
    chosen = [place for place in places if walk.reported(*place)]
    return float((layers.reconstruction[0] - image).square().sum()), kept != chosen


def _in_field(model: PCDNet, image: Float[Tensor, "C H W"]) -> tuple[Float[Tensor, "C h w"], tuple[int, int]]:
    """What the search looks at of an image, and where in the image that starts."""
    field, shown = model.field, model.shown()
    inside = image if field is None else field.cut(image)
    return inside if shown is None else inside * shown[0], (0, 0) if field is None else (field.top, field.left)


class _Walk:
    """Greedy selection of one image, one choice at a time; between choices all candidates can be compared."""

    def __init__(self, model: PCDNet, image: Float[Tensor, "C H W"]) -> None:
        whole, (image, self._corner) = image, _in_field(model, image)
        plan, own = model.plan((image.shape[1], image.shape[2])), model.own_backgrounds(image[None])
        self.given = given = model.selection_input(image[None], plan, model.config.peaks_per_prototype, own)
        self._evidence = given.evidence()
        behind = model.weights().clamped().behind(whole) if own is None else own[0]
        self._error = float((whole - behind).square().sum())
        self._free = given.candidates.exists[0].clone()
        where, (my, mx) = given.candidates, plan.geometry.padding
        self._all = torch.arange(len(self._free), device=image.device)
        kinds = where.prototype(self._all)
        self._kinds = kinds.tolist()
        corner = self._all.new_tensor(self._corner) - plan.offset[kinds]
        self._positions = torch.stack([where.row[0], where.column[0]], dim=1).add(corner).tolist()
        maps = plan.localizer.maps(image[None], own)(slice(0, 1), slice(0, len(plan.boxes)))[0]
        self._heights = maps[kinds, where.row[0] + my, where.column[0] + mx].tolist()
        self._measure()

    def proposals(self) -> tuple[Proposal, ...]:
        """All candidates as they stand now."""
        return tuple(self._proposal(t) for t in self._free.nonzero()[:, 0].tolist())

    def reported(self, prototype: int, row: int, column: int) -> bool:
        """Whether an object is not cut off too much by the border; its place is that of the bank's frame."""
        plan = self.given.plan
        p = self._all.new_tensor(prototype)
        top, left = plan.offset[p] - self._all.new_tensor(self._corner)
        return bool(plan.reported(p, row + top, column + left))

    def step(self, chosen: int | None) -> Step:
        """This moment, at which a candidate, or none, is chosen."""
        rivals: dict[int, int] = {}
        for t in self._reductions.argsort(descending=True, stable=True).tolist():
            if self._allowed[t] and t != chosen:
                rivals.setdefault(self._kinds[t], t)
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
        row, column = self._positions[t]
        return Proposal(
            prototype=self._kinds[t],
            position=(row, column),
            height=self._heights[t],
            colour=tuple(self._colours[t].tolist()),
            error_reduction=float(self._reductions[t]),
        )
