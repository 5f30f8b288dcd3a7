"""Laws of the colour modules."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from pcdnet.config import Background, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import (
    ColourNetwork,
    NetworkColours,
    Palette,
    first_of_best,
    least_squares_colours,
    network_colours,
)
from pcdnet.model.evidence import Quadratics
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan
from tests.model.models import random_model
from tests.oracle.scenes import random_weights


def test_the_network_is_that_of_the_papers_table(rng: torch.Generator) -> None:
    network = ColourNetwork(3)
    random_weights(rng, network)
    assert sum(parameter.numel() for parameter in network.parameters()) == 1_731
    literal = nn.Sequential(
        network.first,
        nn.ReLU(),
        network.first_norm,
        network.second,
        nn.ReLU(),
        network.second_norm,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        network.head,
    ).eval()
    network.eval()
    x = torch.rand(4, 3, 9, 7, generator=rng)
    torch.testing.assert_close(network(x), literal(x))


def test_frozen_colours_leave_the_running_statistics_alone(rng: torch.Generator) -> None:
    network = ColourNetwork(3).train()
    before = network.first_norm.running_mean
    assert before is not None
    before = before.clone()
    network(torch.rand(4, 3, 9, 7, generator=rng), frozen=True)
    assert torch.equal(network.first_norm.running_mean, before)  # type: ignore[arg-type]
    network(torch.rand(4, 3, 9, 7, generator=rng))
    assert not torch.equal(network.first_norm.running_mean, before)  # type: ignore[arg-type]


def quadratics(rng: torch.Generator, B: int, T: int) -> Quadratics:
    """Coefficients of candidates that paint something."""
    a, others = torch.randn(B, T, 3, generator=rng), torch.rand(B, T, 3, generator=rng)
    return Quadratics(torch.cat([a, others + 0.5], dim=-1))


@pytest.mark.parametrize("limit", [None, 0.8])
def test_the_best_candidate_is_the_allowed_one_of_the_largest_error_reduction(
    limit: float | None, rng: torch.Generator
) -> None:
    found, palette = quadratics(rng, 6, 9), Palette(limit)
    allowed = torch.rand(6, 9, generator=rng) > 0.4
    allowed[:, 0] = True
    best = palette.best(found, allowed, torch.arange(9).expand(6, 9))
    for b in range(6):
        reductions = []
        for t in range(9):
            colour = palette.colours(found, torch.tensor([b]), torch.tensor([t]))[0]
            expected = torch.ones(3) if limit is None else (found.a[b, t] / found.q[b, t]).clamp(0, limit)
            torch.testing.assert_close(colour, expected)
            a, q, k = found.a[b, t], found.q[b, t], found.values[b, t, -1]
            reductions.append(float((2 * a * colour - q * colour * colour).sum() - k))
        assert allowed[b, best[b]]
        assert reductions[best[b]] == pytest.approx(max(reductions[t] for t in range(9) if allowed[b, t]))


def test_of_candidates_that_are_as_good_the_first_by_place_counts() -> None:
    reductions = torch.tensor([[5.0, 10.0, 9.995, 10.001, 9.9], [-1.0, -torch.inf, -1.0001, -3.0, -torch.inf]])
    place = torch.tensor([[0, 9, 4, 8, 1], [7, 0, 3, 1, 2]])
    assert first_of_best(reductions, place).tolist() == [2, 2]
    assert first_of_best(torch.full((1, 3), -torch.inf), torch.tensor([[2, 1, 0]])).shape == (1,)


def test_colouring_only_what_can_win_chooses_as_colouring_everything(rng: torch.Generator) -> None:
    network = ColourNetwork(3).eval()
    random_weights(rng, network)
    B, P, K = 5, 4, 6
    T = P * K
    candidates = Candidates(
        torch.randint(-3, 17, (B, T), generator=rng),
        torch.randint(-3, 17, (B, T), generator=rng),
        torch.ones(B, T, dtype=torch.bool),
        K,
    )
    images = torch.rand(B, 3, 20, 20, generator=rng)
    masks = torch.rand(P, 6, 6, generator=rng)
    config = ModelConfig(num_prototypes=P, prototype_size=(6, 6), colour="network")
    plan = SearchPlan.derive(PrototypeBank(torch.ones_like(masks), masks), (20, 20), config)
    found = quadratics(rng, B, T)
    allowed = torch.rand(B, T, generator=rng) > 0.3
    with torch.no_grad():
        lazy = NetworkColours(network, images, plan, candidates)
        best = lazy.best(found, allowed, torch.arange(T).expand(B, T))
        eager = NetworkColours(network, images, plan, candidates)
        image = torch.arange(B)[:, None].expand(B, T).reshape(-1)
        every = eager.colours(found, image, torch.arange(T).repeat(B)).view(B, T, 3)
    reductions = found.error_reduction(every).where(allowed, -torch.inf)
    assert torch.equal(best, reductions.argmax(1))
    assert int(lazy._known.sum()) < B * T


def test_the_palette_of_some_images_colours_them_as_that_of_all() -> None:
    model, images = random_model(1, colour="network")
    which = torch.tensor([3, 1])
    with torch.no_grad():
        given = model.selection_input(images, model.plan((images.shape[2], images.shape[3])), 4)
        found, candidate = given.unmeasured(), torch.tensor([2, 7])
        whole = given.palette.colours(found, which, candidate)
        part = given.subset(which).palette.colours(found, torch.arange(2), candidate)
    assert whole.any()
    torch.testing.assert_close(part, whole)


@pytest.mark.parametrize("background", ["still", "black"])
@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_colours_of_placed_objects_are_those_that_selection_chose_them_for(colour: str, background: Background) -> None:
    model, images = random_model(2, background=background, colour=colour, restarts=0)
    with torch.no_grad():
        where, bank = model(images).placement, model.bank()
        frames = where.frames((images.shape[2], images.shape[3]), bank.frame)
        index = where.prototype.clamp(min=0)
        if model.colour is not None:
            found = network_colours(images, bank.masks[index], frames, model.colour)
        else:
            behind = None if bank.background is None else bank.background[None]
            found = least_squares_colours(
                images, behind, bank.prototypes[index], bank.masks[index], frames, model.config.max_colour
            )
    assert where.exists.sum() > 5
    torch.testing.assert_close(found, where.colour, atol=1e-4, rtol=1e-4)


def test_colours_of_no_objects_are_none() -> None:
    model, images = random_model(3, colour="network")
    with torch.no_grad():
        where = model(torch.zeros_like(images)).placement
    assert model.colour is not None
    frames = dataclasses.replace(where.frames((32, 28), model.bank().frame), exists=torch.zeros_like(where.exists))
    masks = torch.ones(*where.exists.shape, *model.bank().frame)
    assert not network_colours(images, masks, frames, model.colour).any()
    assert not least_squares_colours(images, None, masks, masks, frames, 1.5).any()
