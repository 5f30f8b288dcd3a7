"""Colour: one reduction per channel for every candidate, by closed form, by the paper's network, or none."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from pcdnet.model.evidence import Quadratics, best_colour, error_reduction_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import cut

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
        """The allowed candidate of the largest reduction, for every image; any where none is allowed."""

    @abstractmethod
    def of(self, image: Int[Tensor, "n"]) -> Palette:
        """The palette for some of the images."""


class LeastSquaresColours(Palette):
    """Closed form: the colour of the largest reduction, given what is in front of the candidate."""

    def __init__(self, max_colour: float) -> None:
        self._brightest = max_colour

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        return best_colour(quadratics.a[image, candidate], quadratics.q[image, candidate], self._brightest)

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        colour = best_colour(quadratics.a, quadratics.q, self._brightest)
        return _argmax(error_reduction_of(quadratics.a, quadratics.q, quadratics.k, colour), allowed)

    def of(self, image: Int[Tensor, "n"]) -> Palette:
        return self


class PlainColours(Palette):
    """No colour: prototypes are painted as they are."""

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        return torch.ones_like(quadratics.a[image, candidate])

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
        colour = torch.ones_like(quadratics.a)
        return _argmax(error_reduction_of(quadratics.a, quadratics.q, quadratics.k, colour), allowed)

    def of(self, image: Int[Tensor, "n"]) -> Palette:
        return self


class NetworkColours(Palette):
    """The network's colours, asked for only where they can matter.

    No colour reductions more than the closed form's, so the closed form's reduction is an upper bound. Candidates are
    coloured best bound first until the best coloured one beats every bound: the same choice as colouring all.
    """

    def __init__(
        self,
        network: ColourNetwork,
        pictures: Float[Tensor, "B Y X C"],
        masks: Float[Tensor, "P h w"],
        geometry: Geometry,
        candidates: Candidates,
        offset: Int[Tensor, "P 2"],
    ) -> None:
        """`masks` and `geometry` are those of the bank's own frames: candidates, whose frames may be tighter, lie at
        their position less the prototype's `offset` in them."""
        self._network, self._pictures, self._masks = network, pictures, masks
        self._geometry, self._candidates, self._offset = geometry, candidates, offset
        self._known = torch.zeros_like(candidates.exists)
        self._colours = pictures.new_zeros(*candidates.row.shape, pictures.shape[-1])

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
            best = _argmax(key, allowed)[:, None]
            open_images = (~self._known & allowed).gather(1, best)[:, 0].nonzero()[:, 0]
            if len(open_images) == 0:
                return best[:, 0]
            hopes = torch.where(~self._known & allowed, bound, -torch.inf)[open_images]
            hope, candidate = hopes.topk(min(AHEAD, hopes.shape[1]), dim=1)
            image = open_images[:, None].expand_as(candidate)[hope > -torch.inf]
            self._learn(image, candidate[hope > -torch.inf])

    def of(self, image: Int[Tensor, "n"]) -> Palette:
        part = NetworkColours(
            self._network,
            self._pictures[image],
            self._masks,
            self._geometry,
            self._candidates.of(image),
            self._offset,
        )
        part._known, part._colours = self._known[image], self._colours[image]
        return part

    def _learn(self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> None:
        if len(image) == 0:
            return
        c = self._candidates
        p = c.prototype(candidate)
        row, column = c.row[image, candidate] - self._offset[p, 0], c.column[image, candidate] - self._offset[p, 1]
        windows = cut(self._pictures, self._geometry, image, row, column)
        masked = rearrange(windows * self._masks[p][..., None], "n h w c -> n c h w")
        self._colours[image, candidate] = self._network(masked, frozen=True)
        self._known[image, candidate] = True


def _argmax(reductions: Float[Tensor, "B T"], allowed: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
    return torch.where(allowed, reductions, -torch.inf).argmax(dim=1)
