"""Laws of looking inside the search."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from torch import Tensor

from pcdnet.config import ColourModule, ModelConfig
from pcdnet.model.inspection import inspect, locate, stages
from pcdnet.model.network import PCDNet
from pcdnet.model.peaks import top_peaks
from tests.oracle.scenes import random_bank, random_scene

SIZE, FRAME = (30, 26), (9, 8)
COLOURS: list[ColourModule] = ["solve", "none", "network"]


def setting(
    seed: int, colour: ColourModule = "solve", *, background: bool = False, refinement: int = 0
) -> tuple[PCDNet, Tensor]:
    """A small model and an image of three objects, some of them overlapping."""
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    bank = random_bank(rng, 4, FRAME, (3, *SIZE) if background else None, torch.float32)
    config = ModelConfig(
        prototypes=4,
        prototype_size=FRAME,
        objects=4,
        peaks=3,
        colour=colour,
        background=background,
        min_gain=0.1,
        refinement=refinement,
    )
    return PCDNet.from_bank(bank, config), random_scene(rng, bank, SIZE, 3, 3, 0.02)


@given(seed=integers(0, 99), colour=sampled_from(COLOURS), background=sampled_from([True, False]))
@settings(deadline=None, max_examples=12)
def test_the_steps_are_those_of_the_network(seed: int, colour: ColourModule, background: bool) -> None:
    model, image = setting(seed, colour, background=background)
    with torch.inference_mode():
        layers = model(image[None])
    where = layers.placement
    seen = inspect(model, image)
    chosen = [step.chosen for step in seen.steps if step.chosen is not None]
    n = int(where.exists.sum())
    assert [thing.prototype for thing in chosen] == where.prototype[0, :n].tolist()
    assert [thing.position for thing in chosen] == list(
        zip(where.row[0, :n].tolist(), where.column[0, :n].tolist(), strict=True)
    )
    assert [thing.gain for thing in chosen] == pytest.approx(where.gain[0, :n].tolist(), rel=1e-3, abs=1e-3)
    for thing, c in zip(chosen, where.colour[0].tolist(), strict=False):
        assert thing.colour == pytest.approx(c, abs=1e-3)
    assert seen.steps[-1].chosen is None
    assert not seen.refined


@given(seed=integers(0, 99), background=sampled_from([True, False]))
@settings(deadline=None, max_examples=8)
def test_errors_fall_by_the_gains_and_end_at_the_error_of_the_picture(seed: int, background: bool) -> None:
    model, image = setting(seed, background=background)
    seen = inspect(model, image)
    for step, following in pairwise(seen.steps):
        assert step.chosen is not None
        assert following.error == pytest.approx(step.error - step.chosen.gain, rel=1e-4, abs=1e-3)
    assert seen.steps[-1].error == pytest.approx(seen.error, rel=1e-3, abs=1e-2)


@given(seed=integers(0, 99), background=sampled_from([True, False]))
@settings(deadline=None, max_examples=8)
def test_the_candidates_are_the_peaks_of_the_map_that_is_shown(seed: int, background: bool) -> None:
    model, image = setting(seed, background=background)
    proposals = inspect(model, image).proposals
    for p in range(4):
        shown = locate(model, image, p)
        height, row, column = top_peaks(shown.heat, model.config.peaks)
        top, left = shown.origin
        expected = [(top + r, left + c) for r, c in zip(row.tolist(), column.tolist(), strict=True)]
        mine = [proposal for proposal in proposals if proposal.prototype == p]
        assert [proposal.position for proposal in mine] == expected[: len(mine)]
        assert [proposal.height for proposal in mine] == pytest.approx(height.tolist()[: len(mine)], abs=1e-5)


def test_rivals_are_sorted_and_of_different_prototypes() -> None:
    model, image = setting(3)
    for step in inspect(model, image).steps:
        gains = [rival.gain for rival in step.rivals]
        assert gains == sorted(gains, reverse=True)
        kinds = [rival.prototype for rival in step.rivals]
        assert len(kinds) == len(set(kinds))
        if step.chosen is not None:
            assert all(rival.gain <= step.chosen.gain + 1e-4 for rival in step.rivals)


def test_refinement_is_told_of_where_it_changed_something() -> None:
    told = 0
    for seed in range(6):
        model, image = setting(seed, refinement=6)
        seen = inspect(model, image)
        if seen.refined:
            assert seen.error < seen.steps[-1].error
        else:
            assert seen.error == pytest.approx(seen.steps[-1].error, rel=1e-3, abs=1e-2)
        told += seen.refined
    assert 0 < told < 6


@given(seed=integers(0, 99), background=sampled_from([True, False]))
@settings(deadline=None, max_examples=8)
def test_stages_begin_with_the_background_and_end_with_the_reconstruction(seed: int, background: bool) -> None:
    model, image = setting(seed, background=background)
    with torch.inference_mode():
        layers, bank = model(image[None]), model.bank()
        where = layers.placement
        n = int(where.exists.sum())
        pictures = stages(
            bank, where.prototype[0, :n], where.row[0, :n], where.column[0, :n], layers.colour[0, :n], SIZE
        )
    assert len(pictures) == n + 1
    torch.testing.assert_close(pictures[-1], layers.reconstruction[0])
    torch.testing.assert_close(pictures[0], torch.zeros(3, *SIZE) if bank.background is None else bank.background)
    errors = [(picture - image).square().sum() for picture in pictures]
    gains = [float(a - b) for a, b in pairwise(errors)]
    assert gains == pytest.approx(where.gain[0, :n].tolist(), rel=1e-3, abs=1e-2)
