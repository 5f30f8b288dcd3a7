"""Laws of distinct colours: a few tight clusters far apart are found, and nothing is made of one colour or shades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.colours import SEEN
from pcdnet.config import ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import STRONGEST, Names
from pcdnet.training.colours import clusters, distinct_colours, with_colours

PADDLES = np.array([[0.84, 0.51, 0.29], [0.36, 0.73, 0.36]])


def around(middles: np.ndarray, count: int, spread: float, seed: int = 0) -> np.ndarray:
    """So many colours around each of some."""
    rng = np.random.default_rng(seed)
    return rng.permutation(middles.repeat(count, axis=0)) + rng.normal(
        0, spread, (len(middles) * count, middles.shape[1])
    )


def scenes(colours: np.ndarray, prototypes: np.ndarray | int = 0) -> list[Decomposition]:
    """Scenes with an object in each of the colours."""
    kinds = np.broadcast_to(prototypes, len(colours))
    return [
        Decomposition.from_dict(
            {"size": [4, 4], "objects": [{"prototype": kind, "position": [0, 0], "colour": colour}]}
        )
        for colour, kind in zip(colours.tolist(), kinds.tolist(), strict=True)
    ]


def near(found: tuple[tuple[float, ...], ...], middles: np.ndarray) -> bool:
    """Whether colours are found in any order."""
    apart = np.linalg.norm(np.array(found)[:, None] - middles, axis=-1)
    return len(found) == len(middles) and bool((apart.min(axis=0) < 0.05).all())


def test_paddles_in_two_colours_have_two() -> None:
    found = distinct_colours(scenes(around(PADDLES, 40, 0.01)), Names(count=2))
    assert list(found) == [0]
    assert near(found[0], PADDLES)


@given(st.integers(2, 6), st.integers(0, 1000))
@settings(max_examples=20)
def test_two_to_six_colours_are_found_in_an_order_that_their_frequency_does_not_change(count: int, seed: int) -> None:
    corners = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], float)[:count]
    often = [30 - 4 * n for n in range(count)]
    colours = np.concatenate([around(corner[None], n, 0.01, seed) for corner, n in zip(corners, often, strict=True)])
    found = clusters(np.random.default_rng(seed).permutation(colours))
    assert near(found, corners)
    assert list(found) == sorted(found)


def test_shades_between_two_colours_are_a_continuum() -> None:
    share = np.linspace(0, 1, 300)[:, None]
    assert clusters(PADDLES[0] * share + PADDLES[1] * (1 - share)) == ()
    assert clusters(share) == ()
    assert clusters(np.random.default_rng(0).random((300, 3))) == ()


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05, 0.15])
def test_noise_around_one_colour_is_one_colour(spread: float) -> None:
    for seed in range(5):
        assert clusters(around(PADDLES[:1], 100, spread, seed)) == ()


def test_the_same_colour_in_many_brightnesses_is_one_colour() -> None:
    dark = np.random.default_rng(0).uniform(0.4, 1, (200, 1))
    assert clusters(dark * PADDLES[0]) == ()


def test_grey_objects_that_are_dark_or_bright_have_two() -> None:
    assert near(clusters(around(np.array([[0.3], [0.9]]), 30, 0.02)), np.array([[0.3], [0.9]]))


def test_colours_that_nobody_sees_apart_are_one() -> None:
    for apart, count in ((0.5 * SEEN, 0), (1.5 * SEEN, 2)):
        assert len(clusters(np.array([[0.5], [0.5 + apart]]).repeat(50, axis=0))) == count


def test_a_few_strays_do_not_matter_but_many_do() -> None:
    rng = np.random.default_rng(0)
    colours = around(PADDLES, 100, 0.01)
    assert near(clusters(np.concatenate([colours, rng.random((6, 3))])), PADDLES)
    assert clusters(np.concatenate([colours, rng.random((40, 3))])) == ()


def test_whatever_the_colours_are_they_can_be_kept(tmp_path: Path) -> None:
    colours = np.array([[1e6, 0.0, 0.0], [0.0, 0.123456, -1e6]], np.float32).repeat(9, axis=0)
    found = distinct_colours(scenes(colours), Names(count=1))
    assert found == {0: ((0.0, 0.123, -STRONGEST), (STRONGEST, 0.0, 0.0))}
    Names(count=1, colours=found).write(tmp_path)
    assert Names.read(tmp_path, 1).colours == found


def test_too_few_objects_make_no_colour() -> None:
    assert clusters(PADDLES.repeat(2, axis=0)) == ()
    assert len(clusters(PADDLES.repeat(3, axis=0))) == 2
    assert clusters(PADDLES[[0] * 300 + [1] * 3]) == ()  # three of 303 are rather a mistake
    assert clusters(np.zeros((0, 3))) == ()


def test_prototypes_of_one_name_are_looked_at_together() -> None:
    colours = PADDLES.repeat(20, axis=0)
    found = scenes(colours, np.array([0, 2]).repeat(20))
    assert distinct_colours(found, Names(count=3)) == {}
    pooled = distinct_colours(found, Names(count=3, given={0: "paddle", 2: "paddle"}))
    assert list(pooled) == [0, 2]
    assert pooled[0] == pooled[2]
    assert near(pooled[0], PADDLES)


def test_objects_that_are_nearly_hidden_are_left_out() -> None:
    instances = np.zeros((6, 6), np.int32)
    instances[:3], instances[5, 5] = 1, 2
    hidden = [
        Decomposition(
            prototype_ids=np.zeros(2, np.int32),
            positions=np.zeros((2, 2), np.int32),
            colours=np.array([PADDLES[0], colour], np.float32),
            error_reductions=np.ones(2, np.float32),
            instances=instances,
            reconstruction=np.zeros((6, 6, 3), np.float32),
            error=0.0,
        )
        for colour in (PADDLES[1],) * 10
    ]
    whole = scenes(PADDLES[:1].repeat(40, axis=0))
    for one in whole:
        one.instances[:3] = 1
    assert distinct_colours([*whole, *hidden], Names(count=1)) == {}


def test_no_object_has_no_colour() -> None:
    assert distinct_colours([], Names(count=2)) == {}
    assert distinct_colours(scenes(PADDLES[:0]), Names(count=2)) == {}


def test_a_model_without_colours_has_no_distinct_ones_and_earlier_ones_are_gone() -> None:
    square = torch.zeros(1, 7, 7)
    square[:, 1:-1, 1:-1] = 1
    images = np.zeros((12, 16, 16, 3), np.uint8)
    images[::2, 4:9, 4:9], images[1::2, 4:9, 6:11] = (230, 30, 30), (30, 30, 230)
    former = Names(count=1, given={0: "square"}, colours={0: ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0))})
    config = ModelConfig(num_prototypes=1, prototype_size=(7, 7), min_error_reduction=1.0)
    for chosen, counts in ((config, [2]), (replace(config, colour="none"), [])):
        names = with_colours(PCDNet.from_bank(PrototypeBank(square, square), chosen), images, former)
        assert names.given == former.given
        assert [len(colours) for colours in names.colours.values()] == counts
