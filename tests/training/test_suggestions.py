"""Laws of suggestions: they follow from the figures, and every command is one that the command line takes."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import pcdnet
from pcdnet.cli import parse
from pcdnet.config import Config
from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.names import Names
from pcdnet.origin import Origin
from pcdnet.run import RunFolder
from pcdnet.training.diagnosis import Figures
from pcdnet.training.suggestions import Suggestion, suggest, suggestions
from pcdnet.training.verdict import Verdict, verdict_of
from tests.runs import true_run
from tests.training.test_verdict import FINE, WRONG


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run in a folder whose name must be quoted, that looked at its images in a special way."""
    view = View(crop=(1, 2, 35, 35), stride=2)
    return true_run(tmp_path / "my run", Origin(data="own photos", minutes=3.0, view=view))


def made(run: RunFolder, names: Names | None = None, **changes: Any) -> tuple[Suggestion, ...]:
    """The suggestions for a run of such figures."""
    figures: Figures = dataclasses.replace(FINE, prototypes=19, in_use=19, **changes)
    verdict = verdict_of(figures, run.config.model, (100, 100), run)
    return suggestions(verdict, run.config.model, (100, 100), names or Names(count=19), run)


def test_where_nothing_is_wrong_nothing_is_suggested(run: RunFolder) -> None:
    assert made(run) == ()


@pytest.mark.parametrize(("changes", "word", "cure"), WRONG)
def test_they_are_what_the_verdict_advises_with_reasons(
    changes: dict[str, Any], word: str, cure: str, tmp_path: Path
) -> None:
    run = true_run(tmp_path / "run")
    figures = dataclasses.replace(FINE, **changes)
    verdict = verdict_of(figures, run.config.model, (100, 100), run)
    told = suggestions(verdict, run.config.model, (100, 100), Names(count=10), run)
    words = [f"{each.words}: {each.command}" if each.prototypes else each.words for each in told]
    assert words[: len(verdict.advice)] == list(verdict.advice)
    assert words[len(verdict.advice) :] == (
        ["allow more objects in an image (model.max_objects)"] if changes.keys() == {"repeated", "limited"} else []
    )
    changed = {name: value for each in told for name, value in each.changes.items()}
    assert verdict.changes.items() <= changed.items()
    for each in told:
        assert each.reason
        assert bool(each.command) == bool(each.changes or each.prototypes)
        assert word != "good"
    assert cure in str(told[0])


def test_a_command_trains_as_before_but_for_what_is_changed(run: RunFolder) -> None:
    [more] = made(run, limited=0.4)
    assert more.reason.startswith("40 % of the images hold as many objects")
    assert more.changes == {"model.max_objects": 6}
    words = shlex.split(more.command)
    assert words[:2] == ["pcdnet", "train"]
    command: Any = parse(words[1:])
    assert command.config == run.path / "config.toml"
    assert command.data == "own photos"
    assert command.out == Path(f"{run.path}-2")
    assert command.minutes == 3
    assert command.view() == run.origin.view
    expected = run.config.with_fields({"model.max_objects": 6})
    assert Config(model=command.model, loss=command.loss, train=command.train) == expected


def test_twins_are_suggested_to_be_merged_until_they_are(run: RunFolder) -> None:
    [merge] = made(run, alike=((3, 7), (7, 9)))
    assert merge.prototypes == (3, 7, 9)
    assert merge.words == "make prototypes 3, 7 and 9 one kind"
    command: Any = parse(shlex.split(merge.command)[1:])
    assert (command.folder, command.prototypes) == (run.path, (3, 7, 9))
    command.run()
    assert made(run, run.names(), alike=((3, 7), (7, 9))) == ()


def test_what_is_suggested_for_a_model_of_the_package_leaves_it_as_it_is() -> None:
    run = RunFolder.open("tetrominoes")
    for each in (*made(run, alike=((0, 1),)), *made(run, limited=0.4)):
        words = shlex.split(each.command)
        target = words[2] if each.prototypes else words[words.index("--out") + 1]
        assert Path(target).parent == Path("runs")


def test_what_nothing_needs_is_left_out_if_there_were_enough_objects_to_tell(run: RunFolder) -> None:
    [fewer] = made(run, unused=(4, 8))
    assert "prototypes 4 and 8 were not found in any of 100 images, in which 400 objects were" in str(fewer)
    assert made(run, unused=(4, 8), images=20) == ()
    [longer] = made(run, shapeless=(2,))
    assert longer.changes == {"minutes": 12.0}
    assert longer.reason == "prototype 2 has no solid shape yet"


def test_a_run_is_judged_by_what_was_kept_and_else_anew(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    assert suggest(run.path) == suggest(run.load_model(), generate(40, seed=4)) == ()
    kept = verdict_of(dataclasses.replace(FINE, alike=((0, 1),)), run.config.model, (35, 35), run)
    run.save_verdict(kept.to_json())
    [merge] = pcdnet.suggest(run)
    assert merge.command == f"pcdnet merge {run.path} 0 1"
    assert json.loads(json.dumps(merge.to_dict()))["prototypes"] == [0, 1]
    assert suggest(run, generate(40, seed=4).images) == ()  # other images say otherwise
    odd = Verdict(verdict="good", reasons=("fine",), figures={"beauty": 3})
    run.save_verdict(odd.to_json())  # of a version that measured other things
    assert suggest(run) == ()
