"""Laws of how frames, images, canvases and Fourier grids lie over each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis.strategies import floats, integers

from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.geometry import Box, Geometry, Pieces, fast_size, support


@given(
    H=integers(6, 60), W=integers(6, 60), h=integers(2, 6), w=integers(2, 6), overhang=floats(0, 1, exclude_max=True)
)
def test_frames_hang_over_the_border_by_their_share_at_most(H: int, W: int, h: int, w: int, overhang: float) -> None:
    geometry = Geometry.for_overhang((H, W), (h, w), overhang)
    for side, frame, padding, count in zip((H, W), (h, w), geometry.padding, geometry.positions, strict=True):
        assert padding <= overhang * frame < padding + 1
        first, last = -padding, -padding + count - 1
        assert last + frame == side + padding
        assert first + frame > 0
        assert last < side


@given(H=integers(1, 60), h=integers(1, 20))
def test_touching_frames_are_those_that_share_a_pixel_with_the_image(H: int, h: int) -> None:
    geometry = Geometry.touching((H, 9), (h, 3))
    sharing = [row for row in range(-h - 2, H + 2) if row < H and row + h > 0]
    first = -geometry.padding[0]
    assert list(range(first, first + geometry.positions[0])) == sharing
    assert [row for row in range(-h - 2, H + 2) if geometry.admits(row, 0)] == sharing
    assert [column for column in range(-9, 20) if geometry.admits(0, column)] == list(range(-2, 9))


@given(H=integers(6, 60), h=integers(2, 6), overhang=floats(0, 1, exclude_max=True))
def test_what_leaves_on_one_side_does_not_come_back_on_the_other(H: int, h: int, overhang: float) -> None:
    """Shifts are circular on the grid: no two admissible positions of a frame may cover the same rows of the image."""
    geometry = Geometry.for_overhang((H, 9), (h, 3), overhang)
    Y = geometry.grid[0]
    for row in range(-geometry.padding[0], -geometry.padding[0] + geometry.positions[0]):
        inside = {y for y in range(row, row + h) if 0 <= y < H}
        wrapped = {y % Y for y in range(row, row + h)} & set(range(H))
        assert wrapped == inside


def test_a_frame_larger_than_the_image_is_refused_with_the_size_that_fits() -> None:
    with pytest.raises(PcdnetError, match="25x25 are larger than the images .20x30.*prototype_size=.20, 25.") as error:
        Geometry.for_overhang((20, 30), (25, 25), 0.5)
    assert error.value.settings == (Setting("model.prototype_size", (20, 25)),)


@given(top=integers(0, 5), left=integers(0, 6), height=integers(1, 4), width=integers(1, 3), seed=integers(0, 9))
def test_the_box_is_the_smallest_that_holds_the_mask(top: int, left: int, height: int, width: int, seed: int) -> None:
    masks = torch.zeros(2, 9, 9)
    masks[1, top, left] = masks[1, top + height - 1, left + width - 1] = 0.1
    rng = torch.Generator().manual_seed(seed)
    masks[1, top : top + height, left : left + width] += torch.rand(height, width, generator=rng).round()
    assert support(masks) == [Box(0, 0, 1, 1), Box(top, left, height, width)]


@given(least=integers(1, 3000))
def test_fast_sizes_are_large_enough_smooth_and_not_much_larger(least: int) -> None:
    size = fast_size(least)
    rest = size
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    assert size >= least
    assert size % 8 == 0
    assert rest == 1
    assert size <= 8 + 1.25 * least


@given(length=integers(1, 3000), piece=integers(1, 600), overlap=integers(0, 400))
def test_pieces_cover_a_side_and_share_what_is_asked_for(length: int, piece: int, overlap: int) -> None:
    pieces = Pieces.spread(length, piece, overlap)
    ends = [start + pieces.piece for start in pieces.starts]
    assert (pieces.starts[0], ends[-1]) == (0, length)
    for end, after, seam in zip(ends, pieces.starts[1:], pieces.seams(), strict=False):
        assert end - after >= min(overlap, piece - 1) - 1, "evenly spread, they begin at whole pixels"
        assert after <= seam <= end
    assert pieces.across(0, length) == slice(0, len(pieces.starts))
