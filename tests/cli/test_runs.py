"""Laws of the commands around a run: train, resume, eval, bench, report, demo."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pcdnet.cli.origin import Origin, command

from pcdnet.cli import main, parse
from pcdnet.cli.train import Train
from pcdnet.config import PRESETS, Config
from pcdnet.data import sources
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.output.dataset import save_scenes

Capture = pytest.CaptureFixture[str]
SMALL = (
    *("--preset", "tetrominoes", "--train.batch", "8", "--train.validate-every", "3"),
    *("--model.num-prototypes", "4", "--model.restarts", "0"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "scenes.npz"
    save_scenes(generate(80, seed=1), path)
    return path


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps."""
    out = tmp_path_factory.mktemp("runs") / "small"
    assert main(["train", "--data", str(data), "--out", str(out), "--train.steps", "6", *SMALL]) == 0
    return out


def complaint_of(capsys: Capture, *arguments: str) -> str:
    """What a command that must fail says, in its one line."""
    capsys.readouterr()
    assert main(arguments) == 1
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert complaint.startswith("pcdnet: ")
    assert complaint.count("\n") == 1
    assert "; " in complaint
    return complaint


def test_training_leaves_a_run_and_names_the_next_step(data: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "run"
    assert main(["train", "--data", str(data), "--out", str(out), "--seed", "5", "--train.steps", "6", *SMALL]) == 0
    printed, progress = capsys.readouterr()
    assert printed.startswith("validation  FG-ARI ")
    assert printed.endswith(f"wrote {out}   next: pcdnet eval {out} --data {data}\n")
    assert "step 6  loss" in progress
    assert "prototypes in use" in progress
    assert progress.count("  validation  FG-ARI") == 2
    assert {path.name for path in out.iterdir()} == {
        "config.toml",
        "metrics.jsonl",
        "origin.json",
        "report.html",
        "state.safetensors",
        "weights.safetensors",
    }
    config = Config.load(out / "config.toml")
    assert (config.train.seed, config.train.steps, config.model.num_prototypes) == (5, 6, 4)


def test_the_preset_gives_the_defaults_and_options_change_them() -> None:
    for preset in PRESETS:
        for words in (["--preset", preset], [f"--preset={preset}"]):
            train = parse(["train", "--out", "a", *words])
            assert isinstance(train, Train)
            assert train.config() == Config.preset(preset)
    changed = parse(
        ["train", "--out", "a", "--preset", "ngsim", "--model.no-background", "--loss.tv", "3", "--seed", "4"]
    )
    assert isinstance(changed, Train)
    ngsim = Config.preset("ngsim")
    assert changed.config() == Config(
        model=dataclasses.replace(ngsim.model, background=False),
        loss=dataclasses.replace(ngsim.loss, tv=3.0),
        train=dataclasses.replace(ngsim.train, seed=4),
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_the_command_of_a_run_trains_the_same_again(preset: str) -> None:
    base = Config.preset(preset)
    config = Config(
        model=dataclasses.replace(
            base.model, prototype_size=(7, 9), background=not base.model.background, min_error_reduction=1e-5
        ),
        loss=dataclasses.replace(base.loss, l1=1e-7),
        train=dataclasses.replace(base.train, seed=11),
    )
    words = shlex.split(command(Path("a b"), config, Origin(data="it's.npz", minutes=2.5)))
    assert words.pop(0) == "pcdnet"
    train = parse(words)
    assert isinstance(train, Train)
    assert train.config() == config
    assert (train.out, train.data, train.minutes) == (Path("a b"), "it's.npz", 2.5)


def test_a_used_folder_is_kept_unless_forced(trained: Path, data: Path, tmp_path: Path, capsys: Capture) -> None:
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    complaint = complaint_of(capsys, "train", "--data", str(data), "--out", str(trained), *SMALL)
    assert "--resume" in complaint
    assert "--force" in complaint
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before
    (tmp_path / "precious.txt").touch()
    complaint_of(capsys, "train", "--data", str(data), "--out", str(tmp_path), "--force", *SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_run_that_was_stopped_goes_on_to_the_same_end(
    data: Path, trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    train = ["train", "--data", str(data), "--out", str(out), "--train.steps", "6", *SMALL]
    asked = iter([False, False, True])
    with monkeypatch.context() as patch:
        patch.setattr("pcdnet.training.loop.REPORT_SECONDS", 1e9)
        patch.setattr("pcdnet.cli.signals.stop_on_signal", lambda: _Asking(asked))
        assert main(train) == 130
    printed, words = capsys.readouterr()
    assert printed == ""
    assert "stopped after step 3 of 6" in words
    assert f"--resume --out {out}" in words
    assert main(["train", "--resume", "--out", str(out)]) == 0
    assert (out / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()
    assert capsys.readouterr().out.endswith(f"--data {data}\n")


class _Asking:
    """Stands for `stop_on_signal`, and asks to stop when its turn comes."""

    def __init__(self, asked: Any) -> None:
        self._asked = asked

    def __enter__(self) -> Any:
        return lambda: next(self._asked)

    def __exit__(self, *_: object) -> None:
        pass


def test_a_resumed_run_keeps_its_configuration(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    complaint = complaint_of(capsys, "train", "--resume", "--out", str(trained), "--model.num-prototypes", "5")
    assert "started with --model.num-prototypes 4, not --model.num-prototypes 5" in complaint
    assert "--train.seed" in complaint_of(capsys, "train", "--resume", "--out", str(trained), "--seed", "9")
    assert "no run" in complaint_of(capsys, "train", "--resume", "--out", str(tmp_path / "none"))
    assert "one of them" in complaint_of(capsys, "train", "--resume", "--force", "--out", str(trained))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_after_the_step(number: signal.Signals, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "--data", str(data), "--out", str(out), "--train.steps", "1000000", *SMALL]
    process = subprocess.Popen(
        [sys.executable, "-m", "pcdnet", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("step "), first
        process.send_signal(number)
        printed, complaint = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert printed == ""
    assert "Traceback" not in complaint
    assert "finishing the step" in complaint
    assert f"--resume --out {out}" in complaint.splitlines()[-1]
    assert Origin.read(out).data == str(data)
    assert not list(out.glob("*.partial"))


def test_a_second_signal_stops_at_once() -> None:
    from pcdnet.cli.signals import stop_on_signal

    former = signal.getsignal(signal.SIGTERM)
    with stop_on_signal() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is former


def test_eval_prints_one_json_object_with_the_promised_keys(trained: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["eval", str(trained), "--data", "tetrominoes", "--limit", "12", "--json"]) == 0
    printed, complaints = capsys.readouterr()
    assert complaints == ""
    scores = json.loads(printed)
    assert list(scores)[:14] == [
        *("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect"),
        *("precision", "recall", "f1", "ap50", "parameters", "images_per_second", "seconds"),
    ]
    assert scores["scenes"] == 12
    assert -1 <= scores["fg_ari"] <= 1
    assert 0 <= scores["f1"] <= 1
    assert scores["parameters"] == 2 * 4 * 25 * 25


def test_without_the_truth_scores_are_null(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "blind.npz"
    np.savez(path, image=generate(3, seed=0).images)
    capsys.readouterr()
    assert main(["eval", str(trained), "--data", str(path), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["fg_ari"] is None
    assert scores["mse"] > 0
    assert main(["eval", str(trained), "--data", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "MSE" in printed
    assert "FG-ARI" not in printed


def test_eval_prints_a_table_for_people(trained: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["eval", str(trained), "--limit", "5"]) == 0
    printed = capsys.readouterr().out
    assert "FG-ARI" in printed
    assert "images/s" in printed


def test_scores_on_scenes_of_the_training_are_marked(
    trained: Path, data: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = tmp_path / "other.npz"
    save_scenes(generate(3, seed=2), other)
    for path, note in ((data, "trained on"), (other, "")):
        capsys.readouterr()
        assert main(["eval", str(trained), "--data", str(path), "--limit", "3", "--json"]) == 0
        printed, said = capsys.readouterr()
        assert json.loads(printed)["scenes"] == 3
        assert note in said
        assert bool(said) == bool(note)


def test_bench_measures(trained: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["bench", str(trained), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["images_per_second"] > 0
    assert 0 <= figures["objects_per_image"] <= 3
    assert figures["batch"] == 64
    assert main(["bench", str(trained)]) == 0
    assert "images/s" in capsys.readouterr().out


def test_report_writes_the_page_where_it_is_wanted(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    capsys.readouterr()
    (trained / "report.html").unlink()
    assert main(["report", str(trained)]) == 0
    assert "the last 8 of scenes.npz" in (trained / "report.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"wrote {trained}/report.html   next: open it in a browser\n"
    blind, page = tmp_path / "blind.npz", tmp_path / "page.html"
    np.savez(blind, image=generate(3, seed=0).images)
    assert main(["report", str(trained), "--data", str(blind), "--out", str(page)]) == 0
    assert "3 scenes: blind.npz" in page.read_text(encoding="utf-8")
    assert "page.html" in complaint_of(capsys, "report", str(trained), "--out", str(tmp_path / "page.txt"))


def test_mistakes_name_their_cure(trained: Path, data: Path, tmp_path: Path, capsys: Capture) -> None:
    none, out = str(tmp_path / "none"), str(tmp_path / "out")
    for name in ("eval", "bench", "report"):
        assert "is no run" in complaint_of(capsys, name, none)
        assert "use tetrominoes" in complaint_of(capsys, name, str(trained), "--data", "tetris")
        assert "does not exist" in complaint_of(capsys, name, str(trained), "--data", f"{none}.npz")
        assert "--device cpu" in complaint_of(capsys, name, str(trained), "--device", "abacus")
    assert "use tetrominoes" in complaint_of(capsys, "train", "--data", "tetris", "--out", out)
    assert "no preset" in complaint_of(capsys, "train", "--preset", "tetris", "--out", out)
    assert "use 1 or more" in complaint_of(capsys, "train", "--model.num-prototypes", "0", "--out", out)
    assert "minutes" in complaint_of(capsys, "train", "--data", str(data), "--minutes", "0", "--out", out, *SMALL)
    batch = ("--preset", "tetrominoes", "--train.batch", "99")
    assert "batches of" in complaint_of(capsys, "train", "--data", str(data), *batch, "--out", out)
    assert not list(tmp_path.iterdir())


def test_a_damaged_origin_is_told(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "origin.json").write_text('{"data": 3, "minutes": null}')
    with pytest.raises(PcdnetError, match="delete it"):
        Origin.read(tmp_path)
    (tmp_path / "origin.json").write_text("{")
    with pytest.raises(PcdnetError, match="delete it"):
        Origin.read(tmp_path)
    assert Origin.read(trained).minutes is None


def test_the_demo_learns_scores_and_draws(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SOURCES", [dataclasses.replace(sources.SOURCES[0], training=(128, 4))])
    monkeypatch.setattr("pcdnet.cli.demo.SCENES", 6)
    out = tmp_path / "new" / "demo"
    for _ in range(2):  # the second replaces the first
        assert main(["demo", "--out", str(out), "--minutes", "0.005", "--seed", "1"]) == 0
        printed, progress = capsys.readouterr()
        assert "FG-ARI" in printed
        assert "next:" in printed
        assert f"pcdnet eval {out}/run" in printed
        assert "prototypes in use" in progress
        assert sorted(path.name for path in out.iterdir()) == ["decompositions.png", "prototypes.png", "run"]
        assert (out / "run" / "report.html").is_file()
    assert "--minutes 0.005" in (out / "run" / "report.html").read_text(encoding="utf-8")


def test_without_tensorboard_the_cure_is_named(
    data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    out = tmp_path / "run"
    complaint = complaint_of(capsys, "train", "--data", str(data), "--out", str(out), "--tensorboard", *SMALL)
    assert complaint.endswith("pip install tensorboard\n")
    assert not out.exists()


def test_tensorboard_is_given_curves_and_prototypes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []

    class Writer:
        def __init__(self, folder: Path) -> None:
            given.append((folder.name, -1))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            given.append((name, step))

        def add_image(self, name: str, picture: np.ndarray, step: int, dataformats: str) -> None:
            assert picture.dtype == np.uint8
            assert picture.shape[2] == len(dataformats) == 3
            given.append((name, step))

        def close(self) -> None:
            given.append(("closed", -1))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    out = tmp_path / "run"
    assert main(["train", "--data", str(data), "--out", str(out), "--tensorboard", "--train.steps", "6", *SMALL]) == 0
    assert given[0] == ("tensorboard", -1)
    assert given[-1] == ("closed", -1)
    assert {("loss", 6), ("lr", 6), ("in_use", 6), ("fg_ari", 3), ("fg_ari", 6)} <= set(given)
    assert [step for name, step in given if name == "prototypes"] == [3, 6]
