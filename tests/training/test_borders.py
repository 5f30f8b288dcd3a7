"""What passes behind a bar is cut off there to all sizes; the bars are the borders of the field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pcdnet.model.field import Field
from pcdnet.training.borders import at_borders, beside_bars, find_bars, find_field
from pcdnet.training.foreground import Blob
from tests.training.blobs import blob

SIZE, THING = (60, 80), np.ones((8, 6))


def passing(*, left: int = 10, right: int = 74) -> list[Blob]:
    """Things that pass from behind a bar to behind another one, in rows of their own."""
    blobs = []
    for n in range(300):
        column = n % 90 - 6
        first, last = max(column, left), min(column + 6, right)
        if last > first:
            blobs.append(blob(n, 5 + 9 * (n % 5), first, np.ones((8, last - first))))
    return blobs


def test_bars_are_the_borders_of_the_field() -> None:
    assert find_field(passing(), SIZE) == Field(0, 10, 60, 64)


def test_digits_in_a_panel_lie_beyond_a_border() -> None:
    digits = [blob(n, 5, 2, THING[:, :3]) for n in range(20)]
    assert find_field(passing() + digits, SIZE) == Field(0, 10, 60, 64)


def test_where_much_lies_beyond_there_is_no_border() -> None:
    others = [blob(n, 5 + n % 30, 1 + n % 3, THING) for n in range(100)]
    found = find_field(passing() + others, SIZE)
    assert found is not None
    assert (found.left, found.width) == (0, 74)


def test_whole_things_in_a_row_make_no_border() -> None:
    assert find_field([blob(n, 12, 3 * n % 70, THING) for n in range(100)], SIZE) is None


def test_what_crosses_a_line_denies_it() -> None:
    crossing = [blob(n, 30, 7, THING) for n in range(10)]
    found = find_field(passing() + crossing, SIZE)
    assert found == Field(0, 0, 60, 74)


def test_images_without_anything_have_no_field() -> None:
    assert find_field([], SIZE) is None


def test_blobs_at_a_border_are_cut_and_those_beyond_are_gone() -> None:
    field = Field(0, 10, 60, 64)
    there = [blob(0, 5, 10, THING), blob(0, 5, 30, THING), blob(0, 5, 68, THING), blob(0, 5, 1, THING)]
    assert [one.cut for one in at_borders(there, field)] == [True, False, True]
    assert [one.cut for one in at_borders(there, None)] == [False] * 4


def diving(first: int = 30, last: int = 34) -> list[Blob]:
    """A thing that dives behind a bar across the images, and comes out below it."""
    blobs = []
    for n in range(300):
        row = n % 45
        for begin, end in ((row, min(row + 8, first)), (max(row, last), row + 8)):
            if end > begin:
                blobs.append(blob(n, begin, 3 * n % 70, np.ones((end - begin, 6))))
    return blobs


def test_a_bar_is_where_nothing_is_seen_between_two_cuts() -> None:
    hidden = find_bars(diving(), SIZE, (10, 10))
    expected = np.zeros(SIZE, bool)
    expected[30:34] = True
    np.testing.assert_array_equal(hidden, expected)
    across = [
        replace(one, top=one.left, left=one.top, mask=one.mask.T, solid=one.solid.T, grey=one.grey.T)
        for one in diving()
    ]
    np.testing.assert_array_equal(find_bars(across, SIZE[::-1], (10, 10)), expected.T)


def test_a_bar_that_hides_whole_things_is_none() -> None:
    assert not find_bars(diving(20, 34), SIZE, (10, 10)).any()


def test_what_is_seen_in_it_denies_a_bar() -> None:
    assert not find_bars([*diving(), blob(0, 31, 5, THING[:2]), blob(1, 31, 9, THING[:2])], SIZE, (10, 10)).any()


def test_blobs_beside_a_bar_are_cut() -> None:
    hidden = find_bars(diving(), SIZE, (10, 10))
    there = [blob(0, 22, 5, THING), blob(0, 34, 5, THING), blob(0, 20, 5, THING), blob(0, 36, 5, THING)]
    assert [one.cut for one in beside_bars(there, hidden)] == [True, True, False, False]
    assert beside_bars(there, np.zeros(SIZE, bool)) == there
