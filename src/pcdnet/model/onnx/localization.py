"""Localization in ONNX: how well every prototype fits everywhere, as in `pcdnet.model.localization`.

Fourier transforms are products with matrices, real and imaginary parts one below the other: images are small, every
ONNX runtime has fast matrix products, and few have Fourier transforms. What depends on prototypes alone is written
into the graph as well, not as its result, which would be far larger; runtimes compute it once, when they load it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from pcdnet.model.evidence import best_colour, error_reduction_of, kernel_stack
from pcdnet.model.geometry import Geometry
from pcdnet.model.onnx.graph import Value, concat, node
from pcdnet.model.plan import SearchPlan
from pcdnet.model.spectrum import NOISE_FLOOR


def phase_maps(images: Value, plan: SearchPlan) -> Value:
    """Phase correlation, the best channel of every place: (B P rows columns)."""
    bank, geometry = plan.tight, plan.geometry
    (H, W), (h, w), (my, mx), (Y, X) = geometry.image, geometry.frame, geometry.padding, geometry.grid
    rows, columns = geometry.positions
    painted = plan.config.template == "painted"
    seen = images - as_array(bank.background) if painted and bank.background is not None else images
    F = _phases(seen, np.arange(H), np.arange(W), geometry.grid)
    # Prototypes begin at -padding, which puts the first admissible position at the maps' origin.
    templates = images.graph.constant(as_array(bank.prototypes * bank.masks if painted else bank.prototypes))
    S = _phases(templates, np.arange(h) - my, np.arange(w) - mx, geometry.grid)
    # F times the conjugate of S is (F_re, F_im) S_re + (F_im, -F_re) S_im.
    (F_re, F_im), (S_re, S_im) = (x.split([Y, Y], -2) for x in (F, S))
    upright, turned = F.unsqueeze(1), concat([F_im, 0 - F_re], -2).unsqueeze(1)
    by_re, by_im = (concat([x, x], -2).unsqueeze(1) for x in (S_re, S_im))
    lines: Value = (_down(np.arange(rows), Y).T / Y) @ (upright * by_re + turned * by_im)
    across = _across(np.arange(columns), X).T / X
    # Half of a real signal's spectrum tells all; what has its mirror image in the other half counts twice.
    frequency = np.arange(len(across)) % (X // 2 + 1)
    across *= np.where((frequency == 0) | (2 * frequency == X), 1, 2)[:, None]
    (re, im), (lines_re, lines_im) = np.split(across, 2), lines.split([rows, rows], -2)
    return (lines_re @ re + lines_im @ im).amax(2)


def error_reduction_maps(images: Value, shape: tuple[int, int], plan: SearchPlan) -> Value:
    """By how much every prototype would reduce the error everywhere over the bare background: (B P rows columns).

    `shape` is (B, C). Sums over windows are convolutions here: frames are small.
    """
    bank, geometry, (B, C), graph = plan.tight, plan.geometry, shape, images.graph
    kernels = kernel_stack(bank.prototypes, bank.masks, over_black=bank.background is None).unbind(1)
    q = _sums(graph.constant(np.ones((1, 1, *geometry.image))), (1, 1), kernels[1], geometry).sum(2)
    a, k = _sums(images, shape, kernels[0], geometry), graph.constant(0.0)
    if bank.background is not None:
        behind = graph.constant(as_array(bank.background[None]))
        a = a - _sums(behind, (1, C), kernels[3], geometry)
        k = 2 * _sums((images * behind).sum(1, keepdim=True), (B, 1), kernels[2], geometry)
        k = (k - _sums((behind * behind).sum(1, keepdim=True), (1, 1), kernels[4], geometry)).sum(2)
    reductions: Value = error_reduction_of(a, q, k, best_colour(a, q, plan.config.max_colour, dim=2), dim=2)
    return reductions


def as_array(tensor: Tensor) -> Float32[ndarray, "*any"]:
    """A tensor's content in the precision of the file."""
    return tensor.detach().cpu().float().numpy()


def _phases(x: Value, rows: Int[ndarray, "rows"], columns: Int[ndarray, "columns"], grid: tuple[int, int]) -> Value:
    """Phase factors of the half spectrum of signals whose pixels lie at these rows and columns: (... 2Y X/2+1)."""
    Y, half = grid[0], grid[1] // 2 + 1
    F: Value = _down(rows, Y) @ concat((x @ _across(columns, grid[1])).split([half, half], -1), -2)
    re, im = F.split([Y, Y], -2)
    energy = node("Sqrt", (x * x).sum((-2, -1), keepdim=True))
    limits = np.finfo(np.float32)
    floor = energy * float(NOISE_FLOOR * limits.eps) + float(limits.tiny)
    modulus = node("Sqrt", re * re + im * im) + floor
    return F / concat([modulus, modulus], -2)


def _across(places: Int[ndarray, "places"], size: int) -> Float[ndarray, "places parts"]:
    """From the pixels of a row to its half spectrum, real parts first."""
    cosine, sine = _turns(places, size // 2 + 1, size)
    return np.concatenate([cosine, -sine], axis=1)


def _down(places: Int[ndarray, "places"], size: int) -> Float[ndarray, "spectrum column"]:
    """From the complex numbers of a column to its spectrum; transposed, and divided by the size, it leads back."""
    cosine, sine = _turns(places, size, size)
    return np.block([[cosine.T, sine.T], [-sine.T, cosine.T]])


def _turns(
    places: Int[ndarray, "places"], frequencies: int, size: int
) -> tuple[Float[ndarray, "places frequencies"], Float[ndarray, "places frequencies"]]:
    """Cosine and sine of the angles that the first frequencies have at these places."""
    angle = 2 * np.pi / size * (np.outer(places, np.arange(frequencies)) % size)
    return np.cos(angle), np.sin(angle)


def _sums(plane: Value, shape: tuple[int, int], weights: Float[Tensor, "P h w"], geometry: Geometry) -> Value:
    """Planes of `shape` under every prototype's weights, for all places: (B P C rows columns)."""
    (B, C), (my, mx) = shape, geometry.padding
    canvas = plane.reshape(B * C, 1, *geometry.image).pad([0, 0, my, mx, 0, 0, my, mx])
    sums = node("Conv", canvas, as_array(weights[:, None]))
    return sums.reshape(B, C, len(weights), *geometry.positions).permute(0, 2, 1, 3, 4)
