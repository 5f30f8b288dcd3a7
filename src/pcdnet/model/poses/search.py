"""Posed search: images searched for prototypes in any pose.

Candidates are proposed in coarse poses and fitted one by one. Then those are arranged, in an order of depth, that
explain the image. They are fitted together, each to what those in front of it let through, and what no longer pays is
left out. Where an error is left, every object is looked for anew between those in front of it and those behind it, and
then what may be hidden behind all of them or lie over them: among these and what is found the image is arranged again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import max_pool2d

from pcdnet.config import ModelConfig
from pcdnet.model.colour import Palette
from pcdnet.model.composition import instance_labels
from pcdnet.model.depth import in_depth_order
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.placement import Placement, kept, reported, to_placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.arranging import arranged
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.contexts import Contexts
from pcdnet.model.poses.fitting import Freedom, Seen, fitted
from pcdnet.model.poses.instances import Instances
from pcdnet.model.poses.polishing import polished, reach_of
from pcdnet.model.poses.pose import MARGIN, pose_frame
from pcdnet.model.poses.proposals import FAINT, Proposer, in_fewer_angles
from pcdnet.model.poses.sketches import Sketchbook
from pcdnet.model.poses.sprites import posed_sprites
from pcdnet.model.poses.variants import VariantSearch
from pcdnet.model.selection import EMPTY, SelectionInput, replaced, select, subset
from pcdnet.model.windows import Windows, canvas, inside_of, window_sums

FITS, POLISHES = 3, 6
"""Steps in which candidates are fitted one by one, after they were sketched, and the chosen objects together."""
REVALUED = 2
"""How often objects that do not pay are left out and the others valued anew."""
SKETCHED, INSTEAD, INSTEAD_FITS = 32, 6, 6
"""Candidates for what an object may be instead that are sketched, those of them that are fitted, and in which steps."""
DOUBT = 0.01
"""Of what an object explains: where it leaves more, it may be another one than it seems, or lie in another pose."""
RIM = 2
"""Pixels around an object in which what is left of the error may be its own."""
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
            proposer = Proposer.derive(plan.bank, plan.geometry.image, in_fewer_angles(config), plan.seen)
            radius = reach_of(plan.bank)
            return PosedSearch(plan, proposer, None, frame, _core(frame, config.scale_range[1] * radius), radius)
        return PosedSearch(plan, None, VariantSearch.derive(plan), frame, frame, math.inf)

    @property
    def config(self) -> ModelConfig:
        """The configuration."""
        return self.plan.config

    def instances(self, things: PosedCandidates) -> Instances:
        """Candidates as they are painted."""
        return Instances.of(things, self.plan.bank, self.frame, self.plan, self.core)

    def visible(self, images: Tensor, clear: Float[Tensor, "B 1 H W"] | None) -> Float[Tensor, "B 1 H W"] | None:
        """1 where something can be seen in images or parts of them; None stands for everywhere."""
        whole = self.plan.seen if images.shape[-2:] == self.plan.geometry.image else None
        if whole is None:
            return clear
        return whole.expand(len(images), -1, -1, -1) if clear is None else clear * whole

    def closely(self, contexts: Contexts) -> Proposer:
        """Where prototypes could be in parts of images."""
        size = contexts.shown.shape[-2], contexts.shown.shape[-1]
        key = f"proposals in {size[0]}x{size[1]}"
        if key not in self.plan.derived:
            self.plan.derived[key] = Proposer.derive(self.plan.bank, size, self.config, None)
        found: Proposer = self.plan.derived[key]
        return found

    def seen(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"] | None,
        things: PosedCandidates,
        clear: Float[Tensor, "B 1 H W"] | None = None,
    ) -> Seen:
        """What images, or parts of them, show in the frames of candidates, and what is behind them there.

        Where it is not `clear`, nothing is seen; that of parts says so of what is seen in their images, too.
        """
        core, size = self.core, (images.shape[-2], images.shape[-1])
        geometry, shown_at_all = Geometry.touching(size, core), self.plan.seen
        shown_at_all = shown_at_all if size == self.plan.geometry.image else None
        (y, x), (Y, X) = geometry.padding, geometry.positions
        row = (things.row + (self.frame[0] - core[0]) // 2).clamp(-y, Y - y - 1)
        column = (things.column + (self.frame[1] - core[1]) // 2).clamp(-x, X - x - 1)
        behind = self.plan.bank.behind(images[0])[None] if own is None else own
        where = Windows(geometry, things.image, row, column)
        ground = where if len(behind) > 1 else Windows(geometry, torch.zeros_like(things.image), row, column)
        shown = where.cut(canvas(images, geometry)).permute(0, 3, 1, 2)
        under = ground.cut(canvas(behind, geometry)).permute(0, 3, 1, 2)
        open_ = inside_of(images, geometry, shown_at_all)
        open_ = open_ if clear is None else open_ * canvas(clear, geometry)
        inside = where.cut(open_)[..., 0]
        return Seen(shown, under, inside, self.radius)


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
        if known is None:
            known = self.arranged(images, own, self.candidates(images, own))
        found = self.improved(images, own, known)
        for _ in range(self.search.config.rounds - 1 if self.refined and not self.training else 0):
            more = self.again(images, own, found)
            if more is found:
                break
            found = more
        return found

    def left(self, images: Tensor, own: Tensor | None, found: Placement) -> Tensor:
        """What is left of the error of images, with what an object must reduce it by for each of the objects."""
        left = (self.paint(images, own, found) - images).square().sum((1, 2, 3))
        return left + self.search.config.min_error_reduction * found.exists.sum(1)

    def again(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, found: Placement
    ) -> Placement:
        """Search once more where so much is left that an object may be missing, or another one than it seems.

        What is around each object is known better after every look: where that has changed, objects are looked for
        anew once more.
        """
        changed = torch.ones_like(found.exists[:, 0])
        for look in self.anew, self.behind, self.before, self.anew, self.anew:
            painted = self.paint(images, own, found)
            doubtful = found.exists
            if look == self.anew:
                doubtful = self.in_doubt(images, found, painted)
                here = changed & doubtful.any(1)
                changed = torch.zeros_like(changed)
            else:
                frame = self.search.plan.geometry.frame
                most = window_sums((painted - images).square().sum(1), frame).flatten(1).amax(1)
                here = most >= self.search.config.min_error_reduction
            image = here.nonzero()[:, 0]
            if len(image) == 0:
                continue
            shown, mine, some = images[image], None if own is None else own[image], subset(found, image)
            more = look(shown, mine, some, painted[image], doubtful[image])
            tried = self.improved(shown, mine, self.arranged(shown, mine, more, some))
            better = self.left(shown, mine, tried) < self.left(shown, mine, some)
            found = replaced(found, image[better], subset(tried, better))
            changed[image[better]] = True
        return found

    def anew(
        self, images: Tensor, own: Tensor | None, found: Placement, painted: Tensor, which: Bool[Tensor, "B N"]
    ) -> PosedCandidates:
        """Candidates for what some objects may be instead, between those in front of them and those behind them."""
        search, plan = self.search, self.search.plan
        assert search.proposer is not None
        ground = plan.bank.behind(images[0]).expand_as(images) if own is None else own
        contexts = Contexts.of(images, ground, plan, search.frame, found, which)
        proposer = search.closely(contexts)
        seen = proposer.looked_through(contexts.shown, contexts.behind, contexts.clear)
        proposed = proposer.propose_near(*seen, contexts.place, SKETCHED)
        things, _ = self.fitted(contexts.shown, contexts.behind, proposed, contexts.clear, certain=True)
        return contexts.in_images(things)

    def in_doubt(self, images: Tensor, found: Placement, painted: Tensor) -> Bool[Tensor, "B N"]:
        """Objects on which, or beside which, much of the error is left for what they explain."""
        search, (image, n) = self.search, found.exists.nonzero(as_tuple=True)
        bank, index = search.plan.bank, found.prototype.clamp(min=0)
        _, masks = posed_sprites(bank.prototypes[index], bank.masks[index], found, search.config)
        beside = max_pool2d((masks[image, n] > FAINT).float(), 2 * RIM + 1, 1, RIM)
        geometry = found.frames((images.shape[-2], images.shape[-1]), search.frame).geometry
        left = canvas((painted - images).square().sum(1, keepdim=True), geometry)
        shown = Windows(geometry, image, found.row[image, n], found.column[image, n]).cut(left)[..., 0]
        doubtful = found.exists.clone()
        doubtful[image, n] = (shown * beside).sum((1, 2)) >= DOUBT * found.error_reduction[image, n]
        return doubtful

    def behind(
        self, images: Tensor, own: Tensor | None, found: Placement, painted: Tensor, which: Bool[Tensor, "B N"]
    ) -> PosedCandidates:
        """Candidates behind objects: nothing is known of what these hide."""
        search, config = self.search, self.search.config
        if config.localization == "phase":
            return self.candidates(images, own)
        assert search.proposer is not None
        ground = search.plan.bank.behind(images[0]).expand_as(images) if own is None else own
        clear = self.clear(images, found)
        proposed = search.proposer.propose_behind(images, ground, clear, config.peaks_per_prototype)
        return self.fitted(images, ground, proposed, clear)[0]

    def before(
        self, images: Tensor, own: Tensor | None, found: Placement, painted: Tensor, which: Bool[Tensor, "B N"]
    ) -> PosedCandidates:
        """Candidates over what objects show."""
        return self.candidates(images, painted)

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
        return self.fitted(images, own, things)[0]

    def fitted(
        self,
        images: Tensor,
        own: Tensor | None,
        things: PosedCandidates,
        clear: Tensor | None = None,
        *,
        certain: bool = False,
    ) -> tuple[PosedCandidates, Int[Tensor, "n"]]:
        """Things fitted one by one to what is seen of images, where it is `clear`, and from which each came.

        If that is `certain`, nothing else lies over them there, and all that does not fit is theirs.
        """
        search, config = self.search, self.search.config
        if len(things) == 0:
            return things, things.image
        # A coarse pose fits best a pixel beside the place of the fine one.
        freedom = Freedom.of(config if certain else in_fewer_angles(config))
        ground = search.plan.bank.behind(images[0])[None] if own is None else own
        rules = search.plan.bank, config, search.frame, search.radius
        book = Sketchbook.of(images, ground, search.visible(images, clear), *rules)
        things, origin = book.best(things, freedom, INSTEAD if certain else None, robust=not certain)
        pictures = torch.stack([search.plan.bank.prototypes, search.plan.bank.masks], dim=1)[things.prototype]
        how = search.seen(images, own, things, clear), config, freedom
        if certain:
            plain = fitted(pictures, things.pose, *how, INSTEAD_FITS, robust=False)
            settled = dataclasses.replace(things, pose=plain).settled(subpixel=config.subpixel)
        else:
            robust = fitted(pictures, things.pose, *how, FITS, robust=True)
            plain = fitted(pictures, robust, *how, (FITS + 1) // 2, robust=False)
            settled = dataclasses.replace(things, pose=plain).settled(subpixel=config.subpixel)
            if not self.training:  # there the next step sees them again
                settled = dataclasses.replace(things, pose=robust).settled(subpixel=config.subpixel).and_(settled)
        origin = origin.repeat(len(settled) // len(things))
        if config.subpixel:
            return settled, origin
        # Where positions are whole, angles and sizes are fitted once more there.
        rest, seen = Freedom.of(config, moving=False), search.seen(images, own, settled, clear)
        again = pictures.repeat(len(settled) // len(things), 1, 1, 1), settled.pose, seen, config, rest, 2
        return dataclasses.replace(settled, pose=fitted(*again, robust=False)), origin

    def arranged(
        self, images: Tensor, own: Tensor | None, things: PosedCandidates, found: Placement | None = None
    ) -> Placement:
        """The candidates that explain images best, of these and of what is found, a few images at a time."""
        first = None if found is None else PosedCandidates.placed(found)
        pool = things if first is None else first.and_(things)
        start = torch.full((len(images), self.search.config.max_objects), EMPTY, device=images.device)
        if found is not None and first is not None:
            image, n = found.exists.nonzero(as_tuple=True)
            start[image, n] = torch.arange(len(first), device=images.device)
        counts = torch.bincount(pool.image, minlength=len(images)).tolist()
        parts, begin = [], 0
        while begin < len(images):
            end, total = begin + 1, counts[begin]
            while end < len(images) and total + counts[end] <= TOGETHER:
                total += counts[end]
                end += 1
            which = ((pool.image >= begin) & (pool.image < end)).nonzero()[:, 0]
            some = pool.part(which)
            some = dataclasses.replace(some, image=some.image - begin)
            number = torch.full((len(pool) + 1,), EMPTY, device=images.device)
            number[which] = torch.arange(len(which), device=images.device)
            instances = self.search.instances(some)
            given = self.given(images[begin:end], None if own is None else own[begin:end], instances)
            placed = to_placement(given, arranged(given, number[start[begin:end]]))
            parts.append(instances.things.among(placed))
            begin = end
        return _joined(parts)

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
        instances = self.search.instances(things)
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
