"""Compiled phase correlation and peaks."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("numba", reason="loops are compiled by Numba, the extra `fast`")

from pcdnet.model.compiled.correlation import LANES, MOST_LANES, PhasePeaks, lanes
from pcdnet.model.peaks import top_peaks
from pcdnet.model.spectrum import correlate, phases


@pytest.mark.parametrize(("prototypes", "channels", "images"), [(3, 1, 5), (19, 3, 4), (70, 2, 2)])
@pytest.mark.parametrize(("grid", "positions"), [((24, 40), (20, 33)), ((48, 16), (48, 16))])
def test_peaks_are_those_of_the_maps(
    prototypes: int, channels: int, images: int, grid: tuple[int, int], positions: tuple[int, int], rng: torch.Generator
) -> None:
    seen, sought = (
        phases(torch.rand(*shape, 16, 12, generator=rng, dtype=torch.float64), grid)
        for shape in ((images, channels), (prototypes,))
    )
    maps = correlate(seen, sought, grid, positions).amax(dim=2)
    height, row, column = PhasePeaks(sought, grid, positions).find(seen, 5)
    expected = top_peaks(maps, 5)
    torch.testing.assert_close(height, expected[0])
    assert torch.equal(row, expected[1])
    assert torch.equal(column, expected[2])


def test_where_there_are_fewer_peaks_their_height_is_minus_infinity(rng: torch.Generator) -> None:
    grid = positions = (8, 8)
    spectra = phases(torch.rand(2, 1, 8, 8, generator=rng, dtype=torch.float64), grid)
    height, _, _ = PhasePeaks(spectra[:, 0], grid, positions).find(spectra, 40)
    maps = correlate(spectra, spectra[:, 0], grid, positions).amax(dim=2)
    assert torch.equal(height > -torch.inf, top_peaks(maps, 40)[0] > -torch.inf)
    assert (height == -torch.inf).any()


@pytest.mark.parametrize("prototypes", [1, 8, 14, 19, 30, 64, 100])
@pytest.mark.parametrize("size", [100, 1 << 14, 1 << 20])
def test_prototypes_fill_most_of_the_lanes(prototypes: int, size: int) -> None:
    group, block = lanes(prototypes, size)
    used = group * block
    assert 1 <= used <= MOST_LANES
    assert used <= LANES or size < 1 << 20
    spare = -used % LANES
    assert spare <= -block % LANES or used > block
