"""Laws of PCDNet as users meet it: images of any kind to Decompositions."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from PIL import Image

from pcdnet.data import tetrominoes
from pcdnet.data.tetromino_records import factored
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.metrics import score
from pcdnet.model.network import CHUNK, PCDNet
from pcdnet.names import Names
from pcdnet.run import load
from tests.model.models import CONFIG, SIZE, random_batch, random_model, true_model
from tests.oracle.scenes import random_bank


def same(one: Decomposition, two: Decomposition) -> bool:
    """Whether both found the same objects and paint the same picture."""
    return (
        np.array_equal(one.prototype_ids, two.prototype_ids)
        and np.array_equal(one.positions, two.positions)
        and np.allclose(one.colours, two.colours, atol=1e-5)
        and np.allclose(one.reconstruction, two.reconstruction, atol=1e-5)
    )


def test_the_true_prototypes_decompose_generated_scenes() -> None:
    scenes = tetrominoes.generate(200, seed=4)
    found = true_model().decompose_all(scenes.images)
    scores = score(scenes.labels, np.stack([d.instances for d in found]))
    assert scores.fg_ari >= 0.995
    assert scores.count_accuracy == 1.0
    assert np.median([d.error for d in found]) < 1e-6


def test_the_genuine_scenes_are_decomposed_exactly(shared: Path) -> None:
    scenes = factored(shared / "data" / "tetrominoes" / "tetrominoes_mini.tfrecords")
    found = true_model().decompose_all(scenes.images)
    assert score(scenes.labels, np.stack([d.instances for d in found])).fg_ari == 1.0


def test_an_empty_image_holds_no_object() -> None:
    found = true_model().decompose(np.zeros((35, 35, 3), np.uint8))
    assert len(found) == 0
    assert not found.instances.any()
    assert not found.semantics.any()
    assert found.objects == ()


@given(
    objects=integers(1, 3), peaks=integers(1, 4), colour=sampled_from(["least_squares", "none"]), seed=integers(0, 20)
)
@settings(deadline=None, max_examples=20)
def test_visible_masks_are_disjoint_and_fit_their_boxes(objects: int, peaks: int, colour: str, seed: int) -> None:
    bank, images = random_batch(seed, count=1)
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


def test_a_decomposition_says_what_the_network_placed() -> None:
    model, images = random_model(0, background="still", images=3)
    with torch.no_grad():
        layers = model(images)
    where = layers.placement
    for b, found in enumerate(model.decompose_all(images.permute(0, 2, 3, 1).numpy())):
        n = int(where.exists[b].sum())
        assert found.prototype_ids.tolist() == where.prototype[b, :n].tolist()
        assert found.positions.tolist() == torch.stack([where.row, where.column], dim=-1)[b, :n].tolist()
        np.testing.assert_allclose(found.colours, where.colour[b, :n], atol=1e-6)
        np.testing.assert_allclose(found.error_reductions, where.error_reduction[b, :n], atol=1e-4)
        assert np.array_equal(found.instances, layers.instances()[b])
        left = float((layers.reconstruction[b] - images[b]).square().sum())
        assert found.error == pytest.approx(left, abs=1e-4)


def test_a_stack_gives_a_list_and_a_stream_gives_the_same_one_by_one() -> None:
    model, images = true_model(), tetrominoes.generate(CHUNK + 3, seed=2).images
    stack = model.decompose_all(images)
    assert isinstance(stack, list)
    stream = model.decompose_all(iter(images))
    assert isinstance(stream, Iterator)
    assert all(same(one, two) for one, two in zip(stack, stream, strict=True))
    assert same(stack[5], model.decompose(images[5]))


def test_a_stream_is_read_a_few_images_at_a_time() -> None:
    model, read = true_model(restarts=0), []

    def images() -> Iterator[np.ndarray]:
        for n, image in enumerate(tetrominoes.generate(3 * CHUNK, seed=2).images):
            read.append(n)
            yield image

    found = model.decompose_all(images())
    assert read == []
    next(found)
    assert len(read) <= CHUNK + 1


def test_images_of_several_sizes_and_kinds_keep_their_order_in_a_stream() -> None:
    model = true_model()
    large = tetrominoes.generate(3, seed=3).images
    mixed = [large[0], large[1][:30, :32], large[1], large[2] / 255, large[2][2:]]
    found = list(model.decompose_all(mixed))
    assert [each.instances.shape for each in found] == [image.shape[:2] for image in mixed]
    assert all(same(each, model.decompose(image)) for each, image in zip(found, mixed, strict=True))


def test_a_path_is_decomposed_as_its_pixels_and_gives_its_name(tmp_path: Path) -> None:
    image = tetrominoes.generate(1, seed=1).images[0]
    path = tmp_path / "scene.png"
    Image.fromarray(image).save(path)
    model = true_model()
    found = model.decompose(path)
    assert same(found, model.decompose(image))
    assert found.name == str(path)
    assert model.decompose(str(path), name="mine").name == "mine"
    assert [each.name for each in model.decompose_all([image, path])] == ["", str(path)]


def test_a_grey_model_takes_images_without_a_channel_axis_and_coloured_files(tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    bank = random_bank(rng, 3, CONFIG.prototype_size, None, torch.float32)
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, channels=1))
    grey = tetrominoes.generate(1, seed=1).images[0].max(axis=2)
    assert same(model.decompose(grey), model.decompose(grey[..., None]))
    Image.fromarray(np.repeat(grey[..., None], 3, axis=2)).save(tmp_path / "rgb.png")
    assert same(model.decompose(tmp_path / "rgb.png"), model.decompose(grey))


def test_refinement_can_be_left_out() -> None:
    images = tetrominoes.generate(300, seed=6).images
    model, greedy = true_model(), true_model(restarts=0)
    plain = model.decompose_all(images, refined=False)
    assert all(same(one, two) for one, two in zip(plain, greedy.decompose_all(images), strict=True))
    assert not all(same(one, two) for one, two in zip(plain, model.decompose_all(images), strict=True))


@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_decomposing_changes_nothing_in_the_model(colour: str) -> None:
    model, images = random_model(1, colour=colour)
    pixels = images.permute(0, 2, 3, 1).numpy()
    expected = model.decompose_all(pixels)
    before = copy.deepcopy(model.train().state_dict())
    found = model.decompose_all(pixels)
    assert all(same(one, two) for one, two in zip(found, expected, strict=True))
    assert model.training
    assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())


def test_what_is_no_single_image_or_no_stack_is_refused_with_the_cure() -> None:
    model = true_model()
    with pytest.raises(PcdnetError, match=r"shape .2, 35, 35, 3. is a stack of images; use decompose_all"):
        model.decompose(np.zeros((2, 35, 35, 3), np.uint8))
    with pytest.raises(PcdnetError, match=r"shape .35, 35, 3. is no stack of images; give N x H x W x C"):
        model.decompose_all(np.zeros((35, 35, 3), np.uint8))
    with pytest.raises(PcdnetError, match=r"20x30 pixels are less than a prototype has .25x25.; give a larger"):
        model.decompose(np.zeros((20, 30, 3), np.uint8))


def test_too_little_memory_is_reported_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    model = true_model()

    def explain(*_: object, **__: object) -> None:
        raise RuntimeError("not enough memory: you tried to allocate 9 bytes")

    monkeypatch.setattr(model, "explain", explain)
    with pytest.raises(PcdnetError, match="not enough memory for 35x40 pixels; give smaller images"):
        model.decompose(np.zeros((35, 40, 3), np.uint8))


def test_a_bank_that_does_not_fit_the_configuration_is_refused(rng: torch.Generator) -> None:
    bank, _ = random_batch(1)
    with pytest.raises(PcdnetError, match="holds 3 prototypes of 9x8.*wants 4"):
        PCDNet.from_bank(bank, dataclasses.replace(CONFIG, num_prototypes=4))
    with pytest.raises(PcdnetError, match="background='still' but the bank has none; give one"):
        PCDNet.from_bank(bank, dataclasses.replace(CONFIG, background="still"))
    behind = random_bank(rng, 3, CONFIG.prototype_size, (1, *SIZE), torch.float32)
    with pytest.raises(PcdnetError, match="background has 1 channels, the configuration 3; set channels=1"):
        PCDNet.from_bank(behind, dataclasses.replace(CONFIG, background="still"))


def test_a_saved_model_decomposes_as_before(tmp_path: Path) -> None:
    model, images = random_model(2, background="still", colour="network")
    model.names, model.learned_size = Names(count=3, given={1: "cup"}), (32, 28)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.config == model.config
    assert again.learned_size == (32, 28)
    assert again.names == model.names
    assert not again.training
    pixels = images.permute(0, 2, 3, 1).numpy()
    assert all(
        same(one, two) for one, two in zip(model.decompose_all(pixels), again.decompose_all(pixels), strict=True)
    )


def test_a_model_says_in_a_line_what_it_is() -> None:
    assert repr(PCDNet(CONFIG)) == "PCDNet(3 prototypes of 9x8, up to 4 objects an image, 432 parameters)"
