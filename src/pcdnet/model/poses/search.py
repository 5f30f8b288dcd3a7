"""Posed search: images searched for prototypes in any pose.

Candidates are proposed in coarse poses and fitted one by one. Then they are chosen from as from a bank, in an order
of depth, with rivals tried where an error is left. The chosen objects are fitted together, each to what those in front
of it let through, and what no longer pays is left out. A second look at what is left over finds small and hidden
things. In the end objects are left out that the others can do without.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import Palette
from pcdnet.model.composition import instance_labels
from pcdnet.model.depth import in_depth_order, selected_in_depth_order
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.placement import Placement, in_front, kept, reported, to_placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.fitting import Freedom, Seen, fitted
from pcdnet.model.poses.instances import Instances
from pcdnet.model.poses.polishing import polished
from pcdnet.model.poses.pose import MARGIN, pose_frame
from pcdnet.model.poses.proposals import FAINT, Proposer
from pcdnet.model.poses.sprites import posed_sprites
from pcdnet.model.poses.variants import VariantSearch
from pcdnet.model.refinement import refine, unexplained
from pcdnet.model.selection import EMPTY, SelectionInput, replaced, select, subset
from pcdnet.model.windows import Windows, canvas, inside_of, window_sums

FITS, POLISHES = 6, 6
"""Steps in which candidates are fitted one by one, and the chosen objects together."""
IN_TRAINING = 3
"""The same for candidates in training, where the next step sees them again."""
WEAK, DOUBLES = 2, 2
"""Objects of an image that it is tried to do without, those that reduce the error least, and how often."""
REVALUED = 2
"""How often objects that do not pay are left out and the others valued anew."""
TOGETHER = 1024
"""Candidates of several images that are chosen from together."""

Colouring = Callable[[Tensor, SearchPlan, Candidates], Palette]
"""How candidates of a plan in some images are coloured."""
Painting = Callable[[Tensor, Tensor | None, Placement], Tensor]
"""The pictures that placed objects make over given backgrounds of images, or over the bank's."""


@dataclass(frozen=True, slots=True, eq=False)
class PosedSearch:
    """How images of one size are searched for the prototypes of one bank in any pose."""

    plan: SearchPlan
    proposer: Proposer | None
    """Where there are poses between the coarse ones."""
    variants: VariantSearch | None
    """Where there are none."""
    frame: tuple[int, int]
    """Height and width of the frames of posed objects."""
    core: tuple[int, int]
    """Height and width of the middle part of these that holds all that is seen of any object."""
    radius: float
    """How far from the middle of its frame a prototype is seen."""

    @staticmethod
    def derive(plan: SearchPlan) -> PosedSearch:
        """From the plan of the upright bank."""
        config, frame = plan.config, pose_frame(plan.bank.frame, plan.config)
        if config.fine_poses and config.rotations * config.scales > 1:
            proposer = Proposer.derive(plan.bank, plan.geometry.image, config, plan.seen)
            radius = _radius(plan.bank)
            return PosedSearch(plan, proposer, None, frame, _core(frame, config.scale_range[1] * radius), radius)
        return PosedSearch(plan, None, VariantSearch.derive(plan), frame, frame, math.inf)

    @property
    def config(self) -> ModelConfig:
        """The configuration."""
        return self.plan.config

    def seen(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        things: PosedCandidates,
        clear: Float[Tensor, "B 1 H W"] | None = None,
    ) -> Seen:
        """What images show in the frames of candidates where it is `clear`, and what is behind them there."""
        core = self.core
        geometry = Geometry.touching(self.plan.geometry.image, core)
        (y, x), (Y, X) = geometry.padding, geometry.positions
        row = (things.row + (self.frame[0] - core[0]) // 2).clamp(-y, Y - y - 1)
        column = (things.column + (self.frame[1] - core[1]) // 2).clamp(-x, X - x - 1)
        behind = self.plan.bank.behind(images[0])[None] if own is None else own
        where = Windows(geometry, things.image, row, column)
        ground = where if len(behind) > 1 else Windows(geometry, torch.zeros_like(things.image), row, column)
        shown = where.cut(canvas(images, geometry)).permute(0, 3, 1, 2)
        under = ground.cut(canvas(behind, geometry)).permute(0, 3, 1, 2)
        open_ = inside_of(images, geometry, self.plan.seen)
        open_ = open_ if clear is None else open_ * canvas(clear, geometry)
        inside = where.cut(open_)[..., 0]
        return Seen(shown, under, inside, self.radius)


def _radius(bank: PrototypeBank) -> float:
    """How far what is seen of any prototype is from the middle of the frame."""
    h, w = bank.frame
    y = torch.arange(h, device=bank.masks.device)[:, None] - (h - 1) / 2
    x = torch.arange(w, device=bank.masks.device) - (w - 1) / 2
    return float(((y.square() + x.square()).sqrt() * (bank.masks > FAINT).any(0)).max())


def _core(frame: tuple[int, int], reach: float) -> tuple[int, int]:
    """The middle part of a frame that holds all within reach."""
    sides = []
    for outer in frame:
        side = 2 * (math.ceil(reach) + MARGIN) + 1
        sides.append(min(outer, side + (outer - side) % 2))
    return sides[0], sides[1]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One search, and how it is done."""

    search: PosedSearch
    palette: Colouring
    paint: Painting
    training: bool
    refined: bool

    def placed(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, known: Placement | None = None
    ) -> Placement:
        """The objects of images; the search begins with those that are known, or with nothing."""
        first = self.chosen(images, own, self.candidates(images, own)) if known is None else known
        found = self.improved(images, own, first)
        for _ in range(self.search.config.rounds - 1 if self.refined and not self.training else 0):
            more = self.again(images, own, found)
            if more is found:
                break
            found = more
        return self.without_doubles(images, own, found) if self.refined and not self.training else found

    def without_doubles(self, images: Tensor, own: Tensor | None, found: Placement) -> Placement:
        """The objects without those that the others, fitted anew, can do without.

        Of an object that is painted a little too small another one may show what is missing: fitted together they
        never find out, as nothing is left of the error.
        """
        for _ in range(DOUBLES):
            many = (found.exists.sum(1) > 1).nonzero()[:, 0]
            if len(many) == 0:
                break
            shown, mine, old = images[many], None if own is None else own[many], subset(found, many)
            weakest = old.error_reduction.where(old.exists, torch.inf).argsort(dim=1)
            changed = torch.zeros(len(many), dtype=torch.bool, device=many.device)
            best, least = old, self.left(shown, mine, old)
            for nth in range(min(WEAK, weakest.shape[1])):
                gone = torch.zeros_like(old.exists).scatter(1, weakest[:, nth : nth + 1], True)
                tried = self.improved(shown, mine, kept(old, old.exists & ~gone))
                error = self.left(shown, mine, tried)
                better = old.exists.gather(1, weakest[:, nth : nth + 1])[:, 0] & (error < least)
                which = better.nonzero()[:, 0]
                best, least = replaced(best, which, subset(tried, which)), torch.where(better, error, least)
                changed |= better
            which = changed.nonzero()[:, 0]
            if len(which) == 0:
                break
            found = replaced(found, many[which], subset(best, which))
        return found

    def left(self, images: Tensor, own: Tensor | None, found: Placement) -> Tensor:
        """What is left of the error of images, with what an object must reduce it by for each of the objects."""
        left = (self.paint(images, own, found) - images).square().sum((1, 2, 3))
        return left + self.search.config.min_error_reduction * found.exists.sum(1)

    def again(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, found: Placement
    ) -> Placement:
        """Search once more where something is left over and objects may be added, in front of the others."""
        config = self.search.config
        painted = self.paint(images, own, found)
        room = found.exists.sum(1) < found.exists.shape[1]
        frame = self.search.plan.geometry.frame
        most = window_sums((painted - images).square().sum(1), frame).flatten(1).amax(1)
        image = (room & (most >= config.min_error_reduction)).nonzero()[:, 0]
        if len(image) == 0:
            return found
        shown, behind, mine = images[image], painted[image], None if own is None else own[image]
        some = subset(found, image)
        if config.localization == "error_reduction":
            some = self.more_behind(shown, mine, some)
            behind = self.paint(shown, mine, some)
        more = self.chosen(shown, behind, self.candidates(shown, behind))
        both = self.improved(shown, mine, in_front(more, some)) if more.exists.any() else some
        return replaced(found, image, both)

    def more_behind(self, images: Tensor, own: Tensor | None, found: Placement) -> Placement:
        """The objects of images and others that lie behind them."""
        search, config = self.search, self.search.config
        assert search.proposer is not None
        ground = search.plan.bank.behind(images[0]).expand_as(images) if own is None else own
        clear = self.clear(images, found)
        proposed = search.proposer.propose_behind(images, ground, clear, config.peaks_per_prototype)
        things = self.fitted(images, ground, proposed, clear)
        if len(things) == 0:
            return found
        placed = PosedCandidates.placed(found)
        return self.improved(images, own, self.added(images, own, found, placed.and_(things)))

    def added(self, images: Tensor, own: Tensor | None, found: Placement, things: PosedCandidates) -> Placement:
        """Objects that are placed, which are the first of things in their order, and what pays behind them."""
        instances = Instances.of(things, self.search.plan.bank, self.search.frame, self.search.plan)
        given = self.given(images, own, instances)
        image, n = found.exists.nonzero(as_tuple=True)
        script = torch.full_like(found.prototype, EMPTY)
        script[image, n] = torch.arange(len(image), device=image.device)
        return instances.things.among(to_placement(given, select(given, script)))

    def clear(self, images: Tensor, found: Placement) -> Tensor:
        """1 where no object is seen in images, 0 elsewhere."""
        search = self.search
        bank, index = search.plan.bank, found.prototype.clamp(min=0)
        _, masks = posed_sprites(bank.prototypes[index], bank.masks[index], found, search.config)
        frames = found.frames((images.shape[-2], images.shape[-1]), search.frame)
        labels = instance_labels(masks, frames)[:, None]
        return (labels == 0).to(images)

    def candidates(self, images: Tensor, own: Tensor | None) -> PosedCandidates:
        """What is proposed in images, fitted one by one."""
        assert self.search.proposer is not None
        things = self.search.proposer.propose(images, own, self.search.config.peaks_per_prototype)
        return self.fitted(images, own, things)

    def fitted(
        self, images: Tensor, own: Tensor | None, things: PosedCandidates, clear: Tensor | None = None
    ) -> PosedCandidates:
        """Things fitted one by one to what is seen of images, where it is `clear`."""
        search, config = self.search, self.search.config
        if len(things) == 0:
            return things
        freedom = Freedom.of(config)  # a coarse pose fits best a pixel beside the place of the fine one
        pictures = torch.stack([search.plan.bank.prototypes, search.plan.bank.masks], dim=1)[things.prototype]
        seen = search.seen(images, own, things, clear)
        steps = IN_TRAINING if self.training else FITS
        robust = fitted(pictures, things.pose, seen, config, freedom, steps, robust=True)
        plain = fitted(pictures, robust, seen, config, freedom, (steps + 1) // 2, robust=False)
        settled = dataclasses.replace(things, pose=plain).settled(subpixel=config.subpixel)
        if not self.training:  # there the next step sees them again
            settled = dataclasses.replace(things, pose=robust).settled(subpixel=config.subpixel).and_(settled)
        if config.subpixel:
            return settled
        # Where positions are whole, angles and sizes are fitted once more there.
        rest, seen = Freedom.of(config, moving=False), search.seen(images, own, settled, clear)
        again = pictures.repeat(len(settled) // len(things), 1, 1, 1), settled.pose, seen, config, rest, 2
        return dataclasses.replace(settled, pose=fitted(*again, robust=False))

    def chosen(self, images: Tensor, own: Tensor | None, things: PosedCandidates) -> Placement:
        """The candidates that explain images best, a few images at a time."""
        B = len(images)
        counts = torch.bincount(things.image, minlength=B).tolist()
        parts, start = [], 0
        while start < B:
            stop, total = start + 1, counts[start]
            while stop < B and total + counts[stop] <= TOGETHER:
                total += counts[stop]
                stop += 1
            which = (things.image >= start) & (things.image < stop)
            some = things.part(which)
            some = dataclasses.replace(some, image=some.image - start)
            parts.append(self._chosen(images[start:stop], None if own is None else own[start:stop], some))
            start = stop
        return _joined(parts)

    def _chosen(self, images: Tensor, own: Tensor | None, things: PosedCandidates) -> Placement:
        bank, config = self.search.plan.bank, self.search.config
        instances = Instances.of(things, bank, self.search.frame, self.search.plan)
        given = self.given(images, own, instances)
        selection = select(given)
        if config.depth_order and (self.refined or self.training):
            # In training, too: an object that lies behind another but is put in front of it is painted best with a
            # mask that lets something through, and of shapes that look alike turned one end would learn to.
            selection = selected_in_depth_order(given, selection)
        if self.refined and config.restarts > 0:
            open_images = unexplained(given, selection)
            if len(open_images):
                part, old = given.subset(open_images), subset(selection, open_images)
                new = refine(part, old, config.restarts)
                if config.depth_order:
                    new = selected_in_depth_order(part, new)
                selection = replaced(selection, open_images, new)
        return instances.things.among(to_placement(given, selection))

    def given(self, images: Tensor, own: Tensor | None, instances: Instances) -> SelectionInput:
        """What selection chooses from."""
        plan, candidates = instances.plan, instances.candidates(images, own)
        palette = self.palette(images, plan, candidates)
        return SelectionInput(images, plan, candidates, palette, plan.min_visible_area(candidates), own)

    def improved(self, images: Tensor, own: Tensor | None, found: Placement) -> Placement:
        """Placed objects fitted together, those that do not pay left out, in their order."""
        config, search = self.search.config, self.search
        freedom = Freedom.of(config, moving=config.subpixel)
        if not found.exists.any() or (search.variants is not None and not freedom.free):
            return found
        if freedom.free:
            behind = search.plan.bank.behind(images[0])[None] if own is None else own
            steps = 1 if self.training else POLISHES
            found = polished(images, behind, search.plan, search.frame, found, freedom, steps)
        return self.valued(images, own, found)

    def valued(self, images: Tensor, own: Tensor | None, found: Placement) -> Placement:
        """Placed objects in the colours and with the error reductions that selection finds for them.

        Those that reduce the error by too little are left out, and those that overlap come into their order.
        """
        config, things = self.search.config, PosedCandidates.placed(found)
        if len(things) == 0:
            return found
        instances = Instances.of(things, self.search.plan.bank, self.search.frame, self.search.plan)
        given = self.given(images, own, instances)
        script = torch.full_like(found.prototype, EMPTY)
        image, n = found.exists.nonzero(as_tuple=True)
        number = torch.arange(len(things), device=image.device)
        script[image, n] = torch.where(given.candidates.exists[image, number], number, EMPTY)
        for _ in range(REVALUED):
            script = script.gather(1, (script == EMPTY).long().argsort(dim=1, stable=True))
            selection = select(given, script)
            added = script == EMPTY
            pays = (selection.error_reduction >= config.min_error_reduction) & ~added
            if (pays == ~added).all():
                break
            script = torch.where(pays, script, EMPTY)
        keep = (selection.candidate == script) & (script != EMPTY)
        placed = kept(to_placement(given, selection), keep)
        if config.depth_order and (self.refined or self.training):
            placed = in_depth_order(images, given.behind(), instances.plan, placed)
        placed = placed if self.training else reported(placed, instances.plan)
        return instances.things.among(placed)


def _joined(parts: list[Placement]) -> Placement:
    """The placements of several images as one."""
    if len(parts) == 1:
        return parts[0]
    names = [field.name for field in dataclasses.fields(Placement)]
    return Placement(*(torch.cat([getattr(part, name) for part in parts]) for name in names))
