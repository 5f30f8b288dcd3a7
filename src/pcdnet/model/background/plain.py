"""Plain: a background that is made for each image from the image itself, a smooth surface of paper and light.

The surface is a polynomial of low degree, fitted by weighted least squares. Pixels that lie far from it, as objects
do, lose their weight, and the fit is repeated until the surface is what most of the pixels agree on. Objects do not
bend it: paper and light are tilted and vaulted, but have no waves that a row of objects could fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pcdnet.model.lockstep import in_lockstep

DEGREE = 3
"""Degree of the polynomial, both sides together."""
PIXELS = 4096
"""Pixels of an image that are looked at, about; more do not change a smooth surface."""
ROUNDS = 12
"""How often the surface is fitted anew."""
REJECT, NARROWER = 4.7, 0.15
"""Pixels farther than so many standard deviations have no weight; each round the limit narrows by this share."""
STIFFNESS = 1e-5
"""Weight on the coefficients per pixel, which decides where no pixel does."""
LEAST_NOISE = 1 / 255
"""Standard deviation of the noise at least: images of 8 bits are no better."""


@dataclass(frozen=True, slots=True)
class Surface:
    """Smooth surfaces, one an image, that can be looked at pixel by pixel in any part of the image."""

    coefficients: Float[Tensor, "B C k l"]
    """The coefficients of the Legendre polynomials along the two sides."""
    size: tuple[int, int]
    """Height and width of the images."""
    noise: Float[Tensor, "B"]
    """The standard deviation, about, of the pixels that belong to the surface."""

    def picture(self, top: int = 0, left: int = 0, size: tuple[int, int] | None = None) -> Float[Tensor, "B C h w"]:
        """The surface in the rectangle that starts at (top, left), by default everywhere."""
        (H, W), (h, w) = self.size, size or self.size
        down, across = polynomials(H, self.coefficients), polynomials(W, self.coefficients)
        parts = down[top : top + h], across[left : left + w]
        return torch.einsum("hk,wl,bckl->bchw", *parts, self.coefficients).clamp(0, 1)  # as paper and light are


@torch.no_grad()
def fit_surface(images: Float[Tensor, "B C H W"], covered: Bool[Tensor, "B H W"] | None = None) -> Surface:
    """The surface behind everything in each of the images; `covered` names pixels that objects hide.

    Where objects hide all of an image, nothing is known of what is behind them, and every pixel counts.
    """
    B, C, H, W = images.shape
    step = max(1, int((H * W / PIXELS) ** 0.5))
    values = images[:, :, ::step, ::step].flatten(2)
    free = torch.ones_like(values[:, 0]) if covered is None else (~covered[:, ::step, ::step]).flatten(1).to(values)
    free = torch.where(free.any(dim=1, keepdim=True), free, 1)
    down, across = polynomials(H, images)[::step], polynomials(W, images)[::step]
    orders = torch.arange(DEGREE + 1)
    k, m = torch.nonzero(orders[:, None] + orders <= DEGREE).T.to(images.device)
    terms = torch.einsum("hn,wn->hwn", down[:, k], across[:, m]).flatten(0, 1)
    pairs = torch.einsum("nk,nl->nkl", terms, terms)
    stiffness = STIFFNESS * len(terms) * torch.eye(len(k)).to(images)
    stiffness[0, 0] = 0
    least = 2 * _pixel_noise(images)
    found = values.new_zeros(B, C, len(k))
    found[..., 0] = _median(values, free[:, None].expand_as(values))
    for n in range(ROUNDS + 1):
        away = (values - torch.einsum("nk,bck->bcn", terms, found)).abs().amax(dim=1)
        spread = torch.maximum(1.4826 * _median(away, free), least)
        weight = free * (1 - (away / (REJECT / (1 + n * NARROWER) * spread[:, None])).clamp(max=1).square()).square()
        if n == ROUNDS:
            break
        normal = torch.einsum("nkl,bn->bkl", pairs, weight) + stiffness
        weighted = weight[:, None] * terms.T
        # Sums, not a product of matrices: that of an image would depend on where it is in the batch.
        seen = torch.stack([(weighted * values[:, c, None]).sum(-1) for c in range(C)], dim=2)
        checked = not in_lockstep(normal) or n == ROUNDS - 1
        found = torch.linalg.solve_ex(normal, seen, check_errors=checked).result.transpose(1, 2)
    noise = torch.maximum(1.4826 * _median(away, (weight > 0).to(away)), least / 2)
    coefficients = values.new_zeros(B, C, DEGREE + 1, DEGREE + 1)
    coefficients[:, :, k, m] = found
    return Surface(coefficients, (H, W), noise)


def polynomials(side: int, like: Tensor) -> Float[Tensor, "side terms"]:
    """The Legendre polynomials along a side, pixel by pixel."""
    x = 2 * (torch.arange(side, device=like.device) + 0.5) / side - 1
    found = [torch.ones_like(x), x]
    for n in range(1, DEGREE):
        found.append(((2 * n + 1) * x * found[n] - n * found[n - 1]) / (n + 1))
    return torch.stack(found, dim=1).to(like)


def _pixel_noise(images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B"]:
    """The standard deviation of the noise, from the differences of neighbouring pixels."""
    across = (images[..., 1:] - images[..., :-1]).abs().flatten(1)
    some = across[:, :: max(1, across.shape[1] // (16 * PIXELS))]
    return (1.4826 / 2**0.5 * some.median(dim=1).values).clamp(min=LEAST_NOISE)


def _median(values: Float[Tensor, "*any n"], weight: Float[Tensor, "*any n"]) -> Float[Tensor, "*any"]:
    """The median of the values that have a weight; of all where none has."""
    chosen = weight > 0
    chosen = chosen | ~chosen.any(dim=-1, keepdim=True)
    return values.masked_fill(~chosen, torch.nan).nanmedian(dim=-1).values
