"""Laws of several ranks: they learn what one learns to the last bit, end together, and one of them talks and writes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pcdnet.cli import main
from pcdnet.config import Config
from pcdnet.run import RunFolder
from pcdnet.training import loop
from tests.training.together import FIRST_RESET, NETWORK, SHAPES, SMALL, STOPS, learn

ROOT = Path(__file__).parents[2]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """What two processes learned together, and what each of them noted."""
    folder, port = tmp_path_factory.mktemp("together"), str(_free_port())
    words = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-m", "tests.training.together", str(folder)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, **words, "RANK": str(rank)}) for rank in range(2)
    ]
    try:
        assert [process.wait(240) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return folder, [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(2)]


def one(folder: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What one process learns."""
    monkeypatch.setattr(loop, "FIRST_RESET", FIRST_RESET)
    assert learn(folder, config) == ""
    return folder


def same(one: Path, other: Path) -> bool:
    """Whether two runs have the same weights and ended in the same state, time aside."""
    states = [RunFolder.open(folder).load_state()[0] for folder in (one, other)]
    equal = all(bool((states[0][name] == states[1][name]).all()) for name in states[0])
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (one, other)]
    return equal and states[0].keys() == states[1].keys() and weights[0] == weights[1]


def curve(folder: Path) -> list[Any]:
    """What the metrics say, time aside: resets, validations, and the last loss."""
    timed = {"seconds", "images_per_second", "parameters"}
    lines = [
        {key: value for key, value in line.items() if key not in timed} for line in RunFolder.open(folder).metrics()
    ]
    for line in lines:
        if "validation" in line:
            line["validation"] = line["validation"]["mse"]
        if "loss" in line:
            line["loss"] = pytest.approx(line["loss"], rel=1e-6)
    return lines


@pytest.mark.parametrize(("name", "config"), [("closed", SMALL), ("network", NETWORK), ("shapes", SHAPES)])
def test_two_ranks_learn_what_one_learns_to_the_last_bit(
    name: str,
    config: Config,
    together: tuple[Path, list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, told = together
    assert [each[name] for each in told] == ["", ""]
    alone = one(tmp_path / name, config, monkeypatch)
    assert same(alone, folder / name)
    assert curve(alone) == curve(folder / name)


def test_ranks_end_after_the_same_step_when_the_time_is_over(together: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, told = together
    assert [each["timed"] for each in told] == ["", ""]
    last = [line["step"] for line in RunFolder.open(folder / "timed").metrics() if "loss" in line][-1]
    assert 1 <= last < 10**6


def test_a_training_goes_on_with_another_number_of_ranks(together: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, told = together
    assert told[0]["stopped"].startswith(f"Interrupted: stopped after step {STOPS[0]} of 16; go on with resume=True")
    assert told[1]["stopped"].startswith(f"Elsewhere: stopped after step {STOPS[0]} of 16")
    assert [each["resumed"] for each in told] == ["", ""]
    assert same(folder / "closed", folder / "broken")


def test_every_rank_gets_the_same_model(together: tuple[Path, list[dict[str, Any]]]) -> None:
    _, (first, second) = together
    assert first["learned"] == second["learned"]


def test_an_error_on_any_rank_ends_all_with_one_sentence(together: tuple[Path, list[dict[str, Any]]]) -> None:
    _, (first, second) = together
    assert first["images"].startswith("PcdnetError: rank 1 sees 36 images of 35x35x3 and 4 for validation")
    assert second["images"] == first["images"].replace("PcdnetError", "Elsewhere")
    assert first["rows"] == "PcdnetError: 2 processes cannot share batches of 1 images; start fewer, or use batch=2"
    assert first["bug"] == "PcdnetError: process 1 failed: ZeroDivisionError: a bug"
    assert second["bug"] == "ZeroDivisionError: a bug"
    assert first["diverged"].startswith("PcdnetError: the loss is nan at step 0")
    assert second["diverged"].startswith("Elsewhere: the loss is ")


def test_where_the_first_vanishes_another_says_so(together: tuple[Path, list[dict[str, Any]]]) -> None:
    said = together[1][1]["vanished"]
    assert said.startswith("PcdnetError: another process of this training ended, or cannot be reached any more; go on")


def test_no_thread_of_the_connection_outlives_a_training(together: tuple[Path, list[dict[str, Any]]]) -> None:
    assert not [name for told in together[1] for name in told["threads"] if "gloo" in name]


def test_of_several_that_are_interrupted_early_one_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(ModuleType):
        def __getattr__(self, _: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "pcdnet.training.fit", Slow("fit"))
    for name, value in {"MASTER_ADDR": "a", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert main(["train", "--out", "nothing"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "nothing"], "pcdnet: torchrun started 2 processes of one training; start eval without it"),
        (["train", "--out", "nothing", "--seeds", "0-1"], "pcdnet: --seeds 0-1 would start processes in each of the 2"),
    ],
)
def test_what_torchrun_cannot_do_is_said_once(arguments: list[str], words: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*program, "-m", "pcdnet", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("pcdnet: ") == done.stderr.count(words) == 1
    assert not list(tmp_path.iterdir())
