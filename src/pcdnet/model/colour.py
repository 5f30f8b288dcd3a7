"""Colour: one factor per channel for every candidate, by least squares, by the paper's network, or none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from pcdnet.model.evidence import Quadratics, best_colour, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from pcdnet.model.windows import canvas, cut

AHEAD = 4
"""Candidates of one image that the network colours in one go."""


class ColourNetwork(nn.Module):
    """The network of the paper's table 3: from the image under an object's mask to the object's colour.

    It sees the object's frame, not the whole canvas: under the mask everything else is zero anyway.
    """

    def __init__(self, channels: int, width: int = 12) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, channels)

    def forward(self, masked: Float[Tensor, "n C h w"], *, frozen: bool = False) -> Float[Tensor, "n C"]:
        """Colours of masked windows; `frozen` leaves the running statistics alone in training too."""
        x = self._normalise(self.first_norm, relu(self.first(masked)), frozen)
        x = self._normalise(self.second_norm, relu(self.second(x)), frozen)
        colours: Tensor = self.head(x.mean(dim=(-2, -1)))
        return colours

    def _normalise(self, norm: nn.BatchNorm2d, x: Tensor, frozen: bool) -> Tensor:
        if not frozen:
            normalised: Tensor = norm(x)
            return normalised
        return batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)


class Palette(ABC):
    """A way to colour candidates, and so to compare them."""

    @abstractmethod
    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        """The colours of the named (image, candidate) pairs."""

    @abstractmethod
    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        """The allowed candidate of the largest error reduction, for every image; any where none is allowed."""

    def subset(self, image: Int[Tensor, "n"]) -> Palette:
        """The palette for some of the images."""
        return self


class LeastSquaresColours(Palette):
    """Closed form: the colour of the largest error reduction, given what is in front of the candidate."""

    def __init__(self, max_colour: float) -> None:
        self._max_colour = max_colour

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        return best_colour(quadratics.a[image, candidate], quadratics.q[image, candidate], self._max_colour)

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        return _argmax(quadratics, best_colour(quadratics.a, quadratics.q, self._max_colour), allowed)


class PlainColours(Palette):
    """No colour: prototypes are painted as they are."""

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        return torch.ones_like(quadratics.a[image, candidate])

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        return _argmax(quadratics, torch.ones_like(quadratics.a), allowed)


class NetworkColours(Palette):
    """The network's colours, asked for only where they can matter.

    No colour reduces the error more than the closed form's, so the closed form gives an upper bound. Candidates are
    coloured best bound first until the best coloured one beats every bound: the same choice as colouring all.
    """

    def __init__(
        self, network: ColourNetwork, images: Float[Tensor, "B C H W"], plan: SearchPlan, candidates: Candidates
    ) -> None:
        # The network averages over the frame, so it must see the bank's own frame, as when gradients flow.
        (h, w), (my, mx) = plan.bank.frame, plan.geometry.padding
        self._frames = Geometry(plan.geometry.image, plan.bank.frame, (my + h, mx + w))
        self._network, self._plan, self._candidates = network, plan, candidates
        self._pictures = canvas(images, self._frames)
        self._known = torch.zeros_like(candidates.exists)
        self._colours = images.new_zeros(*candidates.row.shape, images.shape[1])

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        unknown = ~self._known[image, candidate]
        self._learn(image[unknown], candidate[unknown])
        return self._colours[image, candidate]

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        a, q, k = quadratics.a, quadratics.q, quadratics.k
        bound = quadratics.bound()
        while True:
            key = torch.where(self._known, error_reduction_of(a, q, k, self._colours), bound)
            best = torch.where(allowed, key, -torch.inf).argmax(dim=1, keepdim=True)
            open_images = (~self._known & allowed).gather(1, best)[:, 0].nonzero()[:, 0]
            if len(open_images) == 0:
                return best[:, 0]
            hopes = torch.where(~self._known & allowed, bound, -torch.inf)[open_images]
            hope, candidate = hopes.topk(min(AHEAD, hopes.shape[1]), dim=1)
            image = open_images[:, None].expand_as(candidate)[hope > -torch.inf]
            self._learn(image, candidate[hope > -torch.inf])

    def subset(self, image: Int[Tensor, "n"]) -> Palette:
        part = copy(self)
        part._pictures, part._candidates = self._pictures[image], self._candidates.subset(image)
        part._known, part._colours = self._known[image], self._colours[image]
        return part

    def _learn(self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> None:
        if len(image) == 0:
            return
        c, plan = self._candidates, self._plan
        p = c.prototype(candidate)
        row, column = c.row[image, candidate] - plan.offset[p, 0], c.column[image, candidate] - plan.offset[p, 1]
        masked = masked_windows(self._pictures, self._frames, image, row, column, plan.bank.masks[p])
        self._colours[image, candidate] = self._network(masked, frozen=True)
        self._known[image, candidate] = True


def masked_windows(
    pictures: Float[Tensor, "B Y X C"],
    geometry: Geometry,
    image: Int[Tensor, "n"],
    row: Int[Tensor, "n"],
    column: Int[Tensor, "n"],
    masks: Float[Tensor, "n h w"],
) -> Float[Tensor, "n C h w"]:
    """What the network sees of objects: the image in their frames, under their masks."""
    windows = cut(pictures, geometry, image, row, column)
    return rearrange(windows * masks[..., None], "n h w c -> n c h w")


def _argmax(quadratics: Quadratics, colours: Float[Tensor, "B T C"], allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
    reductions = error_reduction_of(quadratics.a, quadratics.q, quadratics.k, colours)
    return torch.where(allowed, reductions, -torch.inf).argmax(dim=1)
