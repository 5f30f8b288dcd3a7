"""Laws of phase correlation and of the Fourier shift."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from scipy.ndimage import fourier_shift as scipy_fourier_shift

from pcdnet.model import compiled
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.geometry import Geometry
from pcdnet.model.localization import PhaseLocalizer
from pcdnet.model.peaks import in_portions, propose
from pcdnet.model.spectrum import correlate, delay, fourier_shift, phases


@given(H=integers(2, 17), W=integers(2, 17), dy=integers(-40, 40), dx=integers(-40, 40))
@settings(deadline=None)
def test_a_whole_pixel_shift_equals_roll(H: int, W: int, dy: int, dx: int) -> None:
    signal = torch.randn(H, W, dtype=torch.float64, generator=torch.Generator().manual_seed(H * W))
    shifted = fourier_shift(signal, torch.tensor(dy).double(), torch.tensor(dx).double())
    torch.testing.assert_close(shifted, signal.roll((dy, dx), (0, 1)), atol=1e-10, rtol=0)


@pytest.mark.parametrize("size", [(9, 15), (8, 12), (7, 10)])
def test_a_fractional_shift_agrees_with_an_independent_tool(size: tuple[int, int], rng: torch.Generator) -> None:
    signal = torch.randn(size, dtype=torch.float64, generator=rng)
    ours = fourier_shift(signal, torch.tensor(0.3, dtype=torch.float64), torch.tensor(-1.7, dtype=torch.float64))
    down = np.fft.ifft2(scipy_fourier_shift(np.fft.fft2(signal.numpy()), (0.3, 0))).real
    theirs = np.fft.ifft2(scipy_fourier_shift(np.fft.fft2(down), (0, -1.7))).real
    torch.testing.assert_close(ours, torch.from_numpy(theirs), atol=1e-10, rtol=0)


def test_fractions_of_a_pixel_are_exact_for_a_band_limited_signal() -> None:
    y, x = torch.meshgrid(torch.arange(16).double(), torch.arange(20).double(), indexing="ij")

    def wave(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(2 * torch.pi * 3 * y / 16) * torch.cos(2 * torch.pi * 2 * x / 20)

    shifted = fourier_shift(wave(y, x), torch.tensor(0.25, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64))
    torch.testing.assert_close(shifted, wave(y - 0.25, x - 0.6), atol=1e-10, rtol=0)


def test_two_half_shifts_are_one_shift(rng: torch.Generator) -> None:
    signal = torch.randn(9, 11, dtype=torch.float64, generator=rng)
    half = torch.tensor(0.5, dtype=torch.float64)
    twice = fourier_shift(fourier_shift(signal, half, half), half, half)
    torch.testing.assert_close(twice, signal.roll((1, 1), (0, 1)), atol=1e-10, rtol=0)


def test_gradients_of_the_shift_are_right(rng: torch.Generator) -> None:
    signal = torch.randn(2, 5, 7, dtype=torch.float64, generator=rng, requires_grad=True)
    rows = torch.tensor([0.3, -2.0], dtype=torch.float64, requires_grad=True)
    columns = torch.tensor([1.6, 0.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fourier_shift, (signal, rows, columns))


@given(dy=integers(-12, 30), dx=integers(-9, 35))
@settings(deadline=None)
def test_the_peak_recovers_any_shift(dy: int, dx: int) -> None:
    """The highest peak is where the prototype was put, over the border too, in float32."""
    rng = torch.Generator().manual_seed(1)
    prototype = torch.rand(24, 18, generator=rng)
    wide = torch.zeros(1, 1, 42 + 48, 44 + 36)
    wide[0, 0, 24 + dy : 48 + dy, 18 + dx : 36 + dx] = prototype
    image = wide[:, :, 24:66, 18:62]
    geometry = Geometry.for_overhang((42, 44), (24, 18), 0.5)
    bank = PrototypeBank(prototype[None], torch.ones(1, 24, 18))
    maps = in_portions(PhaseLocalizer(bank, geometry).maps(image), image, 1, geometry)
    found = propose(maps, image, 1, geometry, peaks=1)
    assert (found.row.item(), found.column.item()) == (dy, dx)


def test_brightness_does_not_matter(rng: torch.Generator) -> None:
    image = torch.rand(1, 20, 20, generator=rng)
    torch.testing.assert_close(phases(image, (24, 24)), phases(image * 1e-3, (24, 24)), atol=1e-4, rtol=1e-4)


def test_a_black_image_has_no_phases_and_no_nan() -> None:
    assert not phases(torch.zeros(2, 20, 20), (24, 24)).abs().any()


def test_the_map_of_the_paper_is_reproduced(rng: torch.Generator) -> None:
    """Normalising the factors is normalising the product."""
    image, prototype = torch.rand(10, 12, generator=rng).double(), torch.rand(4, 5, generator=rng).double()
    X = torch.fft.fft2(image, s=(16, 16)) * torch.fft.fft2(prototype, s=(16, 16)).conj()
    expected = torch.fft.ifft2(X / X.abs()).real
    factors = phases(image[None, None], (16, 16)), phases(prototype[None], (16, 16))
    ours = correlate(*factors, (16, 16), (16, 16))
    torch.testing.assert_close(ours[0, 0, 0], expected, atol=1e-8, rtol=0)


def test_a_delayed_spectrum_is_the_spectrum_of_the_rolled_signal(rng: torch.Generator) -> None:
    signal = torch.rand(8, 10, generator=rng).double()
    moved = torch.fft.irfft2(delay(torch.fft.rfft2(signal), (8, 10), (3, -2)), s=(8, 10))
    torch.testing.assert_close(moved, signal.roll((3, -2), (0, 1)), atol=1e-10, rtol=0)


@pytest.mark.parametrize("shape", [(9, 7), (3, 9, 7), (4, 2, 9, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_phases_by_compiled_loops_are_those_of_tensors(
    shape: tuple[int, ...], dtype: torch.dtype, rng: torch.Generator
) -> None:
    signal = torch.rand(*shape, generator=rng, dtype=dtype)
    signal.view(-1, 9, 7)[-1] *= 1e-4  # what is dim is located as well
    dark = torch.zeros_like(signal)
    with compiled.reference():
        expected, nothing = phases(signal, (16, 8)), phases(dark, (16, 8))
    torch.testing.assert_close(phases(signal, (16, 8)), expected)
    assert not phases(dark, (16, 8)).any()
    assert not nothing.any()


def test_phases_pass_a_gradient_on(rng: torch.Generator) -> None:
    signal = torch.rand(5, 4, generator=rng, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: torch.view_as_real(phases(x, (8, 8))), [signal])
