"""What the search for posed objects goes through in one image, for people to look at: maps, proposals, candidates."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.model.peaks import Some
from pcdnet.model.plan import SearchPlan
from pcdnet.model.posed import frame_corner
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.pose import ANGLE, DOWN, MIRRORED, RIGHT, SCALE
from pcdnet.model.poses.search import Look, PosedSearch
from pcdnet.model.selection import SelectionInput


@dataclass(frozen=True, slots=True)
class PoseValues:
    """A pose as people read it."""

    angle: float
    """Degrees counter-clockwise."""
    scale: float
    """How much larger the object is than its prototype."""
    mirrored: bool
    """Whether it is a mirror image, left to right, before it is turned."""

    @staticmethod
    def of(pose: Float[Tensor, "5"]) -> PoseValues:
        """Those of a pose of the search."""
        values = pose.tolist()
        return PoseValues(values[ANGLE] % 360, values[SCALE], values[MIRRORED] > 0)


def maps_of(
    plan: SearchPlan, image: Float[Tensor, "1 C H W"], own: Float[Tensor, "1 C H W"] | None, which: Some
) -> Float[Tensor, "p rows columns"]:
    """The localization maps of some prototypes of a plan."""
    assert plan.localizer is not None, "this plan searches for nothing"
    return plan.localizer.maps(image, own)(slice(0, 1), which)[0]


@dataclass(frozen=True, slots=True, eq=False)
class CoarseMaps:
    """How the maps of prototypes in coarse poses lie over an image."""

    plan: SearchPlan
    """Its prototypes are the variants, prototype p in the r-th of R poses being number p * R + r; or those of a
    proposer, which has those that look the same once."""
    coarse: Float[Tensor, "R 5"]
    shrunk: int
    """The factor by which pictures are made smaller to be searched."""
    search: PosedSearch

    @staticmethod
    def of(search: PosedSearch) -> CoarseMaps:
        """Those of a search, whatever it does with what they show."""
        if search.proposer is not None:
            return CoarseMaps(search.proposer.plan, search.proposer.coarse.values, search.proposer.shrunk, search)
        assert search.variants is not None
        return CoarseMaps(search.variants.plan, search.variants.coarse, 1, search)

    def variant(self, prototype: int, pose: int) -> int:
        """The number of a prototype in a pose."""
        return prototype * len(self.coarse) + pose

    def corner(self, variant: int) -> tuple[int, int]:
        """Where the tight frame of a variant lies in the frame of posed objects, in pixels of the maps."""
        if self.search.proposer is not None:
            y, x = self.search.proposer.corner[self.search.proposer.looks_like[variant]].tolist()
            return y, x
        assert self.search.variants is not None
        top, left = self.search.variants.corner
        y, x = self.plan.offset[variant].tolist()
        return y + top, x + left

    def maps(
        self, image: Float[Tensor, "1 C H W"], own: Float[Tensor, "1 C H W"] | None, variants: slice
    ) -> Float[Tensor, "v rows columns"]:
        """The localization maps of some variants."""
        if self.search.proposer is not None:
            image, own = self.search.proposer.looked_at(image, own)
            return maps_of(self.plan, image, own, self.search.proposer.looks_like[variants])
        return maps_of(self.plan, image, own, variants)

    def upright(self, cell: tuple[int, int], variant: int) -> tuple[int, int]:
        """The position of the upright frame of an object that a cell of a variant's map stands for."""
        padding, corner = self.plan.geometry.padding, self.corner(variant)
        inner = frame_corner(self.search.plan.bank.frame, self.search.config)
        row, column = (
            self.shrunk * (at - pad - begin) + start
            for at, pad, begin, start in zip(cell, padding, corner, inner, strict=True)
        )
        return row, column

    def middle(self, variant: int) -> tuple[float, float]:
        """Where the middle of what is seen of a variant lies, from the corner of the upright frame."""
        sides, corner = self.plan.geometry.frame, self.corner(variant)
        inner = frame_corner(self.search.plan.bank.frame, self.search.config)
        row, column = (
            self.shrunk * (begin + side / 2) - start for begin, side, start in zip(corner, sides, inner, strict=True)
        )
        return row, column


@dataclass(frozen=True, slots=True, eq=False)
class Candidacy:
    """What greedy selection chooses from in one image, and what its candidates stand for, in the searched part."""

    given: SelectionInput
    prototypes: list[int]
    positions: list[tuple[float, float]]
    """Top left of the upright frames."""
    heights: list[float] | None
    """Of the maps there; None where candidates were fitted, and are not where a map has its peak."""
    poses: list[PoseValues] | None
    """None where the model has no poses."""
    proposed: list[PoseValues] | None = None
    """The coarse poses from which candidates were fitted."""


def proposed_things(look: Look, image: Float[Tensor, "1 C H W"], own: Tensor | None) -> PosedCandidates:
    """What the search proposes in an image, in coarse poses."""
    assert look.search.proposer is not None
    return look.search.proposer.propose(image, own, look.search.config.peaks_per_prototype)


def proposed_candidacy(
    look: Look, image: Float[Tensor, "1 C H W"], own: Tensor | None, things: PosedCandidates
) -> Candidacy:
    """Proposals as candidates, before they are fitted."""
    maps, heights = CoarseMaps.of(look.search), []
    padding = maps.plan.geometry.padding
    poses = (things.pose[:, None] == maps.coarse).all(-1).int().argmax(1).tolist()
    where = zip(things.prototype.tolist(), poses, things.row.tolist(), things.column.tolist(), strict=True)
    known: dict[int, Tensor] = {}
    for prototype, pose, row, column in where:
        variant = maps.variant(prototype, pose)
        if variant not in known:
            known[variant] = maps.maps(image, own, slice(variant, variant + 1))[0]
        (top, left), (my, mx) = maps.corner(variant), padding
        cell = row // maps.shrunk + top + my, column // maps.shrunk + left + mx
        heights.append(float(known[variant][cell]))
    return _candidacy(look, image, own, things, heights)


def fitted_candidacy(
    look: Look, image: Float[Tensor, "1 C H W"], own: Tensor | None, things: PosedCandidates
) -> Candidacy:
    """Proposals as the candidates that they become by fitting: each makes two, but for those that become the same."""
    fitted, origin = look.fitted(image, own, things)
    proposed = [PoseValues.of(pose) for pose in things.pose[origin]]
    return _candidacy(look, image, own, fitted, None, proposed)


def _candidacy(
    look: Look,
    image: Float[Tensor, "1 C H W"],
    own: Tensor | None,
    things: PosedCandidates,
    heights: list[float] | None,
    proposed: list[PoseValues] | None = None,
) -> Candidacy:
    search = look.search
    instances = search.instances(things)
    given = look.given(image, own, instances)
    if len(things) == 0:  # something stands for nothing, so that there is something to point at
        none = torch.zeros_like(given.candidates.exists)
        given = dataclasses.replace(given, candidates=dataclasses.replace(given.candidates, exists=none))
    things = instances.things
    top, left = frame_corner(search.plan.bank.frame, search.config)
    rows = (things.row + top + things.pose[:, DOWN]).tolist()
    columns = (things.column + left + things.pose[:, RIGHT]).tolist()
    poses = [PoseValues.of(pose) for pose in things.pose]
    places = list(zip(map(_plain, rows), map(_plain, columns), strict=True))
    return Candidacy(given, things.prototype.tolist(), places, heights, poses, proposed)


def variant_candidacy(
    look: Look, given: SelectionInput, image: Float[Tensor, "1 C H W"], own: Tensor | None
) -> Candidacy:
    """The candidates of a search for variants, as objects in poses."""
    maps, where = CoarseMaps.of(look.search), given.candidates
    every = torch.arange(where.row.shape[1], device=where.row.device)
    (my, mx), variants = maps.plan.geometry.padding, where.prototype(every).tolist()
    cells = list(zip((where.row[0] + my).tolist(), (where.column[0] + mx).tolist(), strict=True))
    heights, known = [], -1
    for variant, cell in zip(variants, cells, strict=True):
        if variant != known:  # candidates come variant by variant
            heat, known = maps.maps(image, own, slice(variant, variant + 1))[0], variant
        heights.append(float(heat[cell]))
    poses = [PoseValues.of(pose) for pose in maps.coarse]
    return Candidacy(
        given,
        [variant // len(poses) for variant in variants],
        [maps.upright(cell, variant) for cell, variant in zip(cells, variants, strict=True)],
        heights,
        [poses[variant % len(poses)] for variant in variants],
    )


def _plain(place: float) -> float:
    """A place as a number that is an int where it is whole."""
    return int(place) if place == int(place) else place
