"""A file chooses what the model chooses without refinement."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch

from pcdnet.config import Background, ColourModule, Localization
from pcdnet.model.compiled import reference
from pcdnet.model.network import PCDNet
from pcdnet.model.onnx import to_onnx
from pcdnet.model.onnx.parity import compare, run, sample
from tests.model.models import tetromino_batch
from tests.model.onnx.models import SIZE, agree, random_model, true_model

CASES = list(itertools.product(("least_squares", "network", "none"), ("phase", "error_reduction"), ("black", "still")))


@pytest.mark.parametrize(("colour", "localization", "background"), CASES)
def test_the_file_finds_what_the_model_finds(
    colour: ColourModule, localization: Localization, background: Background
) -> None:
    objects = 0
    for seed, channels, min_visible in ((1, 3, 0.0), (2, 1, 0.0), (3, 3, 0.5)):
        fields = {"colour": colour, "localization": localization, "min_visible": min_visible}
        model, scenes = random_model(seed, channels, background, **fields)
        objects += agree(model, torch.stack(scenes))
    assert objects > 15, "too few objects are found for this to mean anything"


def test_what_must_be_visible_changes_what_the_file_finds() -> None:
    model, scenes = random_model(3, background="still")
    images = torch.stack(scenes)
    strict = PCDNet.from_bank(model.bank(), dataclasses.replace(model.config, min_visible=0.9))
    free, bound = (run(to_onnx(each, SIZE, len(images)), images) for each in (model, strict))
    assert (bound["prototype"] >= 0).sum() < (free["prototype"] >= 0).sum()
    agree(strict, images)


@pytest.mark.parametrize("background", ["black", "still"])
def test_the_file_labels_what_changes_as_the_model_does(background: Background) -> None:
    model, scenes = random_model(4, background=background)
    images = torch.stack(scenes)
    model.prototypes.data[:, :, :4] = 0  # dark parts under the mask
    model.config = dataclasses.replace(model.config, labels="change")
    assert agree(model, images) > 10
    with torch.inference_mode():
        changed = (model(images).instances() > 0).sum()
        model.config = dataclasses.replace(model.config, labels="mask")
        assert 0 < changed < (model(images).instances() > 0).sum()


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_the_file_leaves_out_what_the_border_cuts_off_as_the_model_does(colour: ColourModule) -> None:
    model, scenes = random_model(4, background="still", colour=colour, overhang=0.8)
    images = torch.stack(scenes)
    everything = agree(model, images)
    model.config = dataclasses.replace(model.config, min_inside=0.9)
    assert 10 < agree(model, images) < everything
    gone = run(to_onnx(model, SIZE, len(images)), images)["prototype"] < 0
    assert not (gone[:, :-1] & ~gone[:, 1:]).any(), "what is empty comes last"


def test_the_file_decomposes_tetrominoes() -> None:
    """Sprites of one colour reduce the error by the same, so their order is free; what they are and where is not."""
    images, model = tetromino_batch(64, seed=11), true_model()
    with reference():  # compiled sums are rounded otherwise, and of two that fit alike another may be chosen
        parity = compare(to_onnx(model, (35, 35), 64), model, images)
    assert parity.objects > 180
    assert parity.shared == parity.objects
    assert parity.difference < 1e-4


def test_the_order_is_the_same_where_no_error_reductions_are_equal() -> None:
    model = true_model()
    with reference():
        assert agree(model, sample(model, (35, 35), 64)) > 150


def test_a_batch_gives_what_its_images_give_one_by_one() -> None:
    model, scenes = random_model(5, background="still")
    images = torch.stack(scenes[:4])
    together, alone = run(to_onnx(model, SIZE, 4), images), to_onnx(model, SIZE)
    for n in range(4):
        for name, value in run(alone, images[n : n + 1]).items():
            torch.testing.assert_close(value[0], together[name][n], atol=1e-5, rtol=1e-5)


def test_ignored_pixels_are_not_searched_by_the_file_either() -> None:
    model, scenes = random_model(3, background="still")
    everywhere = agree(model, torch.stack(scenes))
    assert model.ignored is not None
    model.ignored[:, : SIZE[1] // 2] = True
    assert 0 < agree(model, torch.stack(scenes)) < everywhere


@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
def test_an_empty_image_has_no_objects(localization: Localization) -> None:
    black, _ = random_model(0, 1, localization=localization)
    assert agree(black, torch.zeros(1, 1, *SIZE)) == 0
    model, _ = random_model(0, 3, background="still", localization=localization)
    background = model.bank().background
    assert background is not None
    found = run(to_onnx(model, SIZE), background.detach()[None])
    assert found["prototype"].tolist() == [[-1] * 4]
    assert not any(found[name].any() for name in ("position", "colour", "gain", "instances"))
    torch.testing.assert_close(found["reconstruction"][0], background.detach())
