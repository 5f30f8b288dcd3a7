"""Parts that turn together are one object; things that are merely near each other are not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import ndimage

from pcdnet.config import ModelConfig
from pcdnet.training.assembling import join_turned_parts
from pcdnet.training.foreground import Blob, Foreground
from pcdnet.training.initialization import find_start
from pcdnet.training.quarters import quarters
from tests.training.posed_blobs import Shape, heart, hook, posed_blob, square, triangle

FRAME = 31, 31
QUARTERS = ModelConfig(prototype_size=FRAME, rotations=4, fine_poses=False)
ANY = ModelConfig(prototype_size=FRAME, rotations=24)
SIZES = ModelConfig(prototype_size=FRAME, rotations=24, scales=3, scale_range=(0.6, 1.0))
CORNERS = (0, 0), (0, 60), (60, 0), (60, 60)


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    inside: np.ndarray = (x + 0.2) ** 2 + (y + 0.9) ** 2 < 0.12
    return inside


def exclamation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A wedge that leans over a dot."""
    inside: np.ndarray = (np.abs(x) < 0.15 + 0.2 * (y + 0.3)) & (y > -0.3) & (y < 1) | dot(x, y)
    return inside


def stairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Three bars, each shorter than the one before."""
    bars = [(np.abs(y - 0.7 * (1 - n)) < 0.2) & (np.abs(x) < 1 - 0.3 * n) for n in range(3)]
    inside: np.ndarray = bars[0] | bars[1] | bars[2]
    return inside


def pieces(whole: Blob, top: int, left: int) -> list[Blob]:
    """The connected pieces of what lies there, as they are found."""
    labels, _ = ndimage.label(whole.mask, np.ones((3, 3)))
    found = []
    for n, box in enumerate(ndimage.find_objects(labels), start=1):
        mask, (rows, columns) = labels[box] == n, box
        place = {"top": top + rows.start, "left": left + columns.start}
        grey, energy = whole.grey[box], 0.36 * float(mask.sum())
        found.append(dataclasses.replace(whole, **place, mask=mask, solid=mask, grey=grey, energy=energy))
    return found


def scenes(shapes: tuple[Shape, ...], config: ModelConfig, count: int = 40) -> list[Blob]:
    """What is found in images with every shape, apart and in poses of a model by chance."""
    rng, found = np.random.default_rng(0), []
    for image in range(count):
        for shape, corner in zip(shapes, rng.permutation(CORNERS).tolist(), strict=False):
            if config.fine_poses:
                whole = posed_blob(shape, rng.uniform(0, 360), 11 * rng.uniform(*config.scale_range), rng, image=image)
            else:
                upright = posed_blob(shape, 0, 11, np.random.default_rng(0), image=image)
                whole = quarters(upright, int(rng.integers(4)), 0)
            found += pieces(whole, *(corner + rng.integers(0, 30, 2)).tolist())
    return found


def assembled(blobs: list[Blob], config: ModelConfig) -> list[Blob]:
    return join_turned_parts(blobs, 10, FRAME, np.random.default_rng(0), config)


@pytest.mark.parametrize("config", [QUARTERS, ANY, SIZES], ids=["quarters", "any angle", "any size"])
def test_parts_that_turn_together_are_one(config: ModelConfig) -> None:
    blobs = scenes((exclamation, stairs, heart, hook), config)
    assert len(blobs) == 7 * 40
    objects = assembled(blobs, config)
    assert 4 * 40 <= len(objects) <= 1.03 * 4 * 40
    assert sum(each.energy for each in objects) == pytest.approx(sum(blob.energy for blob in blobs))


@pytest.mark.parametrize("config", [ANY, SIZES], ids=["any angle", "any size"])
def test_things_that_are_near_each_other_in_another_way_every_time_stay_apart(config: ModelConfig) -> None:
    rng, blobs = np.random.default_rng(0), []
    for image in range(40):
        left = 0
        for shape in (heart, hook, triangle):
            size = 8 * rng.uniform(*config.scale_range)
            thing = posed_blob(shape, rng.uniform(0, 360), size, rng, image=image)
            blobs.append(dataclasses.replace(thing, top=int(rng.integers(8)), left=left))
            left += thing.mask.shape[1] + 1
    assert len(assembled(blobs, config)) == len(blobs)


def test_parts_that_also_stand_alone_stay_apart() -> None:
    blobs = scenes((exclamation, dot, dot, heart), ANY)
    assert len(assembled(blobs, ANY)) == len(blobs)


def test_a_start_with_poses_has_a_seed_for_every_whole_object() -> None:
    found = Foreground(scenes((exclamation, stairs, heart, square), ANY), 0.1, np.zeros((130, 130), np.float32))
    start = find_start(found, 10, FRAME, np.random.default_rng(0), config=ANY)
    assert sorted(ndimage.label(mask > 0.5)[1] for mask in start.seeds.masks) == [1, 1, 2, 3]
