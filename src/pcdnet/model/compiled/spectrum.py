"""From half spectra to phase factors in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcdnet.model.compiled import compiled, share
from pcdnet.model.compiled.problem import Array


def normalise(spectra: Array, signals: Array, floor: float, least: float) -> None:
    """Divide the points of half spectra (n points 2), in place, by their moduli and a little of their signals' norms.

    Signals are (n pixels).
    """
    kind = spectra.dtype.type
    share(lambda start, stop: _normalise((start, stop), spectra, signals, kind(floor), kind(least)), len(spectra))


@compiled
def _normalise(ends: tuple[int, int], spectra: Array, signals: Array, floor: float, least: float) -> None:
    """Signals from the first end to the second."""
    for n in range(ends[0], ends[1]):
        spectrum, above = spectra[n], floor * np.sqrt(_energy(signals[n])) + least
        for k in range(len(spectrum)):
            modulus = np.sqrt(spectrum[k, 0] * spectrum[k, 0] + spectrum[k, 1] * spectrum[k, 1]) + above
            spectrum[k, 0], spectrum[k, 1] = spectrum[k, 0] / modulus, spectrum[k, 1] / modulus


@compiled
def _energy(signal: Array) -> Any:
    total = signal.dtype.type(0)
    for x in range(len(signal)):
        total += signal[x] * signal[x]
    return total
