"""Laws of the engine: batches of images to objects and back, with gradients."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from torch import Tensor

from pcdnet.config import Background, Config, ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.placement import Placement
from tests.model.models import CONFIG, FRAME, SIZE, random_batch, random_model, tetromino_batch, true_model
from tests.oracle.scenes import random_bank, random_scene, random_weights


def test_batch_equals_loop() -> None:
    bank, images = random_batch(1)
    model = PCDNet.from_bank(bank, CONFIG)
    with torch.no_grad():
        together = model(images)
        for b in range(len(images)):
            alone = model(images[b : b + 1])
            assert torch.equal(alone.placement.prototype[0], together.placement.prototype[b])
            assert torch.equal(alone.placement.row[0], together.placement.row[b])
            assert torch.equal(alone.placement.column[0], together.placement.column[b])
            torch.testing.assert_close(alone.reconstruction[0], together.reconstruction[b], atol=1e-5, rtol=0)


def test_two_runs_give_the_same_result() -> None:
    bank, images = random_batch(2)
    model = PCDNet.from_bank(bank, CONFIG)
    with torch.no_grad():
        first, second = model(images), model(images)
    assert torch.equal(first.reconstruction, second.reconstruction)


def test_single_agrees_with_double_precision() -> None:
    bank, images = random_batch(3)
    with torch.no_grad():
        single = PCDNet.from_bank(bank, CONFIG)(images)
        double = PCDNet.from_bank(bank.map(Tensor.double), CONFIG)(images.double())
    assert torch.equal(single.placement.prototype, double.placement.prototype)
    torch.testing.assert_close(single.reconstruction.double(), double.reconstruction, atol=1e-4, rtol=0)


@given(dy=integers(-5, 5), dx=integers(-5, 5))
@settings(deadline=None, max_examples=25)
def test_moving_the_image_moves_the_decomposition(dy: int, dx: int) -> None:
    bank, _ = random_batch(5)
    rng = torch.Generator().manual_seed(5)
    inner = random_scene(rng, bank, (22, 18), 3, 2, 0.0)
    here, there = torch.zeros(1, 3, 40, 36), torch.zeros(1, 3, 40, 36)
    here[0, :, 9:31, 9:27] = inner
    there[0, :, 9 + dy : 31 + dy, 9 + dx : 27 + dx] = inner
    model = PCDNet.from_bank(bank, CONFIG)
    with torch.no_grad():
        a, b = model(here).placement, model(there).placement
    assert torch.equal(a.prototype, b.prototype)
    assert torch.equal((a.row + dy)[a.exists], b.row[b.exists])
    assert torch.equal((a.column + dx)[a.exists], b.column[b.exists])


@pytest.mark.parametrize("frame", [(2, 2), (5, 3), (12, 10)])
@pytest.mark.parametrize("size", [(12, 10), (13, 17)])
def test_any_size_works_even_a_prototype_as_large_as_the_image(frame: tuple[int, int], size: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(9)
    bank = random_bank(rng, 2, frame, None, torch.float32)
    image = random_scene(rng, bank, size, 1, 1, 0.0)[None]
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=frame,
        max_objects=2,
        peaks_per_prototype=2,
        channels=1,
        min_error_reduction=0.0,
    )
    with torch.no_grad():
        layers = PCDNet.from_bank(bank, config)(image)
    assert layers.reconstruction.shape == image.shape
    assert torch.isfinite(layers.reconstruction).all()
    assert (layers.reconstruction - image).square().sum() < image.square().sum()


@pytest.mark.parametrize("colour", ["least_squares", "network", "none"])
@pytest.mark.parametrize("background", ["black", "still"])
def test_gradients_of_the_whole_are_right_for_a_fixed_choice(colour: str, background: Background) -> None:
    """Objects apart from each other: a small change of the bank leaves the choice as it is."""
    rng = torch.Generator().manual_seed(11)
    C, size = 3, (16, 22)
    bank = random_bank(rng, 2, (7, 7), (C, *size) if background == "still" else None, torch.float64)
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(7, 7),
        max_objects=2,
        peaks_per_prototype=2,
        channels=C,
        background=background,
        colour=colour,  # type: ignore[arg-type]
        min_error_reduction=0.0,
    )
    model = PCDNet.from_bank(bank, config)
    if model.colour is not None:
        random_weights(rng, model.colour)
        torch.nn.init.constant_(model.colour.head.bias, 0.6)  # an untrained network's colours would explain nothing
    image = torch.zeros(1, C, *size, dtype=torch.float64) if bank.background is None else bank.background[None].clone()
    for p, column in ((0, 2), (1, 13)):
        window = image[0, :, 4:11, column : column + 7]
        colour_true = torch.tensor([0.9, 0.6, 0.4], dtype=torch.float64)[:, None, None]
        window += bank.masks[p] * (colour_true * bank.prototypes[p] - window)

    def loss(prototypes: Tensor, masks: Tensor, *behind: Tensor) -> Tensor:
        layers = model(image, PrototypeBank(prototypes, masks, behind[0] if behind else None))
        assert layers.placement.exists.any()
        picture: Tensor = layers.reconstruction
        return picture

    # A little off the optimum, and off the kinks of the clamps at 0 and 1.
    inputs = [(0.1 + 0.8 * x).requires_grad_() for x in (bank.prototypes, bank.masks)]
    if bank.background is not None:
        # The closed form holds the background fixed while it fits a colour to the image.
        inputs.append(bank.background.clone().requires_grad_(colour != "least_squares"))
    assert torch.autograd.gradcheck(loss, tuple(inputs), atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_colours_are_the_same_with_and_without_gradients(colour: str, rng: torch.Generator) -> None:
    model = true_model(colour=colour, min_error_reduction=0.0)
    if model.colour is not None:
        random_weights(rng, model.colour)
        torch.nn.init.constant_(model.colour.head.bias, 0.6)
    layers = model(tetromino_batch(8, seed=3))
    assert layers.placement.exists.any()
    torch.testing.assert_close(layers.colour, layers.placement.colour, atol=1e-4, rtol=0)


def test_every_parameter_learns_from_the_network_colours(rng: torch.Generator) -> None:
    images, model = tetromino_batch(8, seed=1), true_model(colour="network").train()
    assert model.colour is not None
    random_weights(rng, model.colour)
    (model(images).reconstruction - images).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_training_measures_advantages_and_leaves_refinement_out() -> None:
    model, images = random_model(0, restarts=6, images=10)
    with torch.no_grad():
        trained = model.train()(images).placement
        greedy = model.explain(images, model.bank(), training=False, refined=False).placement
        refined = model.eval()(images).placement
    assert torch.equal(trained.prototype, greedy.prototype)
    assert trained.advantage.any()
    assert not greedy.advantage.any()
    assert not torch.equal(refined.prototype, greedy.prototype)
    assert (refined.error_reduction.sum(1) >= greedy.error_reduction.sum(1) - 1e-4).all()


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_explaining_as_in_evaluation_changes_nothing_in_a_model_that_trains(colour: str) -> None:
    model, images = random_model(1, colour=colour)
    with torch.no_grad():
        expected = model(images)
        before = copy.deepcopy(model.train().state_dict())
        found = model.explain(images, None, training=False, refined=True)
    assert torch.equal(found.reconstruction, expected.reconstruction)
    assert model.training
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_values_outside_0_to_1_are_painted_as_their_limits() -> None:
    model, images = random_model(2, background="still")
    wild = copy.deepcopy(model)
    with torch.no_grad():
        for values in wild.parameters():
            values.copy_(torch.where(values >= 1, values + 2, torch.where(values <= 0, values - 2, values)))
        assert wild.masks.min() < 0
        assert wild.masks.max() > 1
        assert torch.equal(wild(images).reconstruction, model(images).reconstruction)


def test_the_paper_model_has_as_many_parameters_as_its_table_says() -> None:
    model = PCDNet(Config.preset("tetrominoes-paper").model)
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_481


def test_a_new_model_starts_as_in_the_paper() -> None:
    model = PCDNet(Config.preset("tetrominoes").model)
    assert model.prototypes[:, 12, 12].eq(1).all()
    assert model.prototypes.eq(0.2).sum() == 19 * 624
    assert model.masks.eq(0.5).all()


def test_a_background_needs_the_size_of_the_images() -> None:
    with pytest.raises(PcdnetError, match="background='still' needs the size of its picture; give image_size"):
        PCDNet(dataclasses.replace(CONFIG, background="still"))
    assert PCDNet(dataclasses.replace(CONFIG, background="still"), SIZE).image_size == SIZE
    assert PCDNet(CONFIG).image_size is None


def test_images_of_another_size_than_the_background_are_refused(rng: torch.Generator) -> None:
    bank = random_bank(rng, 3, FRAME, (3, *SIZE), torch.float32)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="still"))
    with pytest.raises(PcdnetError, match="40x40 do not fit the background of 32x28"):
        model(torch.zeros(1, 3, 40, 40))


@torch.no_grad()
def test_a_second_round_finds_a_small_thing_that_few_peaks_miss() -> None:
    """Two large things have the only two peaks of a small one: those places explain more of the error."""
    y, x = torch.arange(9)[:, None] - 4, torch.arange(9) - 4
    masks = torch.stack([(y.square() + x.square() <= radius**2).float() for radius in (4, 1)])
    bank, image = PrototypeBank(torch.ones_like(masks), masks), torch.zeros(1, 3, 30, 40)
    places = [(0, 2, 2), (0, 15, 18), (1, 4, 28)]
    for (p, row, column), brightness in zip(places, (0.9, 0.8, 0.4), strict=True):
        image[0, :, row : row + 9, column : column + 9] += brightness * masks[p]
    fields: dict[str, Any] = {"num_prototypes": 2, "prototype_size": (9, 9), "peaks_per_prototype": 2, "restarts": 0}
    config = dataclasses.replace(CONFIG, localization="error_reduction", **fields)
    one, two = (PCDNet.from_bank(bank, dataclasses.replace(config, rounds=n))(image) for n in (1, 2))

    def objects(where: Placement) -> list[list[int]]:
        return torch.stack([where.prototype, where.row, where.column], dim=-1)[where.exists].tolist()

    assert sorted(objects(one.placement)) == sorted(map(list, places[:2]))
    assert sorted(objects(two.placement)) == sorted(map(list, places))
    torch.testing.assert_close(two.reconstruction, image, atol=1e-3, rtol=0)


@torch.no_grad()
def test_further_rounds_explain_no_image_worse() -> None:
    for seed in range(3):
        model, images = random_model(seed, background="still", peaks_per_prototype=1, min_error_reduction=0.01)
        errors = []
        for rounds in (1, 2, 3):
            model.config = dataclasses.replace(model.config, rounds=rounds)
            errors.append((model(images).reconstruction - images).square().flatten(1).sum(1))
        assert (errors[1] <= errors[0] + 1e-4).all()
        assert (errors[2] <= errors[1] + 1e-4).all()
        assert (errors[1] < errors[0] - 0.01).any()


@pytest.mark.parametrize("background", ["black", "still"])
def test_labels_of_what_changes_end_where_a_wide_mask_shows_the_background(background: Background) -> None:
    """An object whose mask fills its frame, all but a block of it in the colour of the ground."""
    ground, block = 0.0 if background == "black" else 0.3, (slice(3, 6), slice(2, 6))
    prototypes, images = torch.full((1, *FRAME), ground), torch.full((1, 1, *SIZE), ground)
    prototypes[0][block] = 0.8
    images[0, 0, 10 : 10 + FRAME[0], 5 : 5 + FRAME[1]] = prototypes[0]
    behind = None if background == "black" else torch.full((1, *SIZE), ground)
    bank = PrototypeBank(prototypes, torch.ones(1, *FRAME), behind)
    config = dataclasses.replace(CONFIG, num_prototypes=1, channels=1, colour="none", background=background)
    by_mask, by_change = (
        PCDNet.from_bank(bank, dataclasses.replace(config, labels=labels))(images).instances()[0]
        for labels in ("mask", "change")
    )
    assert by_mask.sum() == FRAME[0] * FRAME[1]
    expected = torch.zeros_like(by_mask)
    expected[10:19, 5:13][block] = 1
    assert torch.equal(by_change, expected)


def test_labels_of_what_changes_are_the_masks_elsewhere_than_over_the_background() -> None:
    model, images = random_model(3, background="still", images=10)
    changing = PCDNet.from_bank(model.weights(), dataclasses.replace(model.config, labels="change"))
    with torch.no_grad():
        labels, layers = model(images).instances(), changing(images)
    visible = (layers.reconstruction - model.weights().behind(images[0])).square().mean(1) > 1e-3
    assert torch.equal(layers.instances(), labels * visible)
    assert 0 < (layers.instances() > 0).sum() < (labels > 0).sum()


def test_without_sparse_training_whatever_pays_is_chosen_in_training_alone() -> None:
    bank, images = random_batch(4)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, min_error_reduction=1e6, sparse_training=False))
    assert model.train()(images).placement.exists.any()
    assert not model.eval()(images).placement.exists.any()
    model.config = dataclasses.replace(model.config, sparse_training=True)
    assert not model.train()(images).placement.exists.any()
