"""Evidence: by how much a candidate would reduce the squared error, read from windows alone.

Behind the objects that are already chosen, a pixel shows X = I - (what they paint there) through their
transmittance tau, and there, so far, stands what is behind them, B. A candidate with prototype T, mask M and
colour c paints M c T + (1 - M) B instead of B. With Y = tau X and Q = tau^2, the squared error falls by

    reduction(c) = 2 a.c - q |c|^2 - k        a = <Y, M T> - <Q B, M (1 - M) T>        (one per channel)
                                              q = <Q, M^2 T^2>
                                              k = 2 <Y.B, M> - <Q |B|^2, 2 M - M^2>

<Q, M> is the visible area of the candidate. Sums run over the candidate's window only, and all of them are linear in
five planes, Y, Q, Q B, Y.B and Q |B|^2. So the planes are kept on a canvas, and one matrix product per prototype
gives the coefficients of all its windows.
Outside the image tau is 0: what hangs over the border counts for nothing.

Formulas that the ONNX graph shares are written with what tensors and values of a graph both have, and typed `Any`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor

from pcdnet.model.geometry import Geometry, support
from pcdnet.model.peaks import working_bytes
from pcdnet.model.windows import Windows

TINY = 1e-12
"""Below this norm a candidate paints nothing and has no colour."""
WINDOWS_BYTES = 4 << 20
"""Windows are processed in chunks of about this size, so that they stay in the cache."""
FEW_BYTES = 2 << 20
"""While the matrices of all pairs together are no larger than this, one call for all pairs beats one per prototype."""


@dataclass(slots=True)
class Quadratics:
    """The coefficients of candidates' error reductions as functions of their colours, and their visible areas."""

    values: Float[Tensor, "*candidates results"]
    """Along the last axis a (one per channel), q, the visible area and k."""

    @property
    def a(self) -> Float[Tensor, "*candidates C"]:
        """What is linear in the colour."""
        return self.values[..., :-3]

    @property
    def q(self) -> Float[Tensor, "*candidates"]:
        """What is quadratic in the colour."""
        return self.values[..., -3]

    @property
    def visible(self) -> Float[Tensor, "*candidates"]:
        """Mask area that is inside the image and that nothing in front hides."""
        return self.values[..., -2]

    def at(self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"]) -> Quadratics:
        """Those of the named (image, candidate) pairs."""
        return Quadratics(self.values[image, candidate])

    def error_reduction(self, colour: Float[Tensor, "*candidates C"]) -> Float[Tensor, "*candidates"]:
        """How much the squared error falls with each candidate in its colour."""
        reductions: Tensor = error_reduction_of(self.a, self.q, self.values[..., -1], colour)
        return reductions

    def bound(self) -> Float[Tensor, "*candidates"]:
        """The error reduction of every candidate in its best colour, which no other colour exceeds."""
        return self.error_reduction(best_colour(self.a, self.q))


def best_colour(a: Any, q: Any, max_colour: float = torch.inf, dim: int = -1) -> Any:
    """The least-squares colours, along `dim`, within [0, max_colour] (any, negative too, if that is infinite)."""
    colour = a / q.clamp(min=TINY).unsqueeze(dim)
    return colour if max_colour == torch.inf else colour.clamp(0, max_colour)


def error_reduction_of(a: Any, q: Any, k: Any, colour: Any, dim: int = -1) -> Any:
    """How much the squared error falls if candidates are painted in these colours, whose channels are along `dim`."""
    return (colour * (2 * a - colour * q.unsqueeze(dim))).sum(dim) - k


def colour_coefficients(Y: Any, Q: Any, B: Any, T: Any, M: Any) -> tuple[Any, Any]:
    """The coefficients a (*any C) and q (*any) of windows (*any h w channels); B of None stands for black."""
    MT = M * T
    rest = Y if B is None else Y - Q * (1 - M) * B
    return (rest * MT).sum((-3, -2)), (Q * MT * MT).sum((-3, -2, -1))


def error_fall(Y: Any, Q: Any, B: Any, mask: Any, texture: Any) -> Any:
    """How much the squared error falls in every pixel and channel if `texture` is painted through `mask` over B."""
    change = mask * (texture - B)
    return change * (2 * (Y - Q * B) - Q * change)


def occluded(Y: Any, Q: Any, mask: Any, texture: Any) -> tuple[Any, Any]:
    """The planes Y and Q behind one more object, which paints `texture` through `mask` in front of all to come.

    With tau' = tau (1 - M) and X' = X - tau M T the planes follow from themselves; tau is never needed.
    """
    clear = 1 - mask
    return clear * (Y - Q * mask * texture), Q * (clear * clear)


def plane_list(Y: Any, Q: Any, B: Any) -> list[Any]:
    """The planes of evidence, each (*any channels); over black (None) three of the five are zero and left out."""
    if B is None:
        return [Y, Q]
    QB = Q * B
    return [Y, Q, QB, (Y * B).sum(-1, keepdim=True), (QB * B).sum(-1, keepdim=True)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is left to explain of a batch of images: planes on padded canvases, updated in place."""

    planes: Float[Tensor, "B Y X planes"]
    behind: Float[Tensor, "B Y X C"] | None
    """What stands behind all objects; None for black."""

    @staticmethod
    def opening(
        images: Float[Tensor, "B C H W"],
        geometry: Geometry,
        behind: Float[Tensor, "b Y X C"] | None = None,
        inside: Float[Tensor, "1 1 H W"] | None = None,
    ) -> Evidence:
        """The evidence before anything is chosen; one canvas `behind` may stand for all images.

        Images that are 0 outside a part of them count there alone: it is `inside`.
        """
        B, C, H, W = images.shape
        (my, mx), planes = geometry.padding, images.new_zeros(B, *geometry.canvas, C + 1)
        shown = planes[:, my : my + H, mx : mx + W]
        shown[..., :C] = images.permute(0, 2, 3, 1)
        shown[..., C:] = 1 if inside is None else inside.permute(0, 2, 3, 1)
        if behind is None:
            return Evidence(planes, None)
        Y, Q = planes[..., :C], planes[..., C:]
        behind = behind.expand_as(Y)
        return Evidence(torch.cat(plane_list(Y, Q, behind), dim=-1), behind)

    def cut(self, windows: Windows) -> tuple[Float[Tensor, "n h w C"], Float[Tensor, "n h w 1"]]:
        """The planes Y and Q in windows."""
        C = self.planes.shape[-1] - 1 if self.behind is None else self.behind.shape[-1]
        content = windows.cut(self.planes)
        return content[..., :C], content[..., C : C + 1]

    def paste(self, windows: Windows, Y: Float[Tensor, "n h w C"], Q: Float[Tensor, "n h w 1"]) -> None:
        """Give Y and Q new values in windows; the other planes follow."""
        behind = None if self.behind is None else windows.cut(self.behind)
        windows.paste(self.planes, torch.cat(plane_list(Y, Q, behind), dim=-1))


def kernel_stack(
    T: Float[Tensor, "P h w"], M: Float[Tensor, "P h w"], *, over_black: bool
) -> Float[Tensor, "P kernels h w"]:
    """The weights on the pixels of a window in the sums above: M T, M^2 T^2, M and, over a background, the others."""
    kernels = [M * T, (M * T).square(), M]
    if not over_black:
        kernels += [M * (1 - M) * T, M * (2 - M)]
    return torch.stack(kernels, dim=1)


def coefficient_table(C: int, *, over_black: bool) -> Float32[np.ndarray, "kernels planes results"]:
    """How often the sum of a plane under a kernel counts for each of the coefficients of `Quadratics`."""
    table = np.zeros((3, C + 1, C + 3) if over_black else (5, 2 * C + 3, C + 3), np.float32)
    channel = np.arange(C)
    table[0, channel, channel] = table[1, C, C] = table[2, C, C + 1] = 1
    if not over_black:
        table[3, C + 1 + channel, channel] = table[4, 2 * C + 2, C + 2] = -1
        table[2, 2 * C + 1, C + 2] = 2
    return table


class EvidenceKernels:
    """For every prototype the matrix from the planes of its window to its coefficients, in the order of `Quadratics`.

    Where a prototype's mask is zero nothing is summed: its window shrinks to the box around its mask.
    """

    def __init__(self, T: Float[Tensor, "P h w"], M: Float[Tensor, "P h w"], channels: int) -> None:
        self.boxes = support(M)
        self._bank, self._channels = (T, M), channels
        self._matrices: dict[bool, tuple[Tensor, list[Tensor]]] = {}
        self._stacks: dict[bool, Tensor] = {}

    def stack(self, *, over_black: bool) -> Float[Tensor, "P kernels h w"]:
        """The weights of `kernel_stack`."""
        if over_black not in self._stacks:
            self._stacks[over_black] = kernel_stack(*self._bank, over_black=over_black)
        return self._stacks[over_black]

    def measure(
        self, planes: Float[Tensor, "B Y X planes"], windows: Windows, prototype: Int[Tensor, "n"]
    ) -> Float[Tensor, "n results"]:
        """The coefficients of these prototypes, which come sorted, in these windows; over black without k."""
        whole, boxed = self._matrices_for(planes)
        if len(prototype) * whole[0].numel() * whole.element_size() <= FEW_BYTES:
            return torch.bmm(windows.cut(planes).flatten(1)[:, None], whole[prototype])[:, 0]
        # One matrix product for all windows of a prototype; each window is only as large as its mask.
        results, start = [], 0
        counts = torch.bincount(prototype, minlength=len(boxed)).tolist()
        for box, matrix, count in zip(self.boxes, boxed, counts, strict=True):
            most = max(1, WINDOWS_BYTES // (matrix.shape[0] * matrix.element_size()))
            for first in range(start, start + count, most):
                part = slice(first, min(first + most, start + count))
                results.append(windows[part].cut(planes, box).flatten(1) @ matrix)
            start += count
        return torch.cat(results)

    def measure_all(
        self,
        planes: Float[Tensor, "B Y X planes"],
        geometry: Geometry,
        row: Int[Tensor, "B T"],
        column: Int[Tensor, "B T"],
    ) -> Float[Tensor, "B T results"]:
        """The coefficients of all candidates, prototype by prototype; over black without k."""
        whole, _ = self._matrices_for(planes)
        P, pixels, results = whole.shape
        (B, T), K = row.shape, row.shape[1] // P
        most = max(1, working_bytes(planes) // (K * pixels * planes.element_size()))
        some, images = min(P, most), max(1, most // P)
        found = planes.new_empty(B, P, K, results)
        for start in range(0, B, images):
            for first in range(0, P, some):
                part = slice(start, start + images), slice(first, first + some)
                down, right = (each.view(B, P, K)[part] for each in (row, column))
                image = torch.arange(start, start + len(down), device=row.device)[:, None, None].expand_as(down)
                windows = Windows(geometry, image.flatten(), down.flatten(), right.flatten())
                content = windows.cut(planes).view(*down.shape, pixels)
                found[part] = torch.einsum("bpkx,pxr->bpkr", content, whole[part[1]])
        return found.view(B, T, results)

    def _matrices_for(self, planes: Float[Tensor, "B Y X planes"]) -> tuple[Tensor, list[Tensor]]:
        """The matrices over whole frames and over boxes that these planes need."""
        over_black = planes.shape[-1] == self._channels + 1
        if over_black not in self._matrices:  # refinement puts a picture behind the objects of a black background
            self._matrices[over_black] = self._make(over_black)
        return self._matrices[over_black]

    def _make(self, over_black: bool) -> tuple[Float[Tensor, "P pixels_planes results"], list[Tensor]]:
        """The matrices over whole frames, and over the boxes around the masks."""
        kernels = self.stack(over_black=over_black)
        table = torch.from_numpy(coefficient_table(self._channels, over_black=over_black)).to(kernels)
        table = table[..., :-1] if over_black else table  # k is 0 over black
        whole = torch.einsum("pkhw,kqr->phwqr", kernels, table)
        boxed = [
            matrix[box.top : box.top + box.height, box.left : box.left + box.width].flatten(0, 2)
            for matrix, box in zip(whole, self.boxes, strict=True)
        ]
        return whole.flatten(1, 3), boxed
