"""Laws of the whole: images to objects and back."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from pcdnet.config import Config, ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.data.tetromino_records import factored
from pcdnet.errors import PcdnetError
from pcdnet.metrics import score
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from tests.oracle.scenes import random_bank, random_scene

SIZE, FRAME = (32, 28), (9, 8)
CONFIG = ModelConfig(
    num_prototypes=3, prototype_size=FRAME, max_objects=4, peaks_per_prototype=4, channels=3, min_error_reduction=0.2
)


def true_model(**changes: object) -> PCDNet:
    prototypes, masks = tetrominoes.true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    return PCDNet.from_bank(bank, dataclasses.replace(Config.preset("tetrominoes").model, **changes))  # type: ignore[arg-type]


def batch(seed: int, count: int = 4) -> tuple[PrototypeBank, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 3, FRAME, None, torch.float32)
    return bank, torch.stack([random_scene(rng, bank, SIZE, 3, 1 + b % 4, 0.0) for b in range(count)])


def test_the_true_prototypes_decompose_generated_scenes() -> None:
    scenes = tetrominoes.generate(200, seed=4)
    found = true_model().decompose_all(scenes.images)
    scores = score(scenes.labels, np.stack([d.instances for d in found]))
    assert scores.fg_ari >= 0.995
    assert scores.count_accuracy == 1.0
    assert np.median([d.error for d in found]) < 1e-6


def test_refinement_fixes_what_greedy_gets_wrong() -> None:
    scenes = tetrominoes.generate(300, seed=6)
    greedy = true_model(restarts=0).decompose_all(scenes.images)
    refined = true_model().decompose_all(scenes.images)
    wrong = [n for n, d in enumerate(greedy) if d.error > 1]
    assert wrong
    assert all(b.error <= a.error + 1e-3 for a, b in zip(greedy, refined, strict=True))
    assert sum(refined[n].error > 1 for n in wrong) <= len(wrong) // 4


def test_the_genuine_scenes_are_solved_exactly(shared: object) -> None:
    from tests.conftest import SHARED

    scenes = factored(SHARED / "data" / "tetrominoes" / "tetrominoes_mini.tfrecords")
    found = true_model().decompose_all(scenes.images)
    assert score(scenes.labels, np.stack([d.instances for d in found])).fg_ari == 1.0


def test_batch_equals_loop() -> None:
    bank, images = batch(1)
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
    bank, images = batch(2)
    model = PCDNet.from_bank(bank, CONFIG)
    with torch.no_grad():
        first, second = model(images), model(images)
    assert torch.equal(first.reconstruction, second.reconstruction)


def test_single_agrees_with_double_precision() -> None:
    bank, images = batch(3)
    with torch.no_grad():
        single = PCDNet.from_bank(bank, CONFIG)(images)
        double = PCDNet.from_bank(bank.map(torch.Tensor.double), CONFIG)(images.double())
    assert torch.equal(single.placement.prototype, double.placement.prototype)
    torch.testing.assert_close(single.reconstruction.double(), double.reconstruction, atol=1e-4, rtol=0)


@given(dy=integers(-5, 5), dx=integers(-5, 5))
@settings(deadline=None, max_examples=25)
def test_moving_the_image_moves_the_decomposition(dy: int, dx: int) -> None:
    bank, _ = batch(5)
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


def test_the_error_never_rises_with_another_object() -> None:
    bank, images = batch(6)
    errors = []
    for objects in range(1, 6):
        config = dataclasses.replace(CONFIG, max_objects=objects, restarts=0)
        with torch.no_grad():
            picture = PCDNet.from_bank(bank, config)(images).reconstruction
        errors.append((picture - images).square().sum(dim=(1, 2, 3)))
    for before, after in pairwise(errors):
        assert (after <= before + 1e-4).all()


def test_error_reductions_add_up_to_the_fall_of_the_error() -> None:
    bank, images = batch(7)
    with torch.no_grad():
        layers = PCDNet.from_bank(bank, CONFIG)(images)
    left = (layers.reconstruction - images).square().sum(dim=(1, 2, 3))
    total = images.square().sum(dim=(1, 2, 3))
    torch.testing.assert_close(total - layers.placement.error_reduction.sum(1), left, atol=1e-2, rtol=1e-4)


def test_an_empty_image_holds_no_object() -> None:
    found = true_model().decompose(np.zeros((35, 35, 3), np.uint8))
    assert len(found) == 0
    assert not found.instances.any()
    assert not found.semantics.any()
    assert found.objects == ()


def test_no_object_is_chosen_that_reduces_the_error_less_than_the_least() -> None:
    bank, images = batch(8)
    with torch.no_grad():
        placement = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, min_error_reduction=3.0))(images).placement
    assert (placement.error_reduction[placement.exists] >= 3.0).all()
    assert placement.exists.any()


def test_a_prototype_off_its_frames_centre_reaches_every_border() -> None:
    prototypes, masks = (torch.from_numpy(x) for x in tetrominoes.true_prototypes())
    bank = PrototypeBank(prototypes.roll((4, -4), (1, 2)), masks.roll((4, -4), (1, 2)))
    square = 18  # the 2x2 sprite, 10x10 pixels from (7, 7) of its frame, now from (11, 3)
    model = PCDNet.from_bank(bank, Config.preset("tetrominoes").model)
    for row, column in ((0, 0), (0, 25), (25, 0), (25, 25)):
        images, _ = tetrominoes.render(
            np.array([[square, 0, 0]]),
            np.array([[[1, 0, 0]] * 3]),
            np.array([[row, 15, 15]]),
            np.array([[column, 10, 10]]),
        )
        found = model.decompose(images[0])
        assert (square, (row - 11, column - 3)) in [(thing.prototype, thing.position) for thing in found.objects]


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


@given(
    objects=integers(1, 3), peaks=integers(1, 4), colour=sampled_from(["least_squares", "none"]), seed=integers(0, 20)
)
@settings(deadline=None, max_examples=20)
def test_visible_masks_are_disjoint_and_fit_their_boxes(objects: int, peaks: int, colour: str, seed: int) -> None:
    bank, images = batch(seed, count=1)
    config = dataclasses.replace(CONFIG, max_objects=objects, peaks_per_prototype=peaks, colour=colour)  # type: ignore[arg-type]
    found = PCDNet.from_bank(bank, config).decompose(images[0].permute(1, 2, 0).numpy())
    stack = np.sum([thing.mask for thing in found.objects] or [np.zeros(SIZE)], axis=0)
    assert stack.max() <= 1
    for thing in found.objects:
        if thing.box is not None:
            top, left, height, width = thing.box
            inside = np.zeros(SIZE, bool)
            inside[top : top + height, left : left + width] = True
            assert not (thing.mask & ~inside).any()
            assert thing.mask[top].any()
            assert thing.mask[:, left + width - 1].any()


@pytest.mark.parametrize("colour", ["least_squares", "network", "none"])
@pytest.mark.parametrize("background", [False, True])
def test_gradients_of_the_whole_are_right_for_a_fixed_choice(colour: str, background: bool) -> None:
    """Objects apart from each other: a small change of the bank leaves the choice as it is."""
    rng = torch.Generator().manual_seed(11)
    C, size = 3, (16, 22)
    bank = random_bank(rng, 2, (7, 7), (C, *size) if background else None, torch.float64)
    config = ModelConfig(
        num_prototypes=2,
        prototype_size=(7, 7),
        max_objects=2,
        peaks_per_prototype=2,
        channels=C,
        background="still" if background else "black",
        colour=colour,  # type: ignore[arg-type]
        min_error_reduction=0.0,
    )
    model = PCDNet.from_bank(bank, config)
    if model.colour is not None:
        with torch.no_grad():
            model.colour.head.bias.fill_(0.6)  # an untrained network's colours would explain nothing
    image = torch.zeros(1, C, *size, dtype=torch.float64) if bank.background is None else bank.background[None].clone()
    for p, column in ((0, 2), (1, 13)):
        window = image[0, :, 4:11, column : column + 7]
        colour_true = torch.tensor([0.9, 0.6, 0.4], dtype=torch.float64)[:, None, None]
        window += bank.masks[p] * (colour_true * bank.prototypes[p] - window)

    def loss(prototypes: torch.Tensor, masks: torch.Tensor, *behind: torch.Tensor) -> torch.Tensor:
        layers = model(image, PrototypeBank(prototypes, masks, behind[0] if behind else None))
        assert layers.placement.exists.any()
        picture: torch.Tensor = layers.reconstruction
        return picture

    # A little off the optimum, and off the kinks of the clamps at 0 and 1.
    inputs = [(0.1 + 0.8 * x).requires_grad_() for x in (bank.prototypes, bank.masks)]
    if bank.background is not None:
        # The closed form holds the background fixed while it fits a colour to the image.
        inputs.append(bank.background.clone().requires_grad_(colour != "least_squares"))
    assert torch.autograd.gradcheck(loss, tuple(inputs), atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_colours_are_the_same_with_and_without_gradients(colour: str) -> None:
    images = torch.from_numpy(tetrominoes.generate(8, seed=3).images).permute(0, 3, 1, 2) / 255
    torch.manual_seed(0)
    model = true_model(colour=colour, min_error_reduction=0.0)
    if model.colour is not None:
        with torch.no_grad():
            model.colour.head.bias.fill_(0.6)
    layers = model(images)
    assert layers.placement.exists.any()
    torch.testing.assert_close(layers.colour, layers.placement.colour, atol=1e-4, rtol=0)


def test_every_parameter_learns_from_the_network_colours() -> None:
    scenes = tetrominoes.generate(8, seed=1)
    images = torch.from_numpy(scenes.images).permute(0, 3, 1, 2) / 255
    model = true_model(colour="network").train()
    torch.manual_seed(0)
    (model(images).reconstruction - images).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


def test_the_paper_model_has_as_many_parameters_as_its_table_says() -> None:
    model = PCDNet(Config.preset("tetrominoes-paper").model)
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_481


def test_a_new_model_starts_as_in_the_paper() -> None:
    model = PCDNet(Config.preset("tetrominoes").model)
    assert model.prototypes[:, 12, 12].eq(1).all()
    assert model.prototypes.eq(0.2).sum() == 19 * 624
    assert model.masks.eq(0.5).all()


def test_a_bank_that_does_not_fit_the_configuration_is_refused() -> None:
    bank, _ = batch(1)
    with pytest.raises(PcdnetError, match="holds 3 prototypes of 9x8.*wants 4"):
        PCDNet.from_bank(bank, dataclasses.replace(CONFIG, num_prototypes=4))
    with pytest.raises(PcdnetError, match="background='still' but the bank has none"):
        PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="still"))
    with pytest.raises(PcdnetError, match="image_size"):
        PCDNet(dataclasses.replace(CONFIG, background="still"))


def test_images_of_another_size_than_the_background_are_refused(rng: torch.Generator) -> None:
    bank = random_bank(rng, 3, FRAME, (3, *SIZE), torch.float32)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="still"))
    with pytest.raises(PcdnetError, match="40x40 do not fit the background of 32x28"):
        model(torch.zeros(1, 3, 40, 40))


def test_a_prototype_larger_than_the_image_is_refused_with_the_cure() -> None:
    with pytest.raises(PcdnetError, match="25x25 are larger than the images .20x30.*prototype_size=.20, 25."):
        true_model().decompose(np.zeros((20, 30, 3), np.uint8))
