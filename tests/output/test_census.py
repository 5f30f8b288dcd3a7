"""Laws of the census: every object is counted once, in its kind, with the size that is seen of it and its colour."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.kinds import Kinds
from pcdnet.names import Names
from pcdnet.output.census import COLOURS, Census, brightness, census, usual_colours

BANK = BankArrays(np.full((3, 4, 4), 0.5, np.float32), np.ones((3, 4, 4), np.float32))
NAMES = Names(count=3, given={0: "ball", 2: "ball"}, colours={1: ((0.9, 0.1, 0.1), (0.1, 0.8, 0.2))})


def scene(*objects: tuple[int, tuple[int, int, int, int], tuple[float, float, float]]) -> Decomposition:
    """Objects as (prototype, what is seen of it as top, left, height and width, colour)."""
    instances = np.zeros((12, 16), np.int32)
    for n, (_, (top, left, height, width), _) in enumerate(objects):
        instances[top : top + height, left : left + width] = n + 1
    count = len(objects)
    return Decomposition(
        prototype_ids=np.array([p for p, _, _ in objects], np.int32).reshape(count),
        positions=np.zeros((count, 2), np.int32),
        colours=np.array([colour for *_, colour in objects], np.float32).reshape(count, 3),
        error_reductions=np.ones(count, np.float32),
        instances=instances,
        reconstruction=np.zeros((12, 16, 3), np.float32),
        error=0.0,
    )


RED, GREEN, WHITE = (0.9, 0.1, 0.1), (0.1, 0.8, 0.2), (1.0, 1.0, 1.0)


def counted(*scenes: Decomposition) -> Census:
    """The census of some scenes."""
    return census(scenes, Kinds(NAMES), BANK)


def test_kinds_are_counted_image_by_image_with_merges_and_colours() -> None:
    one = scene((0, (0, 0, 2, 3), WHITE), (2, (4, 4, 2, 2), WHITE), (1, (8, 8, 1, 5), RED))
    two = scene((1, (0, 0, 4, 4), GREEN), (1, (6, 6, 3, 4), GREEN))
    found = counted(one, two, scene())
    names = [kind.kind.name for kind in found.kinds if kind.kind is not None]
    assert names == ["ball", "prototype 1 red", "prototype 1 green"]
    assert [kind.counts.tolist() for kind in found.kinds] == [[2, 0, 0], [1, 0, 0], [0, 2, 0]]
    assert [kind.sizes.tolist() for kind in found.kinds] == [[[2, 3], [2, 2]], [[1, 5]], [[4, 4], [3, 4]]]
    assert [kind.areas.tolist() for kind in found.kinds] == [[6, 4], [5], [16, 12]]
    assert found.everything.counts.tolist() == [3, 2, 0]
    assert found.everything.objects == sum(kind.objects for kind in found.kinds) == 5


def test_hidden_prototypes_are_left_out() -> None:
    one = scene((0, (0, 0, 2, 3), WHITE), (2, (4, 4, 2, 2), WHITE), (1, (8, 8, 1, 5), RED))
    found = census([one, scene()], Kinds(NAMES.hiding([1, 2])), BANK)
    assert [kind.counts.tolist() for kind in found.kinds] == [[1, 0]]  # the ball that prototype 0 is, too, stays
    assert found.everything.counts.tolist() == [1, 0]
    assert found.everything.areas.tolist() == [6]


def test_what_others_hide_is_counted_and_has_no_size() -> None:
    hidden = scene((0, (0, 0, 2, 2), WHITE), (0, (0, 0, 0, 0), WHITE))
    found = counted(hidden)
    assert found.kinds[0].counts.tolist() == [2]
    assert found.kinds[0].sizes.tolist() == [[2, 2]]


def test_colours_are_those_that_are_seen() -> None:
    assert brightness(BANK).tolist() == [0.5] * 3
    [(colour, share)] = counted(scene((0, (0, 0, 2, 2), WHITE))).kinds[0].colours
    assert (colour.tolist(), share) == ([128, 128, 128], 1.0)


def test_numbers_in_short_are_ready_for_json_even_of_nothing() -> None:
    for found in (counted(), counted(scene()), counted(scene((1, (0, 0, 4, 4), RED)))):
        short = json.loads(json.dumps(found.to_dict()))
        assert [kind["name"] for kind in short["kinds"]] == ["ball", "prototype 1 red", "prototype 1 green"]
        assert short["kinds"][0]["height"] is None
    assert short["kinds"][1]["height"] == {"mean": 4, "median": 4, "p10": 4, "p90": 4}
    assert short["kinds"][1]["colours"] == [{"word": "red", "hex": "#730d0d", "share": 1}]


def test_poses_are_counted_by_kind_where_there_are_any() -> None:
    one = scene((0, (0, 0, 2, 3), WHITE), (2, (4, 4, 2, 2), WHITE), (1, (8, 8, 1, 5), RED))
    assert counted(one).everything.poses is None
    assert "poses" not in json.dumps(counted(one).to_dict())
    poses = np.array([[90, 0.5, 0], [352.6, 2, 1], [7.6, 1, 0]], np.float32)
    found = counted(one.with_poses(poses), scene())
    ball, red = found.kinds[0].poses, found.kinds[1].poses
    assert ball is not None
    assert red is not None
    assert np.flatnonzero(ball.directions).tolist() == [0, 6]  # 352.6 is nearer to 0 than to 345
    assert np.flatnonzero(red.directions).tolist() == [1]
    assert ball.percents.tolist() == [50, 200]
    words = found.to_dict()
    assert words["poses"]["mirrored"] == pytest.approx(1 / 3, abs=1e-4)
    assert words["kinds"][0]["poses"]["scale"]["mean"] == 1.25
    json.dumps(words, allow_nan=False)


def test_usual_colours_come_by_frequency_and_near_ones_are_one() -> None:
    red, blue = [0.9, 0.0, 0.0], [0.0, 0.0, 0.6]
    usual = usual_colours(np.array([red, blue, red, [0.85, 0.02, 0.0]]))
    assert [share for _, share in usual] == [0.75, 0.25]
    assert usual[0][0][0] > 200
    assert usual[1][0].tolist() == [0, 0, 153]
    grey = usual_colours(np.array([[0.5], [2.0]]))
    assert sorted(colour.tolist() for colour, _ in grey) == [[128] * 3, [255] * 3]


@given(colours=st.lists(st.tuples(*[st.floats(-1, 3)] * 3), min_size=1, max_size=30))
def test_there_are_never_more_usual_colours_than_are_shown(colours: list[tuple[float, float, float]]) -> None:
    usual = usual_colours(np.array(colours))
    shares = [share for _, share in usual]
    assert 1 <= len(usual) <= COLOURS
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
