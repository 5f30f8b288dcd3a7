"""Evidence in ONNX: by how much candidates would reduce the error, as in `pcdnet.model.evidence`.

Canvases are flat here, (B Y X) cells with a few planes each. A window is a list of cells: that of its corner, and from
there the same steps everywhere.
"""

from __future__ import annotations

import numpy as np

from pcdnet.model.evidence import coefficient_table, kernel_stack, occluded
from pcdnet.model.geometry import Geometry
from pcdnet.model.onnx.graph import (
    Graph,
    Value,
    concat,
    expand,
    gather,
    pad,
    part,
    reshape,
    total,
    transpose,
    unsqueeze,
)
from pcdnet.model.onnx.localization import numbers
from pcdnet.model.plan import SearchPlan


def cells(corner: Value, frame: tuple[int, int], width: int) -> Value:
    """The cells of windows of a frame's size on canvases so wide: (n h*w)."""
    return unsqueeze(corner, -1) + (np.arange(frame[0])[:, None] * width + np.arange(frame[1])).reshape(-1)


def canvas(images: Value, channels: int, geometry: Geometry) -> Value:
    """Images inside a padding of zeros, as flat cells: (B*Y*X C)."""
    my, mx = geometry.padding
    padded = pad(images, [0, 0, my, mx, 0, 0, my, mx])
    return reshape(transpose(padded, 0, 2, 3, 1), -1, channels)


class EvidenceGraph:
    """The planes of evidence of a batch, and the coefficients of candidates that windows of them give."""

    def __init__(self, graph: Graph, plan: SearchPlan, batch: int) -> None:
        bank, C, over_black = plan.tight, plan.config.channels, plan.behind is None
        self._geometry, self._shape = plan.geometry, (batch, C)
        self._behind: Value | None = None
        if bank.background is not None:
            background = expand(graph.constant(numbers(bank.background)), *self._shape, *plan.geometry.image)
            self._behind = canvas(background, C, plan.geometry)
        kernels = kernel_stack(bank.prototypes, bank.masks, over_black=over_black)
        table = coefficient_table(C, over_black=over_black)
        self._kernels = graph.constant(numbers(kernels.flatten(2)))
        self._table = table.reshape(-1, table.shape[2])

    def opening(self, images: Value) -> Value:
        """The planes before anything is chosen: (cells planes)."""
        inside = expand(images.graph.constant(1.0), self._shape[0], 1, *self._geometry.image)
        Y, Q = (canvas(x, channels, self._geometry) for x, channels in ((images, self._shape[1]), (inside, 1)))
        return _planes(Y, Q, self._behind)

    def measure(self, planes: Value, corner: Value, prototype: Value) -> Value:
        """Of n candidates a (one per channel), q, the visible area and, if not over black, k: (n results)."""
        windows = gather(planes, cells(corner, self._geometry.frame, self._geometry.canvas[1]))
        # Every kernel meets every plane, though few of these sums are wanted: one product gives them all.
        sums = gather(self._kernels, prototype) @ windows
        return reshape(sums, -1, len(self._table)) @ self._table

    def occlude(self, window: Value, where: Value, mask: Value, texture: Value) -> Value:
        """The planes in windows, which lie at the cells `where`, behind objects; `texture` is coloured."""
        C = self._shape[1]
        behind = None if self._behind is None else gather(self._behind, where)
        return _planes(*occluded(part(window, 2, 0, C), part(window, 2, C, C + 1), mask, texture), behind)


def _planes(Y: Value, Q: Value, behind: Value | None) -> Value:
    """The planes Y, Q and, where something is behind, Q B, Y.B and Q |B|^2."""
    if behind is None:
        return concat([Y, Q], -1)
    Q_behind = Q * behind
    return concat([Y, Q, Q_behind, total(Y * behind, -1, keep=True), total(Q_behind * behind, -1, keep=True)], -1)
