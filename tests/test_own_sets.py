"""Laws of the benchmark of own pictures: a seed is a set, boxes fit the pixels, and scores see every fault."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.own import automatic, coins, film, icons, overlap, scoring, sheet, spots, text
from benchmarks.own.automatic import Found, Outcome
from benchmarks.own.pictures import OPAQUE, GroundTruth, Pictures, Thing, bounds, compose, sign
from PIL import Image

from pcdnet.data import video

MAKERS: dict[str, Callable[[int], Pictures]] = {
    "icons": lambda seed: icons.make(3, seed),
    "sheet": lambda seed: sheet.make(seed, side=300, count=12),
    "text": lambda seed: text.make(2, seed),
    "spots": lambda seed: spots.make(3, seed),
    "film": lambda seed: film.make(12, seed),
    "overlap": lambda seed: overlap.make(4, seed),
}
"""Small ones of all sets that are made by seed."""


@pytest.fixture(params=list(MAKERS))
def made(request: pytest.FixtureRequest) -> Pictures:
    """A small set."""
    return MAKERS[request.param](0)


def everything(pictures: Pictures) -> Outcome:
    """The outcome in which all is found as it is, each kind by a prototype of its own."""
    found = [
        Found(boxes=true.boxes, kinds=[f"{kind}" for kind in true.kinds], prototypes=true.kinds, depths=true.depths)
        for true in pictures.ground_truth
    ]
    return outcome(found, len(pictures.kinds))


def outcome(found: list[Found], prototypes: int) -> Outcome:
    """What a training found."""
    return Outcome(
        found=found, prototypes=prototypes, minutes=0.0, core_minutes=0.0, images_per_second=0.0, problems=[]
    )


def near(true: GroundTruth, size: tuple[int, ...], margin: int) -> np.ndarray:
    """The pixels inside boxes that are larger by a margin."""
    pixels = np.zeros(size, dtype=bool)
    for top, left, height, width in true.boxes.astype(int).tolist():
        pixels[max(0, top - margin) : top + height + margin, max(0, left - margin) : left + width + margin] = True
    return pixels


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_seed_always_makes_the_same_pictures_and_another_makes_others(name: str) -> None:
    one, same, other = MAKERS[name](5), MAKERS[name](5), MAKERS[name](6)
    for n, image in enumerate(one.images):
        np.testing.assert_array_equal(image, same.images[n])
        np.testing.assert_array_equal(one.ground_truth[n].boxes, same.ground_truth[n].boxes)
        assert (image != other.images[n]).any()


def test_ground_truth_lies_inside_the_picture_and_names_known_kinds(made: Pictures) -> None:
    assert len(made.images) == len(made.ground_truth)
    for image, true in zip(made.images, made.ground_truth, strict=True):
        assert len(true) > 0
        assert (true.boxes[:, :2] >= 0).all()
        assert (true.boxes[:, :2] + true.boxes[:, 2:] <= image.shape[:2]).all()
        assert (true.boxes[:, 2:] >= 1).all()
        assert (true.kinds < len(made.kinds)).all()
        assert len(set(true.depths.tolist())) == len(true)


@pytest.mark.parametrize(("name", "paper"), [("icons", icons.PAPER), ("overlap", icons.PAPER), ("sheet", (255.0,))])
def test_boxes_hold_all_ink_and_begin_and_end_with_it(name: str, paper: tuple[float, ...]) -> None:
    made = MAKERS[name](1)
    for image, true in zip(made.images, made.ground_truth, strict=True):
        ink = np.abs(image.reshape(*image.shape[:2], -1) - np.array(paper)).max(axis=-1)
        assert (ink[~near(true, ink.shape, margin=1)] == 0).all()
        for top, left, height, width in true.whole.astype(int).tolist():
            inside = ink[top : top + height, left : left + width] > 20
            assert bounds(inside) == (0, 0, height, width)


def test_letters_are_darker_than_the_light_around_them() -> None:
    made = text.make(2, 0)
    for image, true in zip(made.images, made.ground_truth, strict=True):
        blank = ~near(true, image.shape, margin=2)
        assert image[blank].max() > 1.5 * image[blank].min()  # uneven
        for top, left, height, width in true.whole.astype(int).tolist():
            around = (slice(max(0, top - 12), top + height + 12), slice(max(0, left - 12), left + width + 12))
            paper = np.median(image[around][blank[around]])
            rows = image[top : top + height, left : left + width].min(axis=1)
            assert (rows[[0, -1]] < paper - 8).all()
        narrow = {made.kinds[kind] for kind, box in zip(true.kinds, true.whole, strict=True) if box[3] <= 5}
        assert narrow <= set("fijlt")


def test_spots_fill_their_boxes_to_half_their_height() -> None:
    for kind in range(len(spots.KINDS)):
        height = spots.profile(kind, 18.0, 18.0)
        assert height.max() == pytest.approx(1)
        assert height[18, 18] == pytest.approx(1)
        top, left, rows, columns = bounds(height >= 0.5)
        assert (top + (rows - 1) / 2, left + (columns - 1) / 2) == (18, 18)
    made = spots.make(3, 0)
    for image, true in zip(made.images, made.ground_truth, strict=True):
        assert image.dtype == np.uint16
        assert image.min() >= 200
        assert 600 < image.max() <= 1_100
        dark = np.median(image[~near(true, image.shape, margin=6)])
        for top, left, height, width in true.boxes.astype(int).tolist():
            middle = image[top + height // 2 - 1 : top + height // 2 + 2, left + width // 2 - 1 : left + width // 2 + 2]
            assert middle.mean() > dark + 100


def test_the_camera_of_the_film_moves_over_one_ground() -> None:
    made = film.make(12, 0)
    earth = film.ground(np.random.default_rng(0)).round()
    seen = np.lib.stride_tricks.sliding_window_view(earth[..., 0], (film.HEIGHT, film.WIDTH))
    views = set()
    for image, true in zip(made.images[::5], made.ground_truth[::5], strict=True):
        bare = ~near(true, image.shape[:2], margin=1)
        rows, columns = (pixels[::997] for pixels in np.nonzero(bare))
        places = np.argwhere((seen[:, :, rows, columns] == image[rows, columns, 0]).all(axis=-1))
        assert len(places) == 1
        top, left = places[0].tolist()
        np.testing.assert_array_equal(image[bare], earth[top : top + film.HEIGHT, left : left + film.WIDTH][bare])
        views.add((top, left))
    assert len(views) == 3


def test_every_pair_overlaps_as_much_as_it_should_and_shows_who_is_in_front() -> None:
    made = overlap.make(20, 0)
    count = 0
    for image, true in zip(made.images, made.ground_truth, strict=True):
        for front, back in overlap.pairs(true):
            count += 1
            a, b = true.whole[front], true.whole[back]
            ends = np.minimum(a[:2] + a[2:], b[:2] + b[2:]) - np.maximum(a[:2], b[:2])
            share = ends.prod() / min(a[2:].prod(), b[2:].prod())
            assert overlap.LEAST <= share <= overlap.MOST
            np.testing.assert_array_equal(true.boxes[front], a)
            # The colour of the nearer one is found at its opaque pixels, wherever the other one lies.
            alpha = sign(icons.SYMBOLS[true.kinds[front]], icons.SIZE).alpha
            top, left, height, width = bounds(alpha >= 0.25)
            solid = alpha[top : top + height, left : left + width] == 1
            window = image[int(a[0]) : int(a[0] + a[2]), int(a[1]) : int(a[1] + a[3])]
            assert len(np.unique(window[solid], axis=0)) == 1
    assert count >= 38


def test_a_thing_in_front_hides_what_is_behind_it() -> None:
    square = np.ones((4, 4))
    things = [Thing(0, square, 2, 2, (200.0,)), Thing(1, square, 2, 4, (100.0,)), Thing(2, square, 0, 8, (50.0,))]
    image, true = compose(np.zeros((10, 10, 1)), things)
    assert image[3, :, 0].tolist() == [0, 0, 200, 200, 200, 200, 100, 100, 50, 50]
    assert true.boxes.tolist() == [[2, 2, 4, 4], [2, 6, 4, 2], [0, 8, 4, 2]]
    assert true.whole.tolist() == [[2, 2, 4, 4], [2, 4, 4, 4], [0, 8, 4, 2]]
    assert true.counted.tolist() == [True, True, True]
    _, true = compose(np.zeros((10, 10, 1)), [Thing(0, square, 0, 0, (1.0,)), Thing(1, square, 1, 1, (1.0,))])
    assert true.counted.tolist() == [True, False]
    assert compose(np.zeros((10, 10, 1)), [Thing(0, square * OPAQUE, 10, -4, (1.0,))])[1].boxes.shape == (0, 4)


def test_coins_are_brighter_than_what_lies_between_them() -> None:
    pytest.importorskip("skimage", reason="the photograph comes with scikit-image")
    made = coins.make()
    (image,), (true,) = made.images, made.ground_truth
    assert len(true) == 24
    assert len(overlap.pairs(true)) == 0
    assert near(true, image.shape, 0).sum() == true.boxes[:, 2:].prod(axis=1).sum()
    for top, left, height, width in true.boxes.astype(int).tolist():
        edge = image[top - 3 : top + height + 3, left - 3 : left + width + 3].astype(float)
        corners = np.mean([edge[:5, :5], edge[:5, -5:], edge[-5:, :5], edge[-5:, -5:]])
        assert edge[8:-8, 8:-8].mean() > corners + 30


@pytest.mark.parametrize("name", ["icons", "sheet", "spots", "film"])
def test_what_is_written_is_what_was_made(name: str, tmp_path: Path) -> None:
    made = MAKERS[name](0)
    if name == "film":
        pytest.importorskip("av", reason="videos need the extra video")
        images = list(video.read(automatic.write(made, tmp_path / "film.mp4")).images)
    else:
        images = [np.asarray(Image.open(path)) for path in sorted(automatic.write(made, tmp_path / "some").iterdir())]
    assert len(images) == len(made.images)
    for image, original in zip(images, made.images, strict=True):
        np.testing.assert_array_equal(image, original)


def test_finding_everything_scores_full_marks_that_json_can_hold(made: Pictures) -> None:
    for score in (scoring.icons, scoring.sheet, scoring.plain, scoring.spots, scoring.depth):
        json.dumps(score(made, everything(made)))
    for score in (scoring.icons, scoring.sheet, scoring.plain, scoring.spots):
        found = score(made, everything(made))
        assert (found["f1"], found["purity"]) == (1, 1)
    assert scoring.sheet(made, everything(made))["count_error"] == 0
    nothing = scoring.plain(made, outcome(automatic.read([], len(made.images)), 0))
    assert (nothing["f1"], nothing["count"]) == (0, 0)


def test_prototypes_without_a_kind_are_junk_and_a_second_one_of_a_kind_is_a_double() -> None:
    made = icons.make(30, 0)
    all_found = everything(made)
    full = scoring.icons(made, all_found)
    assert (full["kinds_found"], full["junk"], full["doubles"]) == (9, 0, 0)
    assert scoring.icons(made, dataclasses.replace(all_found, prototypes=13))["junk"] == 4
    split = [
        dataclasses.replace(
            one,
            prototypes=np.where(one.prototypes == 3, 9 + n % 2, one.prototypes),
            kinds=[f"{9 + n % 2}" if kind == "3" else kind for kind in one.kinds],
        )
        for n, one in enumerate(all_found.found)
    ]
    twice = scoring.icons(made, outcome(split, 10))
    assert (twice["kinds_found"], twice["junk"], twice["doubles"]) == (9, 0, 1)
    joined = [
        dataclasses.replace(one, kinds=["0" if kind == "1" else kind for kind in one.kinds]) for one in all_found.found
    ]
    assert scoring.icons(made, outcome(joined, 9))["kinds_found"] == 8


def test_a_wrong_kind_or_a_find_too_many_is_an_error_of_the_count() -> None:
    made = sheet.make(0, side=400, count=30)
    (found,) = everything(made).found
    renamed = dataclasses.replace(found, kinds=[found.kinds[1], *found.kinds[1:]])
    assert found.kinds[0] != found.kinds[1]
    assert scoring.sheet(made, outcome([renamed], 9))["count_error"] == 2
    more = Found(
        boxes=np.vstack([found.boxes, [[0, 0, 3, 3]]]),
        kinds=[*found.kinds, "junk"],
        prototypes=np.append(found.prototypes, 9),
        depths=np.append(found.depths, 99),
    )
    assert scoring.sheet(made, outcome([more], 10))["count_error"] == 1


def test_the_wrong_order_is_found_as_well_as_the_right_one_and_is_wrong() -> None:
    made = overlap.make(20, 0)
    right = everything(made)
    assert scoring.depth(made, right)["front_right"] == 1
    turned = [
        dataclasses.replace(one, boxes=true.whole, depths=-one.depths)
        for one, true in zip(right.found, made.ground_truth, strict=True)
    ]
    wrong = scoring.depth(made, outcome(turned, 9))
    assert wrong["front_right"] == 0
    half = scoring.depth(made, outcome([*right.found[:10], *automatic.read([], 10)], 9))
    assert (half["front_right"], half["front_right_of_all"]) == (1, half["pairs_found"] / half["pairs"])
    assert wrong["pairs_found"] == wrong["pairs"] == scoring.depth(made, right)["pairs_found"]


def test_spots_may_be_three_pixels_off_and_what_does_not_count_costs_nothing() -> None:
    made = spots.make(2, 0)
    for away, f1 in ((2.9, 1), (3.1, 0)):
        moved = [
            dataclasses.replace(one, boxes=one.boxes + np.array([away, 0, 0, 0])) for one in everything(made).found
        ]
        assert scoring.spots(made, outcome(moved, 5))["f1"] == f1
    halves = [dataclasses.replace(true, counted=np.arange(len(true)) % 2 == 0) for true in made.ground_truth]
    partly = dataclasses.replace(made, ground_truth=halves)
    scores = scoring.plain(partly, everything(made))
    assert (scores["f1"], scores["precision"]) == (1, 1)


def test_results_are_read_by_the_number_of_the_picture_and_kinds_before_prototypes() -> None:
    seen = {"prototype": 4, "depth": 1, "box": [1, 2, 3, 4]}
    lines = [
        json.dumps({"name": "pictures/0002.png", "objects": [seen, {**seen, "box": None}]}),
        json.dumps({"name": "film.mp4#0", "objects": [{**seen, "kind": "red rook"}]}),
    ]
    first, second, third = automatic.read(lines, 3)
    assert (first.kinds, second.kinds, third.kinds) == (["red rook"], [], ["4"])
    assert third.boxes.tolist() == [[1, 2, 3, 4]]
