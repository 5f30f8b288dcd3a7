"""Laws of `pcdnet eval`: what is known is told, in groups for people and under fixed names for programs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pcdnet.cli.origin import Origin
from pcdnet.training.run import Run

from pcdnet.cli import main
from pcdnet.cli.arguments import ViewOptions
from pcdnet.cli.evaluate import as_json, limit_warning, table
from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.output.dataset import save_scenes
from pcdnet.training.evaluation import Evaluation

Capture = pytest.CaptureFixture[str]

BLIND = Evaluation(
    scenes=1200,
    fg_ari=None,
    ari=None,
    miou=None,
    count_accuracy=None,
    perfect=None,
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
    fg_ari=None,
    ari=None,
    miou=None,
    count_accuracy=0.75,
    perfect=None,
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
    assert rows["count error"][:3] == ["1.50", "per", "image,"]
    assert "-0.50" in rows["count error"]
    assert rows["recall of crab"] == ["50.00", "%"]
    assert "recall of a very long name of a kind" in lines[-1]
    assert len({line.index(" %") for line in lines if line.endswith("%")}) == 1


def test_without_the_truth_the_table_has_no_groups() -> None:
    words = table("title", BLIND)
    assert "1,200" in words
    assert not any(name in words for name in ("segmentation", "detection", "kinds", "None"))


@pytest.mark.parametrize(("limited", "warned"), [(0.0, False), (0.05, False), (0.06, True), (1.0, True)])
def test_a_limit_that_may_hide_objects_is_told(limited: float, warned: bool) -> None:
    words = limit_warning(dataclasses.replace(BLIND, at_limit=1.0, limited=limited), 50)
    assert (words is not None) == warned
    if words is not None:
        assert "more objects than 50" in words
        assert f"{100 * limited:.0f} %" in words
        assert "; train it with --model.max-objects" in words


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the true prototypes that was trained on a file."""
    out = tmp_path_factory.mktemp("runs")
    save_scenes(tetrominoes.generate(6, seed=1), out / "scenes.npz")
    prototypes, masks = tetrominoes.true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    config, folder = Config.preset("tetrominoes"), out / "run"
    Run.create(folder, config).save_weights(PCDNet.from_bank(bank, config.model))
    Origin(data=str(out / "scenes.npz")).write(folder)
    return folder


def test_the_data_of_the_training_are_the_default(run: Path, capsys: Capture) -> None:
    assert main(["eval", str(run), "--json"]) == 0
    printed, said = capsys.readouterr()
    scores = json.loads(printed)
    assert (scores["scenes"], scores["f1"], scores["ap50"], scores["at_limit"]) == (6, 1, 1, 1)
    assert (scores["purity"], scores["recall_by_kind"]) == (None, None)
    assert said.startswith("note: ")
    assert said.count("\n") == 1
    assert main(["eval", str(run), "--data", "tetrominoes", "--limit", "3"]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert "re-created Tetrominoes, seed 3000000" in printed
    assert "precision" in printed


def test_where_the_truth_is_not_known_the_limit_is_told(run: Path, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "blind.npz", image=tetrominoes.generate(2, seed=0).images)
    assert main(["eval", str(run), "--data", str(tmp_path / "blind.npz"), "--json"]) == 0
    printed, said = capsys.readouterr()
    assert json.loads(printed)["recall"] is None
    assert said.startswith("warning: more objects than 3 may be needed for 100 % of the images")
    assert "--model.max-objects" in said


def test_scenes_are_seen_as_the_options_say(run: Path, capsys: Capture) -> None:
    assert main(["eval", str(run), "--stride", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"] == 3
    assert main(["eval", str(run), "--crop", "0", "0", "30", "33", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenes"] == 6
    assert main(["eval", str(run), "--grey"]) == 1
    assert "the model wants 3; " in capsys.readouterr().err
    assert main(["eval", str(run), "--crop", "0", "0", "300", "33"]) == 1
    assert "; " in capsys.readouterr().err


def test_other_data_are_not_thinned_as_the_training_was() -> None:
    origin = Origin(data="film.mp4", stride=5, grey=True, resize=(8, 9))
    assert origin.view().stride == 5
    assert origin.view("film.mp4").stride == 5
    assert origin.view("tetrominoes").stride == 1
    assert origin.view("tetrominoes").grey
    assert origin.view("film.mp4", ViewOptions(stride=2, resize=(4, 4))).stride == 2
    assert origin.view("film.mp4", ViewOptions(resize=(4, 4))).resize == (4, 4)
