"""Network: PCDNet, from images to objects and back to images."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pcdnet.config import ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank, soft_clamp
from pcdnet.model.colour import ColourNetwork, LeastSquaresColours, NetworkColours, Palette, PlainColours
from pcdnet.model.composition import compose, stamp
from pcdnet.model.evidence import EvidenceKernels
from pcdnet.model.geometry import Geometry
from pcdnet.model.intake import check_batch, to_batch
from pcdnet.model.localization import error_reduction_maps, phase_maps
from pcdnet.model.peaks import Maps, propose
from pcdnet.model.placement import Placement, least_squares_colours, placed
from pcdnet.model.refinement import LEAST_CHANGE, refine, unexplained
from pcdnet.model.selection import SelectionInput, inside, select
from pcdnet.model.solidity import solid
from pcdnet.model.windows import canvas, cut

DEEPER = 4
"""A badly explained image is searched again with this many times the peaks."""
REACH = 0.25
"""Gain maps are smooth: around every place that fits, many others nearly do. Of those within this share of a frame's
shorter side, one is tried."""
CHUNK = 64
"""Images that `decompose` explains at a time: more are no faster and need more memory."""
START_GREY, START_CENTRE, START_MASK = 0.2, 1.0, 0.5
"""The paper's start: a bright centre pixel makes prototypes emerge in the middle of their frames."""


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
        """Who is seen where: 0 is background, n + 1 the n-th object from the front; masks count from one half."""
        geometry = _whole(self.reconstruction, self.masks)
        where = self.placement
        return stamp(self.masks, where.row, where.column, where.exists, geometry)


class PCDNet(nn.Module):
    """The Phase-Correlation Decomposition Network: a bank of prototypes that explains images as stacks of them.

    In training mode values are clamped softly and selection is plain greedy; in evaluation mode values are
    clamped to [0, 1] and badly explained images are looked at again (`config.restarts`).
    """

    def __init__(self, config: ModelConfig, image_size: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.config = config
        P, (h, w) = config.num_prototypes, config.prototype_size
        prototypes = torch.full((P, h, w), START_GREY)
        prototypes[:, h // 2, w // 2] = START_CENTRE
        self.prototypes = nn.Parameter(prototypes)
        self.masks = nn.Parameter(torch.full((P, h, w), START_MASK))
        self.background: nn.Parameter | None = None
        if config.background:
            if image_size is None:
                raise PcdnetError("model.background is on but no image size was given; give image_size=(height, width)")
            self.background = nn.Parameter(torch.zeros(config.channels, *image_size))
        self.colour = ColourNetwork(config.channels) if config.colour == "network" else None

    @staticmethod
    def from_bank(bank: PrototypeBank, config: ModelConfig) -> PCDNet:
        """A model in evaluation mode with a given bank; sizes in `config` must fit it."""
        wanted, given = (config.num_prototypes, *config.prototype_size), tuple(bank.prototypes.shape)
        if wanted != given:
            raise PcdnetError(
                f"the bank holds {given[0]} prototypes of {given[1]}x{given[2]}, the configuration wants "
                f"{wanted[0]} of {wanted[1]}x{wanted[2]}; set prototypes={given[0]} and prototype_size={given[1:]}"
            )
        if config.background and bank.background is None:
            raise PcdnetError("model.background is on but the bank has none; turn it off or give a background")
        size = None if bank.background is None else (bank.background.shape[1], bank.background.shape[2])
        if size is not None and bank.background is not None and len(bank.background) != config.channels:
            raise PcdnetError(
                f"the bank's background has {len(bank.background)} channels, the configuration {config.channels}; "
                f"set channels={len(bank.background)}"
            )
        model = PCDNet(config, size).to(bank.prototypes.device, bank.prototypes.dtype)
        with torch.no_grad():
            model.prototypes.copy_(bank.prototypes)
            model.masks.copy_(bank.masks)
            if model.background is not None and bank.background is not None:
                model.background.copy_(bank.background)
        return model.eval()

    def bank(self) -> PrototypeBank:
        """The prototypes, masks and background as they are painted: clamped, with gradients."""
        raw = PrototypeBank(self.prototypes, self.masks, self.background)
        return raw.map(soft_clamp if self.training else lambda values: values.clamp(0, 1))

    def forward(self, images: Float[Tensor, "B C H W"], bank: PrototypeBank | None = None) -> Layers:
        """Explain images of values in [0, 1], with the model's own bank or another (a noisy one, in training).

        Gradients flow through what was chosen, into the bank and the colour network; the search has none.
        """
        check_batch(images, self.config.channels)
        bank = bank or self.bank()
        if bank.background is not None and bank.background.shape[1:] != images.shape[2:]:
            (h, w), (H, W) = bank.background.shape[1:], images.shape[2:]
            raise PcdnetError(f"images of {H}x{W} do not fit the background of {h}x{w}; resize or crop them to it")
        with torch.no_grad():
            placement = self._place(images, bank.map(torch.Tensor.detach))
        index = placement.prototype.clamp(min=0)
        # A product with one-hot rows: its gradient is a matrix product too, not a slow scatter.
        chosen = nn.functional.one_hot(index, len(bank.prototypes)).to(images.dtype)
        prototypes = torch.einsum("bnp,phw->bnhw", chosen, bank.prototypes)
        masks = torch.einsum("bnp,phw->bnhw", chosen, bank.masks)
        geometry = _whole(images, masks)
        colour = self._colours(images, bank.background, prototypes, masks, placement, geometry)
        background = torch.zeros_like(images[0]) if bank.background is None else bank.background
        textures = prototypes[..., None] * colour[:, :, None, None]
        where = placement
        painted = compose(textures, masks, where.row, where.column, where.exists, background, geometry)
        return Layers(placement, colour, painted, masks)

    def _place(self, images: Float[Tensor, "B C H W"], bank: PrototypeBank) -> Placement:
        """SelectionInput: candidates, greedy selection and, where it left an error, refinement."""
        tight, offset = bank.tight()
        H, W = images.shape[-2:]
        if bank.frame[0] > H or bank.frame[1] > W:
            Geometry.for_overhang((H, W), bank.frame, self.config.overhang)  # says how to cure it
        geometry = Geometry.for_overhang((H, W), tight.frame, self.config.overhang)
        kernels = EvidenceKernels(tight.prototypes, tight.masks, self.config.channels)
        search = self.search(images, bank, tight, offset, geometry, kernels, self.config.peaks_per_prototype)
        selection = select(search, self.config.max_objects, advantages=self.training)
        placement = placed(search.candidates, selection, offset)
        if self.training or self.config.restarts == 0:
            return placement
        open_images = unexplained(search, selection)
        if len(open_images) == 0:
            return placement
        peaks = DEEPER * self.config.peaks_per_prototype
        deeper = self.search(images[open_images], bank, tight, offset, geometry, kernels, peaks)
        again = refine(deeper, select(deeper, self.config.max_objects), self.config.restarts)
        better = again.error_reduction.sum(1) - selection.error_reduction[open_images].sum(1) >= LEAST_CHANGE
        return placement.replaced(open_images, placed(deeper.candidates, again, offset), better)

    def search(
        self,
        images: Float[Tensor, "B C H W"],
        bank: PrototypeBank,
        tight: PrototypeBank,
        offset: Int[Tensor, "P 2"],
        geometry: Geometry,
        kernels: EvidenceKernels,
        peaks: int,
    ) -> SelectionInput:
        """What selection chooses from: the candidates of a tight bank in the images, and how they are coloured."""
        maps = self.maps(images, tight, geometry)
        reach = 1 if self.config.localization == "phase" else max(1, int(REACH * min(geometry.frame)))
        candidates = propose(maps, images, len(tight.prototypes), geometry, peaks, reach)
        if self.config.min_solid > 0:
            there = solid(images, tight, geometry, candidates, self.config.min_solid, self.config.max_colour)
            candidates = dataclasses.replace(candidates, exists=there)
        palette: Palette
        if self.colour is not None and not self.training:
            # The network averages over the frame, so it must see the same frame here as when gradients flow.
            (my, mx), (h, w) = geometry.padding, bank.frame
            frames = Geometry(geometry.image, bank.frame, (my + h, mx + w))
            palette = NetworkColours(self.colour, canvas(images, frames), bank.masks, frames, candidates, offset)
        elif self.config.colour != "none":
            # In training the closed form chooses for the network too: one that knows no colours yet would find that
            # nothing explains anything, and so never learn any.
            palette = LeastSquaresColours(self.config.max_colour)
        else:
            palette = PlainColours()
        min_seen = None
        if self.config.min_visible > 0:
            # The area is seen through the square of the transmittance; a hair less keeps rounding out of it.
            min_seen = self.config.min_visible * (1 - 1e-4) * inside(tight.masks, candidates, geometry.image)
        return SelectionInput(
            images, tight, geometry, candidates, palette, kernels, self.config.min_error_reduction, min_seen
        )

    def maps(self, images: Float[Tensor, "B C H W"], tight: PrototypeBank, geometry: Geometry) -> Maps:
        """How well every prototype of a tight bank fits the images at every place."""
        if self.config.localization == "phase":
            return phase_maps(images, tight, geometry)
        return error_reduction_maps(images, tight, geometry, self.config.max_colour)

    def _colours(
        self,
        images: Float[Tensor, "B C H W"],
        background: Float[Tensor, "C H W"] | None,
        prototypes: Float[Tensor, "B N h w"],
        masks: Float[Tensor, "B N h w"],
        placement: Placement,
        geometry: Geometry,
    ) -> Float[Tensor, "B N C"]:
        """The colours of the chosen objects once more, now with gradients; as selection found them without."""
        if not torch.is_grad_enabled() or self.config.colour == "none":
            return placement.colour
        if self.colour is None:
            return least_squares_colours(
                images, background, prototypes, masks, placement, geometry, self.config.max_colour
            )
        image, n = placement.exists.nonzero(as_tuple=True)
        pictures = canvas(images, geometry)
        windows = cut(pictures, geometry, image, placement.row[image, n], placement.column[image, n])
        masked = rearrange(windows * masks[image, n][..., None], "n h w c -> n c h w")
        colours = torch.zeros_like(placement.colour)
        if len(image) == 0:
            return colours
        return colours.index_put((image, n), self.colour(masked))

    @torch.inference_mode()
    def decompose(self, images: ArrayLike, name: str = "") -> Decomposition | list[Decomposition]:
        """Explain one image (H W C, or H W if grey), or a stack of images (B H W C), as NumPy results.

        Values are uint8 of 0-255 or floats of 0-1. One image gives one Decomposition, a stack a list. It works as in
        evaluation mode, whatever mode the model is in.
        """
        pixels = np.asarray(images)
        batch = to_batch(pixels, self.config.channels).to(self.prototypes.device, self.prototypes.dtype)
        found: list[Decomposition] = []
        training = self.training
        self.eval()
        try:
            for chunk in torch.split(batch, CHUNK):
                layers = self(chunk)
                error = (layers.reconstruction - chunk).square().sum(dim=(1, 2, 3))
                found += _to_numpy(layers, error, name)
        finally:
            self.train(training)
        return found if pixels.ndim == 4 else found[0]


def _to_numpy(layers: Layers, error: Float[Tensor, "B"], name: str) -> list[Decomposition]:
    where = layers.placement
    instances = layers.instances().cpu().numpy()
    pictures = layers.reconstruction.permute(0, 2, 3, 1).float().cpu().numpy()
    prototypes = where.prototype.int().cpu().numpy()
    positions = torch.stack([where.row, where.column], dim=-1).int().cpu().numpy()
    colours, reductions = layers.colour.float().cpu().numpy(), where.error_reduction.float().cpu().numpy()
    counts = where.exists.sum(dim=1).tolist()
    return [
        Decomposition(
            prototype_ids=prototypes[b, :n],
            positions=positions[b, :n],
            colours=colours[b, :n],
            error_reductions=reductions[b, :n],
            instances=instances[b],
            reconstruction=pictures[b],
            error=left,
            name=name,
        )
        for b, (n, left) in enumerate(zip(counts, error.tolist(), strict=True))
    ]


def _whole(images: Float[Tensor, "B C H W"], masks: Float[Tensor, "B N h w"]) -> Geometry:
    """The geometry in which whole frames are painted: any frame that shares a pixel with the image fits."""
    h, w = masks.shape[-2:]
    return Geometry((images.shape[-2], images.shape[-1]), (h, w), (h - 1, w - 1))
