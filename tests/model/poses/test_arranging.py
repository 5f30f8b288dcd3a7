"""Laws of arranging: what was painted is found in its order, and tensors and compiled loops agree."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import Palette
from pcdnet.model.compiled import installed, reference
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.arranging import arranged
from pcdnet.model.selection import EMPTY, SelectionInput, select

SIZE, FRAME = (24, 28), (9, 9)
CONFIG = ModelConfig(num_prototypes=3, prototype_size=FRAME, max_objects=4, channels=3, min_error_reduction=0.5)


def shapes() -> PrototypeBank:
    """A square, a cross and a smaller square, all opaque."""
    masks = torch.zeros(3, *FRAME, dtype=torch.float64)
    masks[0] = 1
    masks[1, 3:6], masks[1, :, 3:6] = 1, 1
    masks[2, 2:7, 2:7] = 1
    return PrototypeBank(torch.ones_like(masks), masks)


def painted(things: list[tuple[int, int, int]], colours: Tensor, bank: PrototypeBank) -> Tensor:
    """Prototypes at places, front to back, over black."""
    image = torch.zeros(3, *SIZE, dtype=torch.float64)
    for (p, row, column), colour in reversed(list(zip(things, colours, strict=False))):
        part = image[:, row : row + FRAME[0], column : column + FRAME[1]]
        part += bank.masks[p] * (colour[:, None, None] * bank.prototypes[p] - part)
    return image


def given(images: Tensor, places: list[tuple[int, int]], config: ModelConfig = CONFIG) -> SelectionInput:
    """All prototypes of the bank at some places of every image."""
    plan = SearchPlan.derive(shapes(), SIZE, config, located=True)
    row, column = (torch.tensor([place[axis] for place in places]).repeat(3) for axis in (0, 1))
    top, left = (plan.offset[:, axis].repeat_interleave(len(places)) for axis in (0, 1))
    where = ((row + top).expand(len(images), -1), (column + left).expand(len(images), -1))
    candidates = Candidates(*where, torch.ones(len(images), len(row), dtype=torch.bool), len(places))
    return SelectionInput(images, plan, candidates, Palette(config.max_colour), None)


def found(choice: SelectionInput, image: int = 0) -> list[tuple[int, int, int]]:
    """Prototypes and places of what is arranged, front to back."""
    selection, where = arranged(choice), choice.candidates
    things = []
    for t in selection.candidate[image].tolist():
        if t != EMPTY:
            p = t // where.peaks
            top, left = choice.plan.offset[p].tolist()
            things.append((p, int(where.row[image, t]) - top, int(where.column[image, t]) - left))
    return things


@pytest.fixture(params=["compiled", "reference"])
def each_way(request: pytest.FixtureRequest) -> object:
    """By compiled loops, and by tensors."""
    if request.param == "compiled":
        if not installed():
            pytest.skip("Numba is not installed")
        return (yield)
    with reference():
        return (yield)


PLACES = [(3, 3), (6, 7), (5, 5), (12, 16), (10, 13), (8, 9)]
COLOURS = torch.tensor([[0.9, 0.2, 0.1], [0.1, 0.7, 0.9], [0.8, 0.8, 0.2]], dtype=torch.float64)


def test_objects_that_hide_each_other_are_found_in_their_order(each_way: None) -> None:
    things = [(1, 6, 7), (0, 3, 3), (2, 12, 16)]
    choice = given(painted(things, COLOURS, shapes())[None], PLACES)
    assert [thing for thing in found(choice) if thing[0] != 2] == things[:2]
    assert sorted(found(choice)) == sorted(things)


def test_what_explains_everything_is_not_put_in_front_of_what_leaves_nothing(each_way: None) -> None:
    """Greedy selection begins with the largest reduction, which may be that of a shape that covers two objects."""
    things = [(2, 6, 7), (0, 5, 5)]
    choice = given(painted(things, COLOURS, shapes())[None], PLACES)
    assert found(choice) == things
    first = int(select(choice).candidate[0, 0]) // choice.candidates.peaks
    assert first == 0, "then this scene shows nothing"


def test_nothing_is_found_in_nothing_and_no_more_than_there_is_room_for(each_way: None) -> None:
    images = torch.stack(
        [torch.zeros(3, *SIZE, dtype=torch.float64), painted([(0, 3, 3), (2, 12, 16)], COLOURS, shapes())]
    )
    assert found(given(images, PLACES), 0) == []
    one = dataclasses.replace(CONFIG, max_objects=1)
    assert found(given(images, PLACES, one), 1) == [(0, 3, 3)]


def test_an_object_must_pay(each_way: None) -> None:
    image = painted([(0, 3, 3), (2, 12, 16)], COLOURS, shapes())[None]
    least = float((COLOURS[1].square().sum() * 25).item())
    for factor, count in ((0.99, 2), (1.01, 1)):
        config = dataclasses.replace(CONFIG, min_error_reduction=factor * least)
        assert len(found(given(image, PLACES, config))) == count


def test_tensors_and_compiled_loops_agree(rng: torch.Generator) -> None:
    """On noise, with starts and with a background, where nothing fits."""
    if not installed():
        pytest.skip("Numba is not installed")
    images = torch.rand(12, 3, *SIZE, generator=rng, dtype=torch.float64)
    behind = torch.rand(12, 3, *SIZE, generator=rng, dtype=torch.float64)
    config = dataclasses.replace(CONFIG, min_error_reduction=6.0)
    choice = dataclasses.replace(given(images, PLACES, config), own=behind)
    starts = torch.stack([torch.randperm(18, generator=rng)[:4] for _ in range(12)])
    starts[:, 2:] = EMPTY
    lengths = set()
    for start in (None, starts):
        loops = arranged(choice, start)
        with reference():
            tensors = arranged(choice, start)
        assert torch.equal(loops.candidate, tensors.candidate)
        torch.testing.assert_close(loops.colour, tensors.colour, atol=1e-9, rtol=0)
        lengths |= set((loops.candidate != EMPTY).sum(1).tolist())
    assert len(lengths) > 1


def test_no_step_leaves_more_than_the_start(each_way: None, rng: torch.Generator) -> None:
    images = torch.rand(6, 3, *SIZE, generator=rng, dtype=torch.float64)
    choice = given(images, PLACES)
    start = torch.stack([torch.randperm(18, generator=rng)[:4] for _ in range(6)])
    least = CONFIG.min_error_reduction

    def worth(script: Tensor) -> Tensor:
        picked = select(choice, torch.cat([script, torch.full_like(script[:, :0], EMPTY)], dim=1))
        taken = picked.candidate == script
        total: Tensor = (picked.error_reduction - least).where(taken & (script != EMPTY), 0).sum(1)
        return total

    after = arranged(choice, start).candidate
    assert (worth(after) >= worth(start) - 1e-6).all()
