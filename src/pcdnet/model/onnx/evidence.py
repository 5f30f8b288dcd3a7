"""Evidence in ONNX: what candidates would reduction, read from windows, as in `pcdnet.model.evidence`.

Canvases are flat here, (B Y X) cells with a few planes each. A window is a list of cells: that of its corner, and from
there the same steps everywhere.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pcdnet.model.bank import PrototypeBank
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


def cells(corner: Value, frame: tuple[int, int], width: int) -> Value:
    """The cells of windows of a frame's size on canvases so wide: (n h*w)."""
    return unsqueeze(corner, -1) + (np.arange(frame[0])[:, None] * width + np.arange(frame[1])).reshape(-1)


def canvas(images: Value, channels: int, geometry: Geometry) -> Value:
    """Images inside a margin of zeros, as flat cells: (B*Y*X C)."""
    my, mx = geometry.padding
    padded = pad(images, [0, 0, my, mx, 0, 0, my, mx])
    return reshape(transpose(padded, 0, 2, 3, 1), -1, channels)


class EvidenceKernels:
    """The planes of evidence of a batch, and the weights that turn windows of them into what candidates would reduction."""

    def __init__(self, graph: Graph, bank: PrototypeBank, geometry: Geometry, batch: int, channels: int) -> None:
        self._geometry, self._shape = geometry, (batch, channels)
        T, M = (numbers(x).reshape(len(x), -1) for x in (bank.prototypes, bank.masks))
        weights = [M * T, (M * T) ** 2, M]
        self._behind: Value | None = None
        if bank.background is not None:
            weights += [M * (1 - M) * T, M * (2 - M)]
            background = expand(graph.constant(numbers(bank.background)), *self._shape, *geometry.image)
            self._behind = canvas(background, channels, geometry)
        self._weights = graph.constant(np.stack(weights, axis=1))
        self._results = _results(channels, over_black=self._behind is None)

    def opening(self, images: Value) -> Value:
        """The planes before anything is chosen: (cells planes)."""
        inside = expand(images.graph.constant(1.0), self._shape[0], 1, *self._geometry.image)
        Y, Q = (canvas(x, channels, self._geometry) for x, channels in ((images, self._shape[1]), (inside, 1)))
        return _planes(Y, Q, self._behind)

    def update(self, planes: Value, corner: Value, prototype: Value) -> Value:
        """Of n candidates a (one per channel), q, what is seen, and k: (n C+3)."""
        windows = gather(planes, cells(corner, self._geometry.frame, self._geometry.canvas[1]))
        # Every kind of weights meets every plane, though few of these sums are wanted: one product gives them all.
        sums = gather(self._weights, prototype) @ windows
        return reshape(sums, -1, len(self._results)) @ self._results

    def covered(self, window: Value, where: Value, mask: Value, texture: Value) -> Value:
        """The planes in windows, which lie at the cells `where`, behind objects; `texture` is coloured."""
        C = self._shape[1]
        Y, Q = part(window, 2, 0, C), part(window, 2, C, C + 1)
        clear = 1 - mask
        behind = None if self._behind is None else gather(self._behind, where)
        return _planes(clear * (Y - Q * mask * texture), Q * clear * clear, behind)


def _planes(Y: Value, Q: Value, behind: Value | None) -> Value:
    """The planes Y, Q and, where something is behind, Q B, Y.B and Q |B|^2."""
    if behind is None:
        return concat([Y, Q], -1)
    Q_behind = Q * behind
    return concat([Y, Q, Q_behind, total(Y * behind, -1, keep=True), total(Q_behind * behind, -1, keep=True)], -1)


def _results(C: int, *, over_black: bool) -> Float[ndarray, "sums results"]:
    """From sums of every kind of weights with every plane to a, q, what is seen, and k (0 over black)."""
    kinds, planes = (3, C + 1) if over_black else (5, 2 * C + 3)
    matrix = np.zeros((kinds, planes, C + 3))
    for c in range(C):
        matrix[0, c, c] = 1
    matrix[1, C, C] = matrix[2, C, C + 1] = 1
    if not over_black:
        for c in range(C):
            matrix[3, C + 1 + c, c] = -1
        matrix[2, 2 * C + 1, C + 2] = 2
        matrix[4, 2 * C + 2, C + 2] = -1
    return matrix.reshape(kinds * planes, C + 3)
