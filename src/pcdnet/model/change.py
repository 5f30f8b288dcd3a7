"""Change: error reductions before anything is chosen, from where an image differs from what is behind its objects.

Over a background B, where nothing is in front, the coefficients of `evidence` are sums over the change D = I - B and
over the background alone:

    a = <D, M T> + <B, M^2 T>        q = <1, M^2 T^2>        k = 2 <D.B, M> + <|B|^2, M^2>

What does not change costs nothing, and the second halves of a and k, like q, are the same for all images of one
background. The sums of all places are correlations, made in the Fourier domain.

Where objects hide each other, the largest error reductions are often those of shapes that cover several of them. What
is left where a candidate is seen tells: <|D|^2, M> less its error reduction. In `unhidden` maps this is taken off. It
is linear in |D|^2, so half of the difference is an error reduction with |D|^2 / 2 added to 2 D.B, and costs nothing.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.evidence import best_colour, error_reduction_of
from pcdnet.model.spectrum import delay, to_places


def change_planes(
    images: Float[Tensor, "B C H W"], behind: Float[Tensor, "b C H W"] | None, *, unhidden: bool = False
) -> Float[Tensor, "B planes H W"]:
    """D and 2 D.B; over black (None) D alone. For `unhidden` maps half of |D|^2 is added to the latter."""
    if behind is None and not unhidden:
        return images
    change = images if behind is None else images - behind
    products = 0.5 * change if unhidden else torch.zeros_like(change)
    products = products if behind is None else products + 2 * behind
    return torch.cat([change, (change * products).sum(dim=1, keepdim=True)], dim=1)


def own_planes(behind: Float[Tensor, "b C H W"]) -> Float[Tensor, "b planes H W"]:
    """B and |B|^2."""
    return torch.cat([behind, behind.square().sum(dim=1, keepdim=True)], dim=1)


def error_reductions(
    sums: Float[Tensor, "b p planes rows columns"],
    q: Float[Tensor, "*b p rows columns"],
    channels: int,
    max_colour: float,
) -> Float[Tensor, "b p rows columns"]:
    """By how much objects in their best colours reduce the error, from the sums of all planes and from q."""
    a = sums[:, :, :channels]
    k = sums[:, :, channels] if sums.shape[2] > channels else 0.0
    q = q.expand(a.shape[0], *q.shape[-3:])
    reductions: Tensor = error_reduction_of(a, q, k, best_colour(a, q, max_colour, dim=2), dim=2)
    return reductions


class ChangeKernels:
    """The weights of a bank on the pixels of its windows, as spectra on one Fourier grid."""

    def __init__(self, bank: PrototypeBank, grid: tuple[int, int], origin: tuple[int, int] = (0, 0)) -> None:
        """The first place is `origin`."""
        T, M = bank.prototypes, bank.masks
        spectra = torch.fft.rfft2(torch.stack([M * T, M, M * M * T, M * M, (M * T).square()], dim=1), s=grid)
        self._grid = grid
        self._spectra = delay(spectra, grid, origin).conj().resolve_conj()

    def sums(
        self,
        some: slice | Tensor,
        changes: Complex[Tensor, "b planes Y X"] | None,
        own: Complex[Tensor, "b planes Y X"] | None,
        channels: int,
        places: tuple[int, int],
    ) -> Float[Tensor, "b p planes rows columns"]:
        """The sums of the spectra of `change_planes`, of `own_planes` or of both for some prototypes, at the first
        `places`."""
        kernels, made = self._spectra[some], None
        for spectra, first in ((changes, 0), (own, 2)):
            if spectra is None:
                continue
            b, planes, Y, X = spectra.shape
            fresh = made is None
            made = spectra.new_empty(b, len(kernels), planes, Y, X) if made is None else made
            for part, kernel in ((slice(channels), first), (slice(channels, planes), first + 1)):
                factors = spectra[:, None, part], kernels[None, :, kernel, None]
                if fresh:
                    torch.mul(*factors, out=made[:, :, part])
                else:
                    made[:, :, part].addcmul_(*factors)
        assert made is not None
        return to_places(made, self._grid, places)

    def squares(
        self, inside: Complex[Tensor, "*any Y X"], places: tuple[int, int], some: slice | Tensor = slice(None)
    ) -> Float[Tensor, "*maps P rows columns"]:
        """The coefficient q at the first `places`, from the spectrum of a plane that is 1 where something is seen."""
        return to_places(inside * self._spectra[some, 4], self._grid, places)
