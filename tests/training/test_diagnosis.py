"""Laws of the diagnosis: figures see what is wrong with a model, and no ground truth is needed for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.diagnosis import MOST_IMAGES, bare_background, diagnose, has_core, noise_of
from pcdnet.training.foreground import LEAST_CONTRAST, NOISE_FACTOR

IMAGES = tetrominoes.generate(60, seed=2).images
PROTOTYPES, MASKS = map(torch.from_numpy, tetrominoes.true_prototypes())


def true_model(behind: torch.Tensor | None = None, **changes: Any) -> PCDNet:
    """A model with the true prototypes of Tetrominoes."""
    kind = "black" if behind is None else "still"
    config = dataclasses.replace(Config.preset("tetrominoes").model, **{"background": kind, **changes})
    return PCDNet.from_bank(PrototypeBank(PROTOTYPES, MASKS, behind), config)


def test_the_true_prototypes_explain_everything() -> None:
    figures = diagnose(true_model(), IMAGES)
    assert figures.images == len(IMAGES)
    assert figures.explained > 0.99
    assert figures.stands_out == pytest.approx((IMAGES.max(axis=-1) > 0).mean())
    assert figures.unexplained_background < 0.01
    assert figures.repeated > 0.99
    assert figures.error < 0.01 * figures.bare_error
    assert figures.bare_error == pytest.approx(np.mean((IMAGES / 255) ** 2), rel=1e-4)
    assert (figures.prototypes, figures.in_use, figures.shapeless, figures.overlooked) == (19, 19, (), 0)
    assert figures.objects == pytest.approx(3, abs=0.05)


def test_a_full_image_is_limited_only_where_more_is_left_over() -> None:
    figures = diagnose(true_model(), IMAGES)
    assert figures.at_limit > 0.95
    assert figures.limited < 0.1
    figures = diagnose(true_model(max_objects=2), IMAGES)
    assert figures.at_limit == figures.limited == 1
    assert 0.3 < figures.explained < 0.9


def test_images_without_an_object_are_overlooked_only_where_something_stands_out() -> None:
    model = true_model(min_error_reduction=1000.0)
    figures = diagnose(model, IMAGES)
    assert (figures.objects, figures.in_use, figures.explained, figures.repeated) == (0, 0, 0, 1)
    assert figures.overlooked == 0  # nothing in them is worth as much as an object must be
    model = true_model(min_solid=1.0, max_colour=0.01)
    assert diagnose(model, IMAGES).overlooked == 1
    figures = diagnose(model, np.zeros_like(IMAGES))
    assert (figures.overlooked, figures.stands_out) == (0, 0)


@pytest.mark.parametrize("level", [40, 200])
def test_a_background_that_the_model_does_not_know_stands_out(level: int) -> None:
    grey = np.where(IMAGES.max(axis=-1, keepdims=True) > 0, IMAGES, level).astype(np.uint8)
    figures = diagnose(true_model(), grey)
    assert figures.unexplained_background > 0.9
    assert figures.left_in_large_pieces > 0.9
    known = torch.full((3, *IMAGES.shape[1:3]), level / 255)
    figures = diagnose(true_model(known, localization="error_reduction"), grey)
    assert figures.unexplained_background < 0.05
    assert figures.explained > 0.9


def test_what_is_never_chosen_is_not_in_use() -> None:
    few = IMAGES[:1]
    figures = diagnose(true_model(), few)
    assert figures.in_use == len(set(true_model().decompose(few[0]).prototype_ids.tolist()))
    assert figures.prototypes == 19


def test_masks_that_are_not_learned_are_shapeless_and_counted_by_their_objects() -> None:
    model = true_model()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.masks[:] = 0.5 * torch.rand(model.masks.shape, generator=rng)
    figures = diagnose(model, IMAGES)
    assert len(figures.shapeless) == figures.in_use > 0
    assert figures.of_shapeless == 1


def test_prototypes_that_stand_for_one_kind_are_named_and_so_are_those_that_nothing_needs() -> None:
    rows = torch.linspace(-1, 1, PROTOTYPES.shape[1])[:, None]
    shades = [(0.6 * PROTOTYPES[0] * (1 + slope * rows)).clamp(0, 1) for slope in np.linspace(-0.9, 0.9, 21)]
    config = dataclasses.replace(Config.preset("tetrominoes").model, num_prototypes=3)
    model = PCDNet.from_bank(
        PrototypeBank(torch.stack([shades[5], shades[15], PROTOTYPES[7]]), MASKS[[0, 0, 7]]), config
    )
    images = np.stack([255 * (shade * MASKS[0]).numpy() for shade in shades])[..., None].repeat(3, axis=-1)
    images = np.pad(images, ((0, 0), (5, 5), (5, 5), (0, 0))).round().astype(np.uint8)
    figures = diagnose(model, images)
    assert (figures.in_use, figures.unused) == (2, (2,))
    assert figures.alike == ((0, 1),)
    assert diagnose(model, images[[5, 15]]).alike == ()  # what lies at its own prototype is another kind
    assert diagnose(model, images[:6]).alike == ()  # the other is not in use


def test_at_most_so_many_images_are_looked_at_spread_over_all() -> None:
    many = np.zeros((3 * MOST_IMAGES, 35, 35, 3), np.uint8)
    many[::3] = 255  # one of three is white, and seen
    figures = diagnose(true_model(min_error_reduction=1e9), many)
    assert figures.images == MOST_IMAGES
    assert figures.stands_out == 1


def test_nothing_in_the_model_changes() -> None:
    model = true_model().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert diagnose(model, IMAGES[:8]) == diagnose(model, IMAGES[:8])
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("background", [None, torch.rand(3, 35, 35, generator=torch.Generator().manual_seed(0))])
def test_the_bare_background_is_what_is_painted_without_objects(background: torch.Tensor | None) -> None:
    model, image = true_model(background), IMAGES[0].astype(np.float32) / 255
    painted = bare_background(model, image, model.decompose(image))
    expected = torch.zeros(3, 35, 35) if background is None else background
    np.testing.assert_allclose(painted, expected.permute(1, 2, 0).numpy(), atol=1e-6)


def test_a_background_of_each_image_is_the_one_that_its_objects_were_found_over() -> None:
    rows, columns = np.mgrid[-1:1:35j, -1:1:35j][..., None]
    paper = [120 + 60 * (np.sin(angle) * rows + np.cos(angle) * columns) for angle in range(len(IMAGES))]
    images = np.where(IMAGES.max(axis=-1, keepdims=True) > 0, IMAGES, np.array(paper)).astype(np.uint8)
    model = true_model(background="plain", localization="error_reduction")
    found, image = model.decompose(images[0]), images[0].astype(np.float32) / 255
    assert found.background is not None
    np.testing.assert_allclose(bare_background(model, image, found), found.background, atol=1e-6)
    figures = diagnose(model, images)
    assert figures.unexplained_background < 0.1
    assert figures.explained > 0.8
    assert diagnose(true_model(), images).unexplained_background > 0.9


def test_what_is_ignored_is_no_error_but_no_background_either() -> None:
    model = true_model(torch.zeros(3, 35, 35))
    images = IMAGES.copy()
    images[:, :10] = np.random.default_rng(0).integers(0, 255, (len(IMAGES), 10, 35, 1))
    before = diagnose(model, images)
    assert model.ignored is not None
    model.ignored[:10] = True
    after = diagnose(model, images)
    assert after.error < before.error
    assert after.stands_out < before.stands_out
    assert after.unexplained_background > 0.2


@settings(deadline=None, max_examples=25)
@given(sigma=st.floats(0.02, 0.1), slope=st.floats(-1, 1), level=st.floats(-1, 1), seed=st.integers(0, 99))
def test_a_wrong_but_smooth_background_is_no_noise(sigma: float, slope: float, level: float, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, sigma, (64, 64, 1))
    ramp = level + slope * np.linspace(0, 1, 64)[None, :, None]
    assert noise_of((noise + ramp).astype(np.float32)) == pytest.approx(sigma, rel=0.12)


def test_noise_is_at_least_what_makes_the_least_contrast_stand_out() -> None:
    for shape in ((1, 1, 1), (1, 9, 3), (8, 8, 1)):
        assert noise_of(np.zeros(shape, np.float32)) == LEAST_CONTRAST / NOISE_FACTOR


def test_solid_and_blurred_shapes_have_a_core_and_noise_has_none() -> None:
    rows, columns = np.mgrid[-12:13, -12:13]
    disc = (rows**2 + columns**2 < 60).astype(np.float32)
    spot = np.exp(-(rows**2 + columns**2) / 32).astype(np.float32)
    assert all(map(has_core, (disc, spot, 0.9 * disc)))
    noise = np.random.default_rng(0).uniform(0, 0.9, (25, 25))
    assert not any(map(has_core, (noise, 0.4 * disc, np.zeros((5, 5)))))
