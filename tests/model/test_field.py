"""Laws of the field: what is around it is never searched and never painted, and it ends like the image itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.field import Field
from pcdnet.model.inspection import inspect, locate
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import export_onnx
from pcdnet.run import load
from tests.model.models import SIZE, random_model

FIELD = Field(4, 3, 22, 20)


def in_field(seed: int, **fields: Any) -> tuple[PCDNet, Tensor]:
    """A model that looks at a part of its images, and images."""
    model, images = random_model(seed, background="still", **fields)
    assert model.seen_in is not None
    model.seen_in.copy_(torch.tensor(dataclasses.astuple(FIELD)))
    return model, images


def cropped(model: PCDNet) -> PCDNet:
    """A model that knows nothing but the field."""
    weights = model.weights().map(Tensor.detach)
    assert weights.background is not None
    bank = PrototypeBank(weights.prototypes, weights.masks, FIELD.cut(weights.background).clone())
    return PCDNet.from_bank(bank, model.config)


@pytest.mark.parametrize("seed", range(4))
@torch.no_grad()
def test_a_field_is_searched_like_images_that_are_cropped_to_it(seed: int) -> None:
    model, images = in_field(seed, localization="error_reduction", min_solid=0.2, restarts=2)
    found, expected = model(images), cropped(model)(FIELD.cut(images))
    there = expected.placement.exists
    assert there.sum() > 2
    assert torch.equal(found.placement.prototype, expected.placement.prototype)
    assert torch.equal(found.placement.row[there], expected.placement.row[there] + FIELD.top)
    assert torch.equal(found.placement.column[there], expected.placement.column[there] + FIELD.left)
    torch.testing.assert_close(FIELD.cut(found.reconstruction), expected.reconstruction)
    assert torch.equal(FIELD.cut(found.instances()), expected.instances())
    outside = torch.ones(SIZE, dtype=torch.bool)
    FIELD.cut(outside)[:] = False
    behind = model.bank().behind(images[0])
    assert torch.equal(found.reconstruction[..., outside], behind[..., outside].expand(len(images), -1, -1))
    assert not found.instances()[:, outside].any()


def test_gradients_are_those_of_cropped_images_and_of_the_background_around() -> None:
    model, images = in_field(1)
    model.train()
    other = cropped(model).train()
    (model(images).reconstruction - images).square().sum().backward()
    (other(FIELD.cut(images)).reconstruction - FIELD.cut(images)).square().sum().backward()
    torch.testing.assert_close(model.prototypes.grad, other.prototypes.grad)
    assert model.background is not None
    assert other.background is not None
    gradient, inner = model.background.grad, other.background.grad
    assert gradient is not None
    assert inner is not None
    torch.testing.assert_close(FIELD.cut(gradient), inner)
    assert gradient[:, 0].any(), "around the field the background is learned, too"


def test_what_was_found_is_painted_as_it_was_found_and_nothing_outside() -> None:
    model, images = in_field(2)
    image = images[4].permute(1, 2, 0).numpy()
    found = model.decompose(image)
    assert len(found) > 0
    again = model.recompose(found, image)
    np.testing.assert_allclose(again.reconstruction, found.reconstruction, atol=1e-5)
    np.testing.assert_array_equal(again.instances, found.instances)
    np.testing.assert_allclose(again.error_reductions, found.error_reductions, atol=2e-2, rtol=1e-3)
    moved = dataclasses.replace(found, positions=np.zeros_like(found.positions) - 5)
    assert not model.recompose(moved).instances.any(), "it was moved out of the field"


def test_inspection_speaks_of_places_in_the_whole_image() -> None:
    model, images = in_field(3, localization="error_reduction")
    image = images[4]
    found = model.decompose(image.permute(1, 2, 0).numpy(), refined=False)
    steps = inspect(model, image).steps
    chosen = [
        (step.chosen.prototype, tuple(map(int, step.chosen.position))) for step in steps if step.chosen is not None
    ]
    assert chosen == [(p, tuple(place)) for p, place in zip(found.prototype_ids, found.positions.tolist(), strict=True)]
    assert steps[-1].error == pytest.approx(found.error, abs=1e-2)
    (p, (row, column)), heat = chosen[0], locate(model, image, chosen[0][0])
    top, left = row - heat.origin[0], column - heat.origin[1]
    assert heat.heat[top, left] == heat.heat.max(), p


def test_a_field_is_kept_with_the_model_and_one_outside_the_background_is_refused(tmp_path: Path) -> None:
    model, _ = in_field(0)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").field == FIELD
    assert model.seen_in is not None
    model.seen_in[2] = SIZE[0]
    model.save(tmp_path / "damaged")
    with pytest.raises(PcdnetError, match="looks for objects in 32x20 pixels at row 4, column 3, which are not in"):
        load(tmp_path / "damaged")


def test_an_onnx_file_of_a_field_is_refused(tmp_path: Path) -> None:
    model, _ = in_field(0)
    with pytest.raises(PcdnetError, match="a field within the images cannot be expressed"):
        export_onnx(model, tmp_path / "model.onnx", size=SIZE)


def with_bar(seed: int, **fields: Any) -> tuple[PCDNet, Tensor]:
    """A model whose images a bar crosses, in the field of its images, and images with any noise in the bar."""
    model, images = in_field(seed, **fields)
    assert model.hidden is not None
    model.hidden[12:15] = True
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(seed))
    return model, torch.where(model.hidden, noise, images)


@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
@torch.no_grad()
def test_what_is_behind_a_bar_does_not_matter(localization: str) -> None:
    model, images = with_bar(1, localization=localization, min_solid=0.2, min_visible=0.3, restarts=2)
    assert model.hidden is not None
    found, other = model(images), model(torch.where(model.hidden, 0.3, images))
    assert found.placement.exists.any()
    for name in ("prototype", "row", "column", "colour", "error_reduction"):
        assert torch.equal(getattr(found.placement, name), getattr(other.placement, name)), name
    behind = model.bank().behind(images[0])
    bar = model.hidden.expand(len(images), 3, -1, -1)
    assert torch.equal(found.reconstruction[bar], behind.expand_as(images)[bar]), "a bar is never painted over"
    assert not found.instances()[:, model.hidden].any()


@torch.no_grad()
def test_an_object_behind_a_bar_is_found_whole_in_its_own_colour() -> None:
    model, _ = random_model(5, background="still", localization="error_reduction")
    assert model.hidden is not None
    model.hidden[12:15] = True
    scene = {"objects": [{"prototype": 1, "position": [9, 8], "colour": [0.9, 0.4, 0.7]}], "size": list(SIZE)}
    image = model.recompose(Decomposition.from_dict(scene)).reconstruction
    found = model.decompose(image)
    assert found.prototype_ids.tolist() == [1]
    assert found.positions.tolist() == [[9, 8]]
    np.testing.assert_allclose(found.colours, [[0.9, 0.4, 0.7]], atol=1e-3)
    assert found.error < 1e-4


def test_gradients_do_not_come_from_behind_a_bar() -> None:
    model, images = with_bar(1)
    model.train()
    gradients = []
    assert model.hidden is not None
    for seen in (images, torch.where(model.hidden, 0.3, images)):
        model.zero_grad()
        (model(seen).reconstruction - images).square().sum().backward()
        gradients.append(model.prototypes.grad)
    assert gradients[0] is not None
    assert gradients[0].any()
    torch.testing.assert_close(*gradients)


def test_decompositions_behind_bars_are_painted_as_they_were_found() -> None:
    model, images = with_bar(2, localization="error_reduction")
    image = images[4].permute(1, 2, 0).numpy()
    found = model.decompose(image)
    again = model.recompose(found, image)
    assert len(found) > 0
    np.testing.assert_allclose(again.reconstruction, found.reconstruction, atol=1e-5)
    np.testing.assert_array_equal(again.instances, found.instances)
    np.testing.assert_allclose(again.error_reductions, found.error_reductions, atol=2e-2, rtol=1e-3)
