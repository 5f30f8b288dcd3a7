"""Laws of twins: a kind that was cut in two is found, whatever cut it, and kinds that merely look alike are none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from pcdnet.config import ModelConfig
from pcdnet.data import tetrominoes
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.reset import likeness
from pcdnet.training.twins import ALIKE, Twins, groups

SIDE, FRAME = 64, 24


def letter(sign: str, size: float = 26.0) -> np.ndarray:
    """A letter in a frame, drawn four times as large and made small again."""
    picture = Image.new("L", (4 * FRAME, 4 * FRAME))
    font = ImageFont.load_default(4 * size)
    ImageDraw.Draw(picture).text((2 * FRAME, 2 * FRAME), sign, fill=255, font=font, anchor="mm")
    return np.asarray(picture.resize((FRAME, FRAME), Image.Resampling.BOX), np.float32) / 255


def scenes(shapes: list[np.ndarray], count: int = 24, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Images in which each quarter holds one of the shapes, in white on black."""
    rng = np.random.default_rng(seed)
    images = np.zeros((count, SIDE, SIDE, 1))
    for image in images:
        for quarter in range(4):
            top, left = (SIDE // 2 * np.array(divmod(quarter, 2)) + rng.integers(0, SIDE // 2 - FRAME, 2)).tolist()
            image[top : top + FRAME, left : left + FRAME, 0] += shapes[rng.integers(len(shapes))]
    images += noise * rng.standard_normal(images.shape)
    return np.round(255 * images.clip(0, 1)).astype(np.uint8)


def bank_of(shapes: list[np.ndarray]) -> PCDNet:
    """A model whose prototypes are these shapes, each opaque where it is bright."""
    frames = torch.from_numpy(np.stack(shapes)).float().clamp(0, 1)
    config = ModelConfig(
        num_prototypes=len(shapes),
        prototype_size=(FRAME, FRAME),
        channels=1,
        max_objects=4,
        peaks_per_prototype=6,
        localization="error_reduction",
        min_error_reduction=2.0,
    )
    return PCDNet.from_bank(PrototypeBank((frames > 0.02).float(), frames), config)


def pairs(model: PCDNet, images: np.ndarray) -> list[tuple[int, int]]:
    """The twins of a model, as these images tell them."""
    twins, values = Twins(model), images.astype(np.float32) / 255
    for start in range(0, len(values), 8):
        twins.add(values[start : start + 8], model.decompose_all(values[start : start + 8], refined=False))
    return twins.pairs()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_letters_that_look_alike_are_no_twins(noise: float) -> None:
    shapes = [letter(sign) for sign in "OQGCEF"]
    model = bank_of(shapes)
    assert likeness(model.bank())[0, 1] > 0.9
    assert pairs(model, scenes(shapes, noise=noise)) == []


def test_even_a_dot_makes_two_kinds_if_objects_have_it_or_have_it_not() -> None:
    plain = letter("O")
    dotted = plain.copy()
    dotted[11:14, 11:14] = 1
    model = bank_of([plain, dotted])
    assert likeness(model.bank())[0, 1] > ALIKE
    for noise in (0.0, 0.1):
        assert pairs(model, scenes([plain, dotted], noise=noise)) == []


def test_the_nineteen_tetrominoes_are_no_twins() -> None:
    bank = PrototypeBank(*map(torch.from_numpy, tetrominoes.true_prototypes()))
    model = PCDNet.from_bank(bank, ModelConfig(min_error_reduction=1.0))
    assert pairs(model, tetrominoes.generate(40, seed=3).images) == []


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_a_prototype_that_is_there_twice_has_a_twin(noise: float) -> None:
    rng = np.random.default_rng(1)
    true = [letter(sign) for sign in "OQGE"]
    rough = [np.where(true[n] > 0.02, true[n] - 0.2 * rng.random(true[n].shape), 0).clip(0, 1) for n in (0, 1, 1, 2, 3)]
    model = bank_of(rough)
    assert likeness(model.bank())[1, 2] > ALIKE
    assert pairs(model, scenes(true, noise=noise)) == [(1, 2)]


def test_a_kind_in_changing_light_that_two_prototypes_share_is_one_and_two_lights_are_two() -> None:
    square = np.pad(np.full((12, 12), 0.6, np.float32), 6)
    ramp = np.linspace(-1, 1, FRAME, dtype=np.float32)[None]
    lit = [square * (1 + 0.9 * strength * ramp) for strength in np.linspace(-1, 1, 21)]
    model = bank_of([lit[5], lit[15], letter("E")])
    assert likeness(model.bank())[0, 1] > ALIKE
    assert pairs(model, scenes([*lit, *[letter("E")] * 10])) == [(0, 1)]
    assert pairs(model, scenes([lit[5], lit[15], letter("E")])) == []


def test_it_does_not_matter_where_in_its_frame_a_twin_lies() -> None:
    true = [letter("E", 20), letter("H", 20)]
    model = bank_of([true[0], np.roll(true[0], (3, -2), axis=(0, 1)), true[1]])
    images = scenes(true)
    assert pairs(model, images) == []  # of two that are the same the first is always chosen
    found = model.decompose_all(images)
    for scene in found:
        moved = np.flatnonzero(scene.prototype_ids == 0)[::2]
        scene.prototype_ids[moved] = 1
        scene.positions[moved] -= np.array([3, -2], np.int32)
    twins = Twins(model)
    twins.add(images.astype(np.float32) / 255, found)
    assert twins.pairs() == [(0, 1)]


def test_what_hides_the_difference_leaves_the_question_open() -> None:
    plain = letter("O")
    dotted = plain.copy()
    dotted[11:14, 11:14] = 1
    model = bank_of([plain, dotted, np.pad(np.ones((12, 12), np.float32), 6)])
    assert likeness(model.bank())[0, 1] > ALIKE
    images = scenes([plain, dotted])
    hidden = []
    for scene in model.decompose_all(images):
        front = np.concatenate([np.full(len(scene), 2), scene.prototype_ids])
        hidden.append(
            dataclasses.replace(
                scene,
                prototype_ids=front.astype(np.int32),
                positions=np.concatenate([scene.positions] * 2),
                colours=np.concatenate([scene.colours] * 2),
                error_reductions=np.concatenate([scene.error_reductions] * 2),
            )
        )
    twins = Twins(model)
    twins.add(images.astype(np.float32) / 255, hidden)
    assert twins.pairs() == []


def test_pairs_that_share_a_prototype_are_one_group() -> None:
    assert groups([(3, 7), (1, 2), (7, 9), (0, 9)]) == [(0, 3, 7, 9), (1, 2)]
    assert groups([]) == []


def test_it_does_not_matter_how_objects_are_turned() -> None:
    """A twin that lies elsewhere in its frame lies elsewhere in the picture, on a way that turns with the object."""
    shapes = [letter("R", 18), np.roll(letter("R", 18), (2, -3), (0, 1)), letter("K", 18)]
    model = bank_of(shapes)
    config = dataclasses.replace(model.config, rotations=8, scales=2, scale_range=(0.8, 1.3), mirror=True)
    model, rng = PCDNet.from_bank(model.bank(), config), np.random.default_rng(1)
    found = [
        model.recompose(
            Decomposition.from_dict(
                {
                    "size": [SIDE, SIDE],
                    "objects": [
                        {
                            "prototype": int(rng.integers(3)),
                            "position": rng.uniform(4, 30, 2).tolist(),
                            "colour": [1.0],
                            "angle": float(rng.uniform(0, 360)),
                            "scale": float(rng.uniform(0.8, 1.3)),
                            "mirrored": bool(rng.integers(2)),
                        }
                    ],
                }
            )
        )
        for _ in range(24)
    ]
    twins = Twins(model)
    twins.add(np.stack([one.reconstruction for one in found]), found)
    assert twins.pairs() == [(0, 1)]


def test_of_a_model_with_poses_a_shape_that_is_there_turned_has_a_twin() -> None:
    shapes = [letter("E"), np.rot90(letter("E")).copy(), letter("O"), letter("Q")]
    frames = torch.from_numpy(np.stack(shapes))
    config = ModelConfig(num_prototypes=4, prototype_size=(FRAME, FRAME), rotations=4, fine_poses=False, channels=1)
    model = PCDNet(config)
    with torch.no_grad():
        model.prototypes.copy_(frames)
        model.masks.copy_(frames)
    assert Twins(model).pairs() == [(0, 1)]
