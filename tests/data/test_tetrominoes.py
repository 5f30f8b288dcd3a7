"""Laws of Tetrominoes: generated scenes obey the rules of the data set, and the true prototypes explain them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, label

from pcdnet.data.tetrominoes import (
    COLOURS,
    SHAPES,
    TILE,
    TetrominoScenes,
    generate,
    render,
    true_prototypes,
)
from pcdnet.errors import PcdnetError


@pytest.fixture(scope="module")
def scenes() -> TetrominoScenes:
    """Scenes enough to show every shape, colour and place."""
    return generate(2000, seed=3)


def turned(shape: np.ndarray) -> frozenset[tuple[int, int]]:
    """The tiles of a shape after a quarter turn."""
    cells = np.stack([shape[:, 1], -shape[:, 0]], axis=1)
    return frozenset(map(tuple, (cells - cells.min(axis=0)).tolist()))


def test_shapes_are_all_nineteen_fixed_tetrominoes() -> None:
    cells = {frozenset(map(tuple, shape.tolist())) for shape in SHAPES}
    assert len(cells) == 19
    for shape in SHAPES:
        assert shape.min(axis=0).tolist() == [0, 0]
        picture = np.zeros((4, 4), dtype=int)
        picture[tuple(shape.T)] = 1
        assert picture.sum() == 4
        assert label(picture)[1] == 1
        assert turned(shape) in cells


def test_shapes_are_wide_before_tall_in_every_family() -> None:
    heights, widths = (SHAPES.max(axis=1) + 1).T
    wide = "".join("w" if w > h else "t" if h > w else "s" for h, w in zip(heights, widths, strict=True))
    assert wide == "wt" + "wwwwtttt" + "wwtt" + "wwtt" + "s"


def test_every_sprite_is_whole_inside_and_unhidden(scenes: TetrominoScenes) -> None:
    for sprite in (1, 2, 3):
        mask = scenes.labels == sprite
        assert (mask.sum(axis=(1, 2)) == 100).all()
        assert (mask.any(axis=2).argmax(axis=1) == scenes.rows[:, sprite - 1]).all()
        assert (mask.any(axis=1).argmax(axis=1) == scenes.columns[:, sprite - 1]).all()


def test_sprites_wear_their_colour_and_all_else_is_black(scenes: TetrominoScenes) -> None:
    assert not scenes.images[scenes.labels == 0].any()
    bits = np.concatenate([np.zeros((len(scenes), 1, 3), np.uint8), scenes.colours], axis=1)
    worn = np.take_along_axis(bits, scenes.labels.reshape(len(scenes), -1, 1).astype(int), axis=1)
    assert ((scenes.images > 0) == worn.reshape(scenes.images.shape)).all()
    for sprite in (1, 2, 3):
        total = (scenes.images.max(axis=3) * (scenes.labels == sprite)).sum(axis=(1, 2), dtype=int)
        assert (total == 4 * TILE.sum(dtype=int)).all()


def test_every_shape_colour_and_position_is_drawn(scenes: TetrominoScenes) -> None:
    assert {*scenes.shapes.ravel().tolist()} == set(range(19))
    assert {tuple(bits) for bits in scenes.colours.reshape(-1, 3).tolist()} == {*map(tuple, COLOURS.tolist())}
    assert {*scenes.rows.ravel().tolist()} == {*scenes.columns.ravel().tolist()} == set(range(30))


def test_colours_are_uniform(scenes: TetrominoScenes) -> None:
    counts = np.unique(scenes.colours.reshape(-1, 3), axis=0, return_counts=True)[1]
    assert np.abs(counts / 1000 - 1).max() < 0.15


def test_sprites_may_touch(scenes: TetrominoScenes) -> None:
    touching = [(binary_dilation(labels == 1) & (labels > 1)).any() for labels in scenes.labels[:200]]
    assert 0.05 < np.mean(touching) < 0.95


def test_acceptance_is_that_of_the_literal_sampler() -> None:
    # Same stream, same rules, but overlap is found by painting.
    rng = np.random.Generator(np.random.PCG64(11))
    shapes, hues, rows, columns = (rng.integers(0, n, (4096, 3), dtype=np.int64) for n in (19, 6, 30, 30))
    kept = []
    for index in range(4096):
        canvas = np.zeros((50, 50), dtype=int)
        for s, row, column in zip(shapes[index], rows[index], columns[index], strict=True):
            for r, c in SHAPES[s] * 5 + [row, column]:
                canvas[r : r + 5, c : c + 5] += 1
        if canvas.max() == 1 and canvas[:35, :35].sum() == 300:
            kept.append(index)
    drawn = generate(len(kept), seed=11)
    assert (drawn.shapes == shapes[kept]).all()
    assert (drawn.colours == COLOURS[hues[kept]]).all()
    assert (drawn.rows == rows[kept]).all()
    assert (drawn.columns == columns[kept]).all()


def test_fewer_scenes_of_a_seed_are_the_first_of_more(scenes: TetrominoScenes) -> None:
    few = generate(150, seed=3)
    assert len(few) == 150
    for name in ("images", "labels", "shapes", "colours", "rows", "columns"):
        assert (getattr(few, name) == getattr(scenes, name)[:150]).all()
    assert (generate(150, seed=4).images != few.images).any()


def test_a_seed_gives_the_same_scenes_on_every_platform() -> None:
    digest = hashlib.sha256(generate(100, seed=0).images.tobytes()).hexdigest()
    assert digest == "35c316f451f0787e79ae79fa747ac42a7aeaa19444c1fd144517e00308c39b58"


def test_scenes_are_float_images_with_names(scenes: TetrominoScenes) -> None:
    listed = list(scenes.scenes())
    assert len(listed) == 2000
    assert listed[7].name == "re-created Tetrominoes, seed 3-7"
    assert listed[7].image.dtype == np.float32
    assert listed[7].labels is not None
    assert listed[7].labels.dtype == np.int32
    assert (np.rint(listed[7].image * 255) == scenes.images[7]).all()
    assert (listed[7].labels == scenes.labels[7]).all()


def test_later_sprites_hide_earlier_ones() -> None:
    corner = np.array([[4, 4]])
    scenes = render(np.array([[18, 18]]), np.array([[[1, 0, 0], [0, 0, 1]]]), corner, corner)
    assert np.unique(scenes.labels).tolist() == [0, 2]
    assert (scenes.images[0, 4:9, 4:9, 2] == TILE).all()
    assert not scenes.images[..., 0].any()


@pytest.mark.parametrize("size", [20, 25, 26])
def test_true_prototypes_explain_every_pixel_of_generated_scenes(scenes: TetrominoScenes, size: int) -> None:
    prototypes, masks = true_prototypes(size)
    assert prototypes.shape == masks.shape == (19, size, size)
    assert (masks == (prototypes > 0)).all()
    canvas = np.zeros((50, 3 * 35 + size, 3 * 35 + size, 3))
    for index in range(50):
        for sprite in range(3):
            s = scenes.shapes[index, sprite]
            height, width = (SHAPES[s].max(axis=0) + 1) * 5
            row = 35 + scenes.rows[index, sprite] - (size - height) // 2
            column = 35 + scenes.columns[index, sprite] - (size - width) // 2
            painted = prototypes[s][:, :, None] * scenes.colours[index, sprite]
            canvas[index, row : row + size, column : column + size] += painted
    assert (np.rint(canvas[:, 35:70, 35:70] * 255) == scenes.images[:50]).all()
    assert canvas.sum() == pytest.approx(canvas[:, 35:70, 35:70].sum())


CORNER = np.zeros((1, 1), dtype=int)


@pytest.mark.parametrize(
    ("attempt", "complaint"),
    [
        (lambda: generate(0, seed=0), "0 scenes were asked for; give"),
        (lambda: generate(1, seed=-1), "seed is -1; give"),
        (lambda: true_prototypes(19), "19x19 cannot hold a tetromino; use a size of 20"),
        (lambda: render(CORNER + 19, np.ones((1, 1, 3), int), CORNER, CORNER), "shapes range .*; give"),
        (lambda: render(CORNER, np.full((1, 1, 3), 255), CORNER, CORNER), "colours range .*; give"),
        (
            lambda: render(CORNER, np.ones((1, 1, 3), int), CORNER, CORNER + 16),
            "sprite 0 of scene 0 leaves the image at row 0, column 16; give",
        ),
    ],
)
def test_mistakes_are_refused_with_a_cure(attempt: Callable[[], object], complaint: str) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        attempt()


def test_scenes_rendered_part_by_part_are_those_rendered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = generate(7, seed=5)
    monkeypatch.setattr("pcdnet.data.tetrominoes._AT_ONCE", 3)
    found = generate(7, seed=5)
    np.testing.assert_array_equal(found.images, expected.images)
    np.testing.assert_array_equal(found.labels, expected.labels)
