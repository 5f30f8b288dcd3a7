"""Composition: paint objects back to front over the background (dead leaves, equation 5 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import canvas, cut, paste, uncanvas


def compose(
    textures: Float[Tensor, "B N h w C"],
    masks: Float[Tensor, "B N h w"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    exists: Bool[Tensor, "B N"],
    background: Float[Tensor, "C H W"],
    geometry: Geometry,
) -> Float[Tensor, "B C H W"]:
    """The images that the objects make, the first in front; objects that do not exist are skipped.

    Time and memory, backwards too, go with the objects' frames: the canvas is touched once.
    """
    result: Tensor = _Compose.apply(textures, masks, row, column, exists, background, geometry)  # type: ignore[no-untyped-call]
    return result


class _Compose(torch.autograd.Function):
    """Paints in place; keeps of every object only what its frame covered, which is all the gradient needs."""

    @staticmethod
    def forward(
        ctx: Any,
        textures: Tensor,
        masks: Tensor,
        row: Tensor,
        column: Tensor,
        exists: Tensor,
        background: Tensor,
        geometry: Geometry,
    ) -> Tensor:
        B, N = row.shape
        picture = canvas(background.expand(B, *background.shape), geometry)
        covered = torch.zeros_like(textures)
        for n in reversed(range(N)):
            image = exists[:, n].nonzero()[:, 0]
            r, c, M = row[image, n], column[image, n], masks[image, n, ..., None]
            under = cut(picture, geometry, image, r, c)
            covered[image, n] = under
            paste(picture, geometry, image, r, c, under + M * (textures[image, n] - under))
        ctx.save_for_backward(textures, masks, row, column, exists, covered)
        ctx.geometry = geometry
        return uncanvas(picture, geometry)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        textures, masks, row, column, exists, covered = ctx.saved_tensors
        geometry = ctx.geometry
        flow = canvas(gradient, geometry)
        d_textures, d_masks = torch.zeros_like(textures), torch.zeros_like(masks)
        for n in range(row.shape[1]):
            image = exists[:, n].nonzero()[:, 0]
            r, c, M = row[image, n], column[image, n], masks[image, n, ..., None]
            G = cut(flow, geometry, image, r, c)
            d_textures[image, n] = G * M
            d_masks[image, n] = (G * (textures[image, n] - covered[image, n])).sum(-1)
            paste(flow, geometry, image, r, c, G * (1 - M))
        d_background = uncanvas(flow, geometry).sum(0)
        return d_textures, d_masks, None, None, None, d_background, None


def stamp(
    masks: Float[Tensor, "B N h w"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    exists: Bool[Tensor, "B N"],
    geometry: Geometry,
) -> Int[Tensor, "B H W"]:
    """Who is seen where: 0 is background, n + 1 the n-th object from the front whose mask is above one half."""
    B, N = row.shape
    labels = torch.zeros(B, *geometry.canvas, 1, dtype=torch.int32, device=row.device)
    for n in reversed(range(N)):
        image = exists[:, n].nonzero()[:, 0]
        under = cut(labels, geometry, image, row[image, n], column[image, n])
        opaque = masks[image, n, ..., None] > 0.5
        paste(labels, geometry, image, row[image, n], column[image, n], torch.where(opaque, n + 1, under))
    return uncanvas(labels, geometry)[:, 0]
