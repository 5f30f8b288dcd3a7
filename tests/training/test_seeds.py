"""Laws of several seeds: what was asked for is what is trained, and nothing that is there is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.origin import Origin
from pcdnet.run import RunFolder
from pcdnet.training import seeds
from pcdnet.training.seeds import SEEDS, SeedPlan, parse_seeds, plan_seeds, train_seeds

GIVEN = ["--preset", "ngsim", "--data", "my photos"]


def begin(plan: SeedPlan, seed: int, *, finished: bool = False) -> None:
    """Leave what a training of a seed leaves that was begun, or that came to its end."""
    run = RunFolder.create(plan.run(seed), Config(), Origin())
    if finished:
        run.save_verdict("{}")
        run.report.touch()


def commands_of(plan: SeedPlan, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, list[str]]:
    """What is started for a plan."""
    started: dict[str, list[str]] = {}

    def run(commands: Mapping[str, Sequence[str]], *_: object) -> dict[str, str]:
        started.update({name: list(command)[len(seeds.PROGRAM) :] for name, command in commands.items()})
        return dict.fromkeys(commands, "")

    monkeypatch.setattr(seeds, "run_side_by_side", run)
    assert train_seeds(plan, 2, **options) == {int(name.split()[1]): "" for name in started}
    return started


@pytest.mark.parametrize(
    ("text", "numbers"), [("0-3", (0, 1, 2, 3)), ("5", (5,)), ("0,3,5", (0, 3, 5)), (" 7, 1-2 ", (7, 1, 2))]
)
def test_ranges_and_lists_are_read(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_seeds(text) == numbers


@pytest.mark.parametrize(
    "text", ["", "3-1", "a", "1-", "-1", "1,,2", "1.5", "0-3-5", "0,0", "0-3,2", "0-1000", "0-99999999999"]
)
def test_what_is_no_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(PcdnetError, match=r"cannot be used; give a range|names \d twice; give each|are too many; give"):
        parse_seeds(text)


def test_every_seed_has_a_command_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_seeds(tmp_path / "out", (0, 3), GIVEN)
    assert commands_of(plan, monkeypatch) == {
        f"seed {seed}": ["train", *GIVEN, "--seed", str(seed), "--out", str(plan.run(seed)), "--json"]
        for seed in (0, 3)
    }


def test_resumed_those_that_are_finished_stay_and_those_that_were_begun_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_seeds(tmp_path, (0, 1, 2), GIVEN)
    begin(plan, 0, finished=True)
    begin(plan, 1)
    for given, asked in ((None, []), ((0, 1, 2), GIVEN)):
        resumed = plan_seeds(tmp_path, given, asked, resume=True)
        assert resumed == plan
        started = commands_of(resumed, monkeypatch)
        assert ["--resume" in command for command in started.values()] == [True, False]
        assert list(started) == ["seed 1", "seed 2"]


def test_more_seeds_may_follow_and_are_kept_together(tmp_path: Path) -> None:
    begin(plan_seeds(tmp_path, (0, 1), GIVEN), 0)
    plan = plan_seeds(tmp_path, (5,), GIVEN)
    assert plan.seeds == (5,)
    assert plan_seeds(tmp_path, None, [], resume=True).seeds == (0, 1, 5)


def test_nothing_that_is_there_is_lost(tmp_path: Path) -> None:
    begin(plan_seeds(tmp_path, (0, 1), GIVEN), 0)
    before = (tmp_path / SEEDS).read_bytes()
    for wrong, options in (
        ("seed-0 is in use; set resume=True", {"seeds": (0,)}),
        ("were begun with --preset ngsim --data 'my photos'; do the same", {"seeds": (2,), "arguments": []}),
        ("were begun with", {"seeds": (0,), "arguments": ["--data", "b"], "force": True}),
        ("starts them anew; give one", {"seeds": (0,), "resume": True, "force": True}),
    ):
        with pytest.raises(PcdnetError, match=wrong):
            plan_seeds(**{"out": tmp_path, "arguments": GIVEN, **options})  # type: ignore[arg-type]
        assert (tmp_path / SEEDS).read_bytes() == before
    assert plan_seeds(tmp_path, (0, 1), ["--data", "b"], force=True).arguments == ("--data", "b")


def test_a_run_is_no_folder_of_seeds(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", Config(), Origin())
    with pytest.raises(PcdnetError, match="is a run itself, and no folder of several seeds; choose another out"):
        plan_seeds(tmp_path / "run", (0,), GIVEN)
    with pytest.raises(PcdnetError, match="does not say which seeds it holds; give seeds"):
        plan_seeds(tmp_path / "none", None, [], resume=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format": "x"}', b'{"format": "pcdnet-seeds-1", "seeds": 3}']
)
def test_a_damaged_list_of_seeds_is_reported(content: bytes, tmp_path: Path) -> None:
    (tmp_path / SEEDS).write_bytes(content)
    with pytest.raises(PcdnetError, match=r"cannot read .*seeds.json: .*; delete it, and name the seeds again"):
        plan_seeds(tmp_path, (0,), [])
