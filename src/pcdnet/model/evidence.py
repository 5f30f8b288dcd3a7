"""Evidence: what a candidate would reduction, read from windows alone.

Behind the objects that are already chosen, a pixel shows X = I - (what they paint there) through their
transmittance tau, and there, so far, stands what is behind them, B. A candidate with prototype T, mask M and
colour c paints M c T + (1 - M) B instead of B. With Y = tau X and Q = tau^2, the squared error falls by

    reduction(c) = 2 a.c - q |c|^2 - k        a = <Y, M T> - <Q B, M (1 - M) T>        (one per channel)
                                         q = <Q, M^2 T^2>
                                         k = 2 <Y.B, M> - <Q |B|^2, 2 M - M^2>

Beside the reduction, <Q, M> tells how much of the candidate would be seen. Sums run over the candidate's window only, and
all of them are linear in five planes, Y, Q, Q B, Y.B and Q |B|^2. So the planes are kept on a canvas, and one matrix
product per prototype weighs all its windows.
Outside the image tau is 0: what hangs over the border counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.geometry import Geometry, support
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import cut

TINY = 1e-12
"""Below this norm a candidate paints nothing and has no colour."""
WINDOWS_BYTES = 4 << 20
"""Windows are weighed in chunks of about this size, so that they stay in the cache."""
FEW_BYTES = 2 << 20
"""While the matrices of all pairs together are no larger than this, one call for all pairs beats one per prototype."""


@dataclass(slots=True)
class Quadratics:
    """The coefficients of every candidate's reduction as a function of its colour, and how much of it is seen."""

    a: Float[Tensor, "B T C"]
    q: Float[Tensor, "B T"]
    k: Float[Tensor, "B T"]
    seen: Float[Tensor, "B T"]
    """Mask area that is inside the image and that nothing in front hides."""

    @staticmethod
    def zeros(like: Tensor, candidates: int, channels: int) -> Quadratics:
        """Coefficients of candidates that were not weighed yet, with the batch, dtype and device of `like`."""
        shape = (like.shape[0], candidates)
        return Quadratics(like.new_zeros(*shape, channels), *(like.new_zeros(shape) for _ in range(3)))

    def bound(self) -> Float[Tensor, "B T"]:
        """The reduction of every candidate in its best colour, which no other colour exceeds."""
        return error_reduction_of(self.a, self.q, self.k, best_colour(self.a, self.q))

    def error_reduction(
        self, image: Int[Tensor, "n"], candidate: Int[Tensor, "n"], colour: Float[Tensor, "n C"]
    ) -> Float[Tensor, "n"]:
        """The reductions of the named (image, candidate) pairs in these colours."""
        return error_reduction_of(self.a[image, candidate], self.q[image, candidate], self.k[image, candidate], colour)


def best_colour(
    a: Float[Tensor, "*any C"], q: Float[Tensor, "*any"], max_colour: float = torch.inf
) -> Float[Tensor, "*any C"]:
    """The colour of the largest reduction within [0, max_colour] (any colour, negative too, if that is infinite)."""
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


class EvidenceKernels:
    """Weighs windows of evidence: for every prototype the matrix from its window's planes to a, q, what is seen, and k.

    Where a prototype's mask is zero nothing is weighed: its window shrinks to the box around its mask.
    """

    def __init__(self, prototypes: Float[Tensor, "P h w"], masks: Float[Tensor, "P h w"], channels: int) -> None:
        self.boxes = support(masks)
        self._prototypes, self._masks, self._channels = prototypes, masks, channels
        self._matrices: dict[int, tuple[Tensor, list[Tensor]]] = {}

    def update(
        self,
        planes: Float[Tensor, "B Y X planes"],
        geometry: Geometry,
        candidates: Candidates,
        image: Int[Tensor, "n"],
        candidate: Int[Tensor, "n"],
        into: Quadratics,
    ) -> None:
        """Update the coefficients of the named (image, candidate) pairs, which come sorted by candidate."""
        if len(image) == 0:
            return
        whole, boxed = self._made(planes.shape[-1])
        row, column = candidates.row[image, candidate], candidates.column[image, candidate]
        prototype = candidates.prototype(candidate)
        if len(image) * whole[0].numel() * whole.element_size() <= FEW_BYTES:
            windows = cut(planes, geometry, image, row, column)
            values = torch.bmm(windows.flatten(1)[:, None], whole[prototype])[:, 0]
        else:
            values = self._by_prototype(planes, geometry, image, row, column, prototype, boxed)
        C = self._channels
        into.a[image, candidate] = values[:, :C]
        into.q[image, candidate] = values[:, C]
        into.seen[image, candidate] = values[:, C + 1]
        if values.shape[1] > C + 2:
            into.k[image, candidate] = values[:, C + 2]

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

    def _made(self, planes: int) -> tuple[Float[Tensor, "P pixels_planes results"], list[Tensor]]:
        """The matrices for so many planes, over whole frames and over boxes; made when first asked for."""
        if planes not in self._matrices:
            whole = _matrices(self._prototypes, self._masks, self._channels, planes)
            boxed = [
                matrix[box.top : box.top + box.height, box.left : box.left + box.width].flatten(0, 2)
                for matrix, box in zip(whole, self.boxes, strict=True)
            ]
            self._matrices[planes] = whole.flatten(1, 3), boxed
        return self._matrices[planes]


def _matrices(
    T: Float[Tensor, "P h w"], M: Float[Tensor, "P h w"], C: int, planes: int
) -> Float[Tensor, "P h w planes results"]:
    """The coefficients of a, q, what is seen, and k, plane by plane, as in this file's first words."""
    over_black = planes == C + 1
    matrices = T.new_zeros(*T.shape, planes, C + 2 if over_black else C + 3)
    for c in range(C):
        matrices[..., c, c] = M * T
    matrices[..., C, C] = (M * T).square()
    matrices[..., C, C + 1] = M
    if not over_black:
        for c in range(C):
            matrices[..., C + 1 + c, c] = -M * (1 - M) * T
        matrices[..., 2 * C + 1, C + 2] = 2 * M
        matrices[..., 2 * C + 2, C + 2] = -M * (2 - M)
    return matrices
