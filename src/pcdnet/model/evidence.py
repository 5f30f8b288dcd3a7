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

The formulas that the ONNX graph shares (`occluded`, `planes_of`'s order, `kernel_stack`, `coefficient_table`) are
written with plain operators, or as arrays of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor

from pcdnet.model.geometry import Geometry, support
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import cut

TINY = 1e-12
"""Below this norm a candidate paints nothing and has no colour."""
WINDOWS_BYTES = 4 << 20
"""Windows are processed in chunks of about this size, so that they stay in the cache."""
FEW_BYTES = 2 << 20
"""While the matrices of all pairs together are no larger than this, one call for all pairs beats one per prototype."""


@dataclass(slots=True)
class Quadratics:
    """The coefficients of every candidate's error reduction as a function of its colour, and its visible area."""

    a: Float[Tensor, "B T C"]
    q: Float[Tensor, "B T"]
    k: Float[Tensor, "B T"]
    visible: Float[Tensor, "B T"]
    """Mask area that is inside the image and that nothing in front hides."""

    @staticmethod
    def zeros(like: Tensor, candidates: int, channels: int) -> Quadratics:
        """Coefficients of candidates that were not measured yet, with the batch, dtype and device of `like`."""
        shape = (like.shape[0], candidates)
        return Quadratics(like.new_zeros(*shape, channels), *(like.new_zeros(shape) for _ in range(3)))

    def bound(self) -> Float[Tensor, "B T"]:
        """The error reduction of every candidate in its best colour, which no other colour exceeds."""
        return error_reduction_of(self.a, self.q, self.k, best_colour(self.a, self.q))

    def error_reduction(
        self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"], colour: Float[Tensor, "n C"]
    ) -> Float[Tensor, "n"]:
        """The error reductions of the named (image, candidate) pairs in these colours."""
        return error_reduction_of(self.a[image, candidate], self.q[image, candidate], self.k[image, candidate], colour)


def best_colour(
    a: Float[Tensor, "*any C"], q: Float[Tensor, "*any"], max_colour: float = torch.inf
) -> Float[Tensor, "*any C"]:
    """The least-squares colour within [0, max_colour] (any colour, negative too, if that is infinite)."""
    colour = a / q.clamp(min=TINY)[..., None]
    return colour if max_colour == torch.inf else colour.clamp(0, max_colour)


def error_reduction_of(
    a: Float[Tensor, "*any C"],
    q: Float[Tensor, "*any"],
    k: Float[Tensor, "*any"],
    colour: Float[Tensor, "*any C"],
) -> Float[Tensor, "*any"]:
    """How much the squared error falls if the candidate is painted in this colour."""
    return (colour * (2 * a - colour * q[..., None])).sum(-1) - k


def colour_coefficients(
    Y: Float[Tensor, "n h w C"],
    Q: Float[Tensor, "n h w 1"],
    B: Float[Tensor, "n h w C"] | None,
    T: Float[Tensor, "n h w 1"],
    M: Float[Tensor, "n h w 1"],
) -> tuple[Float[Tensor, "n C"], Float[Tensor, "n"]]:
    """The coefficients a and q of single windows, differentiable in T and M; B of None stands for black."""
    a = (Y * M * T).sum(dim=(1, 2))
    if B is not None:
        a = a - (Q * B * M * (1 - M) * T).sum(dim=(1, 2))
    return a, (Q * (M * T).square()).sum(dim=(1, 2, 3))


def background_coefficient(
    Y: Float[Tensor, "n h w C"], Q: Float[Tensor, "n h w 1"], B: Float[Tensor, "n h w C"], M: Float[Tensor, "n h w 1"]
) -> Float[Tensor, "n"]:
    """The coefficient k of single windows: what the background explained under the mask."""
    return (2 * Y * B * M - Q * B.square() * M * (2 - M)).sum(dim=(1, 2, 3))


def occluded(Y: Any, Q: Any, mask: Any, texture: Any) -> tuple[Any, Any]:
    """The planes Y and Q behind one more object, which paints `texture` through `mask` in front of all to come.

    With tau' = tau (1 - M) and X' = X - tau M T the planes follow from themselves; tau is never needed. Tensors and
    values of an ONNX graph are both fine.
    """
    clear = 1 - mask
    return clear * (Y - Q * mask * texture), Q * (clear * clear)


def planes_of(
    Y: Float[Tensor, "*any C"], Q: Float[Tensor, "*any 1"], behind: Float[Tensor, "*any C"] | None
) -> Float[Tensor, "*any planes"]:
    """The planes of evidence; over black three of the five are zero and left out."""
    if behind is None:
        return torch.cat([Y, Q], dim=-1)
    Q_behind = Q * behind
    return torch.cat(
        [Y, Q, Q_behind, (Y * behind).sum(-1, keepdim=True), (Q_behind * behind).sum(-1, keepdim=True)],
        dim=-1,
    )


def kernel_stack(
    T: Float[Tensor, "P h w"], M: Float[Tensor, "P h w"], *, over_black: bool
) -> Float[Tensor, "P kernels h w"]:
    """The weights that the sums of this file's first words put on the pixels of a window."""
    kernels = [M * T, (M * T).square(), M]
    if not over_black:
        kernels += [M * (1 - M) * T, M * (2 - M)]
    return torch.stack(kernels, dim=1)


def coefficient_table(C: int, *, over_black: bool) -> Float32[np.ndarray, "kernels planes results"]:
    """How often the sum of a plane under a kernel counts for a (C results), q, the visible area and k."""
    kernels, planes, results = (3, C + 1, C + 2) if over_black else (5, 2 * C + 3, C + 3)
    table = np.zeros((kernels, planes, results), np.float32)
    for c in range(C):
        table[0, c, c] = 1
    table[1, C, C] = table[2, C, C + 1] = 1
    if not over_black:
        for c in range(C):
            table[3, C + 1 + c, c] = -1
        table[2, 2 * C + 1, C + 2] = 2
        table[4, 2 * C + 2, C + 2] = -1
    return table


class EvidenceKernels:
    """For every prototype the matrix from the planes of its window to the coefficients a, q, visible area and k.

    Where a prototype's mask is zero nothing is summed: its window shrinks to the box around its mask.
    """

    def __init__(self, T: Float[Tensor, "P h w"], M: Float[Tensor, "P h w"], channels: int, *, over_black: bool):
        self.boxes = support(M)
        self._bank, self._channels = (T, M), channels
        self._matrices = {over_black: self._make(over_black)}

    def update(
        self,
        quadratics: Quadratics,
        planes: Float[Tensor, "B Y X planes"],
        geometry: Geometry,
        candidates: Candidates,
        image: Int[Tensor, "n"],
        candidate: Int[Tensor, "n"],
    ) -> None:
        """Measure the coefficients of the named (image, candidate) pairs anew; pairs come sorted by candidate."""
        if len(image) == 0:
            return
        C = self._channels
        over_black = planes.shape[-1] == C + 1
        if over_black not in self._matrices:  # refinement puts a picture behind the objects of a black background
            self._matrices[over_black] = self._make(over_black)
        whole, boxed = self._matrices[over_black]
        row, column = candidates.row[image, candidate], candidates.column[image, candidate]
        prototype = candidates.prototype(candidate)
        if len(image) * whole[0].numel() * whole.element_size() <= FEW_BYTES:
            windows = cut(planes, geometry, image, row, column)
            values = torch.bmm(windows.flatten(1)[:, None], whole[prototype])[:, 0]
        else:
            values = self._by_prototype(planes, geometry, image, row, column, prototype, boxed)
        quadratics.a[image, candidate] = values[:, :C]
        quadratics.q[image, candidate] = values[:, C]
        quadratics.visible[image, candidate] = values[:, C + 1]
        if not over_black:
            quadratics.k[image, candidate] = values[:, C + 2]

    def _by_prototype(
        self,
        planes: Float[Tensor, "B Y X planes"],
        geometry: Geometry,
        image: Int[Tensor, "n"],
        row: Int[Tensor, "n"],
        column: Int[Tensor, "n"],
        prototype: Int[Tensor, "n"],
        matrices: list[Tensor],
    ) -> Float[Tensor, "n results"]:
        """One matrix product for all windows of a prototype; each window is only as large as its mask."""
        results = []
        start = 0
        counts = torch.bincount(prototype, minlength=len(matrices)).tolist()
        for box, matrix, count in zip(self.boxes, matrices, counts, strict=True):
            most = max(1, WINDOWS_BYTES // (matrix.shape[0] * matrix.element_size()))
            for first in range(start, start + count, most):
                part = slice(first, min(first + most, start + count))
                windows = cut(planes, geometry, image[part], row[part], column[part], box)
                results.append(windows.flatten(1) @ matrix)
            start += count
        return torch.cat(results)

    def _make(self, over_black: bool) -> tuple[Float[Tensor, "P pixels_planes results"], list[Tensor]]:
        """The matrices over whole frames, and over the boxes around the masks."""
        kernels = kernel_stack(*self._bank, over_black=over_black)
        table = torch.from_numpy(coefficient_table(self._channels, over_black=over_black)).to(kernels)
        whole = torch.einsum("pkhw,kqr->phwqr", kernels, table)
        boxed = [
            matrix[box.top : box.top + box.height, box.left : box.left + box.width].flatten(0, 2)
            for matrix, box in zip(whole, self.boxes, strict=True)
        ]
        return whole.flatten(1, 3), boxed
