"""Laws of gathering: shards put together are byte for byte what one single call writes, or are refused."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.decompose import decompose_files
from pcdnet.output.gather import gather
from pcdnet.output.pictures import is_whole_png
from tests.data.stacks import break_page, write_stack
from tests.runs import GREY, grey_run, true_run

ALL = "json,coco,png,csv,parquet"
SCENES = generate(28, seed=3)
SHARDS = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PCDNet:
    """The true prototypes of Tetrominoes, some of them with names."""
    model = true_run(tmp_path_factory.mktemp("runs") / "true").load_model()
    model.names = Names(count=19, given={0: "L", 5: "été"}, colours={1: ((0.9, 0.1, 0.1), (0.1, 0.1, 0.9))})
    return model


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures of two sizes, one of them none, a stack with a broken page, and a file of many."""
    folder = tmp_path_factory.mktemp("inputs")
    pictures = folder / "photos"
    pictures.mkdir()
    for n, image in enumerate(SCENES.images[:14]):
        Image.fromarray(np.pad(image, ((0, 5), (0, 9), (0, 0))) if n % 4 == 1 else image).save(pictures / f"{n}.png")
    (pictures / "7.png").write_bytes(b"no picture")
    stack = break_page(write_stack(folder / "stack.tif", list(SCENES.images[14:20])), 3)
    np.savez(folder / "many.npz", image=SCENES.images[20:])
    return [pictures, stack, folder / "many.npz"]


def shards(model: PCDNet, paths: Any, folder: Path, count: int = SHARDS, **options: Any) -> list[Path]:
    """The folders of all shards."""
    parts = [folder / f"part-{index}" for index in range(count)]
    for index, part in enumerate(parts):
        decompose_files(model, paths, part, shard=(index, count), quiet=True, **options)
    return parts


def contents(out: Path) -> dict[str, bytes]:
    """All that was written for others to read."""
    own = ("journal.jsonl",)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.*") if path.name not in own}


@pytest.fixture(scope="module")
def whole(model: PCDNet, inputs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one single call writes."""
    pytest.importorskip("pyarrow")
    out = tmp_path_factory.mktemp("whole") / "out"
    done = decompose_files(model, inputs, out, formats=ALL, quiet=True)
    assert (done.summary.images, len(done.failed)) == (13 + 5 + 8, 2)
    return out


@pytest.fixture(scope="module")
def parts(model: PCDNet, inputs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same in three shards."""
    pytest.importorskip("pyarrow")
    return shards(model, inputs, tmp_path_factory.mktemp("parts"), formats=ALL)


def test_gathered_shards_are_byte_for_byte_what_a_single_call_writes(
    whole: Path, parts: list[Path], inputs: list[Path], tmp_path: Path
) -> None:
    done = gather(reversed(parts), tmp_path / "out", quiet=True)
    assert contents(tmp_path / "out") == contents(whole)
    assert len(contents(whole)) == 5 + 4 * 26
    names = ("decompositions.jsonl", "coco.json", "coco_results.json", "objects.csv", "objects.parquet", "png")
    assert done.files == tuple(tmp_path / "out" / name for name in names)
    assert (done.parts, done.inputs, done.summary.images) == (3, 16, 26)
    assert sorted(done.failed) == [f"{inputs[0]}/7.png", str(inputs[1])]


def test_every_shard_has_its_share(parts: list[Path]) -> None:
    counts = [len((part / "decompositions.jsonl").read_text().splitlines()) for part in parts]
    assert sum(counts) == 26
    assert max(counts) - min(counts) <= 3


def test_a_gathered_folder_is_one_to_go_on_with(
    model: PCDNet, inputs: list[Path], parts: list[Path], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    gather(parts, out, quiet=True)
    monkeypatch.setattr(PCDNet, "decompose_all", None)
    assert decompose_files(model, inputs, out, formats=ALL, quiet=True).known == 26
    assert contents(out) == contents(whole)
    before = (out / "journal.jsonl").read_bytes()
    gather(parts, out, quiet=True)  # as after an attempt that was cut off
    assert contents(out) == contents(whole)
    assert (out / "journal.jsonl").read_bytes() == before


def test_a_shard_that_was_killed_goes_on(
    model: PCDNet, inputs: list[Path], whole: Path, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = PCDNet.decompose_all, iter([True, False])

    def stopping(model: PCDNet, images: np.ndarray, **options: bool) -> object:
        if not next(calls, True):
            raise KeyboardInterrupt
        return real(model, images, **options)

    part = tmp_path / "part"
    given: dict[str, Any] = {"formats": ALL, "shard": (1, 3), "quiet": True}
    with monkeypatch.context() as patch:
        patch.setattr(PCDNet, "decompose_all", stopping)
        with pytest.raises(KeyboardInterrupt, match="the same command goes on from there"):
            decompose_files(model, inputs, part, **given)
    with pytest.raises(PcdnetError, match=r"shard 1/3 in .* is not finished; run its command again"):
        gather([parts[0], part, parts[2]], tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
    done = decompose_files(model, inputs, part, **given)
    assert done.known > 0
    assert done.fresh > 0
    gather([parts[0], part, parts[2]], tmp_path / "out", quiet=True)
    assert contents(tmp_path / "out") == contents(whole)


def test_what_ends_a_file_for_one_shard_ends_it_for_all(tmp_path: Path) -> None:
    model = grey_run(tmp_path / "run").load_model()
    rng = np.random.default_rng(0)
    pages = [rng.integers(0, 256, (20, 31 if n == 4 else 30, 3), np.uint8) for n in range(9)]
    write_stack(tmp_path / "a.tif", pages)
    whole = decompose_files(model, tmp_path / "a.tif", tmp_path / "whole", quiet=True)
    parts = shards(model, tmp_path / "a.tif", tmp_path)
    assert gather(parts, tmp_path / "out", quiet=True).failed == whole.failed
    assert whole.summary.images == 4
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_values_out_of_range_end_a_file_for_all_shards_also_where_images_are_resized(tmp_path: Path) -> None:
    model, images = grey_run(tmp_path / "run").load_model(), np.random.default_rng(0).random((9, 12, 14, 3))
    images[4, 0, 0] = 2.0
    np.savez(tmp_path / "a.npz", image=images)
    whole = decompose_files(model, tmp_path / "a.npz", tmp_path / "whole", resize=True, quiet=True)
    gather(shards(model, tmp_path / "a.npz", tmp_path, resize=True), tmp_path / "out", quiet=True)
    assert whole.summary.images == 4
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_images_too_small_for_the_model_are_left_out_and_the_others_of_the_file_are_not(tmp_path: Path) -> None:
    bank = PrototypeBank(torch.ones(2, 5, 5), torch.ones(2, 5, 5))
    model = PCDNet.from_bank(bank, dataclasses.replace(GREY, background="black"))
    rng = np.random.default_rng(0)
    pages = [rng.integers(0, 256, (4 if n < 70 else 12, 14, 3), np.uint8) for n in range(75)]
    write_stack(tmp_path / "a.tif", pages)
    decompose_files(model, tmp_path / "a.tif", tmp_path / "whole", quiet=True)
    gathered = gather(shards(model, tmp_path / "a.tif", tmp_path), tmp_path / "out", quiet=True)
    assert gathered.summary.images == 5
    assert list(gathered.failed) == [f"{tmp_path}/a.tif"]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize("stride", [1, 2])
def test_frames_of_videos_count_one_by_one(stride: int, model: PCDNet, tmp_path: Path) -> None:
    pytest.importorskip("av")
    first, *others = map(Image.fromarray, SCENES.images[:9])
    first.save(tmp_path / "a.gif", save_all=True, append_images=others)
    Image.fromarray(SCENES.images[9]).save(tmp_path / "b.png")
    paths = [tmp_path / "a.gif", tmp_path / "b.png"]
    whole = decompose_files(model, paths, tmp_path / "whole", stride=stride, quiet=True)
    parts = shards(model, paths, tmp_path, stride=stride)
    gather(parts, tmp_path / "out", quiet=True)
    assert whole.summary.images == -(-9 // stride) + 1
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert all((part / "decompositions.jsonl").read_text() for part in parts)


def test_more_shards_than_images_leave_some_with_nothing_to_do(model: PCDNet, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", image=SCENES.images[:2])
    decompose_files(model, tmp_path / "a.npz", tmp_path / "whole", formats=ALL, quiet=True)
    parts = shards(model, tmp_path / "a.npz", tmp_path, count=4, formats=ALL)
    gather(parts, tmp_path / "out", quiet=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_nothing_but_bad_files_gathers_nothing(model: PCDNet, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    parts = shards(model, tmp_path / "a.png", tmp_path, count=2)
    with pytest.raises(PcdnetError, match="none of the 1 files could be used"):
        gather(parts, tmp_path / "out", quiet=True)


def damage(path: Path, place: int = -20) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def pipe(path: Path) -> None:
    """Have something in the place of a file that is waited for."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda p: shutil.rmtree(p[1]), r"part-1 holds no results; give the folders of all shards"),
        (lambda p: p.pop(1), r"shard 1/3 is missing; decompose it if that is not done yet, and give the folder, too"),
        (lambda p: p.__setitem__(1, p[0]), r"shard 0/3 is there twice, .*part-0 and .*part-0; give one of them"),
        (lambda p: p.clear(), r"there is no part to put together; give"),
        (lambda p: damage(p[1] / "shard.json"), r"shard.json is damaged; run the command of that shard again"),
        (
            lambda p: damage(p[1] / "journal.jsonl"),
            r"is damaged, .*; run shard 1/3 again with force=True",
        ),
        (
            lambda p: (p[1] / "journal.jsonl").unlink(),
            r"cannot be read .*; make it readable, or run shard",
        ),
        (lambda p: damage(next((p[2] / "png").glob("*.png"))), r"is damaged; delete it, and run shard 2/3 again"),
        (lambda p: next((p[2] / "png").glob("*.png")).unlink(), r"cannot be read .*; run shard 2/3 again, which draws"),
        (lambda p: pipe(p[1] / "shard.json"), r"cannot be read \(it is no file\); make it readable"),
        (lambda p: pipe(p[1] / "journal.jsonl"), r"cannot be read \(it is no file\); make it readable, or run shard"),
        (lambda p: pipe(next((p[2] / "png").glob("*.png"))), r"\(it is no file\); run shard 2/3 again, which draws"),
    ],
)
def test_parts_that_are_missing_doubled_or_damaged_are_refused(
    spoil: Callable[[list[Path]], object], complaint: str, parts: list[Path], tmp_path: Path
) -> None:
    copies = [Path(shutil.copytree(part, tmp_path / part.name)) for part in parts]
    spoil(copies)
    with pytest.raises(PcdnetError, match=complaint):
        gather(copies, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out" / "coco.json").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"formats": "json,csv"}, "have the formats json and json,csv; run the shards that differ again"),
        ({"values": (0.0, 9.0)}, "are of different values; run the shards that differ again, with the same values"),
        ({"stride": 2}, "are of different stride; run the shards that differ again, with the same stride"),
        ({"shard": (1, 4)}, "are shards of 2 and of 4; give those of one number"),
        ({"paths": 1}, "are of different inputs, 2 and 1 files by name, size or time; run the shards that differ"),
        ({"time": (1, 1)}, "are of different inputs, files that differ by name, size or time"),
        ({"names": Names(count=19, given={0: "T"})}, "name the prototypes differently; run the shards that differ"),
        ({"weights": 0.5}, "are of different runs; run the shards that differ again, with the same run"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    options: dict[str, Any], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path, image in zip(paths, SCENES.images, strict=False):
        Image.fromarray(image).save(path)
    models = [true_run(tmp_path / f"run-{n}").load_model() for n in range(2)]
    parts = [tmp_path / "part-0", tmp_path / "part-1"]
    decompose_files(models[0], paths, parts[0], shard=(0, 2), quiet=True)
    given = dict(options)
    if "time" in given:
        os.utime(paths[0], ns=given.pop("time"))
    models[1].names = given.pop("names", models[1].names)
    with torch.no_grad():
        models[1].prototypes.mul_(given.pop("weights", 1.0))
    decompose_files(models[1], paths[given.pop("paths", 0) :], parts[1], **{"shard": (1, 2), "quiet": True, **given})
    with pytest.raises(PcdnetError, match=complaint):
        gather(parts, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_results_of_something_else_are_not_written_over(
    model: PCDNet, inputs: list[Path], parts: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(PcdnetError, match=r"part-0 is one of the parts; choose another out"):
        gather(parts, parts[0], quiet=True)
    picture = inputs[0] / "1.png"
    decompose_files(model, picture, tmp_path / "other", values=(0, 7), quiet=True)
    with pytest.raises(PcdnetError, match="other holds results of another run or of other options; choose another out"):
        gather(parts, tmp_path / "other", quiet=True)
    with pytest.raises(PcdnetError, match=r"holds the results of shard 0/3, not of shard 1/3; choose another out"):
        decompose_files(model, inputs, parts[0], shard=(1, 3), quiet=True)
    with pytest.raises(PcdnetError, match=r"part-0 holds the results of shard 0/3, not of all images; choose another"):
        decompose_files(model, inputs, parts[0], quiet=True)
    with pytest.raises(PcdnetError, match=r"other holds the results of all images, not of shard 0/3"):
        decompose_files(model, picture, tmp_path / "other", shard=(0, 3), quiet=True)
    assert json.loads((parts[0] / "shard.json").read_bytes())["shard"] == [0, 3]
    gather(parts, tmp_path / "other", force=True, quiet=True)


def test_a_png_is_whole_only_with_every_byte(parts: list[Path]) -> None:
    content = next((parts[0] / "png").glob("*.png")).read_bytes()
    assert is_whole_png(content)
    assert not any(is_whole_png(part) for part in (content[:-1], content[:40], content + b"a", content[1:], b""))
