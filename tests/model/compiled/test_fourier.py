"""Compiled Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="loops are compiled by Numba, the extra `fast`")

from pcdnet.model.compiled.fourier import factors, inverse, places, turns


@pytest.mark.parametrize("size", [1, 2, 6, 8, 24, 45, 48, 100, 200])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_transform_is_the_inverse_one_of_every_signal(size: int, kind: type[np.floating]) -> None:
    rng, L = np.random.default_rng(size), 16
    signals = rng.standard_normal((size, L)) + 1j * rng.standard_normal((size, L))
    points = np.stack([signals.real, signals.imag], axis=1).astype(kind).ravel()
    inverse(points, size, L, factors(size), *turns(size, kind))
    found = np.zeros_like(signals)
    found[places(size)] = points.reshape(size, 2, L)[:, 0] + 1j * points.reshape(size, 2, L)[:, 1]
    np.testing.assert_allclose(found, size * np.fft.ifft(signals, axis=0), atol=size * 20 * float(np.finfo(kind).eps))
