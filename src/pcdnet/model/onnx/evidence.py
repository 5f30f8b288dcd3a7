"""Evidence in ONNX: by how much candidates would reduce the error, as in `pcdnet.model.evidence`.

Canvases are flat here, (B Y X) cells with a few planes each. A window is a list of cells: that of its corner, and from
there the same steps everywhere.
"""

from __future__ import annotations

import numpy as np

from pcdnet.model.evidence import coefficient_table, kernel_stack, occluded, plane_list
from pcdnet.model.geometry import Geometry
from pcdnet.model.onnx.graph import Graph, Value, concat
from pcdnet.model.onnx.localization import as_array
from pcdnet.model.plan import SearchPlan


def cells(corner: Value, geometry: Geometry) -> Value:
    """The cells of the windows of frames on canvases: (n h*w)."""
    (h, w), width = geometry.frame, geometry.canvas[1]
    return corner.unsqueeze(-1) + (np.arange(h)[:, None] * width + np.arange(w)).reshape(-1)


def canvas(images: Value, channels: int, geometry: Geometry) -> Value:
    """Images inside a padding of zeros, as flat cells: (B*Y*X C)."""
    my, mx = geometry.padding
    return images.pad([0, 0, my, mx, 0, 0, my, mx]).permute(0, 2, 3, 1).reshape(-1, channels)


class EvidenceGraph:
    """The planes of evidence of a batch, and the coefficients of candidates that windows of them give."""

    def __init__(self, graph: Graph, plan: SearchPlan, batch: int) -> None:
        bank, C, over_black = plan.tight, plan.config.channels, plan.behind is None
        self._geometry, self._shape = plan.geometry, (batch, C)
        self._behind: Value | None = None
        if bank.background is not None:
            background = graph.constant(as_array(bank.background)).expand(*self._shape, *plan.geometry.image)
            self._behind = canvas(background, C, plan.geometry)
        kernels = kernel_stack(bank.prototypes, bank.masks, over_black=over_black)
        self._kernels = graph.constant(as_array(kernels.flatten(2)))
        self._table = coefficient_table(C, over_black=over_black).reshape(-1, C + 3)

    def opening(self, images: Value) -> Value:
        """The planes before anything is chosen: (cells planes)."""
        inside = images.graph.constant(1.0).expand(self._shape[0], 1, *self._geometry.image)
        Y, Q = canvas(images, self._shape[1], self._geometry), canvas(inside, 1, self._geometry)
        return concat(plane_list(Y, Q, self._behind), -1)

    def measure(self, planes: Value, corner: Value, prototype: Value) -> Value:
        """The coefficients of n candidates, in the order of `pcdnet.model.evidence.Quadratics`: (n C+3)."""
        # Every kernel meets every plane, though few of these sums are wanted: one product gives them all.
        sums = self._kernels[prototype] @ planes[cells(corner, self._geometry)]
        return sums.reshape(-1, len(self._table)) @ self._table

    def occlude(self, planes: Value, window: Value, mask: Value, texture: Value) -> Value:
        """The planes behind objects in windows, which are cells; `texture` is coloured."""
        C = self._shape[1]
        now = planes[window]
        Y, Q = now.slice(2, 0, C), now.slice(2, C, C + 1)
        behind = None if self._behind is None else self._behind[window]
        return planes.index_put(window, concat(plane_list(*occluded(Y, Q, mask, texture), behind), -1))
