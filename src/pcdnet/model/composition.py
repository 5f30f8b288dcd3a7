"""Composition: paint objects back to front over the background (dead leaves, equation 5 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from pcdnet.model.solidity import LEAST_FALL
from pcdnet.model.windows import Frames, canvas, uncanvas

OPAQUE = 0.5
"""Where its mask is above this, a pixel belongs to the object in instance and semantic labels."""


def painted_behind(shown: Any, clear: Any, mask: Any, texture: Any) -> tuple[Any, Any]:
    """Front to back: what objects show, and how much is seen through them, with one more behind all others.

    The same picture as painting back to front, for who meets the nearest object first: the ONNX graph.
    """
    return shown + clear * mask * texture, clear * (1 - mask)


def paint(
    picture: Float[Tensor, "B Y X C"],
    textures: Float[Tensor, "B N h w C"],
    masks: Float[Tensor, "B N h w"],
    frames: Frames,
) -> Float[Tensor, "B N h w C"]:
    """Paint objects on padded canvases in place, the last first; what each frame covered is returned."""
    covered = torch.zeros_like(textures)
    for n in reversed(range(textures.shape[1])):
        windows = frames.nth(n)
        image, under = windows.image, windows.cut(picture)
        covered[image, n] = under
        windows.paste(picture, under + masks[image, n, ..., None] * (textures[image, n] - under))
    return covered


def compose(
    prototypes: Float[Tensor, "B N h w"],
    masks: Float[Tensor, "B N h w"],
    colour: Float[Tensor, "B N C"],
    frames: Frames,
    background: Float[Tensor, "b C H W"],
) -> Float[Tensor, "B C H W"]:
    """The images that the objects make, the first in front; objects that do not exist are skipped.

    There is one background for all images, or one for each.

    Time and memory, backwards too, go with the objects' frames: the canvas is touched once.
    """
    textures = prototypes[..., None] * colour[:, :, None, None]
    result: Tensor = _Compose.apply(textures, masks, background, frames)  # type: ignore[no-untyped-call]
    return result


class _Compose(torch.autograd.Function):
    """Paints in place; keeps of every object only what its frame covered, which is all the gradient needs."""

    @staticmethod
    def forward(ctx: Any, textures: Tensor, masks: Tensor, background: Tensor, frames: Frames) -> Tensor:
        picture = canvas(background.expand(len(textures), *background.shape[1:]), frames.geometry)
        covered = paint(picture, textures, masks, frames)
        ctx.save_for_backward(textures, masks, covered)
        ctx.frames, ctx.shared = frames, len(background) == 1
        return uncanvas(picture, frames.geometry)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (textures, masks, covered), frames = ctx.saved_tensors, ctx.frames
        flow = canvas(gradient, frames.geometry)
        d_textures, d_masks = torch.zeros_like(textures), torch.zeros_like(masks)
        for n in range(textures.shape[1]):
            windows = frames.nth(n)
            image, G = windows.image, windows.cut(flow)
            M = masks[image, n, ..., None]
            d_textures[image, n] = G * M
            d_masks[image, n] = (G * (textures[image, n] - covered[image, n])).sum(-1)
            windows.paste(flow, G * (1 - M))
        d_background = uncanvas(flow, frames.geometry)
        return d_textures, d_masks, d_background.sum(0, keepdim=True) if ctx.shared else d_background, None


def instance_labels(masks: Float[Tensor, "B N h w"], frames: Frames) -> Int[Tensor, "B H W"]:
    """The object that each pixel belongs to: 0 is background, n + 1 the n-th object from the front."""
    labels = torch.zeros(len(masks), *frames.geometry.canvas, 1, dtype=torch.int32, device=masks.device)
    for n in reversed(range(masks.shape[1])):
        windows = frames.nth(n)
        opaque = masks[windows.image, n, ..., None] > OPAQUE
        windows.paste(labels, torch.where(opaque, n + 1, windows.cut(labels)))
    return uncanvas(labels, frames.geometry)[:, 0]


def changed(picture: Any, behind: Any, axis: int) -> Any:
    """Where a picture visibly differs from what is behind its objects; `axis` is that of the channels.

    Where prototypes have the colour of the ground, masks can be of any size: no pixel tells where such objects end.
    """
    difference = picture - behind
    return (difference * difference).sum(axis) > LEAST_FALL * behind.shape[axis]
