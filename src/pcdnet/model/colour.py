"""Colour: one factor per channel for every candidate, by least squares, by the paper's network, or none."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import batch_norm, relu

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.evidence import Evidence, Quadratics, best_colour, colour_coefficients, occluded
from pcdnet.model.lockstep import in_lockstep
from pcdnet.model.peaks import Candidates, working_bytes
from pcdnet.model.plan import SearchPlan
from pcdnet.model.sharing import WHOLE, Sharing
from pcdnet.model.windows import Frames, Windows, canvas

TIE = 1e-3
"""Error reductions that differ by less than this share of them are as good as each other: what is learned is no more
exact than that. Then the place decides, not the number of the prototype, and all banks of the same shapes agree."""
COLOURED_AT_ONCE = 4
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
        x = masked
        for layer, norm in ((self.first, self.first_norm), (self.second, self.second_norm)):
            x = relu(layer(x))
            fixed = norm.running_mean, norm.running_var, norm.weight, norm.bias
            x = batch_norm(x, *fixed, eps=norm.eps) if frozen else norm(x)
        colours: Tensor = self.head(x.mean(dim=(-2, -1)))
        return colours


class Palette:
    """A way to colour candidates, and so to compare them: in closed form, given what is in front of each.

    Least squares gives the colour of the largest error reduction up to `max_colour`; without one, all colours are 1.
    """

    def __init__(self, max_colour: float | None) -> None:
        self._max_colour = max_colour

    @property
    def limits(self) -> tuple[float, float] | None:
        """The smallest and the largest colour of the closed form; None if colours are not its own."""
        if self._max_colour is None:
            return 1.0, 1.0
        return (0.0 if self._max_colour < torch.inf else -torch.inf), self._max_colour

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        """The colours of the named (image, candidate) pairs."""
        return self._closed_form(quadratics.at(image, candidate))

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"], place: Int[Tensor, "B T"]) -> Int[Tensor, "B"]:
        """The allowed candidate of the largest error reduction, for every image; any where none is allowed.

        Of candidates whose reductions are the same but for a `TIE` the one of the least `place` counts.
        """
        reductions = quadratics.error_reduction(self._closed_form(quadratics))
        return first_of_best(torch.where(allowed, reductions, -torch.inf), place)

    def subset(self, image: Int[Tensor, "n"]) -> Palette:
        """The palette for some of the images."""
        return self

    def _closed_form(self, quadratics: Quadratics) -> Float[Tensor, "*candidates C"]:
        a, q = quadratics.a, quadratics.q
        colours: Tensor = torch.ones_like(a) if self._max_colour is None else best_colour(a, q, self._max_colour)
        return colours


def first_of_best(reductions: Float[Tensor, "B T"], place: Int[Tensor, "B T"]) -> Int[Tensor, "B"]:
    """The candidate of the largest reduction, for every image; of several that are as good the first by place."""
    most = reductions.amax(dim=1, keepdim=True)
    return place.where(reductions >= most - TIE * most.abs(), torch.iinfo(place.dtype).max).argmin(dim=1)


class NetworkColours(Palette):
    """The network's colours, asked for only where they can matter.

    No colour reduces the error more than the closed form's, so the closed form gives an upper bound. Candidates are
    coloured best bound first until no other can be as good as the best: the same choice as colouring all.
    """

    def __init__(
        self, network: ColourNetwork, images: Float[Tensor, "B C H W"], plan: SearchPlan, candidates: Candidates
    ) -> None:
        super().__init__(max_colour=None)
        self._network, self._plan, self._candidates = network, plan, candidates
        self._pictures = canvas(images, plan.frames)
        self._known = torch.zeros_like(candidates.exists)
        self._colours = images.new_zeros(*candidates.row.shape, images.shape[1])
        self._complete = in_lockstep(images)
        if self._complete:
            self._evaluate_all()

    @property
    def limits(self) -> None:
        return None

    def colours(
        self, quadratics: Quadratics, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]
    ) -> Float[Tensor, "n C"]:
        if not self._complete:
            unknown = ~self._known[image, candidate]
            self._evaluate(image[unknown], candidate[unknown])
        return self._colours[image, candidate]

    def best(self, quadratics: Quadratics, allowed: Bool[Tensor, "B T"], place: Int[Tensor, "B T"]) -> Int[Tensor, "B"]:
        if self._complete:
            reductions = quadratics.error_reduction(self._colours)
            return first_of_best(torch.where(allowed, reductions, -torch.inf), place)
        bound = quadratics.bound()
        while True:
            known = torch.where(self._known & allowed, quadratics.error_reduction(self._colours), -torch.inf)
            most = known.amax(dim=1, keepdim=True)
            bounds = torch.where(~self._known & allowed, bound, -torch.inf)
            open_images = ((bounds >= most - TIE * most.abs()) & (bounds > -torch.inf)).any(dim=1).nonzero()[:, 0]
            if len(open_images) == 0:
                return first_of_best(known, place)
            best_bound, candidate = bounds[open_images].topk(min(COLOURED_AT_ONCE, bounds.shape[1]), dim=1)
            image = open_images[:, None].expand_as(candidate)[best_bound > -torch.inf]
            self._evaluate(image, candidate[best_bound > -torch.inf])

    def subset(self, image: Int[Tensor, "n"]) -> Palette:
        part = copy(self)
        part._pictures, part._candidates = self._pictures[image], self._candidates.subset(image)
        part._known, part._colours = self._known[image], self._colours[image]
        return part

    def _evaluate_all(self) -> None:
        """Ask the network for all colours: asking for those that can matter takes a look at results in between."""
        B, T = self._known.shape
        width = self._plan.frames.frame[0] * self._plan.frames.frame[1] * self._network.first.out_channels
        most = max(1, working_bytes(self._colours) // (width * self._colours.element_size()))
        every = torch.arange(B * T, device=self._known.device)
        for start in range(0, B * T, most):
            some = every[start : start + most]
            self._evaluate(some.div(T, rounding_mode="floor"), some.remainder(T))

    def _evaluate(self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> None:
        """Ask the network for the colours of these (image, candidate) pairs."""
        if len(image) == 0:
            return
        p, where, plan = self._candidates.prototype(candidate), self._candidates, self._plan
        row, column = (
            where.row[image, candidate] - plan.offset[p, 0],
            where.column[image, candidate] - plan.offset[p, 1],
        )
        masked = masked_windows(self._pictures, Windows(plan.frames, image, row, column), plan.bank.masks[p])
        self._colours[image, candidate] = self._network(masked, frozen=True)
        self._known[image, candidate] = True


def masked_windows(
    pictures: Float[Tensor, "B Y X C"], windows: Windows, masks: Float[Tensor, "n h w"]
) -> Float[Tensor, "n C h w"]:
    """What the network sees of objects: the image in their frames, under their masks."""
    return rearrange(windows.cut(pictures) * masks[..., None], "n h w c -> n c h w")


def network_colours(
    images: Float[Tensor, "B C H W"],
    masks: Float[Tensor, "B N h w"],
    frames: Frames,
    network: ColourNetwork,
    sharing: Sharing = WHOLE,
) -> Float[Tensor, "B N C"]:
    """The network's colours of placed objects, differentiable in its weights and in their masks.

    Its statistics are those of all objects of the whole batch, so it is shown all of them.
    """
    everywhere = sharing.gathered(frames.exists)
    colours = images.new_zeros(*everywhere.shape, images.shape[1])
    if not everywhere.any():
        return sharing.own(colours)
    image, n = frames.exists.nonzero(as_tuple=True)
    windows = Windows(frames.geometry, image, frames.row[image, n], frames.column[image, n])
    seen = masked_windows(canvas(images, frames.geometry), windows, masks[image, n])
    # Channels stay last in memory: laid out otherwise, convolutions would round otherwise.
    seen = sharing.objects(seen.permute(0, 2, 3, 1), frames.exists, everywhere).permute(0, 3, 1, 2)
    return sharing.own(colours.index_put(everywhere.nonzero(as_tuple=True), network(seen)))


def least_squares_colours(
    images: Float[Tensor, "B C H W"],
    background: Float[Tensor, "b C H W"] | None,
    prototypes: Float[Tensor, "B N h w"],
    masks: Float[Tensor, "B N h w"],
    frames: Frames,
    max_colour: float,
    seen: Float[Tensor, "1 1 H W"] | None = None,
) -> Float[Tensor, "B N C"]:
    """The closed-form colours of placed objects, differentiable in their own prototypes and masks.

    An object's colour fits what those in front of it let through; they and the background are held fixed (at its
    best a colour does not change the error, so little is lost). Where something always hides the objects, images and
    background are 0, and so is `seen`. See `evidence`.
    """
    (B, C), N = images.shape[:2], masks.shape[1]
    if usable(images):
        given = images.detach(), None if background is None else background.detach(), seen, frames, max_colour
        found: Tensor = _LeastSquares.apply(prototypes, masks, *given)  # type: ignore[no-untyped-call]
        return found
    behind = None if background is None else canvas(background.detach(), frames.geometry).expand(B, -1, -1, -1)
    evidence = Evidence.opening(images.detach(), frames.geometry, inside=seen)
    colours = images.new_zeros(B, N, C)
    for n in range(N):
        windows = frames.nth(n)
        image, (Y, Q) = windows.image, evidence.cut(windows)
        T, M = prototypes[image, n][..., None], masks[image, n][..., None]
        under = None if behind is None else windows.cut(behind)
        colour = best_colour(*colour_coefficients(Y, Q, under, T, M), max_colour)
        colours = colours.index_put((image, torch.full_like(image, n)), colour)
        with torch.no_grad():
            evidence.paste(windows, *occluded(Y, Q, M, T * colour[:, None, None]))
    return colours


class _LeastSquares(torch.autograd.Function):
    """The same by compiled loops."""

    @staticmethod
    def forward(
        ctx: Any,
        prototypes: Tensor,
        masks: Tensor,
        images: Tensor,
        background: Tensor | None,
        seen: Tensor | None,
        frames: Frames,
        max_colour: float,
    ) -> Tensor:
        from pcdnet.model.compiled import colour as loops

        none = images.new_empty(0, 1, 1, 1)
        planes = images, none if background is None else background, none[:, 0] if seen is None else seen[:, 0]
        limits = (0.0 if max_colour < torch.inf else -torch.inf), max_colour
        ctx.save_for_backward(prototypes, masks, *planes)
        ctx.given = frames.as_arrays(), limits
        shown, behind, inside = map(as_array, planes)
        objects = as_array(prototypes), as_array(masks)
        return torch.from_numpy(loops.colours((shown, behind, inside), objects, *ctx.given))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from pcdnet.model.compiled import colour as loops

        prototypes, masks, shown, behind, inside = map(as_array, ctx.saved_tensors)
        places, limits = ctx.given
        found = loops.gradients((shown, behind, inside), (prototypes, masks), places, limits, as_array(gradient))
        return *map(torch.from_numpy, found), None, None, None, None, None
