"""Windows: cut frames out of padded canvases and put them back, many at a time.

Canvases are channels-last, (B, canvas height, canvas width, planes): a row of a window is then one run of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from pcdnet.model.compiled.problem import Array, as_array
from pcdnet.model.geometry import Box, Geometry
from pcdnet.model.lockstep import in_lockstep


def canvas(images: Num[Tensor, "B C H W"], geometry: Geometry) -> Num[Tensor, "B Y X C"]:
    """The images, channels last, inside a padding of zeros."""
    (H, W), (my, mx) = geometry.image, geometry.padding
    padded = images.new_zeros(images.shape[0], *geometry.canvas, images.shape[1])
    padded[:, my : my + H, mx : mx + W] = images.permute(0, 2, 3, 1)
    return padded


def inside_of(
    images: Float[Tensor, "B C H W"], geometry: Geometry, seen: Float[Tensor, "1 1 H W"] | None = None
) -> Float[Tensor, "B Y X 1"]:
    """Canvases that are 1 inside the images, or where something can be seen in them, and 0 around."""
    ones = torch.ones_like(images[:, :1])
    return canvas(ones if seen is None else ones * seen, geometry)


def uncanvas(padded: Num[Tensor, "B Y X C"], geometry: Geometry) -> Num[Tensor, "B C H W"]:
    """The images out of their padding, channels first again."""
    (H, W), (my, mx) = geometry.image, geometry.padding
    return padded[:, my : my + H, mx : mx + W].permute(0, 3, 1, 2).contiguous()


def window_sums(plane: Num[Tensor, "B H W"], frame: tuple[int, int]) -> Num[Tensor, "B y x"]:
    """The sums over all windows of a frame's size that lie in the image."""
    (h, w), sums = frame, torch.nn.functional.pad(plane.cumsum(1).cumsum(2), (1, 0, 1, 0))
    return sums[:, h:, w:] - sums[:, h:, :-w] - sums[:, :-h, w:] + sums[:, :-h, :-w]


@dataclass(slots=True)
class Windows:
    """Frames with their top left at (row, column), each over one of the canvases of a batch."""

    geometry: Geometry
    image: Int[Tensor, "n"]
    """Over which canvas."""
    row: Int[Tensor, "n"]
    column: Int[Tensor, "n"]

    def __getitem__(self, part: slice) -> Windows:
        """Some of the windows."""
        return Windows(self.geometry, self.image[part], self.row[part], self.column[part])

    def cut(self, padded: Num[Tensor, "B Y X planes"], box: Box | None = None) -> Num[Tensor, "n h w planes"]:
        """What the frames, or a box within them, show, as copies."""
        box = box or Box(0, 0, *self.geometry.frame)
        top, left = self.row + (self.geometry.padding[0] + box.top), self.column + (self.geometry.padding[1] + box.left)
        windows: Tensor = _view(padded, box.height, box.width)[self.image, top, left]
        return windows.view(*windows.shape[:-1], box.width, padded.shape[-1])

    def paste(self, padded: Num[Tensor, "B Y X planes"], content: Num[Tensor, "n h w planes"]) -> None:
        """Overwrite what the frames show in place; no image may be named twice."""
        (my, mx), view = self.geometry.padding, _view(padded, *self.geometry.frame)
        view[self.image, self.row + my, self.column + mx] = content.flatten(-2)


@dataclass(frozen=True, slots=True)
class Frames:
    """Where the objects of a batch of images lie, front to back."""

    geometry: Geometry
    row: Int[Tensor, "B N"]
    column: Int[Tensor, "B N"]
    exists: Bool[Tensor, "B N"]
    """False where an image has fewer than N objects."""

    def nth(self, n: int) -> Windows:
        """The n-th object's frame in every image that has one.

        In lockstep it is every image, and whoever paints must paint nothing where there is no object.
        """
        if in_lockstep(self.exists):
            image = torch.arange(len(self.exists), device=self.exists.device)
        else:
            image = self.exists[:, n].nonzero()[:, 0]
        return Windows(self.geometry, image, self.row[image, n], self.column[image, n])

    def as_arrays(self) -> tuple[Array, Array, Array]:
        """Rows, columns, and which objects exist, for compiled loops."""
        return as_array(self.row), as_array(self.column), as_array(self.exists)


def _view(padded: Tensor, h: int, w: int) -> Tensor:
    """Every window of a canvas without a copy: image, row, column, row in the window, run along that row."""
    B, Y, X, Q = padded.shape
    whole, *strides = padded.stride()  # one canvas may stand, expanded, for all images
    assert strides == [X * Q, Q, 1]
    return torch.as_strided(padded, (B, Y - h + 1, X - w + 1, h, w * Q), (whole, X * Q, Q, X * Q, 1))
