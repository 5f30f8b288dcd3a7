"""Laws of the command line: results on stdout, the rest on stderr, and never a traceback for a user's mistake."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pcdnet.__main__ import start
from pcdnet.cli import COMMANDS, main, parse
from pcdnet.cli.help import TASKS, USUAL
from pcdnet.config import Config
from tests.cli.conftest import Complaint

Capture = pytest.CaptureFixture[str]
MISTAKES: dict[str, list[str]] = {
    "demo": ["--out", "file"],
    "train": ["--data", "none.npz", "--out", "run"],
    "tune": ["--data", "none.npz", "--out", "study"],
    "eval": ["file"],
    "decompose": ["file", "none.png", "--out", "results"],
    "gather": ["file", "--out", "results"],
    "runs": ["file"],
    "report": ["file"],
    "figure": ["file", "--kind", "prototypes", "--out", "a.png"],
    "serve": ["file", "--port", "0"],
    "merge": ["file", "0", "1"],
    "models": ["file"],
    "hide": ["file", "0"],
    "learn-again": ["file"],
    "export": ["file", "--onnx", "a.onnx"],
    "push": ["file", "me/coins"],
    "bench": ["file"],
    "data": ["tetrominoes", "--out", "file"],
}
"""For every command arguments that cannot be used where `file` is an empty file and nothing else exists."""


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "pcdnet", *arguments], capture_output=True, text=True, **options)


def help_of(capsys: Capture, *arguments: str, of: str = "--help-all") -> str:
    """What the help says, in one line; nothing else may be said."""
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, of])
    assert stopped.value.code == 0
    printed, said = capsys.readouterr()
    assert said == ""
    return " ".join(printed.replace("\u2502", " ").split())


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_whoever_asks_for_nothing_is_shown_every_command_by_its_task(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert all(f"\n  {name} " in printed and f"\n    {'':<13}pcdnet {name}" in printed for name in COMMANDS)
    assert all(len(line) <= 120 for line in printed.splitlines())
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_every_example_of_the_help_can_be_parsed() -> None:
    examples = {name: example for task in TASKS.values() for name, example in task.items()}
    assert examples.keys() == COMMANDS.keys()
    for name, example in examples.items():
        assert isinstance(parse(example.split()[1:]), COMMANDS[name])


def test_the_help_of_train_shows_what_people_use_with_the_defaults_of_the_preset(capsys: Capture) -> None:
    text = help_of(capsys, "train", "--preset", "space-invaders", of="--help")
    shown = {word[2:] for word in text.split() if re.fullmatch(r"--[a-z0-9.-]*[a-z]", word)} - {"help", "help-all"}
    assert shown == {name.replace("_", "-") for name in USUAL}
    assert f"(default: {Config.preset('space-invaders').model.num_prototypes})" in text
    assert "--help-all shows all" in text


def test_a_command_that_there_is_not_is_no_riddle(capsys: Capture) -> None:
    for word, cure in (
        ("trian", "did you mean train?"),
        ("evaluate", "did you mean eval?"),
        ("xyz", "use one of demo"),
    ):
        assert main([word, "--out", "a"]) == 2
        printed, said = capsys.readouterr()
        assert printed == ""
        assert said.startswith(f"pcdnet: there is no command {word!r}; {cure}")
        assert said.count("\n") == 1


POSITIONAL = {("models", "name"), ("push", "to")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_explains_every_option(name: str, capsys: Capture) -> None:
    text = help_of(capsys, name)
    for field in dataclasses.fields(COMMANDS[name]):  # type: ignore[arg-type]
        positional = field.name in ("folder", "source", "paths", "prototypes") or (name, field.name) in POSITIONAL
        if not positional and field.name not in ("model", "loss", "train"):
            assert f"--{field.name.replace('_', '-')} " in text
    assert f"usage: pcdnet {name} " in text


def test_the_help_needs_no_torch() -> None:
    code = (
        "import sys; from pcdnet.cli import COMMANDS; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_version_is_reported(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("pcdnet 0.")


def test_every_command_has_a_mistake_to_be_tried() -> None:
    assert MISTAKES.keys() == COMMANDS.keys()


@pytest.mark.parametrize(("name", "arguments"), MISTAKES.items())
def test_a_mistake_that_can_be_cured_is_reported_in_one_sentence(
    name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: Complaint
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    complaint(name, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["train", "tune"])
def test_data_that_are_named_by_nothing_are_not_those_that_are_used_by_default(
    name: str, tmp_path: Path, complaint: Complaint
) -> None:
    assert "'' is no data known here" in complaint(name, "--data", "", "--out", tmp_path / "run")


@pytest.mark.parametrize("arguments", [["eval"], ["runs"], ["train", "--resume", "--out"], ["tune", "--out"]])
def test_a_name_that_is_too_long_is_a_mistake_like_any_other(arguments: list[str], complaint: Complaint) -> None:
    assert "a" * 80 in complaint(*arguments, "a" * 300)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_a_command_does_not_have_exits_with_2_and_is_named(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([name, *MISTAKES[name], "--no-such-option"])
    assert stopped.value.code == 2
    printed, said = capsys.readouterr()
    assert printed == ""
    assert "--no-such-option" in said
    assert "--help" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--minutes", "many"],
        ["train"],
        ["train", "--out", "a", "--model.num-prototypes", "some"],
        ["eval"],
        ["data", "tetris"],
        ["data", "tetrominoes"],
    ],
)
def test_wrong_usage_exits_with_2_and_says_why_on_stderr(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert "--help" in complaint


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("failure", "code"), [(KeyboardInterrupt, 130), (MemoryError, 1)])
def test_an_interruption_of_every_command_takes_one_line(
    name: str, failure: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(_: object) -> None:
        raise failure

    monkeypatch.setattr(COMMANDS[name], "run", fail)
    assert main([name, *MISTAKES[name]]) == code
    printed, said = capsys.readouterr()
    assert printed == ""
    assert said.startswith("pcdnet: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_request_to_terminate_is_an_interruption_of_every_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(COMMANDS[name], "run", lambda _: signal.raise_signal(signal.SIGTERM))
    assert main([name, *MISTAKES[name]]) == 130
    assert capsys.readouterr().err == "pcdnet: interrupted; nothing half-written is left\n"


@pytest.mark.parametrize("arguments", [["--help"], ["data", "tetrominoes", "--count", "1", "--out", "a.npz"]])
def test_a_reader_that_went_away_is_no_error_worth_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        command = [sys.executable, "-m", "pcdnet", *arguments]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert done.returncode == 141
    assert set(done.stderr.replace(".", " ").split()) <= {"starting", "0:00", "0:01", "0:02"}  # on a busy machine


def test_the_first_words_come_before_torch_is_loaded() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "pcdnet", "eval", "missing"]
    done = subprocess.run(command, capture_output=True, text=True)
    told = done.stderr.splitlines()
    first = next(n for n, line in enumerate(told) if line.startswith("loading PyTorch ..."))
    assert first < next(n for n, line in enumerate(told) if line.rpartition("|")[2].strip() == "torch")
    assert told[-1].startswith("pcdnet: ")
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_goes_to_a_stream_that_the_shell_closed_is_not_wanted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, code in ((["--version"], 0), (["eval", "missing"], 1)):
        monkeypatch.setattr(sys, name, None)
        assert main(arguments) == code
        getattr(sys, name).close()


def test_a_complaint_that_finds_no_room_leaves_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    codes: list[int] = []
    with contextlib.suppress(OSError), Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        codes.append(main(["eval", "missing"]))
    assert codes == [1]


def test_results_that_find_no_room_are_one_sentence(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "pcdnet", "--version"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "pcdnet: a disk failed: No space left on device; make room or check it, then try again\n"


def test_ctrl_c_while_the_command_line_is_loaded_takes_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "pcdnet.cli", Interrupted())
    assert start() == 130
    assert capsys.readouterr() == ("", "pcdnet: interrupted; nothing was begun\n")
