"""Laws of the summary: it counts what is there, and names what stands out."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.output.summary import LEAST_ERROR, Summary, bad_from
from tests.output.found import COLOURS, NAMES, random_records, results


def with_errors(*errors: float) -> list[dict[str, Any]]:
    """Images of two pixels with such errors per pixel, without objects."""
    return [{"name": f"image-{n}", "size": [1, 2], "error": 2 * e, "objects": []} for n, e in enumerate(errors)]


def test_objects_are_counted_by_their_names() -> None:
    found, made = random_records(30)
    summary = Summary.from_results(results(made))
    assert summary.images == 30
    for p in range(4):
        assert summary.used[p] == sum(int((one.prototype_ids == p).sum()) for one in found)
    text = summary.text().splitlines()
    total = sum(len(one) for one in found)
    assert text[0] == f"30 images  {total / 30:.2f} objects per image  {total} objects"
    for p, name in enumerate(NAMES):
        assert any(line.strip().startswith(f"{name} ") and f" {summary.used[p]} " in line for line in text)


def test_kinds_are_counted_and_colours_that_were_not_found_are_left_out() -> None:
    found, made = random_records(30)
    summary = Summary.from_results(results(made, kinds=COLOURS))
    for kind in COLOURS:
        assert summary.used[kind.id] == sum(
            int((COLOURS.ids(one.prototype_ids, one.colours) == kind.id).sum()) for one in found
        )
    assert all(kind.name in summary.text() for kind in COLOURS)
    nothing = Summary.from_results(results(with_errors(0.0), kinds=COLOURS)).text()
    assert [kind.name for kind in COLOURS if kind.name in nothing] == ["L", "prototype 3"]


def test_images_that_stand_out_are_named_worst_first_and_no_more_than_five() -> None:
    errors = [0.01 + 0.001 * (n % 5) for n in range(100)]
    for n in range(7):
        errors[10 * n] = 1.0 + n
    summary = Summary.from_results(results(with_errors(*errors)))
    assert summary.bad == 7
    assert summary.worst == tuple((f"image-{10 * n}", 1.0 + n) for n in (6, 5, 4, 3, 2))
    assert "7 explained badly" in summary.text()


def test_errors_that_nobody_sees_are_never_bad() -> None:
    summary = Summary.from_results(results(with_errors(0, 0, 0, 0, LEAST_ERROR)))
    assert (summary.bad, summary.worst) == (0, ())
    assert "badly" not in summary.text()


@given(st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_never_is_half_of_the_images_bad(errors: list[float]) -> None:
    values = np.array(errors)
    assert (values > bad_from(values)).sum() <= len(values) / 2


def test_no_image_is_no_trouble() -> None:
    assert "0 images" in Summary.from_results(results([])).text()
