"""The error reduction that is read from windows is the fall of the error on the full canvas."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers

from pcdnet.model.evidence import EvidenceKernels, Quadratics, best_colour, error_reduction_of, planes_of
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.windows import canvas


@given(row=integers(-4, 9), column=integers(-3, 10), behind=booleans(), seed=integers(0, 50), many=booleans())
@settings(deadline=None, max_examples=60)
def test_the_error_reduction_is_the_fall_of_the_squared_error(
    row: int, column: int, behind: bool, seed: int, many: bool
) -> None:
    rng = torch.Generator().manual_seed(seed)
    H, W, h, w, C = 10, 12, 5, 4, 3
    geometry = Geometry((H, W), (h, w), (h - 1, w - 1))

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    T, M, colour = rand(1, h, w), rand(1, h, w), rand(C)
    M[0, 0], M[0, :, -1] = 0, 0  # so that the mask's box is smaller than the frame
    X, tau = rand(1, C, H, W), rand(1, 1, H, W)
    B = rand(1, C, H, W) if behind else None
    planes = planes_of(
        canvas(tau * X, geometry), canvas(tau * tau, geometry), None if B is None else canvas(B, geometry)
    )
    kernels = EvidenceKernels(T, M, C, over_black=not behind)
    place = torch.full((1, 1), row), torch.full((1, 1), column)
    found = Quadratics.zeros(planes, 1, C)
    n = 200_000 if many else 1  # many pairs take the path by prototype
    zero = torch.zeros(1, dtype=torch.long).expand(n if n == 1 else 3000)
    kernels.update(found, planes, geometry, Candidates(*place, torch.ones(1, 1, dtype=torch.bool), 1), zero, zero)
    gain = error_reduction_of(found.a, found.q, found.k, colour[None, None]).item()

    wide = torch.zeros(2, H + 2 * h, W + 2 * w, dtype=torch.float64)
    wide[:, h + row : 2 * h + row, w + column : 2 * w + column] = torch.stack([T[0], M[0]])
    shifted_T, shifted_M = wide[:, h : h + H, w : w + W]
    under = torch.zeros_like(X) if B is None else B
    over = shifted_M * shifted_T * colour[:, None, None] + (1 - shifted_M) * under
    expected = (X - tau * under).square().sum() - (X - tau * over).square().sum()
    torch.testing.assert_close(gain, expected.item(), atol=1e-9, rtol=1e-9)


def test_the_closed_form_colour_beats_every_other(rng: torch.Generator) -> None:
    a, q = torch.randn(50, 3, generator=rng), torch.rand(50, generator=rng)
    k = torch.zeros(50)
    free, limited = best_colour(a, q), best_colour(a, q, 1.5)
    assert (limited >= 0).all()
    assert (limited <= 1.5).all()
    for _ in range(20):
        other = 1.5 * torch.rand(50, 3, generator=rng)
        assert (error_reduction_of(a, q, k, limited) >= error_reduction_of(a, q, k, other) - 1e-5).all()
        assert (error_reduction_of(a, q, k, free) >= error_reduction_of(a, q, k, limited) - 1e-5).all()
