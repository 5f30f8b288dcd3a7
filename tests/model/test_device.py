"""Everything on a device that is not there: no tensor is on the wrong one, and the host seldom waits.

With the environment variable PCDNET_TEST_DEVICE, such as `cuda`, the same is run on a real device, too.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pcdnet.config import Background
from pcdnet.decomposition import Decomposition
from pcdnet.model import compiled, tiling
from pcdnet.model.composition import compose
from pcdnet.model.geometry import Geometry
from pcdnet.model.inspection import inspect
from pcdnet.model.network import PCDNet
from pcdnet.model.windows import Frames
from tests.model.compiled.test_compiled import same
from tests.model.models import SIZE, random_model
from tests.model.pretended import CUDA, OtherDevice, Pretended, pretended

REAL = os.environ.get("PCDNET_TEST_DEVICE")
needs_device = pytest.mark.skipif(REAL is None, reason="PCDNET_TEST_DEVICE names no device")
SETTINGS: list[tuple[Background, dict[str, Any]]] = [
    ("black", {"min_visible": 0.6, "restarts": 8}),
    ("black", {"colour": "network", "restarts": 8}),
    ("black", {"colour": "none", "rounds": 2}),
    ("still", {"restarts": 8, "max_unexplained": 0.6, "min_inside": 0.5}),
    ("still", {"localization": "error_reduction", "min_visible": 0.5, "min_solid": 0.3, "rounds": 2}),
    ("still", {"colour": "network", "labels": "change"}),
    ("plain", {"restarts": 8}),
    ("plain", {"localization": "error_reduction", "min_solid": 0.3}),
    ("moving", {}),
]
WAITS_TO_EXPLAIN, WAITS_TO_LEARN = 80, 30
"""How often the host waits at most: to explain a batch for the first time, with refinement, and to learn from one."""


def explained(device: str, seed: int, background: Background, *, training: bool, **fields: Any) -> Any:
    """What a model says of images, back on the CPU, and the gradients that it has."""
    model, images = random_model(seed, background=background, images=5, **fields)
    model, images = model.double().to(device).train(training), images.double().to(device)
    layers = model(images)
    if training:
        (layers.reconstruction - images).square().sum().backward()
    return layers, [each.grad for each in model.parameters()]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("background", "fields"), SETTINGS)
def test_a_device_finds_what_the_cpu_finds(background: Background, fields: dict[str, Any], training: bool) -> None:
    with compiled.reference():
        expected, gradients = explained("cpu", 0, background, training=training, **fields)
    with pretended() as device:
        found, there = explained("cuda", 0, background, training=training, **fields)
        assert device.has(found.reconstruction)
        assert all(device.has(each) for each in there if each is not None)
    same(found, expected)
    for one, other in zip(there, gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one, other)


@needs_device
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("background", "fields"), SETTINGS)
def test_a_real_device_finds_what_the_cpu_finds(background: Background, fields: dict[str, Any], training: bool) -> None:
    expected, gradients = explained("cpu", 0, background, training=training, **fields)
    found, there = explained(str(REAL), 0, background, training=training, **fields)
    assert torch.equal(found.placement.prototype.cpu(), expected.placement.prototype)
    assert torch.equal(found.placement.row.cpu(), expected.placement.row)
    torch.testing.assert_close(found.reconstruction.cpu(), expected.reconstruction)
    for one, other in zip(there, gradients, strict=True):
        if one is not None and other is not None:
            torch.testing.assert_close(one.cpu(), other)


def pixels(seed: int, background: Background, **fields: Any) -> tuple[PCDNet, np.ndarray]:
    """A model, and images as users give them."""
    model, images = random_model(seed, background=background, **fields)
    return model, (255 * images.clamp(0, 1)).permute(0, 2, 3, 1).numpy().astype(np.uint8)


def equal(one: Decomposition, other: Decomposition) -> None:
    """Two results are the same up to rounding."""
    np.testing.assert_array_equal(one.prototype_ids, other.prototype_ids)
    np.testing.assert_array_equal(one.positions, other.positions)
    np.testing.assert_array_equal(one.instances, other.instances)
    np.testing.assert_allclose(one.reconstruction, other.reconstruction, atol=1e-5)


@pytest.mark.parametrize("background", ["black", "still", "plain", "moving"])
def test_what_users_call_works_on_a_device(background: Background) -> None:
    model, images = pixels(3, background, restarts=8, max_unexplained=0.9)
    with compiled.reference():
        expected = model.decompose_all(images)
    again = model.recompose(expected[1], images[1])
    with pretended():
        there = model.to("cuda")
        for one, other in zip(there.decompose_all(images), expected, strict=True):
            equal(one, other)
        equal(there.recompose(expected[1], images[1]), again)
        batch = torch.from_numpy(images[0]).permute(2, 0, 1) / 255
        assert inspect(there, batch.to("cuda")).proposals


@pytest.mark.parametrize("background", ["black", "plain"])
def test_a_picture_in_tiles_is_explained_on_a_device(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "LEAST", 48)
    model, images = pixels(4, background, restarts=8)
    model.learned_size = SIZE
    large = np.concatenate([np.concatenate([images[n], images[n + 1]], axis=1) for n in range(2, 5)])
    with compiled.reference():
        expected = model.decompose(large)
    with pretended():
        equal(model.to("cuda").decompose(large), expected)
    assert len(expected) > 3


def waits(images: int = 6, prototypes: int = 3, *, training: bool = False, **fields: Any) -> Pretended:
    """How often the host waits for one batch."""
    model, batch = random_model(5, images=images, **fields)
    if prototypes != 3:
        bank = model.weights().map(lambda values: values.repeat(prototypes // 3, 1, 1))
        model = PCDNet.from_bank(bank, dataclasses.replace(model.config, num_prototypes=prototypes))
    with pretended() as device:
        model.to("cuda").train(training)
        batch = batch.to("cuda")
        device.waits.clear()
        if training:
            model(batch).reconstruction.sum().backward()
        else:
            with torch.inference_mode():
                model(batch)
    return device


@pytest.mark.parametrize("colour", ["least_squares", "network"])
@pytest.mark.parametrize("training", [False, True])
def test_waits_do_not_grow_with_objects_prototypes_or_images(training: bool, colour: str) -> None:
    options: dict[str, Any] = {"training": training, "colour": colour, "restarts": 0, "depth_order": False}
    few = waits(**options)
    assert waits(max_objects=32, **options).count <= few.count + 3  # it is looked three times whether all is done
    more = waits(images=16, prototypes=12, peaks_per_prototype=8, **options)
    assert more.count <= few.count, more.waits - few.waits


def test_waits_of_refinement_do_not_grow_either() -> None:
    for more in (waits(restarts=8), waits(images=16, prototypes=12, max_objects=16, restarts=8)):
        assert more.count <= WAITS_TO_EXPLAIN, more.waits
    assert waits(training=True).count <= WAITS_TO_LEARN


def test_objects_that_are_not_there_have_no_gradient() -> None:
    """In lockstep they are painted, invisibly."""
    with pretended():
        masks, prototypes = (torch.zeros(1, 2, 4, 4, device="cuda") for _ in range(2))
        colour = torch.ones(1, 2, 3, device="cuda", requires_grad=True)
        where = torch.zeros(1, 2, dtype=torch.long, device="cuda")
        frames = Frames(
            Geometry.touching((8, 8), (4, 4)), where, where, torch.zeros(1, 2, dtype=torch.bool, device="cuda")
        )
        behind = torch.rand(1, 3, 8, 8).to("cuda")
        painted = compose(prototypes, masks, colour, frames, behind)
        painted.sum().backward()  # type: ignore[no-untyped-call]
        assert painted.equal(behind)
        assert not colour.grad.any()  # type: ignore[union-attr]


WRONG: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x + torch.ones(3),
    lambda x: x[torch.tensor([0, 1])],
    lambda x: x.numpy(),
    lambda x: np.asarray(x),
    lambda x: torch.cat([x, torch.zeros(1)]),
    lambda x: torch.rand(3, device=x.device, generator=torch.Generator()),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cuda_refuses_is_refused(wrong: Callable[[torch.Tensor], Any]) -> None:
    with pretended():
        x = torch.zeros(3, device="cuda")
        assert x.device == CUDA
        with pytest.raises(OtherDevice):
            wrong(x)


WAITING: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x.sum().item(),
    lambda x: bool((x > 0).any()),
    lambda x: x.tolist(),
    lambda x: x.cpu(),
    lambda x: x.nonzero(),
    lambda x: x[x > 0],
    lambda x: torch.equal(x, x),
    lambda x: x.new_tensor([1.0]),
    lambda x: torch.tensor([1.0], device=x.device),
    lambda x: torch.ones(3).to(x),
]


@pytest.mark.parametrize("waiting", WAITING)
def test_what_makes_the_host_wait_is_counted(waiting: Callable[[torch.Tensor], Any]) -> None:
    with pretended() as device:
        x = torch.zeros(3, device="cuda")
        assert device.count == 0
        (x * 2 + torch.ones_like(x)).where(x > 0, 0).sum()
        assert device.count == 0
        waiting(x)
        assert device.count == 1
