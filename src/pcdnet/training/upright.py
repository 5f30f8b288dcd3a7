"""Upright: which angle of a shape is called upright follows from the shape itself, so that runs are comparable.

The angular harmonics of a mask around its middle say how it differs from a disc. The lowest that is there at all, of
order k, leaves k angles; of these the shape is turned to the one that the next harmonics single out. A shape that looks
the same after a part of a turn has nothing that does, and any of its equal angles will do.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex128, Float

ORDERS = range(2, 9)
"""Orders of harmonics that are looked at; around the middle of a mask there is none of the first."""
THERE = 0.05
"""A harmonic is there if it has this share of what it could have: less comes from pixels."""
OPAQUE = 0.3
"""Fainter pixels of a mask do not count: far ones would count for much."""

Signature = tuple[float, ...]


def upright(mask: Float[np.ndarray, "h w"]) -> tuple[float, Signature]:
    """By how many degrees, counter-clockwise, a mask must be turned to be upright; and what its harmonics are then.

    The signatures of a shape and its mirror image can be compared, too: the larger one is called the shape.
    """
    c = harmonics(mask)
    there = np.abs(c) >= THERE
    if not there.any():
        return 0.0, ()
    first = int(there.argmax())
    k = ORDERS[first]
    angles = [(2 * np.pi * n - float(np.angle(c[first]))) / k for n in range(k)]
    signatures = [_signature(c * np.exp(1j * angle * np.array(ORDERS)), first) for angle in angles]
    best = max(range(k), key=lambda n: signatures[n])
    return float(np.degrees(angles[best]) % 360), signatures[best]


def harmonics(mask: Float[np.ndarray, "h w"]) -> Complex128[np.ndarray, "orders"]:
    """The angular harmonics around its middle, of each order as a share of what it could be at most.

    Angles run counter-clockwise from the right. Turning the mask turns the phase of order k by k times the angle.
    """
    opaque = np.where(mask >= OPAQUE, mask, 0).astype(np.float64)
    total = max(float(opaque.sum()), 1e-9)
    rows, columns = np.indices(mask.shape)
    up = (opaque * rows).sum() / total - rows
    right = columns - (opaque * columns).sum() / total
    place = right + 1j * up
    shares = [(opaque * place**k).sum() / max(float((opaque * np.abs(place) ** k).sum()), 1e-9) for k in ORDERS]
    return np.array(shares, np.complex128)


def _signature(c: Complex128[np.ndarray, "orders"], first: int) -> Signature:
    """What angles are compared by, in steps that pixels do not decide."""
    rest = c[first + 1 :]
    return tuple(float(value) for one in rest for value in np.round(np.array([one.real, one.imag]) / (2 * THERE)))
