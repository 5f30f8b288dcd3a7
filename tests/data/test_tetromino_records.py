"""Laws of Tetromino records: scenes in the original container are read as they are, and genuine ones are reproduced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.data.tetromino_records import count, factored, images, read
from pcdnet.data.tetrominoes import TetrominoScenes, generate, render
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from tests.data.records import example, features_of, floats, pixels, write, write_tetrominoes

GENUINE = Path(__file__).parents[3] / "shared/data/tetrominoes/tetrominoes_mini.tfrecords"
needs_genuine = pytest.mark.skipif(
    not GENUINE.exists(), reason="the genuine scenes, ../shared/data/tetrominoes, are not on this machine"
)


@pytest.fixture(scope="module")
def scenes() -> TetrominoScenes:
    """A few scenes, to be written as records."""
    return generate(4, seed=3)


def test_scenes_in_the_original_container_are_read_as_they_are(scenes: TetrominoScenes, tmp_path: Path) -> None:
    path = write_tetrominoes(tmp_path / "mine.tfrecords", scenes)
    found = factored(path)
    assert [len(factored(path, limit)) for limit in (None, 2, 9)] == [4, 2, 4]
    for name in ("images", "labels", "shapes", "colours", "rows", "columns"):
        assert getattr(found, name).dtype == getattr(scenes, name).dtype
        assert (getattr(found, name) == getattr(scenes, name)).all()
    assert [scene.name for scene in found.scenes()][-1] == "mine.tfrecords-3"


@pytest.mark.parametrize(("stride", "limit"), [(1, None), (1, 2), (2, None), (3, 1)])
def test_scenes_are_read_and_streamed_in_their_order(
    stride: int, limit: int | None, scenes: TetrominoScenes, tmp_path: Path
) -> None:
    path = write_tetrominoes(tmp_path / "mine.tfrecords", scenes)
    seen = read(path, limit=limit, view=View(stride=stride, grey=True))
    assert seen.images.shape[1:] == (35, 35, 1)
    np.testing.assert_array_equal(seen.labels, scenes.labels[::stride][:limit])
    numbers, streamed = zip(*images(path, stride=stride), strict=True)
    assert numbers == tuple(range(0, 4, stride))
    np.testing.assert_array_equal(np.stack(streamed), scenes.images[::stride])
    assert count(path) == 4


@pytest.mark.parametrize(
    ("name", "replacement", "complaint"),
    [
        ("mask", None, "has no feature 'mask'"),
        ("image", pixels(np.zeros(64 * 64 * 3, np.uint8)), "'image' .* has 12288 values, not 3675"),
        ("image", floats(np.zeros(3674)), "'image' .* is of type float32, not bytes"),
        ("shape", floats(np.zeros(5)), "'shape' .* has 6 values, not 4"),
        ("shape", floats(np.array([1, 2, 20])), "'shape' .* from 1 to 19"),
        ("color", floats(np.full((3, 3), 0.5)), "'color' .* from 0 to 1"),
        ("x", floats(np.array([0, np.nan, 1])), "'x' .* from 0 to 30"),
    ],
)
def test_examples_that_are_no_tetrominoes_are_refused(
    scenes: TetrominoScenes, tmp_path: Path, name: str, replacement: bytes | None, complaint: str
) -> None:
    features = features_of(scenes, 1)
    if replacement is None:
        del features[name]
    else:
        features[name] = replacement
    path = write(tmp_path / "mine.tfrecords", [example(**features_of(scenes, 0)), example(**features)])
    with pytest.raises(PcdnetError, match=f"{complaint}.*; give a tetrominoes") as caught:
        factored(path)
    assert f"record 1 of {path}" in str(caught.value)


def test_what_cannot_be_read_is_refused_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="limit is 0 scenes; give"):
        read(tmp_path / "none.tfrecords", limit=0)
    for attempt in (read, factored, count, lambda path: list(images(path))):
        with pytest.raises(PcdnetError, match="none.tfrecords does not exist; give"):
            attempt(tmp_path / "none.tfrecords")


@needs_genuine
def test_genuine_scenes_are_reproduced_bit_for_bit() -> None:
    genuine = factored(GENUINE)
    assert len(genuine) == 10
    rendered = render(genuine.shapes, genuine.colours, genuine.rows, genuine.columns)
    assert (rendered.images == genuine.images).all()
    assert (rendered.labels == genuine.labels).all()


@needs_genuine
def test_genuine_scenes_show_all_shapes_but_the_three_that_are_inferred() -> None:
    assert {*range(1, 20)} - {*(factored(GENUINE).shapes + 1).ravel().tolist()} == {1, 4, 8}
