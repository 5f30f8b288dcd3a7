"""Laws of the sheet: things stand where they were put, and grids are as large as their place allows."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pcdnet.colours import PALETTE
from pcdnet.output.sheet import CUT_OUT, EDGE, GAP, LINE, PANEL, TEXT_WIDTH, Grid, Sheet, fitting_scale, readable_scale


def dots(sheet: Sheet) -> np.ndarray:
    """The sheet as it is printed."""
    buffer = io.BytesIO()
    sheet.figure.savefig(buffer, format="png", dpi=sheet.figure.dpi)
    with Image.open(buffer) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize("scale", [1, 3])
def test_a_panel_and_its_frame_stand_where_they_were_put_dot_for_dot(scale: int) -> None:
    picture = np.random.default_rng(0).integers(0, 200, (8, 5, 3), np.uint8)
    size = (8 * scale, 5 * scale)
    sheet = Sheet(height=60, width=80)
    sheet.panel(20, 30, size, picture, 2)
    expected = np.full((60, 80, 3), 255, np.uint8)
    expected[20 - LINE : 20 + size[0] + LINE, 30 - LINE : 30 + size[1] + LINE] = PALETTE[2]
    expected[20 : 20 + size[0], 30 : 30 + size[1]] = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    np.testing.assert_array_equal(dots(sheet), expected)


def test_words_stand_above_or_at_a_height_around_their_centre() -> None:
    sheet = Sheet(height=100, width=200)
    sheet.text(70, 120, "HHHH")
    rows, columns = (dots(sheet)[..., 0] < 128).nonzero()
    assert rows.min() > 30
    assert rows.max() <= 70
    assert (columns.min() + columns.max()) / 2 == pytest.approx(120, abs=3)
    sheet = Sheet(height=100, width=200)
    sheet.text(70, 120, "HHHH", above=False)
    rows, _ = (dots(sheet)[..., 0] < 128).nonzero()
    assert rows.min() < 70 < rows.max()


@given(side=st.integers(1, 3000), count=st.integers(1, 6))
def test_panels_fit_the_text_in_whole_dots_per_pixel_unless_images_are_larger(side: int, count: int) -> None:
    scale = fitting_scale(side, count)
    assert count * (side * scale + GAP) <= TEXT_WIDTH - 2 * EDGE + 1
    assert scale == int(scale) or scale < 1
    assert readable_scale(side) * side >= PANEL


@given(
    frame=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    count=st.integers(1, 60),
    place=st.tuples(st.integers(400, 2000), st.integers(100, 2000)),
)
def test_a_grid_fits_its_place_unless_its_pictures_would_be_too_small(
    frame: tuple[int, int], count: int, place: tuple[int, int]
) -> None:
    grid = Grid.fitting(frame, count, *place)
    scale = grid.size[0] // frame[0]
    assert grid.size == (frame[0] * scale, frame[1] * scale)
    assert max(grid.size) >= CUT_OUT
    assert grid.height(count) <= place[1] or max(frame) * (scale - 1) < CUT_OUT
