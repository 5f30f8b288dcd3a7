"""Solidity in ONNX: whether candidates are seen all over, as in `pcdnet.model.solidity`."""

from __future__ import annotations

import numpy as np

from pcdnet.model.evidence import best_colour, colour_coefficients, error_fall
from pcdnet.model.onnx.evidence import canvas, cells
from pcdnet.model.onnx.graph import FLOAT, Value
from pcdnet.model.onnx.localization import as_array
from pcdnet.model.onnx.peaks import Places
from pcdnet.model.plan import SearchPlan
from pcdnet.model.solidity import LEAST_AREA, LEAST_FALL


def solid(images: Value, shape: tuple[int, int], plan: SearchPlan, places: Places) -> Value:
    """Which candidates, alone over the background, lower the error in enough of their pixels: (B T).

    `shape` is (B, C). Least squares colours them here, whatever colours them later.
    """
    bank, geometry, config = plan.tight, plan.geometry, plan.config
    (B, C), P, K, (h, w), (Y, X) = shape, len(bank.prototypes), places.peaks, geometry.frame, geometry.canvas

    def cut(pictures: Value, channels: int, first: Value) -> Value:
        """The candidates' windows: (B P K h w channels)."""
        windows = canvas(pictures, channels, geometry)[cells(first.reshape(-1), geometry)]
        return windows.reshape(B, P, K, h, w, channels)

    corner, one = places.row * X + places.column, images.graph.constant(1.0)
    image = cut(images, C, corner + np.arange(B)[:, None] * (Y * X))
    background = images.graph.constant(0.0 if bank.background is None else as_array(bank.background))
    behind = cut(background.expand(1, C, *geometry.image), C, corner)
    inside = cut(one.expand(1, 1, *geometry.image), 1, corner)
    T, mask = (as_array(x).reshape(P, 1, h, w, 1) for x in (bank.prototypes, bank.masks))
    M = inside * mask
    colour = best_colour(*colour_coefficients(image, inside, behind, T, M), config.max_colour)
    fall: Value = error_fall(image, inside, behind, M, colour.reshape(B, P, K, 1, 1, C) * T).sum(-1, keepdim=True)
    better = M * (fall > LEAST_FALL * C).to(FLOAT)
    share = better.sum((-3, -2, -1)) / M.sum((-3, -2, -1)).clamp(min=LEAST_AREA)
    return (share >= config.min_solid).reshape(B, P * K)
