"""Laws of the pipeline: every image once, in the order of the inputs, and what is done is skipped."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pcdnet.data.inputs import find_inputs
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.output.journal import Journal
from pcdnet.output.pictures import KINDS
from pcdnet.output.pipeline import Pipeline
from tests.runs import GREY, grey_run

SCENES = generate(6, seed=3)


@pytest.fixture(scope="module")
def model() -> PCDNet:
    """A grey model that finds bright squares in images of any size."""
    bank = PrototypeBank(torch.ones(2, 5, 5), torch.ones(2, 5, 5))
    return PCDNet.from_bank(bank, dataclasses.replace(GREY, background="black"))


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """A picture, a stack of five images of another size, a file that is none, and a picture of a third size."""
    rng = np.random.default_rng(0)
    for name, size in (("a.png", (20, 30)), ("z.png", (31, 17))):
        Image.fromarray(rng.integers(0, 256, (*size, 3), np.uint8)).save(tmp_path / name)
    np.savez(tmp_path / "s.npz", image=rng.integers(0, 256, (5, 12, 14, 3), np.uint8))
    (tmp_path / "bad.png").write_bytes(b"no picture")
    return [str(tmp_path / name) for name in ("a.png", "s.npz", "bad.png", "z.png")]


def run(model: PCDNet, paths: Sequence[str], out: Path, **options: Any) -> tuple[Pipeline, list[str], list[int]]:
    """A pipeline that has done its work, the names of the images in its journal, and the sizes of its steps."""
    with Journal(out, {}) as journal:
        pipeline = Pipeline(model, find_inputs(paths), journal, out, **options)
        sizes = [size for size, _ in pipeline.steps()]
        return (
            pipeline,
            [record["name"] for record in journal.records([image.line for image in pipeline.sealed()])],
            sizes,
        )


def test_images_come_in_the_order_of_the_inputs_and_bad_ones_are_reported(
    model: PCDNet, paths: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline, names, sizes = run(model, paths, tmp_path / "out")
    notes = capsys.readouterr().err.splitlines()
    assert names == [paths[0], *(f"{paths[1]}#{n}" for n in range(5)), paths[3]]
    assert (pipeline.fresh, pipeline.known) == (7, 0)
    assert list(pipeline.failed) == [paths[2]]
    assert len(notes) == 1
    assert notes[0].startswith(f"note: skipped {paths[2]}: is no picture")
    assert sum(sizes) == pipeline.total == 8


def test_what_is_done_is_skipped_and_files_of_many_are_not_even_opened(
    model: PCDNet, paths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first, _ = run(model, paths, tmp_path / "out")
    monkeypatch.setattr(PCDNet, "decompose_all", None)
    monkeypatch.setattr("pcdnet.data.sources.Source.images", None)
    pipeline, again, sizes = run(model, [paths[0], paths[1], paths[3]], tmp_path / "out")
    assert again == first
    assert (pipeline.fresh, pipeline.known) == (0, 7)
    assert sum(sizes) == pipeline.total == 7


def test_a_file_that_changed_is_done_again(model: PCDNet, paths: list[str], tmp_path: Path) -> None:
    run(model, paths, tmp_path / "out")
    Image.new("RGB", (20, 20)).save(paths[0])
    np.savez(paths[1], image=np.zeros((3, 12, 14, 3), np.uint8))
    pipeline, names, _ = run(model, paths, tmp_path / "out")
    assert names == [paths[0], *(f"{paths[1]}#{n}" for n in range(3)), paths[3]]
    assert (pipeline.fresh, pipeline.known) == (4, 1)


def test_pictures_are_drawn_where_they_are_missing_or_damaged_or_names_have_changed(
    model: PCDNet, paths: list[str], tmp_path: Path
) -> None:
    out, good = tmp_path / "out", [paths[0], paths[1]]
    run(model, good, out)
    assert not (out / "png").exists()
    pipeline, *_ = run(model, good, out, pictures=True)
    assert pipeline.fresh == 6
    drawn = sorted(path.relative_to(out / "png").as_posix() for path in (out / "png").rglob("*.png"))
    assert drawn == sorted(f"{name}.{kind}.png" for name in ("a", *(f"s/00000{n}" for n in range(5))) for kind in KINDS)
    assert run(model, good, out, pictures=True)[0].known == 6
    (out / "png" / "s" / "000003.overlay.png").unlink()
    cut = out / "png" / "a.overlay.png"
    cut.write_bytes(cut.read_bytes()[:-1])
    pipeline, *_ = run(model, good, out, pictures=True)
    assert (pipeline.fresh, pipeline.known) == (2, 4)
    try:
        model.names = Names(count=2, given={0: "square"})
        assert run(model, good, out)[0].known == 6
        assert run(model, good, out, pictures=True)[0].fresh == 6
    finally:
        model.names = Names(count=2)


def test_images_are_fitted_to_a_background_only_where_that_is_asked_for(paths: list[str], tmp_path: Path) -> None:
    model = grey_run(tmp_path / "run").load_model()
    pipeline, names, _ = run(model, paths, tmp_path / "a")
    assert names == [paths[0]]
    assert list(pipeline.failed) == paths[1:]
    assert pipeline.failed[paths[1]].endswith("; use resize=True")
    pipeline, *_ = run(model, paths, tmp_path / "a", say=lambda setting: f"--{setting.name}")
    assert pipeline.failed[paths[1]].endswith("; use --resize")
    _, names, _ = run(model, paths, tmp_path / "b", resize=True)
    assert len(names) == 7


def test_a_batch_that_fails_fails_its_inputs_and_no_other(
    model: PCDNet, paths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PCDNet.decompose_all

    def failing(model: PCDNet, images: np.ndarray, **options: bool) -> object:
        if images.shape[1:3] == (12, 14):
            raise PcdnetError("no")
        return real(model, images, **options)

    monkeypatch.setattr(PCDNet, "decompose_all", failing)
    pipeline, names, sizes = run(model, paths, tmp_path / "out")
    assert names == [paths[0], paths[3]]
    assert set(pipeline.failed) == {paths[1], paths[2]}
    assert sum(sizes) == pipeline.total


def test_nothing_but_bad_files_still_takes_a_step(model: PCDNet, paths: list[str], tmp_path: Path) -> None:
    pipeline, names, sizes = run(model, paths[2:3], tmp_path / "out")
    assert (names, sizes, pipeline.total) == ([], [1], 1)
