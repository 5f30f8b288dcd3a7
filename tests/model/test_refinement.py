"""Laws of refinement: what greedy selection gets wrong is fixed, and nothing becomes worse."""

from __future__ import annotations

import pytest
import torch

from pcdnet.config import Background
from pcdnet.data import tetrominoes
from pcdnet.model import refinement
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.refinement import LEAST_CHANGE, MAX_DOUBTFUL_TO_RESTART, better, refine, sweep, unexplained
from pcdnet.model.selection import EMPTY, Selection, SelectionInput, select
from tests.model.models import SIZE, on_canvas, random_model, true_model


def search(seed: int, **fields: object) -> tuple[SelectionInput, Selection]:
    """What a small model chooses from, and what greedy selection chooses."""
    model, images = random_model(seed, images=10, **fields)  # type: ignore[arg-type]
    with torch.no_grad():
        given = model.selection_input(images, model.plan(SIZE), 8)
        return given, select(given)


def painted(given: SelectionInput, found: Selection) -> torch.Tensor:
    """The squared error of every image, by its error reductions."""
    bare = given.images if given.plan.bank.background is None else given.images - given.plan.bank.background
    return bare.square().sum(dim=(1, 2, 3)) - found.error_reduction.sum(1)


def test_refinement_fixes_what_greedy_gets_wrong() -> None:
    scenes = tetrominoes.generate(300, seed=6)
    greedy = true_model(restarts=0).decompose_all(scenes.images)
    refined = true_model().decompose_all(scenes.images)
    wrong = [n for n, d in enumerate(greedy) if d.error > 1]
    assert wrong
    assert all(b.error <= a.error + 1e-3 for a, b in zip(greedy, refined, strict=True))
    assert sum(refined[n].error > 1 for n in wrong) <= len(wrong) // 4


def test_the_order_of_the_prototypes_makes_no_difference() -> None:
    """Things that touch in one colour can often be cut in several ways: all banks of the same shapes take the same."""
    scenes, model = tetrominoes.generate(400, seed=8), true_model()
    bank, order = model.bank(), torch.randperm(19, generator=torch.Generator().manual_seed(1))
    noise = 1e-4 * torch.randn(bank.prototypes.shape, generator=torch.Generator().manual_seed(2))
    other = PCDNet.from_bank(PrototypeBank(bank.prototypes[order] + noise, bank.masks[order]), model.config)
    different = sum(
        {(int(order[p]), *place) for p, place in zip(two.prototype_ids, two.positions.tolist(), strict=True)}
        != {(int(p), *place) for p, place in zip(one.prototype_ids, one.positions.tolist(), strict=True)}
        for one, two in zip(model.decompose_all(scenes.images), other.decompose_all(scenes.images), strict=True)
    )
    assert different == 0


@pytest.mark.parametrize("background", ["still", "black"])
@pytest.mark.parametrize("colour", ["least_squares", "network", "none"])
@torch.no_grad()
def test_no_image_is_explained_worse(colour: str, background: Background) -> None:
    changed = 0
    for seed in range(2):
        given, greedy = search(seed, colour=colour, background=background)
        for found in (sweep(given, greedy), refine(given, greedy, restarts=6)):
            assert (painted(given, found) <= painted(given, greedy) + 1e-4).all()
            changed += int((found.candidate != greedy.candidate).any(dim=1).sum())
    assert changed > 0 or colour == "none"


@torch.no_grad()
def test_a_refined_selection_is_worth_what_it_says() -> None:
    """Followed as a script, it reduces the error by as much: its colours hold for what is in front alone."""
    changed = False
    for seed in range(4):
        given, greedy = search(seed, background="still")
        found = refine(given, greedy, restarts=6)
        changed |= bool((found.candidate != greedy.candidate).any())
        again = select(given, found.candidate)
        torch.testing.assert_close(again.error_reduction, found.error_reduction, atol=1e-4, rtol=1e-4)
    assert changed


@torch.no_grad()
def test_images_that_are_explained_are_left_alone() -> None:
    given, greedy = search(1, min_error_reduction=1.0)
    explained = torch.ones(len(given.images), dtype=torch.bool)
    explained[unexplained(given, greedy)] = False
    assert explained.any()
    assert not explained.all()
    errors = painted(given, greedy)
    least = max(given.plan.config.min_error_reduction, LEAST_CHANGE)
    assert torch.equal(explained, errors < least)
    found = refine(given, greedy, restarts=6)
    assert torch.equal(found.candidate[explained], greedy.candidate[explained])


@torch.no_grad()
def test_images_are_refined_as_they_are_alone() -> None:
    given, greedy = search(3)
    together = refine(given, greedy, restarts=6)
    for b in range(len(given.images)):
        part = given.subset(torch.tensor([b]))
        assert torch.equal(refine(part, select(part), restarts=6).candidate[0], together.candidate[b])


@torch.no_grad()
def test_crowded_images_are_swept_but_not_restarted() -> None:
    model, images = random_model(4, images=10, max_objects=MAX_DOUBTFUL_TO_RESTART + 4, min_error_reduction=0.0)
    given = model.selection_input(images, model.plan(SIZE), 8)
    greedy = select(given)
    swept = sweep(given, greedy)
    crowded = (swept.candidate != EMPTY).sum(dim=1) > MAX_DOUBTFUL_TO_RESTART
    assert crowded.any()
    found = refine(given, greedy, restarts=6)
    assert torch.equal(found.candidate[crowded], swept.candidate[crowded])


@torch.no_grad()
def test_only_more_than_rounding_is_better() -> None:
    _, greedy = search(5)
    for change, expected in ((0.0, False), (0.4 * LEAST_CHANGE, False), (2 * LEAST_CHANGE, True)):
        moved = greedy.error_reduction.double()
        old = Selection(greedy.candidate, greedy.colour, moved, greedy.advantage)
        more = moved.clone()
        more[:, 0] += change
        new = Selection(greedy.candidate, greedy.colour, more, greedy.advantage)
        assert better(new, old).all() == expected
        assert better(new, old).any() == expected


@torch.no_grad()
def test_a_sweep_puts_in_nothing_that_is_too_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it puts in place of badly chosen objects must be visible enough behind those in front of it."""
    monkeypatch.setattr(refinement, "SWEEPS", 1)  # a later round may hide what an earlier one put in
    fresh = 0
    for seed in range(5):
        given, _ = search(seed, min_visible=0.8)
        rng, where, bank = torch.Generator().manual_seed(seed), given.candidates, given.plan.tight
        anything = torch.rand(where.exists.shape, generator=rng).where(where.exists, -1).argsort(dim=1, descending=True)
        start = select(given, anything[:, :4])
        found = sweep(given, start)
        assert given.min_area is not None
        for b in range(len(given.images)):
            clear = torch.ones(SIZE)
            for t in (t for t in found.candidate[b].tolist() if t != EMPTY):
                M = on_canvas(bank.masks[t // where.peaks], int(where.row[b, t]), int(where.column[b, t]), SIZE)
                if t not in start.candidate[b].tolist():
                    assert (clear.square() * M).sum() >= given.min_area[b, t] - 1e-3
                    fresh += 1
                clear = clear * (1 - M)
    assert fresh > 50
