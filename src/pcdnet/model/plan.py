"""Plan: everything that the search derives from a bank, an image size and a configuration, before it sees an image.

The network, the inspection, the refinement and the ONNX graph all search by the same plan. It is derived here and
nowhere else, and a model keeps it while its weights stay the same.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.config import MOST_PROTOTYPES, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.cells import CellLocalizer
from pcdnet.model.compiled import usable
from pcdnet.model.composition import OPAQUE
from pcdnet.model.evidence import EvidenceKernels
from pcdnet.model.geometry import Box, Geometry, support
from pcdnet.model.localization import ErrorReductionLocalizer, PhaseLocalizer
from pcdnet.model.peaks import Candidates, Peaks, gathered, in_portions, to_candidates
from pcdnet.model.sizes import Size, like_sizes
from pcdnet.model.solidity import solid
from pcdnet.model.windows import Windows, canvas

AREA_SLACK = 1e-4
"""Share of the area that must be visible, or in the image, which may be missing, so that rounding does not matter."""
LEAST_SEEN = 0.25
"""Share of a candidate in the image, at least, that nothing must always hide."""
PLACES = 1 << 24
"""More than an image has columns."""
MAX_PLANS = 4
"""Image sizes whose plans a model keeps."""
_PLANNING = threading.Lock()  # a server's threads share a model


@dataclass(frozen=True, slots=True, eq=False)
class SearchPlan:
    """How images of one size are searched for the prototypes of one bank; it carries no gradient."""

    config: ModelConfig
    bank: PrototypeBank
    """The bank as it is painted."""
    tight: PrototypeBank
    """The same objects in the smallest frame that holds them all; see `PrototypeBank.tight`."""
    offset: Int[Tensor, "P 2"]
    """Where the tight frame lies in the bank's own."""
    geometry: Geometry
    """How tight frames lie in the images."""
    frames: Geometry
    """How the bank's own frames lie in the images, wherever a tight one may lie."""
    finder: PhaseLocalizer | ErrorReductionLocalizer | None
    """Scores every place; None where places are known already."""
    cells: CellLocalizer | None
    """Scores the places at which something is left to explain, if these are few and places are scored by that."""
    kernels: EvidenceKernels
    """From windows to error reductions."""
    sizes: list[Size]
    """The prototypes in groups of like sizes, with boxes in the tight frame."""
    boxes: Int[Tensor, "P 4"]
    """Top, left, height and width of the box around every mask, in the tight frame."""
    corner: Int[Tensor, "P 2"]
    """Top and left of the box around what is opaque of every mask, in the tight frame."""
    rank: Int[Tensor, "P"]
    """The number of every prototype if they are sorted by the shape of what is opaque, whatever their order is."""
    behind: Float[Tensor, "1 Y X C"] | None
    """The background on a padded canvas; None stands for black."""
    seen: Float[Tensor, "1 1 H W"] | None = None
    """1 where objects can be seen, 0 where something always hides them; None stands for 1 everywhere. Images that are
    searched, and the background, are 0 there, too."""
    derived: dict[str, Any] = field(default_factory=dict, repr=False)
    """What others derive from a plan, kept with it."""

    @staticmethod
    @torch.no_grad()
    def derive(
        bank: PrototypeBank,
        image_size: tuple[int, int],
        config: ModelConfig,
        seen: Float[Tensor, "1 1 H W"] | None = None,
        *,
        located: bool = False,
        unhidden: bool = False,
    ) -> SearchPlan:
        """The plan for images of this height and width; refuses frames that are larger.

        Where it is known already at which places the prototypes are `located`, none are searched for. By error
        reduction those that are `unhidden` may be found first (see `change`).
        """
        bank = bank.map(Tensor.detach)
        if seen is not None and bank.background is not None:
            bank = dataclasses.replace(bank, background=bank.background * seen[0])
        Geometry.for_overhang(image_size, bank.frame, config.overhang)
        tight, offset = bank.tight()
        if config.background == "moving":  # images are searched over what they see of it
            tight = dataclasses.replace(tight, background=None)
        geometry = Geometry.for_overhang(image_size, tight.frame, config.overhang)
        (h, w), (my, mx), background = bank.frame, geometry.padding, tight.background
        kernels = EvidenceKernels(tight.prototypes, tight.masks, config.channels)
        sizes, opaque = like_sizes(kernels.boxes), support(tight.masks > OPAQUE)
        localizer: PhaseLocalizer | ErrorReductionLocalizer | None
        if located:
            localizer, cells = None, None
        elif config.localization == "phase":
            localizer, cells = PhaseLocalizer(tight, geometry, config.template), None
        else:
            localizer = ErrorReductionLocalizer(tight, geometry, config.max_colour, seen, unhidden=unhidden)
            cells = CellLocalizer(tight, sizes, localizer, config.min_error_reduction)
        return SearchPlan(
            config=config,
            bank=bank,
            tight=tight,
            offset=offset,
            geometry=geometry,
            frames=Geometry(image_size, bank.frame, (my + h, mx + w)),
            finder=localizer,
            cells=cells,
            kernels=kernels,
            sizes=sizes,
            boxes=torch.tensor(kernels.boxes, device=tight.masks.device),
            corner=torch.tensor(opaque, device=tight.masks.device)[:, :2],
            rank=_rank(tight.masks, opaque),
            behind=None if background is None else canvas(background[None], geometry),
            seen=seen,
        )

    @property
    def localizer(self) -> PhaseLocalizer | ErrorReductionLocalizer:
        """What scores every place."""
        assert self.finder is not None, "the places are known already"
        return self.finder

    def place_of(self, row: Any, column: Any, peaks: int) -> Any:
        """Where the opaque part of candidates (*any T) begins, by row, column and shape, as one number each.

        Of candidates that are as good as each other the one of the least number counts.
        """
        numbers: list[Any] = [x.repeat_interleave(peaks) for x in (*self.corner.unbind(1), self.rank)]
        # Values of an ONNX graph are added to arrays.
        top, left, rank = numbers if isinstance(row, Tensor) else [x.cpu().numpy() for x in numbers]
        return ((row + top) * PLACES + column + left) * MOST_PROTOTYPES + rank

    @property
    def min_visible(self) -> float:
        """Share of a mask's area in the image that must be visible; the slack keeps rounding out of it."""
        return self.config.min_visible * (1 - AREA_SLACK)

    @property
    def min_inside(self) -> Float[Tensor, "P"]:
        """Mask area of every prototype that must lie in the image, for an object of it to be reported."""
        return self.config.min_inside * (1 - AREA_SLACK) * self.tight.masks.sum(dim=(1, 2))

    def candidates(
        self, images: Float[Tensor, "B C H W"], peaks: int, own: Float[Tensor, "B C H W"] | None = None
    ) -> Candidates:
        """The `peaks` best places of every prototype in every image; those that are not solid enough do not exist.

        `own` are backgrounds of the images other than the bank's.
        """
        found = to_candidates(self.peaks(images, peaks, own), self.geometry)
        return dataclasses.replace(found, exists=self.acceptable(images, found, own))

    def acceptable(
        self, images: Float[Tensor, "B C H W"], found: Candidates, own: Float[Tensor, "B C H W"] | None
    ) -> Bool[Tensor, "B T"]:
        """Which candidates are there, and are seen and solid enough."""
        if self.seen is not None:
            found = dataclasses.replace(found, exists=found.exists & self._seen_enough(found))
        return found.exists if self.config.min_solid == 0 else self._solid(images, own, found)

    def peaks(self, images: Float[Tensor, "B C H W"], peaks: int, own: Float[Tensor, "B C H W"] | None = None) -> Peaks:
        """The best places of every prototype and how well it fits there, solid or not."""
        if isinstance(self.localizer, PhaseLocalizer) and usable(images):
            return self.localizer.peaks(images, peaks, own)
        maps, P = self.localizer.maps(images, own), len(self.boxes)
        if self.cells is None:
            portions = in_portions(maps, images, P, self.geometry, self.localizer.reach)
        else:
            behind = own if own is not None or self.tight.background is None else self.tight.background[None]
            portions = self.cells.portions(images, behind, maps, own=own is not None)
        return gathered(portions, images, P, self.geometry, peaks)

    def peaks_behind(
        self,
        images: Float[Tensor, "B C H W"],
        peaks: int,
        own: Float[Tensor, "B C H W"],
        clear: Float[Tensor, "B 1 H W"],
    ) -> Peaks:
        """The best places behind objects that are found already, which let something be seen where it is `clear`."""
        assert isinstance(self.localizer, ErrorReductionLocalizer)
        maps, P = self.localizer.maps_behind(images, own, clear), len(self.boxes)
        portions = in_portions(maps, images, P, self.geometry, self.localizer.reach)
        return gathered(portions, images, P, self.geometry, peaks)

    def _solid(
        self, images: Float[Tensor, "B C H W"], own: Float[Tensor, "B C H W"] | None, found: Candidates
    ) -> Bool[Tensor, "B T"]:
        return solid(images, self.tight, self.sizes, own, self.geometry, found, self.config, self.seen)

    def _seen_enough(self, found: Candidates) -> Bool[Tensor, "B T"]:
        """Which candidates are not nearly all behind what hides them: any would explain the rest."""
        p = found.prototype(torch.arange(found.row.shape[1], device=found.row.device))
        return self._area_inside(p, found.row, found.column) >= LEAST_SEEN * self._area_in_image(
            p, found.row, found.column
        )

    def min_visible_area(self, candidates: Candidates) -> Float[Tensor, "B T"] | None:
        """Mask area that must be visible of every candidate; None where it does not matter."""
        if self.min_visible == 0:
            return None
        p = candidates.prototype(torch.arange(candidates.row.shape[1], device=candidates.row.device))
        return self.min_visible * self._area_inside(p, candidates.row, candidates.column)

    def reported(
        self, p: Int[Tensor, "*objects"], row: Int[Tensor, "*objects"], column: Int[Tensor, "*objects"]
    ) -> Bool[Tensor, "*objects"]:
        """Which objects, in tight frames at these places, are not cut off too much by the border to be reported."""
        return self._area_inside(p, row, column) >= self.min_inside[p]

    def _area_inside(
        self, p: Int[Tensor, "*some"], row: Int[Tensor, "*objects"], column: Int[Tensor, "*objects"]
    ) -> Float[Tensor, "*objects"]:
        """How much of the mask area of objects in tight frames can be seen in the image."""
        if self.seen is None:
            return self._area_in_image(p, row, column)
        which = p.expand_as(row).flatten()
        windows = Windows(self.geometry, torch.zeros_like(which), row.flatten(), column.flatten())
        shown = windows.cut(canvas(self.seen, self.geometry))[..., 0]
        return (shown * self.tight.masks[which]).sum(dim=(1, 2)).view(row.shape)

    def _area_in_image(
        self, p: Int[Tensor, "*some"], row: Int[Tensor, "*objects"], column: Int[Tensor, "*objects"]
    ) -> Float[Tensor, "*objects"]:
        """How much of the mask area of objects in tight frames lies in the image."""
        masks, (H, W) = self.tight.masks, self.geometry.image
        h, w = masks.shape[-2:]
        areas = torch.nn.functional.pad(masks.cumsum(1).cumsum(2), (1, 0, 1, 0))
        top, left = (-row).clamp(0, h), (-column).clamp(0, w)
        bottom, right = (H - row).clamp(0, h), (W - column).clamp(0, w)
        return areas[p, bottom, right] - areas[p, top, right] - areas[p, bottom, left] + areas[p, top, left]


@dataclass(slots=True, eq=False)
class PlanCache:
    """The plans of one model, kept while its configuration and its weights stay the same, number by number."""

    config: ModelConfig | None = None
    weights: PrototypeBank | None = None
    seen: Float[Tensor, "1 1 H W"] | None = None
    plans: dict[tuple[int, int], SearchPlan] = field(default_factory=dict)

    def get(
        self,
        weights: PrototypeBank,
        image_size: tuple[int, int],
        config: ModelConfig,
        seen: Float[Tensor, "1 1 H W"] | None = None,
    ) -> SearchPlan:
        """The plan for these weights as they are painted in evaluation: clamped to [0, 1]."""
        with torch.inference_mode(False), torch.no_grad():  # made in inference mode, it could not be used outside
            with _PLANNING:
                same = self.weights is not None and self.weights.equals(weights) and _same(seen, self.seen)
                if config != self.config or not same:
                    self.config, self.plans, self.seen = config, {}, None if seen is None else seen.clone()
                    self.weights = weights.map(lambda values: values.detach().clone())
                known, kept, seen, plan = self.weights, self.plans, self.seen, self.plans.get(image_size)
            assert known is not None
            if plan is None:  # two threads may both derive it, which does no harm: those of other sizes must not wait
                plan = SearchPlan.derive(known.clamped(), image_size, config, seen)
                with _PLANNING:
                    while len(kept) >= MAX_PLANS:
                        kept.pop(next(iter(kept)))
                    kept[image_size] = plan
        return plan


def _rank(masks: Float[Tensor, "P h w"], boxes: Sequence[Box]) -> Int[Tensor, "P"]:
    """The number of every prototype, sorted by size and shape of its opaque part."""
    opaque = (masks > OPAQUE).cpu().numpy()
    shapes = [
        (height, width, shape[top : top + height, left : left + width].tobytes())
        for shape, (top, left, height, width) in zip(opaque, boxes, strict=True)
    ]
    rank = torch.empty(len(shapes), dtype=torch.long)
    rank[sorted(range(len(shapes)), key=shapes.__getitem__)] = torch.arange(len(shapes))
    return rank.to(masks.device)


def _same(one: Tensor | None, two: Tensor | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.device == two.device and torch.equal(one, two)
