"""The plan of a search is derived in one place, kept while it holds, and shared by all that search."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.inspection import inspect, locate
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import to_onnx
from pcdnet.model.peaks import Candidates
from pcdnet.model.plan import MAX_PLANS, SearchPlan
from tests.model.models import SIZE, on_canvas, random_model


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The image sizes for which plans were derived, in their order."""
    sizes = []
    derive = SearchPlan.derive

    def counted(
        bank: PrototypeBank, image_size: tuple[int, int], config: ModelConfig, seen: Tensor | None = None
    ) -> SearchPlan:
        sizes.append(image_size)
        return derive(bank, image_size, config, seen)

    monkeypatch.setattr(SearchPlan, "derive", counted)
    return sizes


def pixels(images: Tensor) -> np.ndarray:
    """The images as users have them."""
    return images.permute(0, 2, 3, 1).numpy()


def test_one_plan_serves_the_network_its_refinement_and_the_inspection(derived: list[tuple[int, int]]) -> None:
    model, images = random_model(0, restarts=6, images=3)
    for _ in range(2):
        model.decompose_all(pixels(images))
        model.decompose(pixels(images)[1])
        with torch.no_grad():
            model(images)
        inspect(model, images[1])
        locate(model, images[1], 0)
    assert derived == [SIZE]


def test_nothing_searches_without_a_derived_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images = random_model(0)

    def refuse(
        bank: PrototypeBank, image_size: tuple[int, int], config: ModelConfig, seen: Tensor | None = None
    ) -> SearchPlan:
        raise LookupError("no plan")

    monkeypatch.setattr(SearchPlan, "derive", refuse)
    searches = (
        lambda: model.decompose(pixels(images)[0]),
        lambda: model(images),
        lambda: model(images, model.bank()),
        lambda: inspect(model, images[0]),
        lambda: locate(model, images[0], 0),
        lambda: to_onnx(model, SIZE),
    )
    for search in searches:
        with pytest.raises(LookupError, match="no plan"):
            search()


def test_the_plan_is_kept_while_weights_and_configuration_stay_the_same(derived: list[tuple[int, int]]) -> None:
    model, _ = random_model(1, background="still")
    plan = model.plan(SIZE)
    model.load_state_dict(model.state_dict())
    model.config = dataclasses.replace(model.config)
    model.train().eval()
    assert model.plan(SIZE) is plan
    assert derived == [SIZE]


@pytest.mark.parametrize("part", ["prototypes", "masks", "background"])
def test_the_plan_is_derived_anew_when_a_weight_changes(part: str) -> None:
    model, images = random_model(1, background="still")
    plan = model.plan(SIZE)
    before = model.decompose_all(pixels(images))
    with torch.no_grad():
        getattr(model, part).mul_(0.5)
    again = model.plan(SIZE)
    assert again is not plan
    fresh = PCDNet.from_bank(model.bank(), model.config).decompose_all(pixels(images))
    for found, expected in zip(model.decompose_all(pixels(images)), fresh, strict=True):
        assert np.array_equal(found.positions, expected.positions)
        assert np.array_equal(found.reconstruction, expected.reconstruction)
    assert any(
        not np.array_equal(one.reconstruction, two.reconstruction) for one, two in zip(before, fresh, strict=True)
    )


def test_the_plan_is_derived_anew_when_the_configuration_or_the_precision_changes() -> None:
    model, _ = random_model(1)
    plan = model.plan(SIZE)
    model.config = dataclasses.replace(model.config, overhang=0.25)
    quarter = model.plan(SIZE)
    assert quarter is not plan
    assert quarter.geometry.padding < plan.geometry.padding
    double = model.double().plan(SIZE)
    assert double is not quarter
    assert double.tight.masks.dtype == torch.float64


def test_the_plans_of_a_few_image_sizes_are_kept_at_the_same_time(derived: list[tuple[int, int]]) -> None:
    model, _ = random_model(2)
    sizes = [(20 + n, 30) for n in range(MAX_PLANS)]
    plans = [model.plan(size) for size in sizes]
    assert all(model.plan(size) is plan for size, plan in zip(sizes, plans, strict=True))
    model.plan((50, 50))
    assert all(model.plan(size) is plan for size, plan in zip(sizes[1:], plans[1:], strict=True))
    assert derived == [*sizes, (50, 50)]
    model.plan(sizes[0])
    assert derived[-1] == sizes[0], "the oldest makes room"


def test_a_plan_made_in_inference_mode_serves_gradients_too() -> None:
    model, images = random_model(3, background="still", restarts=6)
    plan = None
    with torch.inference_mode():
        model(images)
        plan = model.plan(SIZE)
    layers = model(images)
    layers.reconstruction.square().sum().backward()
    assert model.plan(SIZE) is plan
    assert model.prototypes.grad is not None
    assert model.prototypes.grad.any()
    assert not plan.bank.prototypes.requires_grad
    assert not plan.tight.masks.requires_grad


def test_a_bank_of_ones_own_is_searched_by_a_plan_of_its_own(derived: list[tuple[int, int]]) -> None:
    model, images = random_model(4)
    with torch.no_grad():
        kept = model.plan(SIZE)
        model(images, model.bank().map(lambda values: 0.9 * values))
        model.train()(images)
    assert derived == [SIZE] * 3
    assert model.eval().plan(SIZE) is kept


def test_the_banks_own_frames_fit_wherever_a_tight_one_may_lie() -> None:
    model, _ = random_model(5)
    with torch.no_grad():
        model.masks[0, :6] = 0
        model.masks[1, :, 2:] = 0
    plan = model.plan(SIZE)
    first = [-padding for padding in plan.geometry.padding]
    last = [start + count - 1 for start, count in zip(first, plan.geometry.positions, strict=True)]
    for offset in plan.offset.tolist():
        for axis in range(2):
            lowest, highest = first[axis] - offset[axis], last[axis] - offset[axis]
            assert lowest >= -plan.frames.padding[axis]
            assert highest < -plan.frames.padding[axis] + plan.frames.positions[axis]


def test_the_area_that_must_be_visible_is_a_share_of_the_mask_in_the_image(rng: torch.Generator) -> None:
    model, _ = random_model(6, min_visible=0.5)
    plan = model.plan(SIZE)
    (rows, columns), (my, mx) = plan.geometry.positions, plan.geometry.padding
    row, column = torch.randint(rows, (2, 9), generator=rng) - my, torch.randint(columns, (2, 9), generator=rng) - mx
    area = plan.min_visible_area(Candidates(row, column, torch.ones(2, 9, dtype=torch.bool), 3))
    assert area is not None
    for b in range(2):
        for t in range(9):
            inside = on_canvas(plan.tight.masks[t // 3], int(row[b, t]), int(column[b, t]), SIZE).sum()
            torch.testing.assert_close(area[b, t], 0.5 * inside, atol=1e-3, rtol=2e-4)
    model.config = dataclasses.replace(model.config, min_visible=0.0)
    assert model.plan(SIZE).min_visible_area(Candidates(row, column, torch.ones(2, 9, dtype=torch.bool), 3)) is None


def test_an_object_is_reported_where_enough_of_its_whole_mask_is_in_the_image(rng: torch.Generator) -> None:
    model, _ = random_model(6, min_inside=0.7, overhang=0.9)
    plan = model.plan(SIZE)
    (rows, columns), (my, mx) = plan.geometry.positions, plan.geometry.padding
    row, column = torch.randint(rows, (3, 60), generator=rng) - my, torch.randint(columns, (3, 60), generator=rng) - mx
    found = plan.reported(torch.arange(3)[:, None].expand_as(row), row, column)
    for p, n in torch.cartesian_prod(torch.arange(3), torch.arange(60)).tolist():
        mask = plan.tight.masks[p]
        share = float(on_canvas(mask, int(row[p, n]), int(column[p, n]), SIZE).sum() / mask.sum())
        assert abs(share - 0.7) < 1e-3 or bool(found[p, n]) == (share > 0.7)
    assert 20 < found.sum() < 160
    model.config = dataclasses.replace(model.config, min_inside=0.0)
    assert model.plan(SIZE).reported(torch.zeros_like(row), row, column).all()
