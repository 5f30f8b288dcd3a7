"""Parity sees whether a file is that of a model."""

from __future__ import annotations

import dataclasses

import torch

from pcdnet.model.onnx import to_onnx
from pcdnet.model.onnx.parity import Parity, compare, sample
from tests.model.onnx.models import SIZE, random_model


def test_parity_tells_a_file_of_another_model() -> None:
    (model, scenes), (other, _) = random_model(0), random_model(1)
    images = torch.stack(scenes)
    right, wrong = (compare(to_onnx(each, SIZE, len(images)), model, images) for each in (model, other))
    assert right == Parity(objects=right.objects, shared=right.objects, difference=right.difference, as_good=True)
    assert right.difference < 1e-4
    assert wrong.shared < right.shared
    assert not wrong.as_good


def test_samples_are_images_of_the_models_own_objects() -> None:
    model, _ = random_model(0, background="still")
    images = sample(model, SIZE, 5)
    assert images.shape == (5, 3, *SIZE)
    assert torch.equal(images, sample(model, SIZE, 5))
    assert not torch.equal(images, sample(model, SIZE, 5, seed=1))
    behind = model.bank().background
    assert behind is not None
    assert ((images - behind.detach()).abs().amax(dim=(1, 2, 3)) > 0.1).all()
    model.config = dataclasses.replace(model.config, colour="none")
    with torch.no_grad():
        layers = model(sample(model, SIZE, 5))
    assert (layers.reconstruction - sample(model, SIZE, 5)).square().mean() < 0.01
