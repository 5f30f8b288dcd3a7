"""Inspection: look inside the search, at the localization maps and at what greedy selection did step by step.

It walks the same search as the network, one image at a time, and keeps what the network only passes through.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import compose
from pcdnet.model.evidence import EvidenceKernels, Quadratics, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.model.selection import EMPTY, SelectionInput, add_in_front, opening, select

RIVALS = 5
"""Rivals that are told of at every step, each of another prototype."""


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
    """The choices in their order; the last step chooses nothing."""
    error: float
    """The squared error of the final decomposition, after refinement."""
    refined: bool
    """Whether refinement found something better than these steps."""


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
    """Repeat greedy selection on one image of values in [0, 1], in evaluation mode, and tell of every step."""
    walk = _Walk(model, image)
    found = select(walk.search, model.config.max_objects)
    steps, proposals = [], walk.proposals()
    for t in found.candidate[0].tolist():
        if t == EMPTY:
            break
        steps.append(walk.step(t))
        walk.choose(t)
    steps.append(walk.step(None))
    error, refined = _end(model, image, steps)
    return Inspection(proposals=proposals, steps=tuple(steps), error=error, refined=refined)


@torch.inference_mode()
def locate(model: PCDNet, image: Float[Tensor, "C H W"], prototype: int) -> Localization:
    """The localization map in which the search finds the places of a prototype."""
    tight, offset = model.bank().tight()
    geometry = _geometry(model, image, tight)
    (top, left), (h, w), (my, mx) = offset[prototype].tolist(), geometry.frame, geometry.padding
    return Localization(
        heat=model.maps(image[None], tight, geometry)(slice(0, 1), slice(prototype, prototype + 1))[0, 0],
        origin=(-my - top, -mx - left),
        middle=(top + h / 2, left + w / 2),
    )


def stages(
    bank: PrototypeBank,
    prototype: Int[Tensor, "N"],
    row: Int[Tensor, "N"],
    column: Int[Tensor, "N"],
    colour: Float[Tensor, "N C"],
    size: tuple[int, int],
) -> Float[Tensor, "N+1 C H W"]:
    """The picture after none of the objects, after the first, after the first two, and so on to all of them.

    Objects come front to back, and every frame must share a pixel with the image.
    """
    N, C = colour.shape
    h, w = bank.frame
    background = colour.new_zeros(C, *size) if bank.background is None else bank.background
    textures = bank.prototypes[prototype][..., None] * colour[:, None, None]
    exists = torch.ones(N + 1, N, dtype=torch.bool, device=row.device).tril(-1)
    return compose(
        textures.expand(N + 1, -1, -1, -1, -1),
        bank.masks[prototype].expand(N + 1, -1, -1, -1),
        row.expand(N + 1, -1),
        column.expand(N + 1, -1),
        exists,
        background,
        Geometry(size, (h, w), (h - 1, w - 1)),
    )


def _end(model: PCDNet, image: Float[Tensor, "C H W"], steps: list[Step]) -> tuple[float, bool]:
    """The error of the final decomposition, and whether it is another than that of the steps."""
    if model.config.restarts == 0:
        return steps[-1].error, False
    layers = model(image[None])
    where = layers.placement
    kept = torch.stack([where.prototype[0], where.row[0], where.column[0]], dim=1)[where.exists[0]].tolist()
    chosen = [[step.chosen.prototype, *step.chosen.position] for step in steps if step.chosen is not None]
    return float((layers.reconstruction[0] - image).square().sum()), kept != chosen


def _geometry(model: PCDNet, image: Float[Tensor, "C H W"], tight: PrototypeBank) -> Geometry:
    return Geometry.for_overhang((image.shape[1], image.shape[2]), tight.frame, model.config.overhang)


@dataclass(frozen=True, slots=True)
class _Cell:
    """The search of one image, as the network sets it up, and the maps that its candidates are the peaks of."""

    offset: Int[Tensor, "P 2"]
    geometry: Geometry
    search: SelectionInput
    maps: Float[Tensor, "P rows columns"]

    @staticmethod
    def of(model: PCDNet, image: Float[Tensor, "C H W"]) -> _Cell:
        images, bank = image[None], model.bank()
        tight, offset = bank.tight()
        geometry = _geometry(model, image, tight)
        kernels = EvidenceKernels(tight.prototypes, tight.masks, model.config.channels)
        search = model.search(images, bank, tight, offset, geometry, kernels, model.config.peaks_per_prototype)
        maps = model.maps(images, tight, geometry)(slice(0, 1), slice(0, len(tight.prototypes)))[0]
        return _Cell(offset, geometry, search, maps)


class _Walk:
    """Greedy selection of one image, one choice at a time; between choices all candidates can be compared."""

    def __init__(self, model: PCDNet, image: Float[Tensor, "C H W"]) -> None:
        self._cell = _Cell.of(model, image)
        self.search = search = self._cell.search
        self._planes, self._behind = opening(search)
        background = search.bank.background
        self._error = float((image if background is None else image - background).square().sum())
        self._free = search.candidates.exists[0].clone()
        where, (my, mx) = search.candidates, self._cell.geometry.padding
        kinds = where.prototype(torch.arange(len(self._free), device=image.device))
        self._kinds = kinds.tolist()
        self._positions = torch.stack([where.row[0], where.column[0]], dim=1).sub(self._cell.offset[kinds]).tolist()
        self._heights = self._cell.maps[kinds, where.row[0] + my, where.column[0] + mx].tolist()
        self._weigh()

    def proposals(self) -> tuple[Proposal, ...]:
        """All candidates as they stand now."""
        return tuple(self._told(t) for t in self._free.nonzero()[:, 0].tolist())

    def step(self, chosen: int | None) -> Step:
        """This moment, at which a candidate, or none, is chosen."""
        rivals: dict[int, int] = {}
        for t in self._reductions.argsort(descending=True, stable=True).tolist():
            if self._allowed[t] and t != chosen:
                rivals.setdefault(self._kinds[t], t)
        return Step(
            error=self._error,
            chosen=None if chosen is None else self._told(chosen),
            rivals=tuple(self._told(t) for t in list(rivals.values())[:RIVALS]),
        )

    def choose(self, chosen: int) -> None:
        """Put a candidate behind those that were chosen before."""
        image, candidate = torch.zeros_like(self._all[:1]), self._all[chosen : chosen + 1]
        add_in_front(self._planes, self._behind, self.search, image, candidate, self._colours[candidate])
        self._error = max(0.0, self._error - float(self._reductions[chosen]))  # rounding must not make it negative
        self._free[chosen] = False
        self._weigh()

    def _weigh(self) -> None:
        """What every candidate would reduction now, and in which colour."""
        search, T, C = self.search, len(self._free), self.search.images.shape[1]
        self._all = torch.arange(T, device=self._free.device)
        image = torch.zeros_like(self._all)
        quadratics = Quadratics.zeros(self._planes, T, C)
        search.kernels.update(self._planes, search.geometry, search.candidates, image, self._all, quadratics)
        self._colours = search.palette.colours(quadratics, image, self._all)
        self._allowed = search.seen(quadratics, self._free[None])[0].tolist()
        self._reductions = error_reduction_of(quadratics.a[0], quadratics.q[0], quadratics.k[0], self._colours)

    def _told(self, t: int) -> Proposal:
        row, column = self._positions[t]
        return Proposal(
            prototype=self._kinds[t],
            position=(row, column),
            height=self._heights[t],
            colour=tuple(self._colours[t].tolist()),
            error_reduction=float(self._reductions[t]),
        )
