"""Solidity in ONNX: whether candidates are seen all over, as in `pcdnet.model.solidity`."""

from __future__ import annotations

import numpy as np

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.onnx.evidence import canvas, cells
from pcdnet.model.onnx.graph import FLOAT, Value, cast, concat, expand, gather, node, part, reshape, total
from pcdnet.model.onnx.localization import least_squares, numbers
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.plan import SearchPlan
from pcdnet.model.solidity import LEAST_AREA, LEAST_FALL


def solid(images: Value, shape: tuple[int, int], plan: SearchPlan, places: Places) -> Value:
    """Which candidates, alone over the background, lower the error in enough of their pixels: (B T).

    `shape` is (B, C). Least squares colours them here, whatever colours them later.
    """
    bank, geometry, config = plan.tight, plan.geometry, plan.config
    (B, C), P, K, (Y, X) = shape, len(bank.prototypes), places.peaks, geometry.canvas
    corner = places.row * X + places.column

    def cut(pictures: Value, channels: int, first: Value) -> Value:
        """The candidates' windows: (B P K h*w channels)."""
        windows = gather(canvas(pictures, channels, geometry), cells(reshape(first, -1), geometry.frame, X))
        return reshape(windows, B, P, K, -1, channels)

    image = cut(images, C, corner + np.arange(B)[:, None] * (Y * X))
    under = cut(_under(images, C, bank, geometry), C + 1, corner)
    behind, inside = part(under, 4, 0, C), part(under, 4, C, C + 1)
    T, mask = (numbers(x).reshape(P, 1, -1, 1) for x in (bank.prototypes, bank.masks))
    M = inside * mask
    a = total((image - (1 - M) * behind) * (M * T), 3, keep=True)
    q = total((M * T) * (M * T), 3, keep=True)
    change = M * (least_squares(a, q, config.max_colour) * T - behind)
    fall = total(change * (2 * (image - behind) - change), 4, keep=True)
    better = M * cast(fall > LEAST_FALL * C, FLOAT)
    share = total(better, 3) / node("Max", total(M, 3), LEAST_AREA)
    return reshape(share >= config.min_solid, B, P * K)


def _under(images: Value, channels: int, bank: PrototypeBank, geometry: Geometry) -> Value:
    """What is behind all objects, be it black, and a plane of ones that tells the image from its margin."""
    graph = images.graph
    behind = graph.constant(0.0 if bank.background is None else numbers(bank.background))
    inside = expand(graph.constant(1.0), 1, 1, *geometry.image)
    return concat([expand(behind, 1, channels, *geometry.image), inside], 1)
