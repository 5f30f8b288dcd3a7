"""Laws of decomposing files: results of all good images in every format, and what Python is given back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.decompose import decompose_files
from pcdnet.output.gather import gather
from pcdnet.run import RunFolder
from tests.data.stacks import break_page, write_stack
from tests.data.test_pictures import bomb
from tests.data.test_webdataset import archive, png
from tests.runs import true_run

SCENES = generate(6, seed=3)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with the true prototypes of Tetrominoes."""
    return true_run(tmp_path_factory.mktemp("runs") / "true")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """The scenes as pictures."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for n, image in enumerate(SCENES.images):
        Image.fromarray(image).save(folder / f"{n}.png")
    return folder


def lines(out: Path) -> list[dict[str, Any]]:
    """The records that were written."""
    return [json.loads(line) for line in (out / "decompositions.jsonl").read_text().splitlines()]


def test_every_format_holds_every_image(run: RunFolder, photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "new" / "out"
    done = decompose_files(run, photos, out, formats=["json", "coco", "png", "csv", "parquet"], quiet=True)
    names = ("decompositions.jsonl", "coco.json", "coco_results.json", "objects.csv", "objects.parquet", "png")
    assert done.files == tuple(out / name for name in names)
    assert (done.fresh, done.known, done.anew, done.inputs, done.failed) == (6, 0, False, 6, {})
    assert done.summary.images == 6
    assert sum(done.summary.used) == 18
    images = [f"{photos}/{n}.png" for n in range(6)]
    assert [line["name"] for line in lines(out)] == images
    assert [image["file_name"] for image in json.loads((out / "coco.json").read_text())["images"]] == images
    assert len((out / "objects.csv").read_text().splitlines()) == 1 + 18
    assert len(list((out / "png").iterdir())) == 4 * 6
    for n in range(6):
        with Image.open(out / "png" / f"{n}.instances.png") as picture:
            np.testing.assert_array_equal(np.asarray(picture) > 0, SCENES.labels[n] > 0)


def test_a_run_its_folder_and_its_model_find_the_same(run: RunFolder, photos: Path, tmp_path: Path) -> None:
    sources: tuple[PCDNet | RunFolder | str | Path, ...] = (run, run.path, str(run.path), run.load_model())
    written = []
    for n, source in enumerate(sources):
        decompose_files(source, photos / "0.png", tmp_path / str(n), quiet=True)
        written.append((tmp_path / str(n) / "decompositions.jsonl").read_bytes())
    assert len(set(written)) == 1
    assert b'"objects":[{' in written[0]


def test_what_is_done_is_not_done_again_and_names_need_no_new_work(
    run: RunFolder, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    model = run.load_model()
    decompose_files(model, photos, out, quiet=True)
    kind = lines(out)[0]["objects"][0]["prototype"]
    model.names = Names(count=19, given={kind: "elephant"})
    done = decompose_files(model, photos, out, formats="json,csv,coco", quiet=True)
    assert (done.fresh, done.known, done.anew) == (0, 6, False)
    for file in ("decompositions.jsonl", "coco.json", "objects.csv"):
        assert b"elephant" in (out / file).read_bytes()
    assert decompose_files(model, photos, out, force=True, quiet=True).fresh == 6


@pytest.mark.parametrize("change", ["weights", "configuration", "resize"])
def test_results_that_would_be_others_are_made_anew(
    change: str, run: RunFolder, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, out = run.load_model(), tmp_path / "out"
    decompose_files(model, photos, out, quiet=True)
    with torch.no_grad():
        if change == "weights":
            model.prototypes[0, 0, 0] += 0.5
    if change == "configuration":
        monkeypatch.setattr(model, "config", type(model.config)(min_error_reduction=0.5))
    if change == "resize":
        monkeypatch.setattr(PCDNet, "image_size", (35, 35))
    done = decompose_files(model, photos, out, resize=change == "resize", quiet=True)
    assert (done.fresh, done.known, done.anew) == (6, 0, True)


def test_bad_images_are_named_and_the_others_are_done(run: RunFolder, photos: Path, tmp_path: Path) -> None:
    (photos / "2.png").write_bytes(b"no picture")
    Image.fromarray(SCENES.images[3, :9, :9]).save(photos / "3.png")  # smaller than the prototypes
    done = decompose_files(run, photos, tmp_path / "out", quiet=True)
    assert list(done.failed) == [f"{photos}/2.png", f"{photos}/3.png"]
    assert [Path(line["name"]).name for line in lines(tmp_path / "out")] == ["0.png", "1.png", "4.png", "5.png"]
    with pytest.raises(PcdnetError, match="none of the 2 files could be used"):
        decompose_files(run, [photos / "2.png", photos / "3.png"], tmp_path / "none", quiet=True)
    assert [path.name for path in (tmp_path / "none").iterdir()] == ["journal.jsonl"]


def test_progress_is_shown_unless_it_must_be_quiet(
    run: RunFolder, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decompose_files(run, photos, tmp_path / "a", quiet=True)
    assert capsys.readouterr() == ("", "")
    decompose_files(run, photos, tmp_path / "b")
    assert "images 6/6" in capsys.readouterr().err


def test_work_that_was_interrupted_goes_on_from_there(
    run: RunFolder, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(np.pad(SCENES.images[0], ((0, 0), (0, 1), (0, 0)))).save(photos / "6.png")
    real, calls = PCDNet.decompose_all, iter([True, False, True])

    def stopping(model: PCDNet, images: np.ndarray, **options: bool) -> object:
        if not next(calls):
            raise KeyboardInterrupt
        return real(model, images, **options)

    monkeypatch.setattr(PCDNet, "decompose_all", stopping)
    with pytest.raises(KeyboardInterrupt, match="interrupted after 6 of 7 images; the same command goes on"):
        decompose_files(run, photos, tmp_path / "out", quiet=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal.jsonl"]
    done = decompose_files(run, photos, tmp_path / "out", quiet=True)
    assert (done.fresh, done.known) == (1, 6)
    assert len(lines(tmp_path / "out")) == 7


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"formats": "xml"}, "no format 'xml'; use some of json"),
        ({"stride": 0}, "stride=0 cannot be used; give 1"),
        ({"resize": True}, "has no still background, so images need no resizing; leave out resize"),
        ({"device": "moon"}, "device 'moon' cannot be used"),
        ({"paths": []}, "no image was named"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_written(
    options: dict[str, Any], complaint: str, run: RunFolder, photos: Path, tmp_path: Path
) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        decompose_files(**{"source": run, "paths": photos, "out": tmp_path / "out", **options})
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_not_written_to(run: RunFolder, photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos, tmp_path / "full")
    with pytest.raises(PcdnetError, match="holds other things than results"):
        decompose_files(run, photos, tmp_path / "full", quiet=True)
    assert not (tmp_path / "full" / "journal.jsonl").exists()


def test_deep_pictures_are_seen_in_the_values_of_the_run(run: RunFolder, tmp_path: Path) -> None:
    deep = [image.astype(np.uint16) * 4 + 200 for image in SCENES.images]
    np.savez(tmp_path / "deep.npz", image=np.stack(deep))
    np.savez(tmp_path / "plain.npz", image=SCENES.images)
    expected = decompose_files(run, tmp_path / "plain.npz", tmp_path / "plain", quiet=True).summary
    model = run.load_model()
    model.values = (200, 1220)
    done = decompose_files(model, tmp_path / "deep.npz", tmp_path / "out", quiet=True)
    assert done.summary.used == expected.used
    assert decompose_files(model, tmp_path / "deep.npz", tmp_path / "out", quiet=True).fresh == 0
    again = decompose_files(model, tmp_path / "deep.npz", tmp_path / "out", values=(0, 65535), quiet=True)
    assert again.anew  # as another range gives other results
    assert sum(again.summary.used) != sum(expected.used)
    with pytest.raises(PcdnetError, match="values=.9, 3. is no range"):
        decompose_files(run, tmp_path / "deep.npz", tmp_path / "other", values=(9, 3), quiet=True)


def test_a_picture_of_an_archive_that_cannot_be_read_is_a_failure_as_in_a_folder(
    run: RunFolder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = archive(tmp_path / "a.tar", [(f"{n}.png", png(SCENES.images[n]) if n != 2 else b"none") for n in range(6)])
    (done,) = [decompose_files(run, place, tmp_path / "whole", quiet=True)]
    reason = f"1 pictures of {place} cannot be read (2.png of {place}); fix or remove them"
    assert done.failed == {str(place): reason}
    assert f"note: {reason}\n" in capfd.readouterr().err
    assert [line["name"] for line in lines(tmp_path / "whole")] == [f"{place}#{n}" for n in (0, 1, 3, 4, 5)]
    again = decompose_files(run, place, tmp_path / "whole", quiet=True)
    assert (again.fresh, again.failed) == (0, done.failed)
    folders = [tmp_path / f"part-{index}" for index in range(2)]
    for index, folder in enumerate(folders):
        assert decompose_files(run, place, folder, shard=(index, 2), quiet=True).failed == done.failed
    gathered = gather(folders, tmp_path / "gathered", quiet=True)
    assert gathered.failed == done.failed
    name = "decompositions.jsonl"
    assert (tmp_path / "gathered" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_is_too_small_too_large_or_broken_is_skipped_and_the_rest_is_done(
    run: RunFolder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "mixed"
    place.mkdir()
    Image.fromarray(SCENES.images[0, :20, :20]).save(place / "a.png")
    (place / "b.png").write_bytes(bomb(50_000, 50_000))
    break_page(write_stack(place / "c.tif", [*SCENES.images[:3]]), 1)
    Image.fromarray(np.zeros((35, 35, 3), np.uint8)).save(place / "d.png")
    Image.fromarray(np.pad(SCENES.images[3], ((0, 90), (0, 70), (0, 0)))).save(place / "e.png")
    done = decompose_files(run, place, tmp_path / "out", quiet=True)
    notes = [line for line in capfd.readouterr().err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 3
    assert any("20x20 pixels are less than a prototype has (25x25); give a larger picture" in note for note in notes)
    assert any("50000x50000 pixels, more than the limit of 67,108,864; give a smaller" in note for note in notes)
    assert f"note: 1 pages of {place}/c.tif cannot be read (1); fix or remove them" in notes
    assert {Path(name).name for name in done.failed} == {"a.png", "b.png", "c.tif"}
    found = {Path(line["name"]).name: len(line["objects"]) for line in lines(tmp_path / "out")}
    assert found == {"c.tif#0": 3, "c.tif#2": 3, "d.png": 0, "e.png": 3}
