"""Poses: how well the angles and sizes of found objects agree with the ground truth.

Which way up is upright, and which size is 1, is a convention: a prototype may have learned its object lying. So the one
turn and the one ratio between a prototype and the ground truth are taken off before errors are measured.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64

from pcdnet.errors import PcdnetError


def angle_errors(
    found: Float[np.ndarray, "n"], true: Float[np.ndarray, "n"], symmetry: int = 1
) -> Float64[np.ndarray, "n"]:
    """Return by how many degrees each angle is off, whichever way round: 180 at most, of symmetric objects less.

    `symmetry` is how many turns bring the object onto itself, the full one included: 1 of a heart, 2 of an ellipse, 4
    of a square.

    Examples
    --------
    >>> angle_errors(np.array([350.0, 90.0]), np.array([10.0, 0.0])).tolist()
    [20.0, 90.0]
    >>> angle_errors(np.array([350.0, 90.0]), np.array([10.0, 0.0]), symmetry=4).tolist()
    [20.0, 0.0]
    """
    ahead = _differences(found, true, symmetry)
    errors: Float64[np.ndarray, "n"] = np.minimum(ahead, 360 / symmetry - ahead)
    return errors


def upright(found: Float[np.ndarray, "n"], true: Float[np.ndarray, "n"], symmetry: int = 1) -> float:
    """Return the turn in degrees from the true to the found angles of one prototype; it is taken off the latter.

    It is a median on the circle: of the differences, the one from which all are least far off in the sum. So angles
    that are found wrong hardly move it.

    Examples
    --------
    >>> upright(np.array([31.0, 130.0, 209.0, 77.0]), np.array([1.0, 100.0, 180.0, 270.0]))
    30.0
    """
    period, ahead = 360 / symmetry, np.sort(_differences(found, true, symmetry))
    n = len(ahead)
    if n == 0:
        raise PcdnetError("there are 0 angles to find the upright of; give those of at least one object")
    # Each difference sees all others within half a turn on either side, some of them a turn away in these copies.
    copies = np.concatenate([ahead - period, ahead, ahead + period])
    sums, places = np.concatenate([[0.0], np.cumsum(copies)]), np.arange(n, 2 * n)
    first = np.searchsorted(copies, ahead - period / 2)
    before = ahead * (places - first) - (sums[places] - sums[first])
    after = sums[first + n] - sums[places] - ahead * (first + n - places)
    return float(ahead[np.argmin(before + after)])


def typical_ratio(found: Float[np.ndarray, "n"], true: Float[np.ndarray, "n"]) -> float:
    """Return how many times larger than the true scales the found ones of one prototype are; they are divided by it.

    It is the median of the ratios.

    Examples
    --------
    >>> typical_ratio(np.array([1.0, 2.0, 9.0]), np.array([0.5, 1.0, 1.0]))
    2.0
    """
    if len(found) == 0:
        raise PcdnetError("there are 0 scales to compare; give those of at least one object")
    scales = np.concatenate([found, true])
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise PcdnetError(f"scales go from {scales.min()} to {scales.max()}; give finite ones above 0")
    return float(np.median(found.astype(np.float64) / true))


def _differences(
    found: Float[np.ndarray, "n"], true: Float[np.ndarray, "n"], symmetry: int
) -> Float64[np.ndarray, "n"]:
    """How far the found angles are ahead of the true ones, from 0 to the turn that brings the object onto itself."""
    if symmetry < 1:
        raise PcdnetError(f"a symmetry of {symmetry} is none; give 1 for objects that only a full turn brings back")
    found, true = found.astype(np.float64), true.astype(np.float64)
    if not (np.isfinite(found).all() and np.isfinite(true).all()):
        raise PcdnetError("some angles are no numbers; give degrees")
    differences: Float64[np.ndarray, "n"] = (found - true) % (360 / symmetry)
    return differences
