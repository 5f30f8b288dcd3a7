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

BAND = 2**22
"""Values that are held at a time while the medians of the large picture are taken."""
AGREE = 0.5
"""Share of the pixels that two images share, at least, in which they must agree to be neighbours."""
SOFT = 1.0
"""Frequencies weaker than this share of the mean count less: in smooth pictures they are noise."""
OVERLAP = 0.25
"""Share of an image, at least, that it must share with its neighbour."""
PROPOSED = 6
"""Shifts that phase correlation proposes; each is followed to where the images differ least."""
COMPARED = 64
"""Rows and columns, about, in which two images are compared."""


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
    """Where the second image starts in the first, down and right, and how well they agree; None if they do not.

    A smooth ground agrees with itself about as well when it is shifted by a pixel or two too many. What tells the
    right shift is the median difference, which is nothing but noise there.
    """
    found = {_descend(one, two, shift) for shift in _peaks(one, two)}
    known = [(difference, shift) for shift in found if (difference := _difference(one, two, shift)) is not None]
    if not known:
        return None
    _, (down, right) = min(known)
    here, there = _shared(one, two, (down, right))
    agree = float(((here - there).abs().amax(dim=0) <= tolerance).float().mean())
    return (down, right, agree) if agree >= AGREE else None


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
    return tried[torch.arange(len(images), device=tried.device), errors.argmin(dim=1)]


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
    best = heat.flatten().topk(PROPOSED).indices.tolist()
    found = [divmod(index, grid[1]) for index in best]
    return [(r - grid[0] if r >= H else r, c - grid[1] if c >= W else c) for r, c in found]


def _descend(one: Float[Tensor, "C H W"], two: Float[Tensor, "C H W"], shift: tuple[int, int]) -> tuple[int, int]:
    """The shift near another one at which the images differ least."""
    least = _difference(one, two, shift)
    while least is not None:
        around = [(shift[0] + down, shift[1] + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
        tried = [(difference, near) for near in around if (difference := _difference(one, two, near)) is not None]
        if min(tried)[0] >= least:
            break
        least, shift = min(tried)
    return shift


def _difference(one: Float[Tensor, "C H W"], two: Float[Tensor, "C H W"], shift: tuple[int, int]) -> float | None:
    """The median difference of what two images share; None if that is little."""
    here, there = _shared(one, two, shift)
    if here[0].numel() < OVERLAP * one[0].numel():
        return None
    rows, columns = (-(-side // COMPARED) for side in one.shape[1:])
    away = here[:, ::rows, ::columns] - there[:, ::rows, ::columns]
    return float(away.abs().sum(dim=0).median())


def _shared(
    one: Float[Tensor, "C H W"], two: Float[Tensor, "C H W"], shift: tuple[int, int]
) -> tuple[Float[Tensor, "C h w"], Float[Tensor, "C h w"]]:
    """What two images share, in the first and in the second, if the second starts there in the first."""
    (_, H, W), (down, right) = one.shape, shift
    rows, columns = slice(max(0, down), max(0, min(H, H + down))), slice(max(0, right), max(0, min(W, W + right)))
    there = two[:, max(0, -down) : max(0, min(H, H - down)), max(0, -right) : max(0, min(W, W - right))]
    return one[:, rows, columns], there


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
    picture = images.new_empty((C, Y, X))
    height = max(1, BAND // (len(placed) * C * X))
    for top in range(0, Y, height):
        picture[:, top : top + height] = _band(images, where, placed.tolist(), slice(top, min(top + height, Y)), X)
    picture = torch.where(picture.isnan(), picture.nanmedian(), picture)
    return Panorama(picture, where)


def _band(
    images: Float[Tensor, "N C H W"], where: Int[Tensor, "N 2"], placed: list[int], rows: slice, width: int
) -> Float[Tensor, "C y X"]:
    """Some rows of the large picture, NaN where no image shows it."""
    _, C, H, W = images.shape
    near = [n for n in placed if rows.start - H < where[n, 0] < rows.stop]
    stack = images.new_full((max(1, len(near)), C, rows.stop - rows.start, width), torch.nan)
    for layer, n in zip(stack, near, strict=False):
        row, column = where[n].tolist()
        first, last = max(row, rows.start), min(row + H, rows.stop)
        layer[:, first - rows.start : last - rows.start, column : column + W] = images[n, :, first - row : last - row]
    return stack.nanmedian(dim=0).values
