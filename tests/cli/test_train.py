"""Laws of `pcdnet train`: what it was asked for is learned and kept, and whatever interrupts it, it goes on."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli import main, parse
from pcdnet.cli.train import Train
from pcdnet.config import PRESETS, RENAMED, RENAMED_VALUES, Config
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.origin import Origin
from pcdnet.output.dataset import save_scenes
from pcdnet.run import RunFolder
from pcdnet.training.fit import fit
from pcdnet.training.verdict import kept_verdict
from tests.cli.conftest import SMALL, Complaint
from tests.runs import ENDED, true_run

Capture = pytest.CaptureFixture[str]


def parsed(*words: str) -> Train:
    """The command that some options make."""
    command = parse(["train", "--out", "a", *words])
    assert isinstance(command, Train)
    return command


def config_of(command: Train) -> Config:
    """The configuration that the help and the errors of a command are about."""
    return Config(model=command.model, loss=command.loss, train=command.train)


def test_training_leaves_a_run_and_names_the_next_step(data: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "run"
    assert main(["train", "--data", str(data), "--out", str(out), "--seed", "5", *SMALL]) in ENDED
    printed, progress = capsys.readouterr()
    assert printed.startswith("held-out scenes  FG-ARI ")
    assert printed.endswith(f"wrote {out}   next: pcdnet report {out}, or pcdnet serve {out}\n")
    assert "step 6  loss" in progress
    assert "prototypes in use" in progress
    assert progress.count("  validation  FG-ARI") == 2
    assert {path.name for path in out.iterdir()} == {
        "config.toml",
        "metrics.jsonl",
        "origin.json",
        "report.html",
        "state.safetensors",
        "verdict.json",
        "weights.safetensors",
    }
    config = Config.load(out / "config.toml")
    assert (config.train.seed, config.train.steps, config.model.num_prototypes) == (5, 6, 4)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_preset_gives_the_defaults(preset: str) -> None:
    for words in (["--preset", preset], [f"--preset={preset}"]):
        command = parsed(*words)
        assert config_of(command) == Config.preset(preset)
        assert (command.preset, command.changes()) == (preset, {})


def test_a_file_gives_the_defaults_where_no_preset_does(tmp_path: Path, complaint: Complaint) -> None:
    config = Config.preset("ngsim").with_fields({"train.steps": 7})
    (tmp_path / "best.toml").write_text(config.to_toml())
    command = parsed("--config", str(tmp_path / "best.toml"), "--loss.tv", "3")
    assert config_of(command) == config.with_fields({"loss.tv": 3.0})
    assert command.changes() == {"loss.tv": 3.0}
    given = ("train", "--out", tmp_path / "run", "--config", tmp_path / "best.toml", "--preset", "ngsim")
    assert "two configurations are given" in complaint(*given)
    assert "cannot read the configuration" in complaint(
        "train", "--out", tmp_path / "run", "--config", tmp_path / "no.toml"
    )


def test_options_change_what_they_name_and_nothing_else() -> None:
    command = parsed("--preset", "ngsim", "--train.settle", "--loss.tv", "3", "--train.steps=500", "--seed", "4")
    assert command.changes() == {"train.settle": True, "loss.tv": 3.0, "train.steps": 500, "train.seed": 4}
    assert config_of(command).with_fields(command.changes()) == Config.preset("ngsim").with_fields(command.changes())


def test_poses_are_asked_for_in_words_and_pairs_of_numbers() -> None:
    words = "--model.rotations 24 --model.rotation-range -90 90 --model.scales 3 --model.scale-range 0.5 1.0"
    command = parsed(*words.split(), "--model.mirror", "--model.no-fine-poses", "--model.subpixel")
    assert command.changes() == {
        "model.rotations": 24,
        "model.rotation_range": (-90.0, 90.0),
        "model.scales": 3,
        "model.scale_range": (0.5, 1.0),
        "model.mirror": True,
        "model.fine_poses": False,
        "model.subpixel": True,
    }


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_options_of_version_0_1_are_taken(old: str, new: str) -> None:
    field = f"{old.partition('.')[0]}.{new}"
    value = {"train.init": "images", "train.reset_until": "0.5"}.get(field, "7")
    for words in ([f"--{old.replace('_', '-')}", value], [f"--{old.replace('_', '-')}={value}"]):
        changes = parsed(*words).changes()
        assert changes.keys() == {field}
        assert str(changes[field]).removesuffix(".0") == value


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [(field, *pair) for field, pairs in RENAMED_VALUES.items() for pair in pairs.items() if isinstance(pair[0], str)],
)
def test_values_of_version_0_1_are_taken(field: str, old: str, new: str) -> None:
    assert parsed(f"--{field}", old).changes() == parsed(f"--{field}={old}").changes() == {field: new}
    assert parsed("--data", old).data == old


@pytest.mark.parametrize(("old", "new"), [("background", "still"), ("no-background", "black")])
def test_flags_of_version_0_1_that_take_a_value_now_are_taken(old: str, new: str) -> None:
    for words in ([f"--model.{old}"], [f"--model.{old}", "--seed", "4"], ["--seed", "4", f"--model.{old}"]):
        assert parsed(*words).changes()["model.background"] == new
    assert parsed("--model.background", "plain").changes() == {"model.background": "plain"}


def test_a_used_folder_is_kept_unless_forced(
    trained: Path, data: Path, tmp_path: Path, complaint: Complaint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pcdnet.training.task.training_data", None)  # it is refused before the data are opened
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    said = complaint("train", "--data", data, "--out", trained, *SMALL)
    assert "--resume" in said
    assert "--force" in said
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before
    (tmp_path / "precious.txt").touch()
    complaint("train", "--data", data, "--out", tmp_path, "--force", *SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Have training asked to stop after some steps, as by Ctrl-C."""
    asked = iter([*[False] * (steps - 1), True])

    @contextmanager
    def asking() -> Iterator[Any]:
        yield lambda: next(asked)

    monkeypatch.setattr("pcdnet.cli.signals.stop_on_signal", asking)


def test_a_run_that_was_stopped_goes_on_to_the_same_end(
    data: Path, trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a run"
    with monkeypatch.context() as patch:
        patch.setattr("pcdnet.training.loop.REPORT_SECONDS", 1e9)
        stop_after(patch, 3)
        assert main(["train", "--data", str(data), "--out", str(out), *SMALL]) == 130
    printed, words = capsys.readouterr()
    assert printed == ""
    assert "stopped after step 3 of 6" in words
    assert f"--resume --out '{out}'" in words  # as a shell takes it
    assert main(["train", "--resume", "--out", str(out)]) in ENDED
    assert (out / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()


def test_a_resumed_run_keeps_its_configuration(trained: Path, tmp_path: Path, complaint: Complaint) -> None:
    said = complaint("train", "--resume", "--out", trained, "--model.num-prototypes", "5")
    assert "started with --model.num-prototypes 4, not --model.num-prototypes 5" in said
    assert "--train.seed" in complaint("train", "--resume", "--out", trained, "--seed", "9")
    assert "no run" in complaint("train", "--resume", "--out", tmp_path / "none")
    assert "one of them" in complaint("train", "--resume", "--force", "--out", trained)
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_may_have_its_data_elsewhere_and_remembers_it(
    data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, moved = tmp_path / "run", tmp_path / "moved.npz"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        assert main(["train", "--data", str(data), "--out", str(out), *SMALL]) == 130
    moved.write_bytes(data.read_bytes())
    assert main(["train", "--resume", "--out", str(out), "--data", str(moved), "--minutes", "5"]) in ENDED
    run = RunFolder.open(out)
    assert run.data == str(moved)
    assert f"--data {moved} --out {out} --seed 0 --minutes 5" in run.command()
    capsys.readouterr()
    assert main(["eval", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"] == 8


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_after_the_step(number: signal.Signals, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "--data", str(data), "--out", str(out), *SMALL, "--train.steps", "1000000"]
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
        before = next(line for line in process.stderr if line.startswith(("step ", "pcdnet: ")))
        assert before.startswith("step "), before
        process.send_signal(number)
        printed, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert printed == ""
    assert "Traceback" not in said
    assert "finishing the step" in said
    assert f"--resume --out {out}" in said.splitlines()[-1]
    assert RunFolder.open(out).data == str(data)
    assert not list(out.glob("*.partial"))


@pytest.mark.parametrize("begun", [False, True])
def test_a_second_signal_says_how_to_go_on(
    begun: bool, data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"

    command = ["train", "--data", str(data), "--out", str(out), *SMALL]

    def interrupted(*_: object, **__: object) -> None:
        if begun:
            RunFolder.create(out, config_of(parsed(*command[1:])), Origin(data=str(data)), force=False)
        raise KeyboardInterrupt

    monkeypatch.setattr("pcdnet.training.fit.fit", interrupted)
    assert main(command) == 130
    said = capsys.readouterr().err
    assert said.endswith(f"pcdnet train --resume --out {out}\n" if begun else "give the command again\n")
    monkeypatch.undo()
    assert main(["train", "--resume", "--out", str(out), *SMALL] if begun else command) in ENDED


def test_a_failed_training_says_why_and_what_to_do_and_has_its_own_exit_code(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "a run"
    assert main(["train", "--data", str(data), "--out", str(out), *SMALL, "--train.learning-rate", "1e-9"]) == 3
    printed, said = capsys.readouterr()
    lines = printed.splitlines()
    verdict = kept_verdict(RunFolder.open(out))
    assert verdict is not None
    assert verdict.verdict == "failed"
    start = lines.index("verdict: failed")
    told = [f"  {reason}" for reason in verdict.reasons] + [f"  advice: {advice}" for advice in verdict.advice]
    assert lines[start + 1 : start + 1 + len(told)] == told
    assert f"verdict: {verdict}\n" in said
    command = shlex.split(lines[start + 1 + len(told)])
    assert command[0] == "pcdnet"
    again = parse(command[1:])
    assert isinstance(again, Train)
    assert (again.data, again.out, again.preset) == (str(data), tmp_path / "a run-2", "tetrominoes")
    assert again.changes().items() >= {**verdict.changes, "train.batch": 8, "model.num_prototypes": 4}.items()
    assert "Verdict: failed" in (out / "report.html").read_text(encoding="utf-8")


def test_programs_are_told_in_one_line_of_json(data: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run"
    code = main(["train", "--data", str(data), "--out", str(out), "--json", *SMALL])
    printed, said = capsys.readouterr()
    assert printed.count("\n") == 1
    told = json.loads(printed)
    verdict = kept_verdict(RunFolder.open(out))
    assert verdict is not None
    assert list(told) == ["run", "verdict", "reasons", "prototypes", "minutes"]
    assert (told["run"], told["verdict"], told["reasons"]) == (str(out), verdict.verdict, list(verdict.reasons))
    assert 0 <= told["prototypes"] <= 4
    assert 0 <= told["minutes"] < 60
    assert code == (3 if told["verdict"] == "failed" else 0)
    assert "step 6  loss" in said


def test_a_good_training_ends_with_0(tmp_path: Path, capsys: Capture) -> None:
    data, start = tmp_path / "scenes.npz", true_run(tmp_path / "true")
    save_scenes(generate(40, seed=3), data)
    config = start.config.with_fields({"train.steps": 1, "train.batch": 8})
    run = RunFolder.create(tmp_path / "run", config, Origin(data=str(data)))
    fit(str(data), config, start=start.load_model(), out=run.path, force=True, quiet=True)
    assert main(["train", "--resume", "--out", str(run.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "verdict: good" in lines
    assert not any("advice" in line for line in lines)


def test_mistakes_name_their_cure(data: Path, tmp_path: Path, complaint: Complaint) -> None:
    out = tmp_path / "out"
    assert "use tetrominoes" in complaint("train", "--data", "tetris", "--out", out)
    assert "does not exist" in complaint("train", "--data", tmp_path / "none.npz", "--out", out)
    assert "no preset" in complaint("train", "--preset", "tetris", "--out", out)
    assert "use 1 or more" in complaint("train", "--model.num-prototypes", "0", "--out", out)
    assert "--minutes 0 " in complaint("train", "--data", data, "--minutes", "0", "--out", out, *SMALL)
    assert "--device cpu" in complaint("train", "--data", data, "--device", "abacus", "--out", out, *SMALL)
    batch = ("--preset", "tetrominoes", "--train.batch", "99")
    assert "use --train.batch 72" in complaint("train", "--data", data, *batch, "--out", out)
    large = ("--preset", "tetrominoes", "--model.prototype-size", "40", "30")
    assert "use --model.prototype-size 35 30" in complaint("train", "--data", data, *large, "--out", out)
    scaled = ("--preset", "tetrominoes", "--model.scales", "3", "--model.scale-range", "0.5", "2")
    assert "factors up to 1.4 in --model.scale-range" in complaint("train", "--data", data, *scaled, "--out", out)
    alone = ("--model.rotations", "1", "--model.rotation-range", "0", "90")
    said = complaint("train", "--data", data, *alone, "--out", out)
    assert "--model.rotations 1 and --model.rotation-range 0 90 contradict each other" in said
    assert not list(tmp_path.iterdir())


def test_without_tensorboard_the_cure_is_named(
    data: Path, tmp_path: Path, complaint: Complaint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    out = tmp_path / "run"
    said = complaint("train", "--data", data, "--out", out, "--tensorboard", *SMALL)
    assert said.endswith("pip install 'pcdnet[tensorboard]'\n")
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
    assert main(["train", "--data", str(data), "--out", str(out), "--tensorboard", *SMALL]) in ENDED
    assert given[0] == ("tensorboard", -1)
    assert given[-1] == ("closed", -1)
    assert {("loss", 6), ("lr", 6), ("in_use", 6), ("fg_ari", 3), ("fg_ari", 6)} <= set(given)
    assert [step for name, step in given if name == "prototypes"] == [3, 6]


def test_held_out_scenes_of_a_folder_are_scored_after_training(tmp_path: Path, capsys: Capture) -> None:
    for part, count in (("train", 24), ("val", 4), ("test", 5)):
        (tmp_path / "photos" / part).mkdir(parents=True)
        for n, image in enumerate(generate(count, seed=len(part)).images):
            Image.fromarray(image).save(tmp_path / "photos" / part / f"{n}.png")
    assert main(["train", "--data", str(tmp_path / "photos"), "--out", str(tmp_path / "run"), *SMALL]) in ENDED
    assert f"5 scenes: {tmp_path}/photos/test" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out.startswith("held-out scenes  MSE ")


def test_scenes_that_came_with_the_run_score_the_same_as_eval(data: Path, trained: Path, capsys: Capture) -> None:
    shown = []
    for options in ([], ["--data", str(data)], ["--data", str(data.parent / "." / data.name)]):
        assert main(["eval", str(trained), "--json", *options]) == 0
        scores = json.loads(capsys.readouterr().out)
        shown.append((scores["scenes"], scores["mse"]))
    assert shown[0] == shown[1] == shown[2]
    assert shown[0][0] == 8


def test_views_are_given_as_options() -> None:
    command = parsed("--values", "-2.5", "1100", "--tiles", "96", "--ignore", "0", "0", "9", "35")
    assert command.view() == View(values=(-2.5, 1100), tiles=96, ignore=(0, 0, 9, 35))
    assert parsed().view() == View()


def test_one_picture_and_unequal_pictures_are_learned_from(tmp_path: Path, capsys: Capture) -> None:
    scenes = generate(100, seed=1).images
    sheet = scenes.reshape(10, 10, 35, 35, 3).transpose(0, 2, 1, 3, 4).reshape(350, 350, 3)
    Image.fromarray(sheet).save(tmp_path / "sheet.png")
    (tmp_path / "photos").mkdir()
    for n in range(10):
        Image.fromarray(sheet[: 150 + 10 * n, : 350 - 15 * n]).save(tmp_path / "photos" / f"{n}.png")
    for data, said in (
        ("sheet.png", "a picture of 350x350 is cut"),
        ("photos", "10 pictures of several sizes are cut"),
    ):
        out = tmp_path / f"run-{data}"
        assert main(["train", "--data", str(tmp_path / data), "--out", str(out), *SMALL]) in ENDED
        assert said in capsys.readouterr().err
        assert (out / "report.html").is_file()
        assert json.loads((out / "origin.json").read_text())["tiles"] in (160, 192)


@pytest.mark.parametrize("what", ["os.fsync", "pathlib.Path.unlink"])
def test_a_run_on_a_full_or_read_only_disk_is_not_resumed_and_can_be_later(
    what: str, data: Path, trained: Path, tmp_path: Path, complaint: Complaint, monkeypatch: Any
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        assert main(["train", "--data", str(data), "--out", str(out), *SMALL]) == 130

    def full(path: object, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(what, full)
        said = complaint("train", "--resume", "--out", out)
    assert "cannot write" in said
    assert said.endswith("Read-only file system; make it writable, then go on with --resume\n") or "make room" in said
    assert main(["train", "--resume", "--out", str(out)]) in ENDED
    assert (out / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()


def test_the_name_of_a_folder_gives_the_terminal_no_commands(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    out = shutil.copytree(trained, tmp_path / "\x1b[2J\u202e")
    assert main(["train", "--resume", "--out", str(out)]) in ENDED
    printed = capsys.readouterr().out
    assert r"\x1b[2J\u202e" in printed
    assert not {"\x1b", "\u202e"}.intersection(printed)
