"""Solidity: whether a candidate is seen all over, and not only in a spot.

A large object laid over a small flaw of the background reduces the error, too: it fixes the spot, and elsewhere it is
painted in the background's own colour. What is really there explains the image better than the background does in
most of its pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import usable
from pcdnet.model.compiled.problem import as_array
from pcdnet.model.evidence import WINDOWS_BYTES, best_colour, colour_coefficients, error_fall
from pcdnet.model.geometry import Geometry
from pcdnet.model.peaks import Candidates
from pcdnet.model.sizes import Size
from pcdnet.model.windows import Windows, canvas, inside_of

LEAST_FALL = 1e-3
"""A pixel counts where the squared error falls by at least this much per channel: a contrast of three hundredths."""
LEAST_AREA = 1e-6
"""What has less of a mask than this has no pixels to be seen in."""


def solid(
    images: Float[Tensor, "B C H W"],
    bank: PrototypeBank,
    sizes: Sequence[Size],
    own: Float[Tensor, "B C H W"] | None,
    geometry: Geometry,
    candidates: Candidates,
    config: ModelConfig,
    seen: Float[Tensor, "1 1 H W"] | None = None,
) -> Bool[Tensor, "B T"]:
    """Which candidates, alone over the background, lower the error in enough of their pixels (`config.min_solid`)."""
    C = images.shape[1]
    pictures, inside = canvas(images, geometry), inside_of(images, geometry, seen)
    behind = canvas(bank.behind(images[0])[None] if own is None else own, geometry)
    if usable(images):
        return _compiled(pictures, behind, inside, bank, sizes, geometry, candidates, config)
    behind, found = behind.expand(len(images), -1, -1, -1), torch.zeros_like(candidates.exists)
    for size in sizes:
        h, w = size.box[2:]
        most = max(1, WINDOWS_BYTES // (h * w * C * images.element_size()))
        for b, t, p in _some(candidates, size, most):
            windows = Windows(geometry, b, candidates.row[b, t], candidates.column[b, t])
            Y, Q, B = (windows.cut(planes, size.box) for planes in (pictures, inside, behind))
            T, M = (size.box.cut(values)[p][..., None] for values in (bank.prototypes, bank.masks))
            M = M * Q  # as far as it lies in the image
            colour = best_colour(*colour_coefficients(Y, Q, B, T, M), config.max_colour)
            falls = error_fall(Y, Q, B, M, T * colour[:, None, None]).sum(-1, keepdim=True) > LEAST_FALL * C
            share = (M * falls).sum(dim=(1, 2, 3)) / M.sum(dim=(1, 2, 3)).clamp(min=LEAST_AREA)
            found[b, t] = share >= config.min_solid
    return found


def _compiled(
    pictures: Float[Tensor, "B Y X C"],
    behind: Float[Tensor, "b Y X C"],
    inside: Float[Tensor, "B Y X 1"],
    bank: PrototypeBank,
    sizes: Sequence[Size],
    geometry: Geometry,
    candidates: Candidates,
    config: ModelConfig,
) -> Bool[Tensor, "B T"]:
    """The same by compiled loops."""
    from pcdnet.model.compiled.solidity import shares

    boxes = torch.empty(len(bank.masks), 4, dtype=torch.long)
    for size in sizes:
        boxes[list(size.prototypes)] = torch.tensor(size.box)
    my, mx = geometry.padding
    found = shares(
        (as_array(pictures.permute(0, 3, 1, 2)), as_array(behind.permute(0, 3, 1, 2)), as_array(inside[:1, ..., 0])),
        (as_array(bank.prototypes), as_array(bank.masks)),
        as_array(boxes),
        (as_array(candidates.row + my), as_array(candidates.column + mx), as_array(candidates.exists)),
        candidates.peaks,
        (config.max_colour, LEAST_FALL, LEAST_AREA),
    )
    return candidates.exists & (torch.from_numpy(found) >= config.min_solid)


def _some(candidates: Candidates, size: Size, most: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Image, number and prototype of the candidates of one size that exist, at most so many at a time."""
    K, device = candidates.peaks, candidates.exists.device
    prototypes = torch.tensor(size.prototypes, device=device)
    which = (prototypes[:, None] * K + torch.arange(K, device=device)).flatten()
    n, image = candidates.exists[:, which].T.nonzero(as_tuple=True)
    for b, t in zip(torch.split(image, most), torch.split(which[n], most), strict=True):
        yield b, t, candidates.prototype(t)
