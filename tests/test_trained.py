"""Laws of the models that come with the package: each does what its card says, by its name, and is never changed."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pcdnet
from pcdnet.cli import main
from pcdnet.cli.learn_again import LearnAgain
from pcdnet.data.letters import KINDS
from pcdnet.data.opening import open_data
from pcdnet.data.sources import TEST_SEED
from pcdnet.errors import PcdnetError
from pcdnet.run import RunFolder
from pcdnet.trained import HOME, NAMES, card
from tests.runs import true_run

Capture = pytest.CaptureFixture[str]
LARGEST = 3 * 2**20
"""Bytes of all of them together: the wheel must stay below 4 MB."""


def content() -> dict[str, bytes]:
    """Every file of the models."""
    folders = [HOME / name for name in NAMES]
    return {str(path): path.read_bytes() for each in folders for path in sorted(each.rglob("*")) if path.is_file()}


@pytest.fixture(autouse=True)
def _unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does, in a folder of its own, the models stay as they are, and no file joins them."""
    monkeypatch.chdir(tmp_path)
    before = content()
    yield
    assert content() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_model_scores_what_its_card_says(name: str) -> None:
    if name == "space-invaders":
        pytest.importorskip("ale_py")
    known = card(name)
    scores = pcdnet.evaluate(name, open_data(name, count=known.checked, seed=TEST_SEED)).to_dict()
    assert {key: scores[key] for key in known.expected} == pytest.approx(dict(known.expected), rel=0.02, abs=0.005)
    telling = known.scores.get("fg_ari", known.scores["f1"])
    assert telling == pytest.approx(known.expected.get("fg_ari", known.expected["f1"]), abs=0.03)
    assert telling >= 0.97


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_complete_and_its_model_is_a_whole_run(name: str) -> None:
    known, run = card(name), RunFolder.open(name)
    assert tomllib.loads(known.to_toml()) == {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in known.to_dict().items()
        if key != "name"
    }
    assert run.is_trained
    assert (run.path, run.data) == (known.folder, name)
    assert known.prototypes == len(run.names()) == run.load_model().config.num_prototypes
    assert known.size == run.image_size
    assert json.loads(run.verdict() or "{}")["verdict"] == "good"
    assert f"--seed {known.seed} --out runs/{name}" in known.command
    assert known.minutes > 0
    assert known.limits


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_few_unlike_pictures_of_the_size_that_was_learned_from(name: str) -> None:
    known = card(name)
    paths = sorted(known.samples.iterdir())
    assert [path.name for path in paths] == [f"{name}-{n}.png" for n in range(1, 7)]
    pictures = [np.asarray(Image.open(path)) for path in paths]
    assert {picture.shape for picture in pictures} == {(*known.size, 3)[: 2 + (known.channels == 3)]}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    for picture, found in zip(pictures, pcdnet.load(name).decompose_all(pictures), strict=True):
        assert len(found) > 2
        bare = np.square(picture / 255 - np.median(picture / 255, axis=(0, 1))).sum()
        assert found.error < 0.1 * bare


def test_every_kind_has_a_name_of_its_own() -> None:
    assert sorted(set(RunFolder.open("letters").names())) == sorted(KINDS)
    assert len(set(RunFolder.open("tetrominoes").names().given.values())) == 19
    aliens = {name for name in RunFolder.open("space-invaders").names() if name.startswith("alien")}
    assert aliens == {f"alien {row}" for row in range(1, 7)}


def test_all_of_them_are_small() -> None:
    assert sum(map(len, content().values())) < LARGEST
    assert {Path(path).suffix for path in content()} <= {".toml", ".json", ".jsonl", ".safetensors", ".png"}


COMMANDS: dict[str, tuple[list[str], str]] = {
    "eval": (["eval", "tetrominoes", "--limit", "8"], ""),
    "decompose": (["decompose", "letters", "--out", "results", "--format", "json,coco"], "results/coco.json"),
    "figure": (["figure", "letters", "--kind", "prototypes", "--out", "a.png"], "a.png"),
    "export": (["export", "tetrominoes", "--onnx", "a.onnx"], "a.onnx"),
    "report": (["report", "tetrominoes", "--data", str(HOME / "tetrominoes" / "samples")], "tetrominoes-report.html"),
    "models": (["models", "letters", "--out", "mine"], "mine/weights.safetensors"),
    "runs": (["runs", "letters"], ""),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_takes_a_run_takes_a_name(command: str, capsys: Capture) -> None:
    if command == "export":
        pytest.importorskip("onnxruntime")
    words, made = COMMANDS[command]
    assert main(words) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert not made or Path(made).stat().st_size > 0


def test_a_model_decomposes_its_samples_without_a_path(capsys: Capture) -> None:
    done = pcdnet.decompose_files("letters", None, "results", quiet=True)
    assert (done.inputs, done.fresh) == (6, 6)
    lines = [json.loads(line) for line in (Path("results") / "decompositions.jsonl").read_text().splitlines()]
    assert {thing["name"] for line in lines for thing in line["objects"]} <= set(KINDS)
    with pytest.raises(PcdnetError, match="no image was named; give"):
        pcdnet.decompose_files(true_run(Path("mine")), None, "others", quiet=True)


Change = Callable[[], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda: RunFolder.open("letters").merge([0, 1]),
        lambda: RunFolder.open("letters").keep_names(RunFolder.open("letters").names().renamed(0, "x")),
        lambda: RunFolder.open("letters").hide([0]),
        lambda: LearnAgain(folder=Path("letters"), remove=(0,)).run(),
        lambda: pcdnet.load("letters").save(HOME / "letters"),
        lambda: pcdnet.fit("letters", out=HOME / "letters", force=True),
        lambda: pcdnet.fit(out=HOME / "letters", resume=True),
        lambda: pcdnet.fit("letters", out=os.path.relpath(HOME / "letters"), force=True),
    ],
    ids=["merge", "rename", "hide", "learn again", "save", "train over", "resume", "train over its relative path"],
)
def test_a_model_of_the_package_is_never_changed(change: Change) -> None:
    with pytest.raises(PcdnetError, match="comes with pcdnet and stays as it is"):
        change()


def test_merging_names_the_command_that_copies_and_a_copy_can_be_merged(capsys: Capture) -> None:
    assert main(["merge", "letters", "0", "1"]) == 1
    assert "copy it with `pcdnet models letters --out FOLDER`" in capsys.readouterr().err
    assert main(["models", "letters", "--out", "mine"]) == 0
    assert main(["merge", "mine", "0", "1", "--name", "either"]) == 0
    copied = RunFolder.open("mine")
    assert not copied.is_trained
    assert copied.samples is None
    assert list(copied.names())[:2] == ["either", "either"]
    assert main(["models", "letters", "--out", "mine"]) == 1
    assert "mine is in use" in capsys.readouterr().err


def test_a_folder_of_that_name_comes_first_if_it_is_a_run() -> None:
    Path("tetrominoes").mkdir()
    assert RunFolder.open("tetrominoes").is_trained  # a folder of pictures, perhaps
    true_run(Path("tetrominoes"))
    assert not RunFolder.open("tetrominoes").is_trained
    assert RunFolder.open(HOME / "tetrominoes").is_trained


def test_what_is_no_name_says_which_names_there_are() -> None:
    with pytest.raises(PcdnetError, match=r"pongs is no run: .* \(tetrominoes, space-invaders, letters\)"):
        pcdnet.load("pongs")


def test_models_are_listed_for_people_and_for_programs(capsys: Capture) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(NAMES) == list(pcdnet.models())
    for name, known in pcdnet.models().items():
        assert f"{name}\n  {known.finds}\n" in shown
        assert listed[name]["scores"] == known.scores
        assert main(["models", name]) == 0
        about = capsys.readouterr().out
        assert all(text in about for text in (known.command, known.commit, *known.limits, str(known.samples)))


def test_a_name_that_is_none_is_refused_with_those_that_are(capsys: Capture) -> None:
    assert main(["models", "pong"]) == 1
    assert main(["models", "--out", "mine"]) == 1
    said = capsys.readouterr().err
    assert "there is no trained model 'pong'; use one of tetrominoes, space-invaders, letters" in said
    assert "none was named" in said
    assert not Path("mine").exists()


def test_the_page_says_of_every_model_what_its_card_says() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    for name, known in pcdnet.models().items():
        numbers = known.prototypes, known.scores["f1"], known.scores.get("fg_ari", "-"), known.minutes
        assert f"| `{name}` | {known.finds} | {' | '.join(map(str, numbers))} |" in page
        assert f"{known.scenes:,} scenes" in page
