"""Compiled loops beside the tensors that are their reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pcdnet.config import Background
from pcdnet.model import compiled, refinement
from pcdnet.model.engine import Layers
from pcdnet.model.selection import select
from tests.model.models import SIZE, random_model

needs_numba = pytest.mark.skipif(not compiled.installed(), reason="loops are compiled by Numba, the extra `fast`")
SETTINGS: list[tuple[Background, dict[str, Any]]] = [
    ("black", {}),
    ("black", {"min_visible": 0.6, "restarts": 8}),
    ("black", {"colour": "none", "restarts": 8}),
    ("black", {"template": "prototype"}),
    ("still", {"restarts": 8}),
    ("still", {"localization": "error_reduction", "min_visible": 0.5, "min_solid": 0.3}),
    ("plain", {}),
]


@needs_numba
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("background", "fields"), SETTINGS)
def test_compiled_loops_find_what_tensors_find(background: Background, fields: dict[str, Any], training: bool) -> None:
    for seed in range(4):
        model, images = random_model(seed, background=background, images=10, **fields)
        model, images = model.double().train(training), images.double()
        with compiled.reference():
            expected = model(images)
        same(model(images), expected)


def same(one: Layers, other: Layers) -> None:
    """Two explanations are the same up to rounding."""
    for name in ("prototype", "row", "column", "exists"):
        assert torch.equal(getattr(one.placement, name), getattr(other.placement, name)), name
    for name in ("colour", "error_reduction", "advantage"):
        torch.testing.assert_close(getattr(one.placement, name), getattr(other.placement, name))
    torch.testing.assert_close(one.reconstruction, other.reconstruction)


@needs_numba
def test_the_number_of_threads_makes_no_difference() -> None:
    model, images = random_model(1, images=7, restarts=8)
    with torch.inference_mode():
        alone = model(images)
        torch.set_num_threads(3)
        try:
            shared = model(images)
        finally:
            torch.set_num_threads(1)
    assert torch.equal(alone.reconstruction, shared.reconstruction)
    assert torch.equal(alone.placement.row, shared.placement.row)


def test_all_work_is_shared_out_once() -> None:
    for count in range(6):
        for threads in (1, 2, 4):
            done: list[int] = []
            torch.set_num_threads(threads)
            try:
                compiled.share(lambda start, stop, done=done: done.extend(range(start, stop)), count)  # type: ignore[misc]
            finally:
                torch.set_num_threads(1)
            assert sorted(done) == list(range(count))


def test_an_error_in_a_thread_is_an_error() -> None:
    def work(start: int, stop: int) -> None:
        if start:
            raise ValueError("in the second part")

    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="second part"):
            compiled.share(work, 4)
    finally:
        torch.set_num_threads(1)


def test_without_numba_tensors_do_all_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images = random_model(2)
    with compiled.reference(), torch.inference_mode():
        assert not compiled.usable(images)
        expected = model(images)
    monkeypatch.setattr(compiled, "installed", lambda: False)
    with torch.inference_mode():
        found = model(images)
    assert torch.equal(found.reconstruction, expected.reconstruction)


@needs_numba
@pytest.mark.parametrize("background", ["black", "still", "plain"])
def test_pictures_and_what_they_leave_are_those_of_the_tensors(background: Background) -> None:
    model, images = random_model(1, background=background, images=10)
    model, images = model.double().eval(), images.double()
    with torch.no_grad():
        own = model.own_backgrounds(images)
        given = model.selection_input(images, model.plan(SIZE), 4, own)
        selection = select(given)
        picture, left = refinement._explained(given, selection)
        expected, _, error = refinement._painted(given, selection)
    torch.testing.assert_close(picture, expected)
    torch.testing.assert_close(left, error)
    assert (left > 0).any()


@needs_numba
def test_it_is_said_that_something_is_compiled_and_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def compiling() -> Callable[[], None]:
        said.append("compiling")
        return lambda: said.append("done")

    monkeypatch.setattr("pcdnet.model.compiled.compiling", compiling)
    made: dict[str, Callable[[int], int]] = {}
    exec("def next_one(number): return number + 1", made)  # without a file there is nothing to be kept
    next_one = compiled.compiled(made["next_one"])
    assert next_one(1) == 2
    assert said == ["compiling", "done"]
    assert next_one(2) == 3
    assert said == ["compiling", "done"]
