"""Spectrum: phase correlation (equation 1 of the paper) and the Fourier shift (equation 3)."""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array

NOISE_FLOOR = 16.0
"""Spectral magnitudes below this many rounding errors count as zero: their phase is noise."""


def phases(signal: Float[Tensor, "*batch H W"], grid: tuple[int, int]) -> Complex[Tensor, "*batch Y X"]:
    """Phase factors of the zero-padded signal's half spectrum, of modulus 1 and 0 where there is no signal.

    The small constant below the line follows the dtype and the signal's energy, so that a dim image is
    located as well as a bright one and rounding errors are not blown up to full-size phases.
    """
    F = torch.view_as_real(torch.fft.rfft2(signal, s=grid))
    # By Parseval's theorem the norm of the signal is the root mean square of the spectrum's modulus.
    limits = torch.finfo(signal.dtype)
    if usable(signal) and not F.requires_grad:
        from pcdnet.model.compiled.spectrum import normalise

        F = F.contiguous()
        points, pixels = as_array(F.flatten(-3, -2)), as_array(signal.flatten(-2))
        normalise(
            points.reshape(-1, *points.shape[-2:]),
            pixels.reshape(-1, pixels.shape[-1]),
            NOISE_FLOOR * limits.eps,
            limits.tiny,
        )
        return torch.view_as_complex(F)
    energy = signal.square().sum(dim=(-2, -1), keepdim=True).sqrt()
    # |F| by hand: the complex modulus guards against overflow that cannot happen here, at ten times the cost.
    modulus = F.square().sum(-1).sqrt_()
    return torch.view_as_complex(F / (modulus + ((NOISE_FLOOR * limits.eps) * energy + limits.tiny))[..., None])


def correlate(
    images: Complex[Tensor, "B C Y X"],
    prototypes: Complex[Tensor, "P Y X"],
    grid: tuple[int, int],
    positions: tuple[int, int],
) -> Float[Tensor, "B P C rows columns"]:
    """Correlation maps from half spectra, channel by channel, cropped to the first `positions`.

    Of phases these are the localization maps L of equation 1. Each factor was normalised before the product: the same
    phases as normalising the product itself, at a cost that does not grow with B times P.
    """
    return to_places(images[:, None] * prototypes.conj()[None, :, None], grid, positions)


def to_places(
    spectra: Complex[Tensor, "*batch Y X"], grid: tuple[int, int], positions: tuple[int, int]
) -> Float[Tensor, "*batch rows columns"]:
    """From half spectra to the first `positions`; rows that are not wanted are dropped between the two passes."""
    rows = torch.fft.ifft(spectra, dim=-2)[..., : positions[0], :]
    maps: Tensor = torch.fft.irfft(rows, n=grid[1], dim=-1)[..., : positions[1]]
    return maps


def delay(
    spectrum: Complex[Tensor, "*batch Y X"], grid: tuple[int, int], shift: tuple[int | Tensor, int | Tensor]
) -> Complex[Tensor, "*batch Y X"]:
    """The half spectrum of the signal moved circularly by `shift`, which may be tensors that broadcast with it."""
    dtype, device = spectrum.real.dtype, spectrum.device
    f_y = torch.fft.fftfreq(grid[0], dtype=dtype, device=device)[:, None]
    f_x = torch.fft.rfftfreq(grid[1], dtype=dtype, device=device)
    down, right = -2 * torch.pi * shift[0] * f_y, -2 * torch.pi * shift[1] * f_x
    # A real signal's Nyquist frequency is a cosine: it has no sign, so it can fade but not turn. (Along a row
    # the inverse transform of a half spectrum sees to that by itself.)
    down_sine = torch.where(f_y == -0.5, 0, down.sin())
    return spectrum * torch.complex(down.cos(), down_sine) * torch.complex(right.cos(), right.sin())


def fourier_shift(
    signal: Float[Tensor, "*batch H W"], rows: Float[Tensor, "*batch"], columns: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch H W"]:
    """Shift circularly by any number of pixels (equation 3), differentiable in the signal and in the shift.

    Whole pixels give a roll; fractions give the band-limited interpolation of the signal.
    """
    H, W = signal.shape[-2:]
    shift = (rows[..., None, None], columns[..., None, None])
    shifted: Tensor = torch.fft.irfft2(delay(torch.fft.rfft2(signal), (H, W), shift), s=(H, W))
    return shifted
