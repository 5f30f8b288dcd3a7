"""Proposals: where every prototype could be, and in which of the coarse poses.

Each prototype in each coarse pose is located like a prototype of its own. Where poses are fitted afterwards, this is
done in pictures of half the size: what differs by a pixel or by a few degrees is told apart by fitting, not here. Poses
in which a prototype looks the same, as a square does after a quarter turn, are searched for once. Of places and poses
that are next to each other the best is kept, and of every place a few poses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import avg_pool2d

from pcdnet.config import FULL_TURN, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.peaks import Peaks
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.candidates import PosedCandidates
from pcdnet.model.poses.nearby import peaks_near
from pcdnet.model.poses.pose import CoarsePoses
from pcdnet.model.poses.variants import in_images, upright, variants_of

HALVED, HALVED_FIRST = 12, 6
"""Prototypes of at least so many pixels a side, in their smallest size, can be told from each other at half of it; and
where each object is looked for anew afterwards, which sets most mistakes right."""
TRIED = 128
"""Places and poses of a prototype that are compared with each other in an image."""
MODES = 2
"""Poses of a prototype that are fitted at one place: those of a square look alike until they are."""
NEAR = 0.25
"""Places that differ by this share of the shorter side of a frame are one place."""
RIVAL = 0.6
"""Of all that is proposed at one place, what reduces the error by less than this share of the best is left out."""
CHOICES = 4
"""Candidates of an image that are fitted, for each object that it may hold."""
FEWEST_ANGLES = 8
"""In which whole images are searched, where objects may lie at any angle."""
LEAST = 0.25
"""A coarse pose must reduce the error by this share of what an object must: fitted it does better."""
FAINT = 0.02
"""Where masks are below this, nothing is proposed or fitted."""
ALIKE = 0.1
"""Poses in which a prototype differs by less than if it were moved by this share of a pixel look the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Proposer:
    """Finds posed candidates in images of one size."""

    config: ModelConfig
    coarse: CoarsePoses
    prototypes: int
    shrunk: int
    """The factor by which pictures are made smaller to be searched."""
    plan: SearchPlan
    """How they are searched then for all prototypes in all coarse poses, but for those that look the same."""
    stands_for: Int[Tensor, "V"]
    """Of every prototype of the plan the variant, number p * R + r of prototype p in the r-th of R poses."""
    looks_like: Int[Tensor, "variants"]
    """Of every variant the prototype of the plan that it looks like."""
    corner: Int[Tensor, "V 2"]
    """Where the plan's bank lies in the frames of posed objects, and its tight frames in it, made smaller."""

    @staticmethod
    @torch.no_grad()
    def derive(
        bank: PrototypeBank, size: tuple[int, int], config: ModelConfig, seen: Float[Tensor, "1 1 H W"] | None
    ) -> Proposer:
        """For a bank as it is painted, upright."""
        coarse = CoarsePoses.of(config, bank.masks)
        variants, P = variants_of(bank, config), len(bank.masks)
        painted, masks, background = variants.prototypes, variants.masks, bank.background
        shrunk = 2 if _smallest(masks) >= (HALVED if config.rounds == 1 else HALVED_FIRST) else 1
        if shrunk > 1:
            small = [smaller(values[:, None], shrunk)[:, 0] for values in (painted * masks, masks)]
            painted, masks = small[0] / small[1].clamp(min=1e-3), small[1]
            size = -(-size[0] // shrunk), -(-size[1] // shrunk)
            seen = None if seen is None else (smaller(seen, shrunk) > 0.5).to(seen)
            if background is not None and config.background == "still":
                background = smaller(background[None], shrunk)[0]
        masks = torch.where(masks > FAINT, masks, 0)
        stands_for, looks_like = _distinct(painted * masks, masks, P)
        distinct = PrototypeBank(painted[stands_for], masks[stands_for], background)
        inner, corner = in_images(distinct, size)
        least = LEAST * config.min_error_reduction / shrunk**2
        rules = replace(upright(config), min_error_reduction=least)
        plan = SearchPlan.derive(inner, size, rules, seen, unhidden=True)
        corners = plan.offset + plan.offset.new_tensor(corner)
        return Proposer(config, coarse, P, shrunk, plan, stands_for, looks_like, corners)

    def propose(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, peaks: int
    ) -> PosedCandidates:
        """At most `peaks` places of every prototype in every image, each in a few poses."""
        images, own = self.looked_at(images, own)
        return self._thinned(self.plan.peaks(images, peaks, own), peaks, CHOICES * self.config.max_objects)

    def looked_at(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B C h w"] | None]:
        """Images and their own backgrounds in the size in which they are searched."""
        if self.shrunk == 1:
            return images, own
        return smaller(images, self.shrunk), None if own is None else smaller(own, self.shrunk)

    def propose_behind(
        self,
        images: Float[Tensor, "B C H W"],
        own: Float[Tensor, "B C H W"],
        clear: Float[Tensor, "B 1 H W"],
        peaks: int,
    ) -> PosedCandidates:
        """The same behind objects that are found already: only where it is `clear` anything is seen."""
        images, own, clear = self.looked_through(images, own, clear)
        found = self.plan.peaks_behind(images, peaks, own, clear)
        return self._thinned(found, peaks, CHOICES * self.config.max_objects)

    def propose_near(
        self,
        images: Float[Tensor, "n C h w"],
        own: Float[Tensor, "n C h w"],
        clear: Float[Tensor, "n 1 h w"],
        places: Int[Tensor, "n 2"],
        most: int,
    ) -> PosedCandidates:
        """At most so many candidates near a place of each image, the top left of a frame of posed objects.

        Of every prototype at every angle, the size and the place that fit best. Images are in the size in which they
        are searched.
        """
        corner = self.corner.double().mean(0).round().long() + places.new_tensor(self.plan.geometry.padding)
        near = places.div(self.shrunk, rounding_mode="floor") + corner
        parts = 1 + self.config.mirror, self.config.scales, self.config.rotations  # as coarse poses are numbered
        found = peaks_near(self.plan, images, own, clear, near)
        height, row, column = (self._by_variant(values).view(len(images), -1, *parts) for values in found)
        height, size = height.max(3)
        row, column = (values.gather(3, size[..., None, :])[..., 0, :] for values in (row, column))
        mirrored, angle = (torch.arange(parts[axis], device=size.device) for axis in (0, 2))
        pose = (mirrored[:, None] * parts[1] + size) * parts[2] + angle
        height, row, column, pose = (values.flatten(2) for values in (height, row, column, pose))
        row, column = self._in_posed_frames(row, column, pose)
        return self._candidates(self._best(height, most) & (height > -torch.inf), row, column, pose)

    def looked_through(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"], clear: Float[Tensor, "B 1 H W"]
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B C h w"], Float[Tensor, "B 1 h w"]]:
        """Images, what is behind, and where it is clear, in the size in which they are searched."""
        if self.shrunk == 1:
            return images, own, clear
        # What is seen of a pixel in part is known no better than what is not seen.
        clear = (smaller(clear, self.shrunk) > 0.99).to(clear)
        return smaller(images, self.shrunk), smaller(own, self.shrunk), clear

    def _thinned(self, found: Peaks, peaks: int, most: int) -> PosedCandidates:
        """The best of places and poses that are next to each other, at most so many of an image."""
        R = len(self.coarse)
        height, row, column = (self._by_variant(values) for values in found)
        pose = torch.arange(R, device=row.device).repeat_interleave(found[0].shape[-1]).expand_as(row)
        height, order = height.topk(min(TRIED, height.shape[-1]), dim=-1)
        row, column, pose = (values.gather(-1, order) for values in (row, column, pose))
        row, column = self._in_posed_frames(row, column, pose)
        kept = (height > self._least) & ~self._hidden(row, column, pose)
        kept &= self._rival(height.where(kept, -torch.inf), row, column)
        kept &= self._best(height.where(kept, -torch.inf), most)
        return self._candidates(kept & (kept.cumsum(-1) <= MODES * peaks), row, column, pose)

    def _in_posed_frames(
        self, row: Int[Tensor, "B P n"], column: Int[Tensor, "B P n"], pose: Int[Tensor, "B P n"]
    ) -> tuple[Int[Tensor, "B P n"], Int[Tensor, "B P n"]]:
        """Places in the plan's maps as those of whole frames, so that what is turned about one place is at one."""
        variant = pose + len(self.coarse) * torch.arange(self.prototypes, device=row.device)[None, :, None]
        (my, mx), corner = self.plan.geometry.padding, self.corner[self.looks_like[variant]]
        return row - my - corner[..., 0], column - mx - corner[..., 1]

    def _candidates(
        self,
        kept: Bool[Tensor, "B P n"],
        row: Int[Tensor, "B P n"],
        column: Int[Tensor, "B P n"],
        pose: Int[Tensor, "B P n"],
    ) -> PosedCandidates:
        image, prototype, n = kept.nonzero(as_tuple=True)
        row, column, pose = (values[image, prototype, n] for values in (row, column, pose))
        return PosedCandidates(image, prototype, self.shrunk * row, self.shrunk * column, self.coarse.values[pose])

    def _by_variant(self, values: Shaped[Tensor, "B V K"]) -> Shaped[Tensor, "B P n"]:
        """What was found of the plan's prototypes, as that of all variants; nothing of those that look like others."""
        B, _, K = values.shape
        lowest = -torch.inf if values.is_floating_point() else 0
        every = values.new_full((B, len(self.looks_like), K), lowest)
        every[:, self.stands_for] = values
        return every.view(B, self.prototypes, -1)

    def _best(self, height: Float[Tensor, "B P n"], most: int) -> Bool[Tensor, "B P n"]:
        """Which are among so many that are the best of an image."""
        flat = height.flatten(1)
        least = flat.topk(min(most, flat.shape[1]), dim=1).values[:, -1]
        return height >= least[:, None, None]

    def _rival(
        self, height: Float[Tensor, "B P n"], row: Int[Tensor, "B P n"], column: Int[Tensor, "B P n"]
    ) -> Bool[Tensor, "B P n"]:
        """Which are not far worse than the best of any prototype at their place."""
        if self.config.localization == "phase":
            return torch.ones_like(height, dtype=torch.bool)
        kept = torch.zeros_like(height, dtype=torch.bool)
        for heights, rows, columns, mine in zip(height, row, column, kept, strict=True):
            index = (heights > -torch.inf).nonzero(as_tuple=True)
            h, y, x = heights[index], rows[index], columns[index]
            near = ((y[:, None] - y).abs() <= self._reach) & ((x[:, None] - x).abs() <= self._reach)
            mine[index] = h >= RIVAL * torch.where(near, h[None], -torch.inf).amax(1) if len(h) else h > 0
        return kept

    @property
    def _reach(self) -> int:
        return max(1, round(NEAR * int(self.plan.boxes[:, 2:].min())))

    @property
    def _least(self) -> float:
        if self.config.localization == "phase":
            return -torch.inf
        return self.plan.config.min_error_reduction

    def _hidden(
        self, row: Int[Tensor, "B P n"], column: Int[Tensor, "B P n"], pose: Int[Tensor, "B P n"]
    ) -> Bool[Tensor, "B P n"]:
        """Which are next to a better one in place and pose, or at a place at which enough better ones are."""
        reach, hidden = self._reach, []
        for rows, columns, poses in zip(row.flatten(0, 1), column.flatten(0, 1), pose.flatten(0, 1), strict=True):
            near = ((rows[:, None] - rows).abs() <= reach) & ((columns[:, None] - columns).abs() <= reach)
            earlier = near.tril(-1)
            same = (earlier & self.coarse.near(poses[:, None], poses)).any(-1)
            modes = (earlier & ~same[None]).sum(-1)
            hidden.append(same | (modes >= MODES))
        return torch.stack(hidden).view_as(row)


def in_fewer_angles(config: ModelConfig) -> ModelConfig:
    """The configuration by which whole images are searched: in every second angle, where there are enough of them.

    What lies between these is found when every object is looked for anew, in all angles.
    """
    low, high = config.rotation_range
    if config.rounds == 1 or config.rotations % 2 or config.rotations < 2 * FEWEST_ANGLES or high - low < FULL_TURN:
        return config
    return replace(config, rotations=config.rotations // 2)


def _distinct(
    paint: Float[Tensor, "variants h w"], masks: Float[Tensor, "variants h w"], prototypes: int
) -> tuple[Int[Tensor, "V"], Int[Tensor, "variants"]]:
    """The variants that look different from all before them, by number, and of every variant which of these it is."""
    first: list[Tensor] = []
    looks_like: list[Tensor] = []
    for number, mine in enumerate(torch.stack([paint, masks], dim=1).chunk(prototypes)):
        flat = mine.flatten(1)
        apart = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist").square()
        slopes = [(mine.diff(dim=dim) ** 2).sum((1, 2, 3)) for dim in (2, 3)]
        same = apart <= ALIKE**2 * torch.minimum(*slopes)[:, None]
        earliest = same.int().argmax(dim=1)
        while not torch.equal(earliest, earliest[earliest]):
            earliest = earliest[earliest]
        own, place = torch.unique(earliest, return_inverse=True)
        looks_like.append(place + sum(map(len, first)))
        first.append(own + number * len(mine))
    return torch.cat(first), torch.cat(looks_like)


def _smallest(masks: Float[Tensor, "V h w"]) -> int:
    """The shortest side of what is opaque of any of the masks that have something."""
    opaque = masks > 0.5
    sides = torch.stack([opaque.any(2).sum(1), opaque.any(1).sum(1)]).amin(0)
    sides = sides[sides > 0]
    return int(sides.min()) if len(sides) else 0


def smaller(pictures: Float[Tensor, "n C h w"], factor: int) -> Float[Tensor, "n C y x"]:
    """Pictures in a smaller size, each pixel the mean of those that it stands for."""
    small: Tensor = avg_pool2d(pictures, factor, ceil_mode=True, count_include_pad=False)
    return small
