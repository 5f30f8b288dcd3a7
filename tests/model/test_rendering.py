"""Laws of painting decompositions anew, found or edited by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from torch import Tensor

from pcdnet.config import Background, Labels
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from tests.model.models import SIZE, on_canvas, random_model


def pixels(image: Tensor) -> np.ndarray:
    """An image as users have it."""
    return image.permute(1, 2, 0).numpy()


def found_and_image(
    seed: int, *, background: Background, labels: Labels = "mask"
) -> tuple[PCDNet, Decomposition, np.ndarray]:
    """A model, what it found in an image of four objects, and the image."""
    model, images = random_model(seed, background=background, images=5, restarts=0, labels=labels)
    image = pixels(images[4])
    return model, model.decompose(image, name="scene"), image


@given(seed=integers(0, 30), background=sampled_from(["still", "black"]), labels=sampled_from(["mask", "change"]))
@settings(deadline=None, max_examples=12)
def test_what_was_found_is_painted_as_it_was_found(seed: int, background: Background, labels: Labels) -> None:
    model, found, image = found_and_image(seed, background=background, labels=labels)
    again = model.recompose(found, image)
    np.testing.assert_allclose(again.reconstruction, found.reconstruction, atol=1e-5)
    np.testing.assert_array_equal(again.instances, found.instances)
    np.testing.assert_allclose(again.error_reductions, found.error_reductions, atol=2e-2, rtol=1e-3)
    assert again.error == pytest.approx(found.error, abs=1e-2)
    assert again.name == "scene"


@given(
    seed=integers(0, 30), down=integers(-40, 40), right=integers(-40, 40), background=sampled_from(["still", "black"])
)
@settings(deadline=None, max_examples=20)
def test_edited_objects_are_painted_back_to_front(seed: int, down: int, right: int, background: Background) -> None:
    model, found, image = found_and_image(seed, background=background)
    (h, w), (H, W) = model.config.prototype_size, SIZE
    moved = np.clip(found.positions + np.array([down, right]), [1 - h, 1 - w], [H - 1, W - 1]).astype(np.int32)
    edited = dataclasses.replace(found, positions=moved, colours=found.colours[::-1].copy())
    bank = model.bank().map(Tensor.detach)
    G, errors = bank.behind(torch.zeros(3, H, W)), []
    layers = []
    for p, (row, column), colour in zip(edited.prototype_ids, moved.tolist(), edited.colours, strict=True):
        T, M = (on_canvas(x[p], row, column, SIZE) for x in (bank.prototypes, bank.masks))
        layers.append((torch.from_numpy(colour)[:, None, None] * T, M))
    for n in range(len(layers) + 1):
        picture = G
        for T, M in reversed(layers[:n]):
            picture = T * M + (1 - M) * picture
        errors.append(float((picture - torch.from_numpy(image).permute(2, 0, 1)).square().sum()))
    again = model.recompose(edited, image)
    np.testing.assert_allclose(again.reconstruction, picture.permute(1, 2, 0), atol=1e-5)
    np.testing.assert_allclose(model.render(edited), again.reconstruction)
    assert again.error == pytest.approx(errors[-1], abs=1e-2)
    np.testing.assert_allclose(again.error_reductions, -np.diff(errors), atol=2e-2, rtol=1e-3)


def test_without_an_image_there_are_no_errors() -> None:
    model, found, _ = found_and_image(1, background="black")
    again = model.recompose(found)
    assert again.error == 0
    assert len(found) > 0
    assert not again.error_reductions.any()


def test_a_scene_without_objects_is_the_background() -> None:
    model, found, image = found_and_image(2, background="still")
    of_objects = ("prototype_ids", "positions", "colours", "error_reductions")
    nothing = dataclasses.replace(found, **{name: getattr(found, name)[:0] for name in of_objects})
    again = model.recompose(nothing, image)
    assert model.background is not None
    np.testing.assert_allclose(again.reconstruction, pixels(model.background.detach()))
    assert not again.instances.any()
    assert again.error == pytest.approx(float(np.square(again.reconstruction - image).sum()), rel=1e-4)


def test_what_cannot_be_painted_is_refused_with_the_cure() -> None:
    model, found, image = found_and_image(3, background="still")
    assert len(found) > 0
    ids, positions = found.prototype_ids.copy(), found.positions.copy()
    ids[0], positions[0] = 3, (SIZE[0], 0)
    unknown = dataclasses.replace(found, prototype_ids=ids)
    outside = dataclasses.replace(found, positions=positions)
    grey = dataclasses.replace(found, colours=found.colours[:, :1], reconstruction=found.reconstruction[..., :1])
    small = dataclasses.replace(found, instances=found.instances[:20], reconstruction=found.reconstruction[:20])
    for scene, against, words in (
        (unknown, None, "object 0 is of prototype 3; use a number of 0 to 2"),
        (outside, None, "object 0 at row 32, column 0 is outside a picture of 32x28; move it back"),
        (grey, None, "objects have 1 colour values; give 3, one a channel"),
        (small, None, "the background of 32x28 does not fit a scene of 20x28; make them equal"),
        (found, image[:, :20], "the image of 32x20 does not fit a scene of 32x28; make them equal"),
    ):
        with pytest.raises(PcdnetError, match=words):
            model.recompose(scene, against)
