"""Laws of listing runs: each is a row, whatever is wrong with it, and seeds of one configuration are summed up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.files import locked_file
from pcdnet.origin import Origin
from pcdnet.output.runs import RunList, runs
from pcdnet.run import LOCK, RunFolder
from pcdnet.training.verdict import Verdict, Word
from tests.runs import grey_run, true_run

CONFIG = Config.preset("tetrominoes").with_fields({"model.num_prototypes": 4, "train.steps": 50})


def trained(
    path: Path, seed: int, verdict: Word | None = "good", config: Config = CONFIG, **scores: float
) -> RunFolder:
    """What a training leaves, without its weights."""
    run = RunFolder.create(path, config.with_fields({"train.seed": seed}), Origin(data="a.npz", size=(9, 9)))
    run.log(step=25, loss=0.5, seconds=30.0)
    run.log(step=25, validation={"mse": 0.5, "fg_ari": 0.1, "f1": None, "recall_by_kind": {}})
    run.log(step=50, validation={"mse": 0.25, "fg_ari": float("nan"), **scores})
    run.save_state({}, {"step": 50, "seconds": 30.0, "best": -0.25})
    if verdict is not None:
        run.save_verdict(Verdict(verdict=verdict, reasons=("so",), figures={"in_use": 3}).to_json())
    return run


def rows(found: RunList) -> list[tuple[str, str]]:
    """Which runs there are, in which state."""
    return [(run.path.relative_to(found.folder).as_posix(), run.state) for run in found]


def test_a_run_is_listed_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    trained(tmp_path / "a" / "b", 7, fg_ari=0.75)
    (run,) = runs(tmp_path)
    assert run.to_dict() == {
        "run": str(tmp_path / "a" / "b"),
        "state": "finished",
        "problem": "",
        "preset": "tetrominoes",
        "changes": {"model.num_prototypes": 4, "train.steps": 50},
        "data": "a.npz",
        "seed": 7,
        "step": 50,
        "steps": 50,
        "verdict": "good",
        "prototypes": 3,
        "minutes": 0.5,
        "error": 0.25,
        "scores": {"mse": 0.25, "fg_ari": 0.75},
    }
    assert [each.path for each in runs(tmp_path / "a" / "b")] == [tmp_path / "a" / "b"]


def test_states_are_told_apart(tmp_path: Path) -> None:
    trained(tmp_path / "1", 0)
    trained(tmp_path / "2", 0, verdict=None)
    RunFolder.create(tmp_path / "9", CONFIG, Origin(data="a.npz"))
    true_run(tmp_path / "run").load_model().save(tmp_path / "10")
    trained(tmp_path / "11", 0, verdict=None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.toml").write_text("[tool]\n")  # someone else's
    with locked_file(tmp_path / "11" / LOCK):
        found = runs(tmp_path)
    states = [("1", "finished"), ("2", "stopped"), ("9", "stopped"), ("10", "saved"), ("11", "running")]
    assert rows(found) == [*states, ("run", "stopped")]
    assert runs(tmp_path)[4].state == "stopped"


def test_seeds_of_one_configuration_are_summed_up(tmp_path: Path) -> None:
    for seed, (verdict, value) in enumerate((("good", 0.5), ("partial", 1.0), ("good", 0.0))):
        trained(tmp_path / f"seed-{seed}", seed, verdict, fg_ari=value)  # type: ignore[arg-type]
    trained(tmp_path / "other", 0, "failed", CONFIG.with_fields({"model.max_objects": 9}))
    other, seeds = runs(tmp_path).configurations
    assert other.to_dict()["changes"]["model.max_objects"] == 9
    summed = seeds.to_dict()
    assert (summed["seeds"], summed["good"], summed["verdicts"]) == ([0, 1, 2], 2, {"good": 2, "partial": 1})
    assert summed["scores"]["fg_ari"] == {"mean": 0.5, "least": 0.0, "largest": 1.0}
    lines = str(runs(tmp_path)).splitlines()
    assert "tetrominoes  model.num_prototypes=4, train.steps=50  data a.npz" in lines
    assert "  3 seeds: 2 good, 1 partial  error 0.2500 (0.2500 to 0.2500)  FG-ARI 0.5000 (0.0000 to 1.0000)" in lines
    assert [line.split() for line in lines if line.startswith("  seed-1")] == [
        ["seed-1", "1", "50/50", "finished", "partial", "0.2500", "1.0000"]
    ]


def test_a_score_that_no_number_can_hold_is_none(tmp_path: Path) -> None:
    trained(tmp_path / "0", 0, f1=0.25, ap50=10**400)
    (seeds,) = runs(tmp_path).configurations
    assert seeds.scores()["f1"]["mean"] == 0.25
    assert "ap50" not in seeds.scores()


def test_seeds_that_were_asked_for_together_stay_together_even_if_the_images_made_them_differ(tmp_path: Path) -> None:
    trained(tmp_path / "seed-0", 0)
    trained(tmp_path / "seed-1", 1, config=CONFIG.with_fields({"model.max_objects": 9}))
    assert len(runs(tmp_path).configurations) == 2
    (tmp_path / "seeds.json").touch()
    (seeds,) = runs(tmp_path).configurations
    assert seeds.changes == {"model.num_prototypes": 4, "train.steps": 50}
    (line,) = (line for line in str(runs(tmp_path)).splitlines() if line.startswith("  seed-1"))
    assert line.endswith("model.max_objects=9")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9])


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda run: cut(run / "config.toml"), "has lost"),
        (lambda run: (run / "config.toml").unlink(), "it holds no config.toml"),
        (lambda run: (run / "origin.json").write_text("[]"), "cannot read"),
        (lambda run: (run / "verdict.json").write_text('{"verdict": "fine"}'), "it holds no verdict"),
        (lambda run: cut(run / "weights.safetensors"), "cannot read"),
        (lambda run: cut(run / "state.safetensors"), "cannot read"),
    ],
)
def test_a_damaged_run_is_a_row_that_says_so(damage: Callable[[Path], Any], problem: str, tmp_path: Path) -> None:
    trained(tmp_path / "a", 0)
    broken = trained(tmp_path / "b", 1)
    broken.save_weights(grey_run(tmp_path / "b" / "inner").load_model())
    damage(broken.path)
    found = runs(tmp_path)
    assert rows(found) == [("a", "finished"), ("b", "damaged")]
    assert problem in found[1].problem
    assert found[1].problem in str(found)
    assert json.loads(json.dumps(found.to_dict()))["runs"][1]["state"] == "damaged"


def test_a_folder_without_runs_is_an_empty_list_and_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    found = runs(tmp_path)
    assert (len(found), str(found)) == (0, f"there is no run below {tmp_path}")
    with pytest.raises(PcdnetError, match="is no folder; give one that holds runs"):
        runs(tmp_path / "none")
