"""Laws of learning again: the run stays as it is until that is adopted, and then what people said of it stays, too."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pcdnet
from pcdnet.cli import main
from pcdnet.corrections import Drawn
from pcdnet.edits import Edited, Placed
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.run import RunFolder
from pcdnet.training.relearning import FILE, FORMAT, Learned, adopt, candidate_of, learn_again, learned_from, restore
from tests.training.corrected import make_run

Capture = pytest.CaptureFixture[str]


def boxed(run: RunFolder, number: int = 0) -> tuple[Path, tuple[int, int, int, int]]:
    """A picture of the run, and a box around the tall thing in it."""
    path = run.path.parent / "pictures" / f"{number}.png"
    rows, columns = np.nonzero(np.asarray(Image.open(path))[20:, :20].any(axis=-1))
    return path, (int(rows.min()) + 19, max(0, int(columns.min()) - 1), 17, 7)


def drawn(run: RunFolder) -> Drawn:
    """The same as Python takes it."""
    path, box = boxed(run)
    return Drawn(np.asarray(Image.open(path)), box, "tall")


def held(run: RunFolder) -> dict[str, str]:
    """Every file of the run but for those of candidates and former models."""
    there = [path for path in sorted(run.path.rglob("*")) if path.is_file()]
    own = [path for path in there if path.relative_to(run.path).parts[0] not in ("candidate", "former")]
    return {str(path.relative_to(run.path)): hashlib.sha256(path.read_bytes()).hexdigest() for path in own}


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Learned, dict[str, str]]:
    """A run with edits that learned again from a box, without the bars; and what it held before."""
    run = make_run(tmp_path_factory.mktemp("taught"))
    things = (Placed(0, (3, 4), (1.0, 1.0, 1.0)), Placed(1, (5, 6), (1.0, 1.0, 1.0)))
    run.edits.keep(Edited("a.png", "0" * 64, (40, 40), things))
    before = held(run)
    return run, learn_again(run, [drawn(run)], [1], minutes=1, quiet=True), before


def test_nothing_is_changed_before_it_is_adopted(taught: tuple[RunFolder, Learned, dict[str, str]]) -> None:
    run, learned, before = taught
    assert held(run) == before
    assert candidate_of(run) == learned
    assert learned.numbers == {0: 0}
    assert (learned.before.prototypes, learned.after.prototypes) == (2, 2)
    assert list(pcdnet.load(run.candidate).names) == ["cross", "tall"]
    assert learned.before.f1 is None, "there is no ground truth"


def test_what_was_said_meanwhile_stays_and_all_comes_back(taught: tuple[RunFolder, Learned, dict[str, str]]) -> None:
    run, learned, before = taught
    run.keep_names(run.names().renamed(0, "plus").hiding([0]))
    named = held(run)
    kept = adopt(run)
    now = RunFolder.open(run.path)
    assert list(now.names()) == ["plus", "tall"]
    assert now.names().hidden == {0}
    assert now.origin == run.origin
    assert now.is_settled
    (edited,) = now.edits
    row, column = learned.shift
    assert edited.objects == (Placed(0, (3 + row, 4 + column), (1.0, 1.0, 1.0)),)
    assert candidate_of(now) is None
    assert kept == run.path / "former" / "1"
    restore(run.path)
    assert held(run) == named
    restore(run.path)
    assert list(RunFolder.open(run.path).names()) == ["plus", "tall"]
    restore(run.path)
    run.keep_names(run.names().renamed(0, "cross").hiding([0], hidden=False))
    assert held(run).keys() == before.keys()


def test_stopped_it_leaves_the_run_as_it_was_and_free(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    before = held(run)
    with pytest.raises(Interrupted):
        learn_again(run, [drawn(run)], minutes=1, quiet=True, stop=lambda: True)
    assert held(run) == before
    assert candidate_of(run) is None
    with pytest.raises(PcdnetError, match="nothing waits to be adopted"):
        adopt(run)
    with pytest.raises(PcdnetError, match="has no former model"):
        restore(run)


def test_while_a_training_holds_the_folder_nothing_is_learned(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with RunFolder.locked(run.path), pytest.raises(PcdnetError, match="another process"):
        learn_again(run, [drawn(run)], quiet=True)


def test_models_of_the_package_are_never_changed() -> None:
    for change in (lambda: learn_again("tetrominoes"), lambda: adopt("tetrominoes"), lambda: restore("tetrominoes")):
        with pytest.raises(PcdnetError, match="comes with pcdnet"):
            change()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_damaged_candidate_is_not_adopted(share: float, taught: tuple[RunFolder, Learned, dict[str, str]]) -> None:
    run = taught[0]
    run.candidate.mkdir(exist_ok=True)
    path = run.candidate / FILE
    path.write_text('{"checksum": "00000000", "format": "pcdnet-learning-1", "base": 3}', encoding="utf-8")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(PcdnetError, match="learn again"):
        adopt(run)


@pytest.mark.parametrize("number", [10**400, True, "1"])
def test_figures_that_nothing_measured_are_refused(number: Any) -> None:
    measured = {"mse": 0.1, "explained": 0.9, "objects": 2.0, "prototypes": 3, "f1": None}
    words = {"format": FORMAT, "base": "a", "before": measured, "after": measured, "reasons": [], "numbers": [[0, 1]]}
    assert str(learned_from(json.dumps({**words, "shift": [0, 0]}))[1]).startswith("explained 90.0 % -> 90.0 %")
    with pytest.raises(ValueError, match="explained is"):
        learned_from(json.dumps({**words, "shift": [0, 0], "after": {**measured, "explained": number}}))


def test_the_command_line_does_the_same(tmp_path: Path, capsys: Capture) -> None:
    run = make_run(tmp_path)
    path, box = boxed(run)
    word = f"{path}:{','.join(map(str, box))}:tall"
    assert main(["learn-again", str(run.path), "--draw", word, "--minutes", "1", "--adopt"]) == 0
    assert "next: pcdnet serve" in capsys.readouterr().out
    assert list(RunFolder.open(run.path).names()) == ["cross", "bar", "tall"]
    assert main(["learn-again", str(run.path), "--restore"]) == 0
    assert list(RunFolder.open(run.path).names()) == ["cross", "bar"]
    assert main(["hide", str(run.path), "1"]) == 0
    assert "1 (bar)" in capsys.readouterr().out
    assert RunFolder.open(run.path).names().hidden == {1}
    assert main(["hide", str(run.path), "1", "--show"]) == 0
    assert RunFolder.open(run.path).names().hidden == frozenset()
    assert main(["learn-again", str(run.path), "--draw", "nothing"]) == 1
    assert "TOP,LEFT,HEIGHT,WIDTH" in capsys.readouterr().err
