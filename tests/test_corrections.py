"""Laws of corrections: boxes come back with their pictures, and nothing damaged is learned from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pcdnet.corrections import FILE, MOST_DRAWN, Corrections, Drawn
from pcdnet.errors import PcdnetError
from pcdnet.files import sealed_json

PICTURE = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
BOX = (2, 3, 6, 8)


def test_boxes_come_back_with_their_pictures(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path / "corrections")
    assert (corrections.drawn(), corrections.removed()) == ((), ())
    first = corrections.add(Drawn(PICTURE, BOX, "cell"), "a.png")
    second = corrections.add(Drawn(PICTURE[..., :1], BOX))
    corrections.remove(4)
    corrections.remove(1)
    assert [each.id for each in corrections.drawn()] == [first.id, second.id]
    assert corrections.removed() == (4, 1)
    one, two = corrections.load()
    np.testing.assert_array_equal(one.image, PICTURE)
    np.testing.assert_array_equal(two.image, PICTURE[..., :1])
    assert (one.box, one.name, two.name) == (BOX, "cell", "")


def test_what_is_taken_back_is_gone(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)
    kept = corrections.add(Drawn(PICTURE, BOX))
    corrections.remove(4)
    assert corrections.take_back(kept.id)
    assert not corrections.take_back(kept.id)
    corrections.remove(4, removed=False)
    assert (corrections.drawn(), corrections.removed()) == ((), ())
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("box", [(-1, 0, 4, 4), (0, 0, 13, 4), (0, 14, 4, 4), (0, 0, 1, 4)])
def test_a_box_lies_in_its_picture(box: tuple[int, int, int, int]) -> None:
    with pytest.raises(PcdnetError, match="is none of a picture of 12x16"):
        Drawn(PICTURE, box)


def test_there_is_an_end_to_boxes(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)
    for _ in range(MOST_DRAWN):
        corrections.add(Drawn(PICTURE[:4, :4], (0, 0, 3, 3)))
    with pytest.raises(PcdnetError, match="learn again from them first"):
        corrections.add(Drawn(PICTURE, BOX))


def test_a_picture_that_was_changed_is_not_learned_from(tmp_path: Path) -> None:
    corrections = Corrections(tmp_path)
    kept = corrections.add(Drawn(PICTURE, BOX))
    path = tmp_path / f"{kept.id}.png"
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(PcdnetError, match="draw it anew"):
        corrections.load()
    path.unlink()
    with pytest.raises(PcdnetError, match="draw it anew"):
        corrections.load()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"format": "pcdnet-corrections-1", "drawn": 3, "removed": []}',
        '{"format": "pcdnet-corrections-1", "drawn": [{"id": 1}], "removed": []}',
        '{"format": "pcdnet-corrections-1", "drawn": [], "removed": [-1]}',
        '{"format": "pcdnet-corrections-1", "drawn": [], "removed": ["x"]}',
    ],
)
def test_a_damaged_file_is_refused_with_its_cure(text: str, tmp_path: Path) -> None:
    for content in (text, sealed_json(text)):
        (tmp_path / FILE).write_text(content, encoding="utf-8")
        with pytest.raises(PcdnetError, match="draw the boxes anew"):
            Corrections(tmp_path).drawn()
