"""Windows: cut frames out of padded canvases and put them back, many at a time.

Canvases are channels-last, (B, canvas height, canvas width, planes): a row of a window is then one run of memory.
"""

from __future__ import annotations

import torch
from jaxtyping import Int, Num
from torch import Tensor

from pcdnet.model.geometry import Box, Geometry


def canvas(images: Num[Tensor, "B C H W"], geometry: Geometry) -> Num[Tensor, "B Y X C"]:
    """The images, channels last, inside a padding of zeros."""
    (H, W), (my, mx) = geometry.image, geometry.padding
    padded = images.new_zeros(images.shape[0], *geometry.canvas, images.shape[1])
    padded[:, my : my + H, mx : mx + W] = images.permute(0, 2, 3, 1)
    return padded


def uncanvas(padded: Num[Tensor, "B Y X C"], geometry: Geometry) -> Num[Tensor, "B C H W"]:
    """The images out of their padding, channels first again."""
    (H, W), (my, mx) = geometry.image, geometry.padding
    return padded[:, my : my + H, mx : mx + W].permute(0, 3, 1, 2).contiguous()


def cut(
    padded: Num[Tensor, "B Y X planes"],
    geometry: Geometry,
    image: Int[Tensor, "n"],
    row: Int[Tensor, "n"],
    column: Int[Tensor, "n"],
    box: Box | None = None,
) -> Num[Tensor, "n h w planes"]:
    """The windows of frames at (row, column), or of a box within them, as copies; `image` says from which canvas.

    A single canvas stands for all images.
    """
    image = image if len(padded) > 1 else torch.zeros_like(image)
    box = box or Box(0, 0, *geometry.frame)
    top, left = row + (geometry.padding[0] + box.top), column + (geometry.padding[1] + box.left)
    windows: Tensor = _view(padded, box.height, box.width)[image, top, left]
    return windows.view(*windows.shape[:-1], box.width, padded.shape[-1])


def paste(
    padded: Num[Tensor, "B Y X planes"],
    geometry: Geometry,
    image: Int[Tensor, "n"],
    row: Int[Tensor, "n"],
    column: Int[Tensor, "n"],
    windows: Num[Tensor, "n h w planes"],
) -> None:
    """Overwrite the windows of frames in place; no image may be named twice."""
    view = _view(padded, *geometry.frame)
    view[image, row + geometry.padding[0], column + geometry.padding[1]] = windows.flatten(-2)


def _view(padded: Tensor, h: int, w: int) -> Tensor:
    """Every window of a canvas without a copy: image, row, column, row in the window, run along that row."""
    assert padded.is_contiguous()
    B, Y, X, Q = padded.shape
    return torch.as_strided(padded, (B, Y - h + 1, X - w + 1, h, w * Q), (Y * X * Q, X * Q, Q, X * Q, 1))
