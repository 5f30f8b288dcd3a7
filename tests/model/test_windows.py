"""Laws of cutting frames out of canvases and putting them back."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from torch import Tensor
from torch.nn.functional import pad

from pcdnet.model.geometry import Box, Geometry
from pcdnet.model.windows import Frames, Windows, canvas, uncanvas, window_sums

GEOMETRY = Geometry((7, 9), (4, 3), (3, 2))
ROWS, COLUMNS = GEOMETRY.positions


def some_images(seed: int, count: int = 3) -> Tensor:
    """Random images of two channels."""
    return torch.rand(count, 2, *GEOMETRY.image, generator=torch.Generator().manual_seed(seed))


def some_windows(seed: int, count: int, images: int) -> Windows:
    """Frames anywhere, on any of the images, several on one if need be."""
    rng = torch.Generator().manual_seed(seed)
    image = torch.randint(images, (count,), generator=rng)
    row, column = torch.randint(ROWS, (count,), generator=rng), torch.randint(COLUMNS, (count,), generator=rng)
    return Windows(GEOMETRY, image, row - GEOMETRY.padding[0], column - GEOMETRY.padding[1])


def test_a_canvas_gives_its_images_back() -> None:
    images = some_images(0)
    padded = canvas(images, GEOMETRY)
    assert padded.shape == (3, *GEOMETRY.canvas, 2)
    assert torch.equal(uncanvas(padded, GEOMETRY), images)
    assert padded.sum() == images.sum()


@given(seed=integers(0, 99), count=integers(0, 6))
@settings(deadline=None)
def test_a_window_shows_the_image_under_its_frame_and_zeros_outside(seed: int, count: int) -> None:
    images, windows = some_images(seed), some_windows(seed, count, images=3)
    found = windows.cut(canvas(images, GEOMETRY))
    wide = pad(images, (8, 8, 8, 8))
    for n, (b, r, c) in enumerate(zip(windows.image, windows.row, windows.column, strict=True)):
        assert torch.equal(found[n].permute(2, 0, 1), wide[b, :, r + 8 : r + 12, c + 8 : c + 11])
    assert len(found) == count


@given(seed=integers(0, 99), top=integers(0, 3), left=integers(0, 2), height=integers(1, 4), width=integers(1, 3))
@settings(deadline=None)
def test_a_box_shows_a_part_of_its_frame(seed: int, top: int, left: int, height: int, width: int) -> None:
    padded, windows = canvas(some_images(seed), GEOMETRY), some_windows(seed, 5, images=3)
    box = Box(top, left, min(height, 4 - top), min(width, 3 - left))
    whole = windows.cut(padded)
    assert torch.equal(windows.cut(padded, box), whole[:, top : top + box.height, left : left + box.width])


def test_some_of_the_windows_show_what_they_show_among_all() -> None:
    padded, windows = canvas(some_images(1), GEOMETRY), some_windows(1, 6, images=3)
    assert torch.equal(windows[2:5].cut(padded), windows.cut(padded)[2:5])


def test_what_is_cut_is_a_copy() -> None:
    padded, windows = canvas(some_images(2), GEOMETRY), some_windows(2, 4, images=3)
    before = padded.clone()
    windows.cut(padded).zero_()
    assert torch.equal(padded, before)


@given(seed=integers(0, 99))
@settings(deadline=None)
def test_what_is_pasted_is_seen_and_all_else_stays(seed: int) -> None:
    padded = canvas(some_images(seed), GEOMETRY)
    one = some_windows(seed, 3, images=1)
    windows = Windows(GEOMETRY, torch.arange(3), one.row, one.column)
    before, content = padded.clone(), torch.full((3, 4, 3, 2), 7.0)
    windows.paste(padded, content)
    assert torch.equal(windows.cut(padded), content)
    assert ((padded == 7).sum(dim=(1, 2, 3)) == 4 * 3 * 2).all()
    assert torch.equal(padded[padded != 7], before[padded != 7])


def test_one_canvas_can_stand_for_all_images() -> None:
    image, windows = some_images(3, count=1), some_windows(3, 6, images=4)
    shared = canvas(image, GEOMETRY).expand(4, -1, -1, -1)
    assert torch.equal(windows.cut(shared), windows.cut(shared.contiguous()))


def test_the_nth_frames_are_those_of_the_images_that_have_so_many_objects() -> None:
    exists = torch.tensor([[True, True], [True, False], [False, False], [True, True]])
    row, column = torch.arange(8).view(4, 2) - 3, torch.arange(8).view(4, 2) - 2
    frames = Frames(GEOMETRY, row, column, exists)
    for n, image in ((0, [0, 1, 3]), (1, [0, 3])):
        windows = frames.nth(n)
        assert windows.image.tolist() == image
        assert windows.row.tolist() == row[image, n].tolist()
        assert windows.column.tolist() == column[image, n].tolist()


def test_window_sums_are_the_sums_of_all_windows() -> None:
    plane = torch.rand(2, 9, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = plane.unfold(1, 4, 1).unfold(2, 3, 1).sum(dim=(-2, -1))
    torch.testing.assert_close(window_sums(plane, (4, 3)), expected)
