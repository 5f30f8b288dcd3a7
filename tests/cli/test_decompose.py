"""Laws of `pcdnet decompose`: results of all good images, the bad ones named, nothing done twice."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli import main
from pcdnet.data.tetrominoes import generate
from pcdnet.files import locked_file
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.dataset import save_scenes
from tests.runs import grey_run, true_run

Capture = pytest.CaptureFixture[str]
SCENES = generate(6, seed=3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the true prototypes of Tetrominoes."""
    return true_run(tmp_path_factory.mktemp("runs") / "true").path


@pytest.fixture(scope="module")
def grey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grey run with a background of 20x30."""
    return grey_run(tmp_path_factory.mktemp("runs") / "grey").path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """The scenes as pictures."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for n, image in enumerate(SCENES.images):
        Image.fromarray(image).save(folder / f"{n}.png")
    return folder


def decompose(*arguments: object, code: int = 0) -> None:
    """Run the command, which must end with that exit code."""
    assert main(["decompose", *map(str, arguments)]) == code


def reported(out: Path) -> list[dict[str, object]]:
    """The lines that were written."""
    return [json.loads(line) for line in (out / "decompositions.jsonl").read_text().splitlines()]


def test_every_format_holds_every_image(trained: Path, photos: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "out"
    decompose(trained, photos, "--out", out, "--format", "json,coco,png,csv,parquet")
    printed, progress = capsys.readouterr()
    assert printed.startswith("6 images  3.00 objects per image  18 objects\n")
    assert f"wrote {out}: decompositions.jsonl coco.json coco_results.json objects.csv objects.parquet png/" in printed
    assert "6 images in" in progress
    assert "images/s" in progress
    lines = reported(out)
    assert [line["name"] for line in lines] == [f"{photos}/{n}.png" for n in range(6)]
    assert [image["file_name"] for image in json.loads((out / "coco.json").read_text())["images"]] == [
        f"{photos}/{n}.png" for n in range(6)
    ]
    assert len((out / "objects.csv").read_text().splitlines()) == 1 + 18
    assert len(list((out / "png").iterdir())) == 4 * 6
    for n in range(6):
        with Image.open(out / "png" / f"{n}.instances.png") as picture:
            np.testing.assert_array_equal(np.asarray(picture) > 0, SCENES.labels[n] > 0)


def test_a_stack_is_explained_as_its_images_are(trained: Path, photos: Path, tmp_path: Path) -> None:
    save_scenes(SCENES, tmp_path / "scenes.npz")
    decompose(trained, photos, "--out", tmp_path / "a")
    decompose(trained, tmp_path / "scenes.npz", "--out", tmp_path / "b")
    alone, stacked = reported(tmp_path / "a"), reported(tmp_path / "b")
    assert [line.pop("name") for line in stacked] == [f"{tmp_path}/scenes.npz#{n}" for n in range(6)]
    assert [line.pop("name") for line in alone] == [f"{photos}/{n}.png" for n in range(6)]
    for one, other in zip(alone, stacked, strict=True):
        assert one["objects"] == other["objects"]


def test_one_bad_image_is_named_and_the_others_are_done(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    (photos / "2.png").write_bytes(b"no picture")
    Image.fromarray(SCENES.images[3, :9, :9]).save(photos / "3.png")  # smaller than the prototypes
    decompose(trained, photos, "--out", tmp_path / "out", code=1)
    printed, words = capsys.readouterr()
    assert printed.startswith("4 images")
    assert f"skipped {photos}/2.png: " in words
    assert f"skipped {photos}/3.png: " in words
    assert (
        "pcdnet: 2 of 6 files could not be used, or not in full, as reported above; the results of the others are in"
        in words
    )
    assert [Path(str(line["name"])).name for line in reported(tmp_path / "out")] == ["0.png", "1.png", "4.png", "5.png"]


def test_nothing_but_bad_images_writes_nothing(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    decompose(trained, tmp_path / "a.png", "--out", tmp_path / "out", code=1)
    assert "none of the 1 files could be used" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal.jsonl"]


def test_what_is_done_is_not_done_again(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, given = tmp_path / "out", [trained, photos, "--format", "json,png", "--out", tmp_path / "out"]
    explained: list[int] = []
    real = PCDNet.decompose_all

    def counted(model: PCDNet, images: np.ndarray, **options: bool) -> object:
        explained.append(len(images))
        return real(model, images, **options)

    monkeypatch.setattr(PCDNet, "decompose_all", counted)
    decompose(*given)
    first = (out / "decompositions.jsonl").read_bytes()
    decompose(*given)
    assert explained == [6]
    assert "6 images were done before" in capsys.readouterr().err
    assert (out / "decompositions.jsonl").read_bytes() == first
    decompose(*given, "--format", "csv")  # written from what is known
    assert explained == [6]
    Image.fromarray(SCENES.images[5]).save(photos / "1.png")  # changed
    os.utime(photos / "1.png", ns=(1, 1))
    Image.fromarray(SCENES.images[4]).save(photos / "7.png")  # new
    (photos / "0.png").unlink()  # gone
    (out / "png" / "3.overlay.png").unlink()  # lost
    decompose(*given)
    assert explained == [6, 3]
    assert [Path(str(line["name"])).name for line in reported(out)] == [f"{n}.png" for n in (1, 2, 3, 4, 5, 7)]
    assert reported(out)[0]["objects"] == reported(out)[4]["objects"]
    decompose(*given, "--force")
    assert explained == [6, 3, 6]


def test_a_new_name_appears_everywhere_without_new_work(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(trained, run)
    decompose(run, photos, "--out", out, "--format", "json,csv,coco,parquet")
    found = reported(out)[0]["objects"]
    assert isinstance(found, list)
    kind = int(found[0]["prototype"])
    Names(count=19, given={kind: "elephant"}).write(run)
    capsys.readouterr()
    decompose(run, photos, "--out", out, "--format", "json,csv,coco,parquet")
    printed, words = capsys.readouterr()
    assert "  elephant " in printed
    assert "done before" in words
    assert "images/s" not in words
    for file in ("decompositions.jsonl", "coco.json", "objects.csv", "objects.parquet"):
        assert b"elephant" in (out / file).read_bytes()


def test_other_weights_do_all_again(grey: Path, tmp_path: Path, capsys: Capture) -> None:
    Image.fromarray(SCENES.images[0]).resize((30, 20)).save(tmp_path / "a.png")
    decompose(grey, tmp_path / "a.png", "--out", tmp_path / "out")
    capsys.readouterr()
    decompose(grey_run(tmp_path / "run", brightness=0.5).path, tmp_path / "a.png", "--out", tmp_path / "out")
    words = capsys.readouterr().err
    assert "was done again, as the run or an option has changed" in words
    assert "1 images in" in words


def test_images_are_fitted_to_a_model_with_a_background(grey: Path, tmp_path: Path, capsys: Capture) -> None:
    for name, size in (("fits", (30, 20)), ("large", (60, 40))):
        Image.new("RGB", size, (40, 90, 10)).save(tmp_path / f"{name}.png")
    given = [grey, tmp_path / "fits.png", tmp_path / "large.png", "--out", tmp_path / "out"]
    decompose(*given, code=1)
    assert "large.png: 40x60 pixels do not fit the model's background of 20x30; use --resize" in capsys.readouterr().err
    assert len(reported(tmp_path / "out")) == 1
    decompose(*given, "--resize")
    assert [line["size"] for line in reported(tmp_path / "out")] == [[20, 30], [20, 30]]


def test_images_of_different_sizes_come_out_in_the_order_of_the_paths(trained: Path, tmp_path: Path) -> None:
    sizes = [(35, 35), (40, 50), (35, 35), (60, 45), (40, 50)]
    paths = []
    for n, (height, width) in enumerate(sizes):
        image = np.zeros((height, width, 3), np.uint8)
        image[:35, :35] = SCENES.images[n]
        paths.append(tmp_path / f"{n}.png")
        Image.fromarray(image).save(paths[-1])
    decompose(trained, *paths, "--out", tmp_path / "out")
    lines = reported(tmp_path / "out")
    assert [tuple(line["size"]) for line in lines] == sizes  # type: ignore[arg-type]
    assert [line["name"] for line in lines] == [str(path) for path in paths]
    for n, line in enumerate(lines):
        things = line["objects"]
        assert isinstance(things, list)
        assert {thing["prototype"] for thing in things} == set(SCENES.shapes[n].tolist())


def test_work_that_was_interrupted_goes_on_from_there(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_scenes(generate(80, seed=9), tmp_path / "scenes.npz")
    given = [trained, tmp_path / "scenes.npz", "--out", tmp_path / "out"]
    real, calls = PCDNet.decompose_all, iter([True, False, True])

    def stopping(model: PCDNet, images: np.ndarray, **options: bool) -> object:
        if not next(calls):
            raise KeyboardInterrupt
        return real(model, images, **options)

    monkeypatch.setattr(PCDNet, "decompose_all", stopping)
    decompose(*given, code=130)
    assert "interrupted after 64 of 80 images; the same command goes on from there" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["journal.jsonl"]
    decompose(*given)
    words = capsys.readouterr().err
    assert "16 images in" in words
    assert "64 images were done before" in words
    assert [line["name"] for line in reported(tmp_path / "out")] == [f"{tmp_path}/scenes.npz#{n}" for n in range(80)]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--format", "xml"], "no format 'xml'; use some of json"),
        (["--stride", "0"], "--stride 0 cannot be used; give 1"),
        (["--shard", "3/3"], "--shard 3/3 cannot be used; of 3 shards, give 0/3, 1/3 and 2/3"),
        (["--resize"], "has no still background, so images need no resizing; leave out --resize"),
        (["--device", "moon"], "device 'moon' cannot be used"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_leaves_nothing(
    options: list[str], complaint: str, trained: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    decompose(trained, photos, "--out", tmp_path / "out", *options, code=1)
    printed, words = capsys.readouterr()
    assert printed == ""
    assert complaint in words
    assert words.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_not_written_to(trained: Path, photos: Path, capsys: Capture) -> None:
    decompose(trained, photos, "--out", trained, code=1)
    assert "holds other things than results" in capsys.readouterr().err
    assert not (trained / "journal.jsonl").exists()


def test_odd_file_names_are_shown_harmlessly(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a\x1b[31m\nb.png").write_bytes(b"no picture")
    Image.fromarray(SCENES.images[0]).save(tmp_path / "c.png")
    decompose(trained, tmp_path, "--out", tmp_path / "out", code=1)
    words = capsys.readouterr().err
    assert "\x1b" not in words
    assert r"a\x1b[31m\nb.png: is no picture" in words


def test_a_request_to_terminate_says_how_far_it_was_and_how_to_go_on(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminated(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    former = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(PCDNet, "decompose_all", terminated)
            decompose(trained, photos, "--out", tmp_path / "out", code=130)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, former)
    printed, said = capsys.readouterr()
    assert printed == ""
    assert said.endswith("pcdnet: interrupted after 0 of 6 images; the same command goes on from there\n")
    decompose(trained, photos, "--out", tmp_path / "out")


@pytest.mark.parametrize("where", ["png", "journal.jsonl", "decompositions.jsonl"])
def test_a_full_disk_is_reported_as_such_and_blamed_on_no_image(
    where: str, trained: Path, photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = tmp_path / "out", Path.open

    class Full(io.BufferedRandom):
        def write(self, content: Any) -> int:
            if len(content) and self.tell():  # the first line fits
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(content)

    def opened(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        wanted = path.parent.name if where == "png" else path.name.removesuffix(".partial")
        return (
            Full(io.FileIO(path, "x+")) if (wanted, mode) == (where, "xb") else real(path, mode, *arguments, **options)
        )

    def locked(path: Path) -> Any:
        return Full(io.FileIO(path, "w+")) if path.name == where else locked_file(path)

    given = [trained, photos, "--out", out, "--format", "json,png"]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", opened)
        patch.setattr("pcdnet.output.journal.locked_file", locked)
        decompose(*given, code=1)
    printed, said = capsys.readouterr()
    assert printed == ""
    assert "skipped" not in said
    assert said.count("No space left on device; ") == 1
    assert where in said.splitlines()[-1]
    decompose(*given)
    assert len(reported(out)) == 6


def test_an_image_whose_line_in_the_journal_was_changed_is_done_again(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    decompose(trained, photos, "--out", out)
    sound, journal = (out / "decompositions.jsonl").read_bytes(), out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"position":[', b'"position":[1', 1)
    journal.write_bytes(b"".join(lines))
    capsys.readouterr()
    decompose(trained, photos, "--out", out)
    assert "5 images were done before" in capsys.readouterr().err
    assert (out / "decompositions.jsonl").read_bytes() == sound


def test_shards_are_gathered_into_what_one_command_writes(
    trained: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    (photos / "2.png").write_bytes(b"no picture")
    given = [trained, photos, "--format", "json,coco,png,csv,parquet"]
    decompose(*given, "--out", tmp_path / "whole", code=1)
    for index in range(3):
        decompose(*given, "--shard", f"{index}/3", "--out", tmp_path / f"part-{index}", code=int(index == 2))
    printed, words = capsys.readouterr()
    assert "shard 1/3 is done   next, with all 3: pcdnet gather DIR... --out DIR\n" in printed
    assert "pcdnet: 1 of 2 files could not be used, or not in full, as reported above" in words
    out = tmp_path / "out"
    assert main(["gather", *(str(tmp_path / f"part-{index}") for index in range(3)), "--out", str(out)]) == 1
    printed, words = capsys.readouterr()
    assert printed.startswith("5 images  3.00 objects per image  15 objects\n")
    assert f"wrote {out}: decompositions.jsonl coco.json coco_results.json objects.csv objects.parquet png/" in printed
    assert "pcdnet: 1 of 6 files could not be used, or not in full, as reported when the shards were made" in words
    for path in (tmp_path / "whole").rglob("*.*"):
        if path.name != "journal.jsonl":
            assert (out / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()
    assert main(["gather", str(tmp_path / "part-0"), "--out", str(tmp_path / "no")]) == 1
    assert "pcdnet: shards 1/3, 2/3 are missing; decompose them" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
