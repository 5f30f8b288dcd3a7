"""Composition: paint objects back to front over the background (dead leaves, equation 5 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.solidity import LEAST_FALL
from pcdnet.model.windows import Frames, canvas, uncanvas

FAINT = 0.2
"""Paint behind an empty mask that differs by less than this from what it covers learns as if the mask were this."""
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
    result: Tensor
    if usable(prototypes):
        result = _Compiled.apply(prototypes, masks, colour, background, frames)  # type: ignore[no-untyped-call]
        return result
    textures, hidden = (prototypes[..., None] * each[:, :, None, None] for each in (colour, colour.detach()))
    result = _Compose.apply(textures, hidden, masks, background, frames)  # type: ignore[no-untyped-call]
    return result


class _Compose(torch.autograd.Function):
    """Paints in place; keeps of every object only what its frame covered, which is all the gradient needs.

    `_hidden` is what is painted once more, for the gradient of what nobody sees: a mask that is empty gains nothing by
    paint that looks like what it covers, and paint behind an empty mask gains nothing at all. So that they do not wait
    for each other, such paint learns as if its mask were faintly there. As soon as it looks different the mask knows.
    """

    @staticmethod
    def forward(
        ctx: Any, textures: Tensor, _hidden: Tensor, masks: Tensor, background: Tensor, frames: Frames
    ) -> Tensor:
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
        d_textures, d_masks, d_hidden = (torch.zeros_like(each) for each in (textures, masks, textures))
        for n in range(textures.shape[1]):
            windows = frames.nth(n)
            image, G = windows.image, windows.cut(flow)
            M, contrast = masks[image, n, ..., None], textures[image, n] - covered[image, n]
            d_textures[image, n] = G * M
            d_masks[image, n] = (G * contrast).sum(-1)
            unseen = (M <= 0) & (contrast.abs() < FAINT).all(dim=-1, keepdim=True)
            d_hidden[image, n] = FAINT * G * unseen
            windows.paste(flow, G * (1 - M))
        d_background = uncanvas(flow, frames.geometry)
        if ctx.shared:
            d_background = d_background.sum(0, keepdim=True)
        return d_textures, d_hidden, d_masks, d_background, None


class _Compiled(torch.autograd.Function):
    """The same by compiled loops."""

    @staticmethod
    def forward(
        ctx: Any, prototypes: Tensor, masks: Tensor, colour: Tensor, background: Tensor, frames: Frames
    ) -> Tensor:
        from pcdnet.model.compiled import composition as loops

        ctx.save_for_backward(prototypes, masks, colour, background)
        ctx.frames = frames
        objects = as_array(prototypes), as_array(masks), as_array(colour)
        return torch.from_numpy(loops.paint(objects, frames.as_arrays(), as_array(background)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from pcdnet.model.compiled import composition as loops

        prototypes, masks, colour, background = map(as_array, ctx.saved_tensors)
        flow = gradient.clone(memory_format=torch.contiguous_format)
        found = loops.gradients((prototypes, masks, colour), ctx.frames.as_arrays(), background, as_array(flow))
        d_background = None
        if ctx.needs_input_grad[3]:
            d_background = flow.sum(0, keepdim=True) if len(background) == 1 else flow
        return *map(torch.from_numpy, found), d_background, None


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
