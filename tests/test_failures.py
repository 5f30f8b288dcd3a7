"""Why scenes fail: every reason is given where it holds, and only there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.failures import Failure, Place, draw, failure, failures, fits, matched, painted, true_places
from benchmarks.learning import with_true_prototypes
from benchmarks.models import true_bank
from PIL import Image

from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.data.tetrominoes import COLOURS, TetrominoScenes
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.training.evaluation import evaluate

LYING_I, SQUARE, T = 0, 18, 14
CONFIG = dataclasses.replace(Config.preset("tetrominoes").model, num_prototypes=19)


def model_of(bank: PrototypeBank, peaks: int = 3) -> PCDNet:
    return PCDNet.from_bank(bank, dataclasses.replace(CONFIG, peaks_per_prototype=peaks))


def scene(*sprites: tuple[int, int, int, int]) -> TetrominoScenes:
    """One scene of sprites: shape, hue, row and column."""
    shapes, hues, rows, columns = np.array(sprites).T[:, None]
    return tetrominoes.render(shapes, COLOURS[hues], rows, columns)


def reason(model: PCDNet, scenes: TetrominoScenes, found: Decomposition) -> str | None:
    failed = failure(model, scenes, 0, found, fits(model))
    return None if failed is None else failed.reason


def places(model: PCDNet, scenes: TetrominoScenes) -> list[Place]:
    return [some[0] for some in true_places(scenes, 0, fits(model))]


@pytest.mark.parametrize("moved", [(0, 0), (3, -2), (-1, 2)])
def test_true_objects_painted_with_shifted_prototypes_are_the_image(moved: tuple[int, int]) -> None:
    bank = true_bank()
    shifted = PrototypeBank(*(torch.roll(plane, moved, (1, 2)) for plane in (bank.prototypes, bank.masks)))
    model, scenes = model_of(shifted), tetrominoes.generate(20, 3)
    known = fits(model)
    np.testing.assert_allclose(known.iou.max(axis=1), 1, atol=1e-5)
    for n in range(len(scenes)):
        exact = painted(model, scenes.images[n], [some[0] for some in true_places(scenes, n, known)])
        assert exact.error < 1e-6
        assert failure(model, scenes, n, exact, known) is None


def test_two_ways_to_cut_the_same_picture_are_an_ambiguous_cut() -> None:
    model = model_of(true_bank())
    lying = scene((LYING_I, 0, 5, 5), (LYING_I, 0, 10, 5))
    squares = scene((SQUARE, 0, 5, 5), (SQUARE, 0, 5, 15))
    np.testing.assert_array_equal(lying.images, squares.images)
    other = painted(model, lying.images[0], places(model, squares))
    assert reason(model, lying, other) == "ambiguous cut"
    assert reason(model, squares, other) is None


def test_a_place_that_was_not_proposed_is_missed_and_one_that_was_is_a_greedy_mistake() -> None:
    scenes = scene((T, 0, 3, 3), (T, 1, 20, 15), (T, 2, 5, 20))
    few, many = model_of(true_bank(), peaks=1), model_of(true_bank())
    alone = painted(many, scenes.images[0], places(many, scenes)[:1])
    assert reason(few, scenes, alone) == "missed place"
    assert reason(many, scenes, alone) == "greedy mistake"


def test_right_objects_with_a_wrong_pixel_have_a_wrong_mask() -> None:
    bank, scenes = true_bank(), scene((SQUARE, 0, 5, 5), (T, 1, 20, 15))
    row, column = np.argwhere(bank.masks[SQUARE].numpy())[0]
    bank.masks[SQUARE, row, column] = 0
    model = model_of(bank)
    assert reason(model, scenes, model.decompose(scenes.images[0])) == "wrong mask"


def test_a_shape_that_no_mask_has_is_not_learned() -> None:
    bank, scenes = true_bank(), scene((SQUARE, 0, 5, 5), (T, 1, 20, 15))
    for plane in (bank.prototypes, bank.masks):
        plane[T] = plane[SQUARE]
    model = model_of(bank)
    assert reason(model, scenes, model.decompose(scenes.images[0])) == "shape not learned"


def test_every_scene_that_failed_is_drawn_and_no_other(tmp_path: Path) -> None:
    scenes, model = tetrominoes.generate(8, 1), model_of(true_bank())
    found = model.decompose_all(scenes.images)
    found[2] = found[5] = painted(model, scenes.images[2], [Place(SQUARE, -5, -5)])
    wrong = failures(model, scenes, found)
    assert [one.scene for one in wrong] == [2, 5]
    sizes = []
    for count in (1, 2):
        draw(wrong[:count], scenes, found, tmp_path / "failed.png")
        with Image.open(tmp_path / "failed.png") as picture:
            sizes.append(picture.size)
    assert sizes[1] == (2 * sizes[0][0], sizes[0][1])
    assert isinstance(wrong[0], Failure)


def test_what_is_found_has_the_number_of_the_true_object_that_it_overlaps() -> None:
    true, found = np.array([[1, 1, 2, 2, 0, 0]], np.int32), np.array([[2, 2, 1, 1, 1, 3]], np.int32)
    assert matched(true, found).tolist() == [[1, 1, 2, 2, 2, 5]]
    assert matched(true, np.zeros_like(true)).tolist() == [[0] * 6]


@pytest.mark.parametrize("preset", ["tetrominoes", "tetrominoes-paper"])
def test_the_true_prototypes_reach_more_than_anything_learned_whatever_gives_the_colours(preset: str) -> None:
    scenes = tetrominoes.generate(12, 5)
    assert (evaluate(with_true_prototypes(Config.preset(preset)), scenes).fg_ari or 0) > 0.98
