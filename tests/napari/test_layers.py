"""Laws of layers: labels are the masks that were found, boxes lie around them, and all is where the image is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.napari import layers
from pcdnet.napari.layers import found_layers
from pcdnet.napari.reader import get_reader
from pcdnet.napari.samples import tetrominoes
from pcdnet.napari.widget import decomposed
from pcdnet.output.record import Results, write_json_lines
from tests.output.found import KINDS, NAMES, random_records
from tests.runs import grey_run, true_run


def test_labels_and_boxes_are_those_that_were_found() -> None:
    found, made = random_records(8)
    (labels, _, kind), (boxes, about, shapes) = found_layers(list(Results(made, KINDS, 3).named()))
    assert (kind, shapes) == ("labels", "shapes")
    np.testing.assert_array_equal(labels, np.stack([one.instances for one in found]))
    seen = [(n, thing) for n, one in enumerate(found) for thing in one.objects if thing.box is not None]
    assert about["features"]["kind"] == [NAMES[thing.prototype] for _, thing in seen]
    assert about["features"]["label"] == [thing.depth + 1 for _, thing in seen]
    for corners, (n, thing) in zip(boxes, seen, strict=True):
        rows, columns = np.nonzero(thing.mask)
        inside = (corners[:, 1].min(), corners[:, 2].min(), corners[:, 1].max(), corners[:, 2].max())
        assert set(corners[:, 0]) == {n}
        assert inside == (rows.min() - 0.5, columns.min() - 0.5, rows.max() + 0.5, columns.max() + 0.5)


def test_one_image_is_no_stack_and_images_of_several_sizes_are() -> None:
    _, made = random_records(1, seed=2)
    (labels, _, _), (boxes, about, _) = found_layers(made)
    assert labels.shape == (9, 12)
    assert {corners.shape for corners in boxes} == {(4, 2)}
    assert about["ndim"] == 2
    (H, W), small = (9, 12), {"name": "small", "size": [3, 20], "error": 0.0, "objects": []}
    assert found_layers([*made, small])[0][0].shape == (2, max(H, 3), max(W, 20))


def test_more_pixels_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_PIXELS", 100)
    with pytest.raises(PcdnetError, match="at most 100 are shown; give fewer images"):
        found_layers(random_records(1)[1])


def test_results_are_read_from_their_folder_and_from_their_file(tmp_path: Path) -> None:
    found, made = random_records(3)
    write_json_lines(Results(made, KINDS, 3), tmp_path)
    for place in (tmp_path, tmp_path / "decompositions.jsonl"):
        read = get_reader(str(place))
        assert read is not None
        np.testing.assert_array_equal(read(str(place))[0][0], np.stack([one.instances for one in found]))


def test_what_is_neither_results_nor_a_run_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "photo.png").touch()
    assert get_reader(str(tmp_path)) is None
    assert get_reader(str(tmp_path / "photo.png")) is None
    assert get_reader([str(tmp_path / "missing")]) is None


@pytest.mark.parametrize("change", ["counts", "size", "cut", "none", "deep"])
def test_damaged_results_are_one_sentence(tmp_path: Path, change: str) -> None:
    _, made = random_records(8)
    record = next(one for one in made if one["objects"])
    if change == "counts":
        record["objects"][0]["mask"]["counts"] = "0" * 5
    if change == "size":
        record["objects"][0]["mask"]["size"] = [2, 2]
    text = {"cut": json.dumps(record)[:-9], "none": "7", "deep": "[" * 100_000}.get(change, json.dumps(record))
    (tmp_path / "decompositions.jsonl").write_text(text + "\n")
    read = get_reader(str(tmp_path))
    assert read is not None
    with pytest.raises(PcdnetError, match="cannot be read: .*; give what `pcdnet decompose` wrote"):
        read(str(tmp_path))


def test_a_run_is_read_as_its_prototypes_and_a_stack_is_decomposed_as_the_command_does(tmp_path: Path) -> None:
    run, scenes = true_run(tmp_path / "run"), generate(count=3, seed=1)
    np.savez(tmp_path / "scenes.npz", image=scenes.images)
    main(["decompose", str(run.path), str(tmp_path / "scenes.npz"), "--out", str(tmp_path / "out")])
    read = get_reader(str(tmp_path / "out"))
    assert read is not None
    expected = read(str(tmp_path / "out"))
    found = decomposed(scenes.images, str(run.path), rgb=True, scale=(1, 2, 2), start=(0, 10, 10))
    np.testing.assert_array_equal(found[0][0], expected[0][0])
    assert found[1][1]["features"]["kind"] == expected[1][1]["features"]["kind"]
    assert found[0][1]["translate"].tolist() == [0, 10, 10]
    assert found[2][1]["scale"].tolist() == [2, 2]
    read = get_reader(str(run.path))
    assert read is not None
    ((sheet, about, kind),) = read(str(run.path))
    assert (about["name"], kind) == ("prototypes", "image")
    np.testing.assert_array_equal(sheet, found[2][0])


def test_grey_layers_suit_grey_models_and_others_are_refused_in_a_sentence(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "run")
    image = np.full((20, 30), 51, np.uint8)
    assert decomposed(image, str(run.path), rgb=False)[0][0].shape == (20, 30)
    assert decomposed(image[None].repeat(2, 0) / 255, str(run.path), rgb=False)[0][0].shape == (2, 20, 30)
    with pytest.raises(PcdnetError, match="do not fit the model's background of 20x30; choose another model"):
        decomposed(image[:10], str(run.path), rgb=False)
    with pytest.raises(PcdnetError, match="is neither an image nor a stack of images"):
        decomposed(np.zeros((2, 2, 20, 30), np.uint8), str(run.path), rgb=False)


def test_the_sample_is_a_stack_of_coloured_images() -> None:
    ((images, about, kind),) = tetrominoes()
    assert images.shape == (20, 35, 35, 3)
    assert about["rgb"] is True
    assert kind == "image"
