"""Laws of `pcdnet train --seeds`: each seed is trained as if alone, and one that fails stops no other."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from pcdnet.cli import main
from tests.cli.conftest import SMALL, Complaint
from tests.runs import ENDED

Capture = pytest.CaptureFixture[str]
ENDS = {0: "good", 3: "failed"}
"""The verdicts of trainings that all end with an exit code."""


def test_seeds_side_by_side_end_as_each_alone_and_one_that_fails_stops_no_other(
    data: Path, trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # of which each has one, as the tests have
    out = tmp_path / "seeds"
    capsys.readouterr()
    code = main(["train", "--data", str(data), "--out", str(out), "--seeds", "0,4", "--jobs", "2", *SMALL])
    printed, said = capsys.readouterr()
    assert code in ENDED
    assert (out / "seed-0" / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()
    rows = [line.split()[:5] for line in printed.splitlines()[2:4]]
    assert rows == [[f"seed-{seed}", str(seed), "6/6", "finished", ENDS[code]] for seed in (0, 4)]
    assert printed.splitlines()[4].startswith(f"  2 seeds: 2 {ENDS[code]}  error ")
    assert printed.endswith(f"wrote {out}   next: pcdnet runs {out}, or pcdnet report {out / 'seed-0'}\n")
    assert "seed 0  step 6  loss " in said
    assert "seed 4  verdict: " in said

    (out / "seed-4" / "report.html").unlink()
    (out / "seed-4" / "config.toml").write_text("[model]\nsense = true\n")
    assert main(["train", "--resume", "--out", str(out), "--json"]) == 1
    printed, said = capsys.readouterr()
    told = [json.loads(line) for line in printed.splitlines()]
    assert [list(each) for each in told] == [
        ["run", "verdict", "reasons", "prototypes", "minutes", "seed", "error"]
    ] * 2
    assert [each["seed"] for each in told] == [0, 4]
    assert told[0]["verdict"] == ENDS[code]
    assert told[0]["error"] is None
    assert "unknown field" in told[1]["error"]
    assert f"pcdnet: 1 of 2 seeds failed, as reported above; cure that, and go on with --resume --out {out}\n" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seeds", "0-3", "--seed", "1"], "--seed 1 and --seeds 0-3 contradict each other; give one of them"),
        (["--seeds", "0-3", "--train.seed", "1"], "--train.seed 1 and --seeds 0-3 contradict each other"),
        (["--seeds", "3-0"], "--seeds 3-0 cannot be used; give a range such as 0-9, or a list as 0,3,5"),
        (["--seeds", "1,1"], "--seeds 1,1 names 1 twice; give each seed once"),
        (["--seeds", "0-3", "--jobs", "0"], "--jobs 0 is no number of processes; give 1 or more"),
        (["--jobs", "2"], "--jobs 2 is for several seeds; give --seeds as well, such as 0-9"),
        (["--seeds", "0", "--resume", "--force"], "give one"),
    ],
)
def test_contradictions_are_refused_in_one_sentence(
    options: list[str], said: str, data: Path, tmp_path: Path, complaint: Complaint
) -> None:
    assert said in complaint("train", "--data", data, "--out", tmp_path / "out", *options)
    assert not list(tmp_path.iterdir())


def test_jobs_that_are_no_number_are_wrong_usage(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--out", "a", "--seeds", "0-3", "--jobs", "many"])
    assert stopped.value.code == 2


def test_interrupted_seeds_say_how_to_go_on(
    data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a b"
    monkeypatch.setattr("pcdnet.training.seeds.run_side_by_side", lambda *_: {})
    monkeypatch.setattr("pcdnet.cli.signals.stop_on_signal", lambda: nullcontext(lambda: True))
    assert main(["train", "--data", str(data), "--out", str(out), "--seeds", "0-2", *SMALL]) == 130
    printed, said = capsys.readouterr()
    assert printed == ""
    assert f"stopped with 0 of 3 seeds finished; go on with --resume --out '{out}'" in said
