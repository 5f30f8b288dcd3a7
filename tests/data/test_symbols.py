"""Laws of the generated symbols: the ground truth fits the ink, turns are what they say, and no two kinds are alike."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from pcdnet.data.opening import open_data
from pcdnet.data.outlines import drawn
from pcdnet.data.symbols import KINDS, REACH, SCALES, SIZE, SYMBOLS, TURNED, generate, sheet
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes, visible_boxes

NAMES = {"upright": "symbols", "quarter": "symbols:quarter", "any": "symbols:any"}


@pytest.fixture(scope="module", params=TURNED)
def scenes(request: pytest.FixtureRequest) -> Scenes:
    """A few parts of drawings."""
    return generate(40, 5, request.param)


def known(scenes: Scenes) -> list[tuple[np.ndarray, np.ndarray, Boxes, np.ndarray]]:
    """Image, labels, boxes and poses of every scene."""
    assert scenes.labels is not None
    assert scenes.boxes is not None
    poses = [boxes.poses for boxes in scenes.boxes if boxes.poses is not None]
    return [*zip(scenes.images[..., 0], scenes.labels, scenes.boxes, poses, strict=True)]


def ink(kind: int, angle: float = 0.0) -> np.ndarray:
    """A kind's ink in a square of fixed size."""
    return drawn(SYMBOLS[KINDS[kind]].outline, REACH, angle=angle)[0]


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """Ink that two have in common, of all."""
    return float(np.minimum(one, other).sum() / np.maximum(one, other).sum())


@pytest.mark.parametrize("turned", TURNED)
def test_more_images_of_a_seed_begin_with_the_fewer_and_other_seeds_give_others(turned: str) -> None:
    fewer, more = open_data(NAMES[turned], count=3, seed=5), generate(5, 5, turned)
    assert np.array_equal(fewer.images, more.images[:3])
    for one, other in zip(known(fewer), known(more), strict=False):
        assert np.array_equal(one[1], other[1])
        assert np.array_equal(one[3], other[3])
    assert not np.array_equal(generate(3, 6, turned).images, fewer.images)


def test_boxes_are_tight_around_labels_which_are_inside_and_apart(scenes: Scenes) -> None:
    assert scenes.images.shape[1:] == (SIZE, SIZE, 1)
    for _, labels, boxes, _ in known(scenes):
        assert 4 <= len(boxes) == labels.max() <= 9
        assert np.array_equal(np.array(visible_boxes(labels.astype(np.int32), len(boxes))), boxes.corners)
        covered = np.zeros((SIZE, SIZE), int)
        for row, column, height, width in boxes.corners.astype(int).tolist():
            assert min(row, column) >= 1
            assert max(row + height, column + width) <= SIZE - 1
            covered[row : row + height + 1, column : column + width + 1] += 1
        assert covered.max() == 1


def test_ink_is_darker_than_the_paper_around_it(scenes: Scenes) -> None:
    for image, labels, _, _ in known(scenes):
        assert np.percentile(image[labels > 0], 90) < image[labels == 0].mean() - 50
        assert image[labels == 0].mean() > 215


def test_the_ground_truth_draws_the_symbols_again(scenes: Scenes) -> None:
    for _, labels, boxes, poses in known(scenes):
        for n, (kind, pose) in enumerate(zip(boxes.kinds, poses.tolist(), strict=True), start=1):
            outline = SYMBOLS[KINDS[kind]].outline
            alpha, top, left = drawn(outline, REACH, centre=(pose[0], pose[1]), angle=pose[2], scale=pose[3])
            again = {(top + row, left + column) for row, column in np.argwhere(alpha >= 0.5).tolist()}
            seen = {(row, column) for row, column in np.argwhere(labels == n).tolist()}
            assert len(again & seen) >= 0.97 * len(again | seen)  # of rounding at the edge


def test_poses_are_as_asked_for() -> None:
    all_poses = {turned: np.concatenate([poses for *_, poses in known(generate(40, 5, turned))]) for turned in TURNED}
    assert np.unique(all_poses["upright"][:, 2:], axis=0).tolist() == [[0, 1, 0]]
    assert np.unique(all_poses["quarter"][:, 2:], axis=0).tolist() == [[angle, 1, 0] for angle in (0, 90, 180, 270)]
    for turned in ("upright", "quarter"):
        assert (all_poses[turned][:, :2] % 1 == 0).all()
    centres, angles, scales = all_poses["any"][:, :2], all_poses["any"][:, 2], all_poses["any"][:, 3]
    assert 0.4 < np.mean(centres % 1) < 0.6
    assert np.histogram(angles, 6, (0, 360))[0].min() > 20
    assert SCALES[0] <= scales.min() < 0.75 < 1.35 < scales.max() <= SCALES[1]


def test_quarter_turns_move_whole_pixels() -> None:
    shapes: dict[int, set[bytes]] = {}
    for _, labels, boxes, poses in known(generate(40, 5, "quarter")):
        for n, (corners, kind) in enumerate(zip(boxes.corners.astype(int), boxes.kinds, strict=True), start=1):
            top, left, height, width = corners
            cut = labels[top : top + height, left : left + width] == n
            back = np.rot90(cut, -int(poses[n - 1, 2]) // 90)
            shapes.setdefault(int(kind), set()).add(bytes(back.shape) + back.tobytes())
    assert sorted(shapes) == list(range(len(KINDS)))
    assert {len(seen) for seen in shapes.values()} == {1}


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_each_symbol_has_the_symmetry_that_it_says(kind: int) -> None:
    symbol, upright = SYMBOLS[KINDS[kind]], ink(kind)
    for angle in range(15, 360, 15):
        alike = likeness(upright, ink(kind, angle))
        assert (alike > 0.95) == (angle % (360 / symbol.symmetry) == 0), (angle, alike)
    mirrored = max(likeness(upright[:, ::-1], ink(kind, angle)) for angle in range(0, 360, 5))
    assert (mirrored < 0.9) == symbol.chiral, mirrored


def test_no_symbol_is_another_one_turned_or_mirrored() -> None:
    assert len(KINDS) == 12
    assert sum(symbol.symmetry == 1 for symbol in SYMBOLS.values()) == 10
    for one, other in combinations(range(len(KINDS)), 2):
        turned = [ink(other, angle) for angle in range(0, 360, 15)]
        assert max(likeness(ink(one), each[:, ::step]) for each in turned for step in (1, -1)) < 0.65


@pytest.mark.parametrize("turned", TURNED)
def test_a_sheet_holds_as_many_symbols_as_asked_for(turned: str) -> None:
    made = sheet(512, 40, 3, turned)
    ((image, labels, boxes, poses),) = known(made)
    assert image.shape == labels.shape == (512, 512)
    assert len(boxes) == len(poses) == labels.max() == 40
    assert np.array_equal(made.images, sheet(512, 40, 3, turned).images)
    assert np.array_equal(np.array(visible_boxes(labels.astype(np.int32), 40)), boxes.corners)


@pytest.mark.parametrize(
    ("name", "count", "seed", "cure"),
    [
        ("symbols", 500_001, 0, "give a count of 1 to 500000"),
        ("symbols:any", 1, -1, "give 0 or a positive integer"),
        ("symbols:half", 1, 0, "symbols cannot be turned 'half'; use one of upright, quarter, any"),
        ("symbols:", 1, 0, "symbols cannot be turned ''; use one of upright, quarter, any"),
    ],
)
def test_what_cannot_be_made_is_refused(name: str, count: int, seed: int, cure: str) -> None:
    with pytest.raises(PcdnetError, match=cure):
        open_data(name, count=count, seed=seed)


@pytest.mark.parametrize(
    ("size", "count", "cure"),
    [(64, 3, "give a size of 128 to 8192"), (200, 0, "a count of 1 to"), (128, 90, "90 symbols do not fit on a sheet")],
)
def test_sheets_that_cannot_be_are_refused(size: int, count: int, cure: str) -> None:
    with pytest.raises(PcdnetError, match=cure):
        sheet(size, count, 0)
