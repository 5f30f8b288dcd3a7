"""Composition: paint objects back to front over the background (dead leaves, equation 5 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import canvas, cut, paste, uncanvas

OPAQUE = 0.5
"""From this mask value on a pixel belongs to the object in instance and semantic labels."""


def painted_behind(shown: Any, clear: Any, mask: Any, texture: Any) -> tuple[Any, Any]:
    """Front to back: what objects show, and how much is seen through them, with one more behind all others.

    The same picture as painting back to front, for who meets the nearest object first: the ONNX graph.
    """
    return shown + clear * mask * texture, clear * (1 - mask)


def paint(
    picture: Float[Tensor, "B Y X C"],
    textures: Float[Tensor, "B N h w C"],
    masks: Float[Tensor, "B N h w"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    exists: Bool[Tensor, "B N"],
    geometry: Geometry,
) -> Float[Tensor, "B N h w C"]:
    """Paint objects on padded canvases in place, the last first; what each frame covered is returned."""
    covered = torch.zeros_like(textures)
    for n in reversed(range(row.shape[1])):
        image = exists[:, n].nonzero()[:, 0]
        r, c, M = row[image, n], column[image, n], masks[image, n, ..., None]
        under = cut(picture, geometry, image, r, c)
        covered[image, n] = under
        paste(picture, geometry, image, r, c, under + M * (textures[image, n] - under))
    return covered


def compose(
    textures: Float[Tensor, "B N h w C"],
    masks: Float[Tensor, "B N h w"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    exists: Bool[Tensor, "B N"],
    background: Float[Tensor, "b C H W"],
    geometry: Geometry,
) -> Float[Tensor, "B C H W"]:
    """The images that the objects make, the first in front; objects that do not exist are skipped.

    There is one background for all images, or one for each.

    Time and memory, backwards too, go with the objects' frames: the canvas is touched once.
    """
    result: Tensor = _Compose.apply(textures, masks, row, column, exists, background, geometry)  # type: ignore[no-untyped-call]
    return result


def compose_objects(
    bank: PrototypeBank,
    prototype: Int[Tensor, "B N"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    colour: Float[Tensor, "B N C"],
    image_size: tuple[int, int],
) -> Float[Tensor, "B C H W"]:
    """The images that objects of a bank make; every frame must share a pixel with the image."""
    background = colour.new_zeros(1, colour.shape[2], *image_size) if bank.background is None else bank.background[None]
    textures = bank.prototypes[prototype][..., None] * colour[:, :, None, None]
    exists = torch.ones_like(prototype, dtype=torch.bool)
    geometry = Geometry.touching(image_size, bank.frame)
    return compose(textures, bank.masks[prototype], row, column, exists, background, geometry)


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
        picture = canvas(background.expand(len(row), *background.shape[1:]), geometry)
        covered = paint(picture, textures, masks, row, column, exists, geometry)
        ctx.save_for_backward(textures, masks, row, column, exists, covered)
        ctx.geometry, ctx.shared = geometry, len(background) == 1
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
        d_background = uncanvas(flow, geometry)
        d_background = d_background.sum(0, keepdim=True) if ctx.shared else d_background
        return d_textures, d_masks, None, None, None, d_background, None


def instance_labels(
    masks: Float[Tensor, "B N h w"],
    row: Int[Tensor, "B N"],
    column: Int[Tensor, "B N"],
    exists: Bool[Tensor, "B N"],
    image_size: tuple[int, int],
) -> Int[Tensor, "B H W"]:
    """The object that each pixel belongs to: 0 is background, n + 1 the n-th object from the front."""
    geometry = Geometry.touching(image_size, (masks.shape[2], masks.shape[3]))
    labels = torch.zeros(len(row), *geometry.canvas, 1, dtype=torch.int32, device=row.device)
    for n in reversed(range(row.shape[1])):
        image = exists[:, n].nonzero()[:, 0]
        under = cut(labels, geometry, image, row[image, n], column[image, n])
        opaque = masks[image, n, ..., None] > OPAQUE
        paste(labels, geometry, image, row[image, n], column[image, n], torch.where(opaque, n + 1, under))
    return uncanvas(labels, geometry)[:, 0]
