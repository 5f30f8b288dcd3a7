"""Moving: one large picture that a camera looks at from place to place.

The camera shifts by whole pixels. How two images, or an image and the large picture, are shifted against each other is
found by phase correlation; what moves on its own is a minority of the pixels, and does not decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.model.geometry import fast_size

FEW = 64
"""Images that the large picture is made of at most; the others only see it."""
AGREE = 0.5
"""Share of the pixels that two images share, at least, in which they must agree to be neighbours."""
SOFT = 1.0
"""Frequencies weaker than this share of the mean count less: in smooth pictures they are noise."""
OVERLAP = 0.25
"""Share of an image, at least, that it must share with its neighbour."""


@dataclass(frozen=True, slots=True, eq=False)
class Panorama:
    """The large picture, and where in it the images are that it was made of."""

    picture: Float[Tensor, "C Y X"]
    """What the camera saw, wherever it was."""
    places: Int[Tensor, "N 2"]
    """Row and column of the images' top left corners in it."""


@torch.no_grad()
def stitch(images: Float[Tensor, "N C H W"], tolerance: float) -> Panorama | None:
    """Put images side by side as the camera saw them; None where they do not fit together.

    Two values agree if they differ by at most `tolerance`. Every image is placed by the neighbour that it agrees with
    best, among the one before it and those in the middle of what is placed already.
    """
    N = len(images)
    places: dict[int, tuple[int, int]] = {0: (0, 0)}
    for n in range(1, N):
        shifts = [(p, shift_between(images[p], images[n], tolerance)) for p in _near(places)]
        known = [(shift[2], places[p], shift) for p, shift in shifts if shift is not None]
        if known:
            _, (row, column), (down, right, _) = max(known)
            places[n] = row + down, column + right
    if len(places) < AGREE * N:
        return None
    where = torch.tensor([places.get(n, (0, 0)) for n in range(N)])
    placed = torch.tensor(sorted(places))
    corner = where[placed].amin(dim=0)
    return _median_picture(images, where - corner, placed)


def shift_between(
    one: Float[Tensor, "C H W"], two: Float[Tensor, "C H W"], tolerance: float
) -> tuple[int, int, float] | None:
    """Where the second image starts in the first, down and right, and how well they agree; None if they do not."""
    _, H, W = one.shape
    best = None
    for down, right in _peaks(one, two):
        rows, columns = slice(max(0, down), min(H, H + down)), slice(max(0, right), min(W, W + right))
        if (rows.stop - rows.start) * (columns.stop - columns.start) < OVERLAP * H * W:
            continue
        there = two[:, rows.start - down : rows.stop - down, columns.start - right : columns.stop - right]
        agree = float(((one[:, rows, columns] - there).abs().amax(dim=0) <= tolerance).float().mean())
        if agree >= AGREE and (best is None or agree > best[2]):
            best = down, right, agree
    return best


@torch.no_grad()
def find_places(images: Float[Tensor, "B C H W"], picture: Float[Tensor, "C Y X"]) -> Int[Tensor, "B 2"]:
    """Row and column in the large picture at which each image was taken: where they differ least, for most pixels."""
    (H, W), (Y, X) = images.shape[-2:], picture.shape[-2:]
    if (H, W) == (Y, X):
        return torch.zeros(len(images), 2, dtype=torch.long, device=images.device)
    grid = fast_size(Y), fast_size(X)
    around = _phases(picture, grid)
    inside = _phases(images, grid)
    maps = torch.fft.irfft2((around * inside.conj()).sum(dim=1), s=grid)[:, : Y - H + 1, : X - W + 1]
    best = maps.flatten(1).topk(min(4, maps[0].numel()), dim=1).indices
    tried = torch.stack([best.div(maps.shape[2], rounding_mode="floor"), best.remainder(maps.shape[2])], dim=-1)
    errors = torch.stack(
        [(images - look(picture, where, (H, W))).abs().flatten(1).median(1).values for where in tried.unbind(1)], 1
    )
    return tried[torch.arange(len(images)), errors.argmin(dim=1)]


def look(
    picture: Float[Tensor, "C Y X"], places: Int[Tensor, "B 2"], size: tuple[int, int]
) -> Float[Tensor, "B C H W"]:
    """What the camera sees of the large picture from these places; gradients flow back into the picture."""
    H, W = size
    return torch.stack([picture[:, row : row + H, column : column + W] for row, column in places.tolist()])


def _near(places: dict[int, tuple[int, int]]) -> set[int]:
    """The images to compare the next one with: the last one placed, and some spread over those placed before."""
    known = sorted(places)
    return {known[-1], *known[:: max(1, len(known) // 4)]}


def _peaks(one: Float[Tensor, "C H W"], two: Float[Tensor, "C H W"]) -> list[tuple[int, int]]:
    """The shifts that phase correlation proposes, best first."""
    _, H, W = one.shape
    grid = fast_size(2 * H), fast_size(2 * W)
    spectra = [_phases(image, grid) for image in (one, two)]
    heat = torch.fft.irfft2((spectra[0] * spectra[1].conj()).sum(dim=0), s=grid)
    best = heat.flatten().topk(3).indices.tolist()
    found = [divmod(index, grid[1]) for index in best]
    return [(r - grid[0] if r >= H else r, c - grid[1] if c >= W else c) for r, c in found]


def _phases(planes: Float[Tensor, "*any H W"], grid: tuple[int, int]) -> Tensor:
    """Spectra in which every frequency counts about the same, of planes whose every pixel counts about the same.

    Values are cut off at the typical distance from the median: a few bright objects would otherwise outweigh the
    ground, and the shift found would be theirs.
    """
    away = planes - planes.flatten(-2).median(dim=-1).values[..., None, None]
    typical = away.abs().flatten(-2).median(dim=-1).values[..., None, None]
    spectra = torch.fft.rfft2(away.clamp(-typical, typical), s=grid)
    strength = spectra.abs()
    phases: Tensor = spectra / (strength + SOFT * strength.mean(dim=(-2, -1), keepdim=True) + 1e-12)
    return phases


def _median_picture(images: Float[Tensor, "N C H W"], where: Int[Tensor, "N 2"], placed: Int[Tensor, "n"]) -> Panorama:
    """The median of what the placed images show of every point; a point that none shows has the median of all."""
    _, C, H, W = images.shape
    Y, X = (where[placed].amax(dim=0) + torch.tensor([H, W])).tolist()
    some = placed[:: max(1, len(placed) // FEW)]
    stack = images.new_full((len(some), C, Y, X), torch.nan)
    for layer, n in zip(stack, some.tolist(), strict=True):
        row, column = where[n].tolist()
        layer[:, row : row + H, column : column + W] = images[n]
    picture = stack.nanmedian(dim=0).values
    picture = torch.where(picture.isnan(), picture.nanmedian(), picture)
    return Panorama(picture, where)
