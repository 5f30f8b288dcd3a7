"""The error reduction that is read from windows is the fall of the error on the full canvas."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis.strategies import booleans, integers
from torch import Tensor

from pcdnet.model.evidence import (
    Evidence,
    EvidenceKernels,
    Quadratics,
    best_colour,
    colour_coefficients,
    error_fall,
    error_reduction_of,
    occluded,
    plane_list,
)
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import Windows, canvas
from tests.model.models import on_canvas

SIZE, FRAME, C = (10, 12), (5, 4), 3
GEOMETRY = Geometry.touching(SIZE, FRAME)


class Situation:
    """A candidate somewhere, what it should explain, and what is behind it, on the full canvas and in its window."""

    def __init__(self, seed: int, row: int, column: int, *, behind: bool) -> None:
        rng = torch.Generator().manual_seed(seed)

        def rand(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=rng, dtype=torch.float64)

        self.T, self.M, self.colour = rand(*FRAME), rand(*FRAME), rand(C)
        self.M[0], self.M[:, -1] = 0, 0  # so that the mask's box is smaller than the frame
        self.X, self.tau = rand(C, *SIZE), rand(1, *SIZE)
        self.B = rand(C, *SIZE) if behind else None
        self.windows = Windows(GEOMETRY, torch.tensor([0]), torch.tensor([row]), torch.tensor([column]))
        self.wide_T, self.wide_M = (on_canvas(x, row, column, SIZE) for x in (self.T, self.M))

    def planes(self) -> Tensor:
        """The planes of evidence, on a canvas."""
        Y, Q, B = (None if x is None else canvas(x[None], GEOMETRY) for x in (self.tau * self.X, self.tau**2, self.B))
        return torch.cat(plane_list(Y, Q, B), dim=-1)

    def in_window(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Y, Q and B as the candidate's window shows them."""
        found = [None if x is None else canvas(x[None], GEOMETRY) for x in (self.tau * self.X, self.tau**2, self.B)]
        Y, Q, B = (None if x is None else self.windows.cut(x) for x in found)
        assert Y is not None
        assert Q is not None
        return Y, Q, B

    def fall(self, colour: Tensor) -> Tensor:
        """How much the squared error falls, literally, in every pixel and channel."""
        under = torch.zeros_like(self.X) if self.B is None else self.B
        over = self.wide_M * self.wide_T * colour[:, None, None] + (1 - self.wide_M) * under
        return (self.X - self.tau * under).square() - (self.X - self.tau * over).square()


places = given(row=integers(-4, 9), column=integers(-3, 10), behind=booleans(), seed=integers(0, 50))


@places
@settings(deadline=None, max_examples=60)
def test_the_error_reduction_is_the_fall_of_the_squared_error(row: int, column: int, behind: bool, seed: int) -> None:
    now = Situation(seed, row, column, behind=behind)
    kernels = EvidenceKernels(now.T[None], now.M[None], C)
    for count in (1, 3000):  # many windows take the path by prototype
        image = torch.zeros(count, dtype=torch.long)
        windows = Windows(GEOMETRY, image, image + row, image + column)
        found = kernels.measure(now.planes(), windows, image)[-1]
        k = found[C + 2] if behind else 0
        reduction = error_reduction_of(found[:C], found[C], k, now.colour)
        torch.testing.assert_close(reduction, now.fall(now.colour).sum(), atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(found[C + 1], (now.tau.square() * now.wide_M).sum())


@places
@settings(deadline=None, max_examples=30)
def test_the_error_falls_pixel_by_pixel_as_on_the_full_canvas(row: int, column: int, behind: bool, seed: int) -> None:
    now = Situation(seed, row, column, behind=behind)
    Y, Q, B = now.in_window()
    T, M = (x[None, ..., None] for x in (now.T, now.M))
    fall = error_fall(Y, Q, torch.zeros_like(Y) if B is None else B, M, T * now.colour)
    literal = now.windows.cut(canvas(now.fall(now.colour)[None], GEOMETRY))
    torch.testing.assert_close(fall, literal, atol=1e-12, rtol=1e-9)


@places
@settings(deadline=None, max_examples=30)
def test_the_colour_of_a_single_window_is_where_the_error_is_least(
    row: int, column: int, behind: bool, seed: int
) -> None:
    now = Situation(seed, row, column, behind=behind)
    T, M = (x[None, ..., None] for x in (now.T, now.M))
    colour = best_colour(*colour_coefficients(*now.in_window(), T, M))[0]
    best = now.fall(colour).sum()
    for c in range(C):
        for step in (-0.01, 0.01):
            other = colour.clone()
            other[c] += step
            assert now.fall(other).sum() <= best + 1e-12


@places
@settings(deadline=None, max_examples=30)
def test_what_an_object_occludes_is_no_longer_to_be_explained(row: int, column: int, behind: bool, seed: int) -> None:
    """Behind the object the transmittance is tau (1 - M), and what it shows is explained."""
    now = Situation(seed, row, column, behind=behind)
    evidence = Evidence.opening(now.X[None], GEOMETRY, None if now.B is None else canvas(now.B[None], GEOMETRY))
    T, M = (x[None, ..., None] for x in (now.T, now.M))
    evidence.paste(now.windows, *occluded(*evidence.cut(now.windows), M, T * now.colour))
    tau = 1 - now.wide_M
    X = now.X - now.wide_M * now.wide_T * now.colour[:, None, None]
    Y, Q = canvas((tau * X)[None], GEOMETRY), canvas(tau.square()[None, None], GEOMETRY)
    planes = plane_list(Y, Q, evidence.behind)
    torch.testing.assert_close(evidence.planes, torch.cat(planes, dim=-1))


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


def test_no_colour_exceeds_the_bound(rng: torch.Generator) -> None:
    found = Quadratics(torch.rand(4, 7, C + 3, generator=rng))
    for _ in range(20):
        colour = 3 * torch.randn(4, 7, C, generator=rng)
        assert (found.error_reduction(colour) <= found.bound() + 1e-4).all()


def test_what_paints_nothing_has_no_colour_and_reduces_nothing() -> None:
    nothing = Quadratics(torch.zeros(1, 2, C + 3))
    assert not best_colour(nothing.a, nothing.q).any()
    assert not nothing.bound().any()
