"""Laws of `pcdnet tune`: the best configuration trains, and whatever stops it, the same command goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pcdnet.cli import main
from pcdnet.config import Config
from tests.cli.conftest import Complaint
from tests.runs import ENDED

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def command(data: Path, tmp_path: Path) -> list[str]:
    """The options of a study of two trials of a few steps."""
    changes = {"train.batch": 8, "model.num_prototypes": 3, "model.restarts": 0}
    (tmp_path / "base.toml").write_text(Config.preset("tetrominoes").with_fields(changes).to_toml())
    (tmp_path / "space.toml").write_text("[train.learning_rate]\nlow = 0.001\nhigh = 0.03\nlog = true\n")
    files = ["--data", data, "--config", tmp_path / "base.toml", "--space", tmp_path / "space.toml"]
    return ["tune", *map(str, files), "--out", str(tmp_path / "study"), "--trials", "2", "--steps", "3"]


def test_the_best_configuration_trains_and_the_report_has_its_pictures(
    command: list[str], data: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "study"
    assert main(command) == 0
    printed, said = capsys.readouterr()
    assert printed.startswith("2 trials\nbest  trial ")
    assert "--train.learning-rate 0.0" in printed
    assert printed.endswith(
        f"wrote {out}/report.html   next: pcdnet train --config {out}/best.toml --data {data} --out RUN\n"
    )
    assert "trial 0  0 of 2 finished  step 1 of 3  loss " in said
    assert "  ETA 0:" in said
    assert {path.name for path in out.iterdir()} == {
        "best.toml",
        "report.html",
        "study.db",
        "study.lock",
        "trials.json",
    }
    assert (out / "report.html").read_text(encoding="utf-8").count("<svg") == 3
    assert main([*command, "--json"]) == 0  # there is nothing left to do
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("study", "trials", "pruned", "refused", "interrupted")} == {
        "study": str(out),
        "trials": 2,
        "pruned": 0,
        "refused": 0,
        "interrupted": 0,
    }
    best = Config.load(found["best"]["config"])
    assert best.train.learning_rate == found["best"]["values"]["train.learning_rate"]
    run = tmp_path / "run"
    words = ["--config", f"{out}/best.toml", "--data", str(data), "--out", str(run), "--train.steps", "2"]
    assert main(["train", *words]) in ENDED
    assert Config.load(run / "config.toml") == best.with_fields({"train.steps": 2})


def test_a_request_to_terminate_ends_the_step_and_says_how_to_go_on(command: list[str], tmp_path: Path) -> None:
    command[-1] = "100000"
    words = [sys.executable, "-m", "pcdnet", *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("  ETA " in line for line in process.stderr)  # the first words are of what comes before
        process.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert said.splitlines()[-1] == (
        "pcdnet: stopped in trial 0, which will be tried again; 0 of 2 trials are finished; "
        "run the same command again to go on"
    )
    assert (tmp_path / "study" / "report.html").is_file()


def test_mistakes_name_the_options(command: list[str], tmp_path: Path, complaint: Complaint) -> None:
    assert "give 1 or more" in complaint(*command, "--trials", 0)
    assert "--preset tetrominoes and --config; give one" in complaint(*command, "--preset", "tetrominoes")
    assert "cannot read the search space" in complaint(*command, "--space", "none.toml")
    assert "cannot read the configuration" in complaint(*command, "--config", "none.toml")
    assert "or use another --storage" in complaint(*command, "--storage", "sqlite:////no/such/folder/a.db")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").touch()
    assert "choose another --out" in complaint(*command, "--out", tmp_path / "full")
