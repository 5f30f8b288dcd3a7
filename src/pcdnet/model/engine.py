"""Engine: from a batch of images to objects and back to images, as tensors with gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.background import backgrounds
from pcdnet.model.bank import PrototypeBank, soft_clamp
from pcdnet.model.batch import check_batch
from pcdnet.model.colour import (
    ColourNetwork,
    LeastSquaresColours,
    NetworkColours,
    Palette,
    PlainColours,
    masked_windows,
)
from pcdnet.model.composition import compose, instance_labels
from pcdnet.model.geometry import Geometry
from pcdnet.model.placement import Placement, least_squares_colours, to_placement
from pcdnet.model.plan import PlanCache, SearchPlan
from pcdnet.model.refinement import LEAST_CHANGE, refine, unexplained
from pcdnet.model.selection import Selection, SelectionInput, select
from pcdnet.model.windows import canvas

DEEPER = 4
"""A badly explained image is searched again with this many times the peaks."""
INIT_GREY, INIT_CENTRE, INIT_MASK = 0.2, 1.0, 0.5
"""The paper's initial values: a bright centre pixel makes prototypes emerge in the middle of their frames."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A batch of images explained: objects front to back, and the images they make."""

    placement: Placement
    """Which objects, where; it carries no gradient."""
    colour: Float[Tensor, "B N C"]
    """The colour of every object."""
    reconstruction: Float[Tensor, "B C H W"]
    """The objects painted over the background."""
    masks: Float[Tensor, "B N h w"]
    """The alpha mask of every object, in its frame."""

    def instances(self) -> Int[Tensor, "B H W"]:
        """The object that each pixel belongs to: 0 is background, n + 1 the n-th object from the front."""
        where, (H, W) = self.placement, self.reconstruction.shape[-2:]
        return instance_labels(self.masks, where.row, where.column, where.exists, (H, W))


class Engine(nn.Module):
    """The search and the painting of PCDNet, for whoever works with tensors; users have `PCDNet`."""

    def __init__(self, config: ModelConfig, image_size: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.config = config
        P, (h, w) = config.num_prototypes, config.prototype_size
        prototypes = torch.full((P, h, w), INIT_GREY)
        prototypes[:, h // 2, w // 2] = INIT_CENTRE
        self.prototypes = nn.Parameter(prototypes)
        self.masks = nn.Parameter(torch.full((P, h, w), INIT_MASK))
        self.background: nn.Parameter | None = None
        if config.background in ("still", "moving"):
            if image_size is None:
                raise PcdnetError(
                    *(Setting("model.background", config.background), " needs the size of its picture; give "),
                    "image_size=(height, width)",
                )
            self.background = nn.Parameter(torch.zeros(config.channels, *image_size))
        self.ignored: Tensor | None
        still = image_size is not None and config.background == "still"
        self.register_buffer("ignored", torch.zeros(image_size, dtype=torch.bool) if still else None)
        self.colour = ColourNetwork(config.channels) if config.colour == "network" else None
        self._plans = PlanCache()

    @property
    def image_size(self) -> tuple[int, int] | None:
        """Height and width that images must have; None where the background is not still, and so any size will do."""
        if self.background is None or self.config.background != "still":
            return None
        return self.background.shape[1], self.background.shape[2]

    def seen(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """The images as they are searched and scored: where nothing is looked for, they show the background."""
        if self.ignored is None or self.background is None or not self.ignored.any():
            return images
        return torch.where(self.ignored, self.background.detach().clamp(0, 1), images)

    def weights(self) -> PrototypeBank:
        """The prototypes, masks and background as they are learned, unclamped."""
        return PrototypeBank(self.prototypes, self.masks, self.background)

    def bank(self) -> PrototypeBank:
        """The prototypes, masks and background as they are painted: clamped, with gradients."""
        return self.weights().map(soft_clamp if self.training else lambda values: values.clamp(0, 1))

    def plan(self, image_size: tuple[int, int]) -> SearchPlan:
        """How images of this size are searched in evaluation; derived once while the weights stay the same."""
        return self._plans.get(self.weights(), image_size, self.config)

    def forward(self, images: Float[Tensor, "B C H W"], bank: PrototypeBank | None = None) -> Layers:
        """Explain images of values in [0, 1], with the model's own bank or another (a noisy one, in training).

        Gradients flow through what was chosen, into the bank and the colour network; the search has none.
        """
        return self.explain(images, bank, training=self.training, refined=not self.training)

    def explain(
        self, images: Float[Tensor, "B C H W"], bank: PrototypeBank | None, *, training: bool, refined: bool
    ) -> Layers:
        """As `forward`, in training or in evaluation mode whatever mode the module is in, refined or plain greedy."""
        check_batch(images, self.config.channels)
        H, W = images.shape[-2:]
        self._check_size(H, W)
        images = self.seen(images)
        if bank is None and not training:
            plan = self.plan((H, W))
            bank = self.weights().map(lambda values: values.clamp(0, 1)) if torch.is_grad_enabled() else plan.bank
        else:
            bank = bank or self.bank()
            plan = SearchPlan.derive(bank, (H, W), self.config)
        behind = backgrounds(self.config.background, images, bank.background)
        with torch.no_grad():
            placement = self._place(images, behind, plan, training=training, refined=refined)
        layers = self._paint(images, bank, behind, placement)
        if self.config.background != "plain" or training:
            return layers
        # Objects that cover much of an image bend the surface a little: without them it is straight.
        behind = backgrounds("plain", images, None, layers.instances() > 0)
        with torch.no_grad():
            placement = self._place(images, behind, plan, training=training, refined=refined)
        return self._paint(images, bank, behind, placement)

    def _check_size(self, H: int, W: int) -> None:
        if self.background is None:
            return
        height, width = self.background.shape[1:]
        if self.config.background == "still" and (height, width) != (H, W):
            raise PcdnetError(
                f"images of {H}x{W} do not fit the background of {height}x{width}; resize or crop them to it"
            )
        if H > height or W > width:
            raise PcdnetError(f"images of {H}x{W} are larger than the background, {height}x{width}; crop them")

    def _paint(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank,
        behind: Float[Tensor, "B C H W"] | None,
        where: Placement,
    ) -> Layers:
        """Colour and paint the placed objects, with gradients where they are on."""
        # A product with one-hot rows: its gradient is a matrix product too, not a slow scatter.
        chosen = nn.functional.one_hot(where.prototype.clamp(min=0), len(bank.prototypes)).to(images.dtype)
        prototypes = torch.einsum("bnp,phw->bnhw", chosen, bank.prototypes)
        masks = torch.einsum("bnp,phw->bnhw", chosen, bank.masks)
        geometry = Geometry.touching((images.shape[-2], images.shape[-1]), bank.frame)
        if behind is None and bank.background is not None:
            behind = bank.background[None]
        colour = self._colours(images, behind, prototypes, masks, where, geometry)
        background = torch.zeros_like(images[:1]) if behind is None else behind
        textures = prototypes[..., None] * colour[:, :, None, None]
        painted = compose(textures, masks, where.row, where.column, where.exists, background, geometry)
        return Layers(where, colour, painted, masks)

    def _place(
        self,
        images: Float[Tensor, "B C H W"],
        behind: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        *,
        training: bool,
        refined: bool,
    ) -> Placement:
        """Search: candidates, greedy selection and, where it left an error, refinement and further rounds."""
        given = self.selection_input(images, plan, self.config.peaks_per_prototype, behind, training=training)
        selection = select(given, advantages=training)
        placement = to_placement(given.candidates, selection, plan.offset)
        if refined and self.config.restarts > 0:
            placement = self._refine(given, selection, placement, behind)
        for _ in range(self.config.rounds - 1):
            placement = self._search_again(images, behind, plan, placement, training=training)
        return placement

    def _refine(
        self,
        given: SelectionInput,
        selection: Selection,
        placement: Placement,
        behind: Float[Tensor, "B C H W"] | None,
    ) -> Placement:
        """Search the images that greedy selection explains badly with more peaks, sweeps and restarts."""
        open_images = unexplained(given, selection)
        if len(open_images) == 0:
            return placement
        behind = None if behind is None else behind[open_images]
        peaks = DEEPER * self.config.peaks_per_prototype
        deeper = self.selection_input(given.images[open_images], given.plan, peaks, behind)
        again = refine(deeper, select(deeper), self.config.restarts)
        better = again.error_reduction.sum(1) - selection.error_reduction[open_images].sum(1) >= LEAST_CHANGE
        return placement.replaced(open_images, to_placement(deeper.candidates, again, given.plan.offset), better)

    def _search_again(
        self,
        images: Float[Tensor, "B C H W"],
        behind: Float[Tensor, "B C H W"] | None,
        plan: SearchPlan,
        placement: Placement,
        *,
        training: bool,
    ) -> Placement:
        """Search once more where something is left over and objects may be added; they come in front of the others."""
        layers = self._paint(images, plan.bank, behind, placement)
        error = (layers.reconstruction - images).square().flatten(1).sum(1)
        room = placement.exists.sum(1) < placement.exists.shape[1]
        image = (room & (error >= self.config.min_error_reduction)).nonzero()[:, 0]
        if len(image) == 0:
            return placement
        left = self.selection_input(
            images[image], plan, self.config.peaks_per_prototype, layers.reconstruction[image], training=training
        )
        found = to_placement(left.candidates, select(left, advantages=training), plan.offset)
        return placement.replaced(image, found.in_front_of(placement.subset(image)), found.exists[:, 0])

    def selection_input(
        self,
        images: Float[Tensor, "B C H W"],
        plan: SearchPlan,
        peaks: int,
        behind: Float[Tensor, "B C H W"] | None = None,
        *,
        training: bool = False,
    ) -> SelectionInput:
        """What selection chooses from: the candidates of a plan in the images, and how they are coloured.

        `behind` are the images' own backgrounds; without it they have the bank's.
        """
        candidates = plan.candidates(images, peaks, behind)
        palette: Palette
        if self.colour is not None and not training:
            palette = NetworkColours(self.colour, images, plan, candidates)
        elif self.config.colour != "none":
            # In training the closed form chooses for the network too: one that knows no colours yet would find that
            # nothing explains anything, and so never learn any.
            palette = LeastSquaresColours(self.config.max_colour)
        else:
            palette = PlainColours()
        canvases = plan.behind if behind is None else canvas(behind.detach(), plan.geometry)
        return SelectionInput(images, plan, canvases, candidates, palette, plan.min_visible_area(candidates))

    def _colours(
        self,
        images: Float[Tensor, "B C H W"],
        background: Float[Tensor, "b C H W"] | None,
        prototypes: Float[Tensor, "B N h w"],
        masks: Float[Tensor, "B N h w"],
        where: Placement,
        geometry: Geometry,
    ) -> Float[Tensor, "B N C"]:
        """The colours of the chosen objects once more, now with gradients; as selection found them without."""
        if not torch.is_grad_enabled() or self.config.colour == "none":
            return where.colour
        if self.colour is None:
            return least_squares_colours(images, background, prototypes, masks, where, geometry, self.config.max_colour)
        image, n = where.exists.nonzero(as_tuple=True)
        colours = torch.zeros_like(where.colour)
        if len(image) == 0:
            return colours
        rows, columns = where.row[image, n], where.column[image, n]
        masked = masked_windows(canvas(images, geometry), geometry, image, rows, columns, masks[image, n])
        return colours.index_put((image, n), self.colour(masked))
