"""Laws of the colour modules."""

from __future__ import annotations

import torch
from torch import nn

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.colour import ColourNetwork, NetworkColours
from pcdnet.model.evidence import Quadratics, error_reduction_of
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import SearchPlan


def test_the_network_is_that_of_the_papers_table() -> None:
    network = ColourNetwork(3)
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
    x = torch.rand(4, 3, 9, 7)
    torch.testing.assert_close(network(x), literal(x))


def test_frozen_colours_leave_the_running_statistics_alone() -> None:
    network = ColourNetwork(3).train()
    before = network.first_norm.running_mean
    assert before is not None
    before = before.clone()
    network(torch.rand(4, 3, 9, 7), frozen=True)
    assert torch.equal(network.first_norm.running_mean, before)  # type: ignore[arg-type]
    network(torch.rand(4, 3, 9, 7))
    assert not torch.equal(network.first_norm.running_mean, before)  # type: ignore[arg-type]


def test_colouring_only_what_can_win_chooses_as_colouring_everything(rng: torch.Generator) -> None:
    torch.manual_seed(0)
    network = ColourNetwork(3).eval()
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
    quadratics = Quadratics(
        torch.randn(B, T, 3, generator=rng),
        torch.rand(B, T, generator=rng) + 0.5,
        torch.rand(B, T, generator=rng),
        torch.ones(B, T),
    )
    allowed = torch.rand(B, T, generator=rng) > 0.3
    with torch.no_grad():
        lazy = NetworkColours(network, images, plan, candidates)
        best = lazy.best(quadratics, allowed)
        eager = NetworkColours(network, images, plan, candidates)
        image = torch.arange(B)[:, None].expand(B, T).reshape(-1)
        every = eager.colours(quadratics, image, torch.arange(T).repeat(B)).view(B, T, 3)
    reductions = error_reduction_of(quadratics.a, quadratics.q, quadratics.k, every).where(allowed, -torch.inf)
    assert torch.equal(best, reductions.argmax(1))
    assert int(lazy._known.sum()) < B * T
