"""Laws of `pcdnet eval`: what is known is reported, in groups for people and under fixed names for programs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli import main
from pcdnet.cli.evaluate import as_json, table, warn_of_limit
from pcdnet.data import tetrominoes
from pcdnet.origin import Origin
from pcdnet.output.dataset import save_scenes
from pcdnet.training.evaluation import Evaluation
from tests.cli.conftest import Complaint
from tests.runs import true_run

Capture = pytest.CaptureFixture[str]

BLIND = Evaluation(
    scenes=1200,
    mse=0.00021,
    objects=2.5,
    at_limit=0.25,
    limited=0.25,
    parameters=7000,
    images_per_second=70.0,
    seconds=0.1,
)
SEEN = Evaluation(
    scenes=9,
    count_accuracy=0.75,
    precision=0.9,
    recall=0.8,
    f1=0.85,
    f1_at_30=0.95,
    ap50=0.7,
    count_error=1.5,
    count_bias=-0.5,
    purity=0.99,
    semantic_accuracy=0.79,
    recall_by_kind={"crab": 0.5, "a very long name of a kind": 1.0},
    mse=0.00021,
    objects=2.5,
    parameters=7,
    images_per_second=70.0,
    seconds=0.1,
)


def test_the_names_of_the_contract_come_first() -> None:
    assert list(as_json(SEEN))[:14] == [
        *("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect"),
        *("precision", "recall", "f1", "ap50", "parameters", "images_per_second", "seconds"),
    ]
    assert as_json(SEEN) == SEEN.to_dict()
    assert json.loads(json.dumps(as_json(BLIND)))["ap50"] is None


def test_the_table_shows_what_is_known_in_groups() -> None:
    lines = table("title", SEEN).splitlines()
    assert "  segmentation" not in lines
    detection, kinds = lines.index("  detection"), lines.index("  kinds")
    assert detection < kinds
    width = lines[-1].index("100.00") - 4
    rows = {line[2:width].strip(): line[width:].split() for line in lines}
    assert rows["F1"] == ["85.00", "%"]
    assert rows["AP50"] == ["70.00", "%"]
    assert rows["count error"] == ["1.50", "per", "image"]
    assert rows["count bias"] == ["-0.50", "per", "image"]
    assert rows["recall of crab"] == ["50.00", "%"]
    assert "recall of a very long name of a kind" in lines[-1]
    assert len({line.index(" %") for line in lines if line.endswith("%")}) == 1


def test_without_the_ground_truth_the_table_has_no_groups() -> None:
    words = table("title", BLIND)
    assert words.startswith("title, 1,200 scenes\n")
    assert not any(name in words for name in ("segmentation", "detection", "kinds", "None"))


@pytest.mark.parametrize(("limited", "warned"), [(0.0, False), (0.05, False), (0.06, True), (1.0, True)])
def test_a_limit_that_may_hide_objects_is_reported(limited: float, warned: bool, capsys: Capture) -> None:
    warn_of_limit(dataclasses.replace(BLIND, at_limit=1.0, limited=limited), 50)
    printed, words = capsys.readouterr()
    assert printed == ""
    assert bool(words) == warned
    if warned:
        assert words.startswith("warning: more objects than 50")
        assert f"{100 * limited:.0f} %" in words
        assert words.endswith("; train it with --model.max-objects 100\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the true prototypes, as if trained on a file of 80 scenes."""
    out = tmp_path_factory.mktemp("runs")
    save_scenes(tetrominoes.generate(80, seed=1), out / "scenes.npz")
    return true_run(out / "run", Origin(data=str(out / "scenes.npz"))).path


def test_scenes_that_were_kept_apart_from_training_are_the_default(run: Path, capsys: Capture) -> None:
    assert main(["eval", str(run), "--json"]) == 0
    printed, said = capsys.readouterr()
    scores = json.loads(printed)
    assert (scores["scenes"], scores["f1"], scores["ap50"], scores["at_limit"]) == (8, 1, 1, 1)
    assert (scores["purity"], scores["recall_by_kind"]) == (None, None)
    assert said == ""
    assert main(["eval", str(run)]) == 0
    assert capsys.readouterr().out.startswith(f"{run} on the last 8 of scenes.npz, 8 scenes\n")
    assert main(["eval", str(run), "--data", "tetrominoes", "--limit", "3"]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert "re-created Tetrominoes, seed 3000000, 3 scenes" in printed
    assert "precision" in printed


def test_one_json_object_has_the_promised_keys(run: Path, capsys: Capture) -> None:
    assert main(["eval", str(run), "--data", "tetrominoes", "--limit", "12", "--seed", "7", "--json"]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert printed.count("\n") == 1
    scores = json.loads(printed)
    assert list(scores)[:14] == [
        *("scenes", "fg_ari", "ari", "mse", "count_accuracy", "miou", "perfect"),
        *("precision", "recall", "f1", "ap50", "parameters", "images_per_second", "seconds"),
    ]
    assert scores["scenes"] == 12
    assert scores["fg_ari"] == 1
    assert scores["parameters"] == 2 * 19 * 25 * 25


def test_where_the_ground_truth_is_not_known_the_limit_is_reported(run: Path, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "blind.npz", image=tetrominoes.generate(2, seed=0).images)
    assert main(["eval", str(run), "--data", str(tmp_path / "blind.npz"), "--json"]) == 0
    printed, said = capsys.readouterr()
    scores = json.loads(printed)
    assert (scores["recall"], scores["fg_ari"]) == (None, None)
    assert scores["mse"] >= 0
    assert said.startswith("warning: more objects than 3 may be needed for 100 % of the images")
    assert "--model.max-objects 6" in said
    assert main(["eval", str(run), "--data", str(tmp_path / "blind.npz")]) == 0
    printed = capsys.readouterr().out
    assert "MSE" in printed
    assert "FG-ARI" not in printed


def test_scenes_are_seen_as_the_options_say(run: Path, complaint: Complaint, capsys: Capture) -> None:
    for options, count in ((["--stride", "2"], 4), (["--crop", "0", "0", "30", "33"], 8), (["--limit", "5"], 5)):
        assert main(["eval", str(run), *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["scenes"] == count
    assert "the model wants 3; " in complaint("eval", run, "--grey")
    assert "leaves images of 35x35" in complaint("eval", run, "--crop", 0, 0, 300, 33)
    assert "leave out --stride" in complaint("eval", run, "--data", "tetrominoes", "--stride", 2)


def test_mistakes_name_their_cure(run: Path, tmp_path: Path, complaint: Complaint) -> None:
    assert "is no run" in complaint("eval", tmp_path / "none")
    assert "use tetrominoes" in complaint("eval", run, "--data", "tetris")
    assert "does not exist" in complaint("eval", run, "--data", tmp_path / "none.npz")
    assert "give a count of at least 1" in complaint("eval", run, "--data", "tetrominoes", "--limit", 0)
    assert "--device cpu" in complaint("eval", run, "--device", "abacus")


def test_kinds_with_control_characters_or_half_characters_are_shown_harmlessly(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for n, image in enumerate(tetrominoes.generate(2, seed=1).images):
        Image.fromarray(image).save(photos / f"{n}.png")
    kinds = ["\x1b[31mred\nline", "half \ud83d", "right \u202e left"]
    truth = {
        "images": [{"id": n, "file_name": f"{n}.png"} for n in range(2)],
        "categories": [{"id": n, "name": kind} for n, kind in enumerate(kinds)],
        "annotations": [{"id": n, "image_id": 0, "category_id": n, "bbox": [n, n, 9, 9]} for n in range(3)],
    }
    (photos / "annotations.json").write_text(json.dumps(truth))
    for command in (["eval"], ["eval", "--json"], ["report"]):
        assert main([command[0], str(run), "--data", str(photos), *command[1:]]) == 0
        printed, said = capfd.readouterr()
        assert not any(sign in printed + said for sign in ("\x1b", "\u202e", "\ud83d"))
        assert command != ["eval"] or "recall of \\x1b[31mred\\nline" in printed
