"""Laws of greedy selection."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.selection import EMPTY, SelectionInput, overlapping, replaced, select, subset
from tests.model.models import CONFIG, SIZE, on_canvas, random_batch, random_model


def choices(seed: int, **fields: object) -> tuple[PCDNet, SelectionInput]:
    """What a small model chooses from in some images."""
    model, images = random_model(seed, **fields)  # type: ignore[arg-type]
    return model, model.selection_input(images, model.plan(SIZE), model.config.peaks_per_prototype)


def test_the_error_never_rises_with_another_object() -> None:
    bank, images = random_batch(6)
    errors = []
    for objects in range(1, 6):
        config = dataclasses.replace(CONFIG, max_objects=objects, restarts=0)
        with torch.no_grad():
            picture = PCDNet.from_bank(bank, config)(images).reconstruction
        errors.append((picture - images).square().sum(dim=(1, 2, 3)))
    for before, after in pairwise(errors):
        assert (after <= before + 1e-4).all()


def test_error_reductions_add_up_to_the_fall_of_the_error() -> None:
    bank, images = random_batch(7)
    with torch.no_grad():
        layers = PCDNet.from_bank(bank, CONFIG)(images)
    left = (layers.reconstruction - images).square().sum(dim=(1, 2, 3))
    total = images.square().sum(dim=(1, 2, 3))
    torch.testing.assert_close(total - layers.placement.error_reduction.sum(1), left, atol=1e-2, rtol=1e-4)


def test_no_object_is_chosen_that_reduces_the_error_less_than_the_least() -> None:
    bank, images = random_batch(8)
    with torch.no_grad():
        placement = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, min_error_reduction=3.0))(images).placement
    assert (placement.error_reduction[placement.exists] >= 3.0).all()
    assert placement.exists.any()


@torch.no_grad()
def test_the_first_choice_is_the_best_of_all_candidates_painted_alone() -> None:
    _, given = choices(1, background="still")
    found, bank = select(given), given.plan.tight
    assert bank.background is not None
    limit, K = given.plan.config.max_colour, given.candidates.peaks
    for b, image in enumerate(given.images):
        falls = []
        for t in range(given.candidates.row.shape[1]):
            place = int(given.candidates.row[b, t]), int(given.candidates.column[b, t]), SIZE
            T, M = on_canvas(bank.prototypes[t // K], *place), on_canvas(bank.masks[t // K], *place)
            colour = ((image - (1 - M) * bank.background) * M * T).sum((1, 2)) / (M * T).square().sum().clamp(min=1e-12)
            painted = colour.clamp(0, limit)[:, None, None] * M * T + (1 - M) * bank.background
            falls.append(float((image - bank.background).square().sum() - (image - painted).square().sum()))
        best = max(fall if there else -torch.inf for fall, there in zip(falls, given.candidates.exists[b], strict=True))
        t = int(found.candidate[b, 0])
        if t == EMPTY:
            assert best < given.plan.config.min_error_reduction + 1e-3
        else:
            assert falls[t] == pytest.approx(best, abs=1e-3)
            assert float(found.error_reduction[b, 0]) == pytest.approx(best, abs=1e-2)


@torch.no_grad()
def test_nothing_is_chosen_twice_and_what_is_empty_comes_last() -> None:
    _, given = choices(2, max_objects=6)
    found = select(given)
    for chosen in found.candidate.tolist():
        there = [t for t in chosen if t != EMPTY]
        assert chosen == there + [EMPTY] * (6 - len(there))
        assert len(there) == len(set(there))
    empty = found.candidate == EMPTY
    assert empty.any()
    assert not found.error_reduction[empty].any()
    assert not found.colour[empty].any()


@torch.no_grad()
def test_a_candidate_is_chosen_once_even_where_it_would_help_again() -> None:
    """Through a half transparent object the same one, further behind, would still explain something."""
    bank = PrototypeBank(torch.ones(1, 9, 8), torch.full((1, 9, 8), 0.5))
    image = torch.zeros(1, 3, *SIZE)
    image[0, :, 10:19, 10:18] = 1.0
    config = dataclasses.replace(CONFIG, num_prototypes=1, max_colour=1.0, min_error_reduction=0.0)
    model = PCDNet.from_bank(bank, config)
    found = select(model.selection_input(image, model.plan(SIZE), 1))
    assert found.candidate.tolist() == [[0, EMPTY, EMPTY, EMPTY]]


@torch.no_grad()
def test_a_script_is_followed_and_then_selection_goes_on() -> None:
    _, given = choices(3)
    free = select(given)
    same = select(given, free.candidate)
    assert torch.equal(same.candidate, free.candidate)
    torch.testing.assert_close(same.error_reduction, free.error_reduction)
    script = torch.full_like(free.candidate, EMPTY)
    script[:, 0] = free.candidate[:, 1].clamp(min=0)
    forced = select(given, script)
    assert torch.equal(forced.candidate[:, 0], script[:, 0])
    assert (forced.candidate[:, 1] != EMPTY).any()
    again = select(given, script.where(script != EMPTY, forced.candidate))
    assert torch.equal(again.candidate, forced.candidate)


@torch.no_grad()
def test_what_must_be_visible_is_visible_behind_what_was_chosen_before() -> None:
    seen: dict[float, list[float]] = {0.0: [], 0.7: []}
    for seed in range(4):
        for least, shares in seen.items():
            _, given = choices(seed, min_visible=least, max_objects=6, min_error_reduction=0.0)
            found, bank, K = select(given), given.plan.tight, given.candidates.peaks
            for b in range(len(given.images)):
                clear = torch.ones(SIZE)
                for t in (t for t in found.candidate[b].tolist() if t != EMPTY):
                    place = int(given.candidates.row[b, t]), int(given.candidates.column[b, t]), SIZE
                    M = on_canvas(bank.masks[t // K], *place)
                    shares.append(float((clear.square() * M).sum() / M.sum()))
                    clear = clear * (1 - M)
    assert min(seen[0.7]) >= 0.699
    assert min(seen[0.0]) < 0.5


@torch.no_grad()
def test_the_advantage_is_what_no_other_prototype_could_have_had() -> None:
    bank, images = random_batch(4)
    alone = PrototypeBank(bank.prototypes[:1], bank.masks[:1])
    twins = PrototypeBank(bank.prototypes[:1].expand(2, -1, -1), bank.masks[:1].expand(2, -1, -1))
    found = {}
    for name, each in (("alone", alone), ("twins", twins)):
        config = dataclasses.replace(CONFIG, num_prototypes=len(each.prototypes), max_objects=2)
        model = PCDNet.from_bank(each, config)
        given = model.selection_input(images, model.plan(SIZE), CONFIG.peaks_per_prototype)
        found[name] = select(given, advantages=True)
        assert not select(given).advantage.any()
    first = found["alone"].candidate[:, 1] != EMPTY  # it is not measured for the last object
    assert first.any()
    torch.testing.assert_close(found["alone"].advantage[first, 0], found["alone"].error_reduction[first, 0])
    assert (found["twins"].advantage[:, 0] <= 0.01 * found["twins"].error_reduction[:, 0]).all()


@torch.no_grad()
def test_candidates_overlap_where_the_boxes_around_their_masks_share_a_pixel() -> None:
    model, images = random_model(5)
    model.masks[0, :3] = 0
    model.masks[1, :, :4] = 0
    given = model.selection_input(images, model.plan(SIZE), 4)

    def covered(b: int, t: int) -> Tensor:
        top, left, height, width = given.plan.boxes[t // 4].tolist()
        plane = torch.zeros(80, 80, dtype=torch.bool)
        row, column = int(given.candidates.row[b, t]) + top + 20, int(given.candidates.column[b, t]) + left + 20
        plane[row : row + height, column : column + width] = True
        return plane

    for b, t in ((0, 0), (1, 5), (2, 11)):
        found = overlapping(given, torch.tensor([b]), torch.tensor([t]))[0]
        expected = [bool((covered(b, t) & covered(b, s)).any()) for s in range(12)]
        assert found.tolist() == expected
        assert any(expected)
        assert not all(expected)


@torch.no_grad()
def test_some_images_are_chosen_for_as_among_all() -> None:
    _, given = choices(6, min_visible=0.5)
    which = torch.tensor([4, 2])
    whole, part = select(given), select(given.subset(which))
    assert torch.equal(part.candidate, whole.candidate[which])
    torch.testing.assert_close(part.colour, whole.colour[which])


@torch.no_grad()
def test_a_part_of_a_selection_can_be_taken_and_replaced() -> None:
    _, given = choices(7)
    found = select(given)
    which = torch.tensor([3, 1])
    emptied = dataclasses.replace(subset(found, which), candidate=torch.full((2, 4), EMPTY))
    other = replaced(found, which, emptied)
    for b in range(len(found.candidate)):
        expected = torch.full((4,), EMPTY) if b in (1, 3) else found.candidate[b]
        assert torch.equal(other.candidate[b], expected)
    assert torch.equal(other.colour, found.colour)
    mask = torch.zeros(len(found.candidate), dtype=torch.bool)
    mask[2] = True
    assert torch.equal(subset(found, mask).colour, found.colour[2:3])
