"""Patches: the plain background of a large picture, in pieces as large as the images that a model learned from.

Paper and light vary over a large picture as often as they may in many images. So a surface is fitted to each of many
patches that overlap, and they are blended linearly where they do: no step is left anywhere. Only the polynomials'
coefficients are kept, and any part of the background is made from them when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pcdnet.model.background.plain import fit_surface, polynomials
from pcdnet.model.geometry import Pieces

AT_ONCE = 16
"""Patches that are fitted at a time."""
OVERLAP = 3
"""Patches share at least one n-th of their side with their neighbours."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchedSurface:
    """The background of one picture."""

    rows: Pieces
    columns: Pieces
    coefficients: Float[Tensor, "C R k S l"]
    """The coefficients of the polynomials of every patch, by channel, row of patches and column of patches."""

    @staticmethod
    def fit(
        size: tuple[int, int],
        patch: tuple[int, int],
        look: Callable[[Int[Tensor, "B 2"], tuple[int, int]], Float[Tensor, "B C h w"]],
        covered: Callable[[Int[Tensor, "B 2"], tuple[int, int]], Bool[Tensor, "B h w"]] | None = None,
    ) -> PatchedSurface:
        """Fit the surface of a picture of that size; `look` shows parts of it, `covered` what objects hide there."""
        rows, columns = (Pieces.spread(length, side, side // OVERLAP) for length, side in zip(size, patch, strict=True))
        corners = torch.cartesian_prod(torch.tensor(rows.starts), torch.tensor(columns.starts)).view(-1, 2)
        shape, coefficients = (rows.piece, columns.piece), torch.empty(0)
        for start in range(0, len(corners), AT_ONCE):
            some = corners[start : start + AT_ONCE]
            hidden = None if covered is None else covered(some, shape)
            found = fit_surface(look(some, shape), hidden).coefficients
            # Written into one tensor: small ones that stay would keep the large ones' memory from being used again.
            coefficients = found.new_empty(len(corners), *found.shape[1:]) if start == 0 else coefficients
            coefficients[start : start + AT_ONCE] = found
        grid = coefficients.view(len(rows.starts), len(columns.starts), *coefficients.shape[1:])
        return PatchedSurface(rows, columns, grid.permute(2, 0, 3, 1, 4).contiguous())

    def picture(self, top: int, left: int, size: tuple[int, int]) -> Float[Tensor, "C h w"]:
        """The background in the rectangle that starts at (top, left)."""
        down, right = self.rows.across(top, size[0]), self.columns.across(left, size[1])
        rows, columns = (
            _blended(self.rows, down, top, size[0], self.coefficients),
            _blended(self.columns, right, left, size[1], self.coefficients),
        )
        coefficients = self.coefficients[:, down, :, right].flatten(3).flatten(1, 2)
        return torch.einsum("hm,cmn,wn->chw", rows, coefficients, columns).clamp(0, 1)


def _blended(side: Pieces, which: slice, start: int, size: int, like: Tensor) -> Float[Tensor, "size terms"]:
    """The polynomials of some patches in a part of a side, weighted so that the weights of all patches add up to 1."""
    place = torch.arange(start, start + size, device=like.device)
    inside = place[:, None] - torch.tensor(side.starts[which], device=like.device)
    # A patch counts most in its middle and least at its ends, where nothing outside holds it.
    weight = torch.minimum(inside + 1, side.piece - inside).clamp(min=0).to(like)
    shares = weight / weight.sum(dim=1, keepdim=True)
    return (shares[..., None] * polynomials(side.piece, like)[inside.clamp(0, side.piece - 1)]).flatten(1)
