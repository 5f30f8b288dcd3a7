"""The results page is what was measured: every number, by which command, at which commit."""

from __future__ import annotations

import copy
import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import run as runner
from benchmarks.failures import REASONS
from benchmarks.lines import Line, parsed, put, read, write
from benchmarks.page.readme import filled
from benchmarks.parts import PARTS, QUICK, Part
from benchmarks.provenance import Start, command_of, is_present, present_commit
from benchmarks.results import DOCS, FRAGMENTS, PAGE, README, keep, page

from pcdnet.errors import PcdnetError

BENCHMARKS = Path(runner.__file__).parent
SHOWN = {"fg_ari", "greedy_fg_ari", "perfect", "shapes", "least_iou", "crisp", "f1", "ap50", "recall", "precision"}
"""Figures that are on the page wherever a row has them, but for ablations, of which it has fewer."""
OF_ABLATIONS = {"fg_ari", "greedy_fg_ari", "shapes"}
TINY = ("--preset", "tetrominoes", "--seeds", "3", "--scenes", "3", "--steps", "1", "--train-scenes", "64")


def learned(*seeds: int, **more: Any) -> Line:
    """A line of `benchmarks.learning` with made-up figures."""
    figures = {"fg_ari": 0.5, "greedy_fg_ari": 0.4, "perfect": 0.25, "shapes": 7.0, "least_iou": 0.1, "crisp": 0.2}
    rest = {"core_minutes": 3.0, "images_per_second": 99.0, "parameters": 5, "threads": 1}
    rows = [{"seed": seed, **figures, **rest} for seed in seeds]
    return {"benchmark": "learning", "preset": "tetrominoes", "set": [], "rows": rows, **more}


def figures(value: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """All numbers in a line, as the object that holds each, the key there, and the nearest name."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key == "failed":  # of these the page has number and reason
            continue
        near = key if isinstance(key, str) else name
        if isinstance(inner, float):
            yield value, key, near
        yield from figures(inner, near)


def test_the_page_is_made_of_its_lines_to_the_byte() -> None:
    """If this fails after a measurement or an edit: python -m benchmarks.results"""
    assert (DOCS / PAGE).read_bytes() == page(read(DOCS)).encode()


def test_no_number_can_change_in_the_lines_without_changing_the_page() -> None:
    before = page(read(DOCS))
    count = 0
    for n, line in enumerate(read(DOCS)):
        for at, (_, _, name) in enumerate(figures(line)):
            if name in (OF_ABLATIONS if line.get("set") else SHOWN):
                lines = copy.deepcopy(read(DOCS))
                holder, key, _ = [*figures(lines[n])][at]
                holder[key] += 0.01 if abs(holder[key]) < 2 else 1
                assert page(lines) != before, (line["benchmark"], name)
                count += 1
    assert count > 50


def test_tables_of_the_readme_are_made_of_the_lines_and_rows_that_no_line_is_about_stay() -> None:
    text, lines = README.read_text(encoding="utf-8"), read(DOCS)
    assert filled(text, lines) == text
    assert filled(text, []) == text
    for line in lines:
        if line["benchmark"] == "learning" and line["preset"] == "tetrominoes" and line["set"] == []:
            other = [{**row, "fg_ari": 0.4321} for row in line["rows"]]
            assert f"seed {line['rows'][0]['seed']} | 0.4321 " in (made := filled(text, [{**line, "rows": other}]))
            assert len(made.splitlines()) == len(text.splitlines())


def test_every_failed_scene_is_on_the_page_with_its_reason() -> None:
    line = learned(3)
    line["rows"][0]["failed"] = [{"scene": n, "reason": reason} for n, reason in enumerate([*REASONS, REASONS[0]])]
    text = page([line])
    assert f"| 3 | {REASONS[0]} | 2 | 0, {len(REASONS)} | 1 |" in text
    for n, reason in list(enumerate(REASONS))[1:]:
        assert f"| 3 | {reason} | 1 | {n} | 1 |" in text


def test_a_row_measured_again_takes_the_place_of_the_older_one_alone() -> None:
    old = learned(0, 1, 2)
    lines = put(put([], old), learned(1, command="new", commit="abc"))
    assert [[row["seed"] for row in line["rows"]] for line in lines] == [[0, 2], [1]]
    assert [line.get("commit") for line in lines] == [None, "abc"]
    assert put(lines, learned(0, 1, 2)) == [old]
    other = learned(1, set=["train.steps=1"])
    assert put([old], other) == [other, old]
    speed = {"benchmark": "speed", "threads": 1}
    assert put([speed, old], {**speed, "threads": 2}) == [old, {**speed, "threads": 2}]


def test_older_names_of_fields_are_the_same_measurement() -> None:
    old = learned(0, set=["train.heal_every=0"])
    assert put([old], learned(0, set=["train.reset_every=0"])) == [learned(0, set=["train.reset_every=0"])]


def test_every_line_says_where_it_comes_from_or_that_it_was_not_recorded() -> None:
    start = Start.now()
    line = start.line(learned(4), command="python -m benchmarks.learning --seeds 4")
    text = page([learned(0), line])
    last = text.splitlines()[-1]
    for told in (line["command"], line["commit"] or "not recorded", line["date"], line["machine"]["torch"], "| 4 |"):
        assert told in last
    assert "commit not recorded" in text.splitlines()[-2]
    assert line["machine"]["load"] is None or line["machine"]["load"][0] >= 0


def test_every_benchmark_closes_by_the_one_way_that_records_this() -> None:
    closed = set()
    for path in BENCHMARKS.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(r'print\(json\.dumps\(\{\s*\*?\*?"benchmark"', source), path
        closed |= set(re.findall(r'\.close\(\{\*\*report|\.close\(\{"benchmark": "(\w+)"', source))
    assert closed >= {"learning", "quality", "real", "own", "atari", "baselines", "large", "serve"}


@pytest.mark.parametrize("parts", [PARTS, QUICK])
def test_the_arguments_of_every_part_are_understood(parts: list[Part]) -> None:
    assert len({part.name for part in parts}) == len(parts)
    assert len({part.command(DOCS) for part in parts}) == len(parts)
    for part in parts:
        module = part.module if part.benchmark not in ("own", "baselines") else f"{part.module}.__main__"
        importlib.import_module(module).parser().parse_args(part.given(DOCS))
    assert {part.benchmark for part in QUICK} <= {part.benchmark for part in PARTS}


def test_pictures_lie_beside_the_page() -> None:
    part = next(part for part in PARTS if part.name == "learning-tetrominoes-0")
    assert part.command(DOCS).endswith("--pictures docs/pictures")
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (DOCS / PAGE).read_text(encoding="utf-8"))
    assert shown
    assert all((DOCS / picture).is_file() for picture in shown)


def test_links_lead_from_another_folder_to_the_documentation(tmp_path: Path) -> None:
    for name in FRAGMENTS:
        assert (DOCS / name).read_text(encoding="utf-8").strip() in page([])
    links = re.findall(r"\]\(([^)#]+)[)#]", page([], tmp_path))
    assert all((tmp_path / link).resolve().is_file() for link in links if link != "results.jsonl")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with code and documentation."""
    for name in ("src", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("1")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *who, "commit", "-qam", "a"], cwd=folder, check=True)


def test_figures_are_of_the_present_code_until_the_code_changes(repository: Path) -> None:
    first = present_commit(repository)
    assert first is not None
    assert "+" not in first
    (repository / "docs" / "text").write_text("2")
    assert present_commit(repository) == first
    commit(repository)
    assert present_commit(repository) != first
    assert is_present(first, repository)
    (repository / "src" / "text").write_text("2")
    marked = present_commit(repository)
    assert marked is not None
    assert marked.startswith(f"{present_commit(repository)}"[:10] + "+")
    assert is_present(marked, repository)
    assert not is_present(first, repository)
    (repository / "src" / "new").write_text("3")
    assert not is_present(marked, repository)
    commit(repository)
    assert not is_present(first, repository)
    assert not is_present(None, repository)


def test_without_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert present_commit(tmp_path) is None


FAKES = [Part(f"fake-{n}", "learning", ("--seeds", f"{n}")) for n in range(4)]


class Fake:
    """Stands for the benchmarks: parts succeed, fail or are interrupted, and are noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
        self.out, self.ran = out, list[str]()
        self.wrong: dict[str, BaseException] = {}
        monkeypatch.setattr(runner, "PARTS", FAKES)
        monkeypatch.setattr(runner, "LOGS", out / "logs")
        monkeypatch.setattr(runner, "run_part", self.run_part)

    def run_part(self, part: Part, out: Path, logs: Path) -> Line:
        self.ran.append(part.name)
        if part.name in self.wrong:
            raise self.wrong[part.name]
        origin = {"command": part.command(out), "commit": present_commit(), "date": "today"}
        return learned(int(part.arguments[1]), **origin)

    def main(self, *words: str) -> int:
        self.ran.clear()
        return runner.main([*words, "--out", str(self.out)])

    def seeds(self) -> list[int]:
        return [row["seed"] for line in read(self.out) for row in line["rows"]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fake:
    return Fake(monkeypatch, tmp_path)


def test_a_part_that_fails_stops_no_other_and_is_tried_again(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.wrong["fake-1"] = PcdnetError("no room")
    assert fake.main() == 1
    assert fake.seeds() == [0, 2, 3]
    assert "failed: fake-1: no room" in capsys.readouterr().out
    fake.wrong.clear()
    assert fake.main() == 0
    assert fake.ran == ["fake-1"]
    assert fake.seeds() == [0, 1, 2, 3]
    assert (fake.out / PAGE).read_text(encoding="utf-8") == page(read(fake.out), fake.out)
    assert fake.main() == 0
    assert fake.ran == []


def test_an_interrupted_run_keeps_what_was_measured_and_goes_on(fake: Fake) -> None:
    fake.wrong["fake-2"] = KeyboardInterrupt()
    assert fake.main() == runner.INTERRUPTED
    assert fake.seeds() == [0, 1]
    fake.wrong.clear()
    assert fake.main() == 0
    assert fake.ran == ["fake-2", "fake-3"]


def test_parts_that_are_named_are_measured_anew(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.main()
    assert fake.main("fake-3", "fake-0") == 0
    assert fake.ran == ["fake-3", "fake-0"]
    capsys.readouterr()
    assert fake.main("--list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["measured"] * 4
    with pytest.raises(SystemExit):
        fake.main("nothing")


def test_lines_of_other_code_are_measured_again(fake: Fake) -> None:
    fake.main()
    lines = [{**line, "commit": "0123456789"} for line in read(fake.out)]
    keep(lines, fake.out)
    fake.main()
    assert len(fake.ran) == 4


def test_a_part_without_its_data_is_left_out(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "run_part", lambda *_: {**learned(), "command": "none"})
    assert fake.main() == 0
    assert read(fake.out) == []


def test_a_benchmark_that_breaks_off_leaves_the_lines_as_they_were(tmp_path: Path) -> None:
    write([learned(0)], tmp_path)
    outcome = runner.run([Part("broken", "benchmarks.nothing.here")], tmp_path, tmp_path / "logs")
    assert list(outcome.failed) == ["broken"]
    assert outcome.code == 1
    assert read(tmp_path) == [learned(0)]
    for text in ("", "the end", "[1]", '{"rows": []}'):
        with pytest.raises(PcdnetError, match="does not end with the closing line"):
            parsed(text, "a.log")


def test_the_whole_path_runs_in_miniature(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As `make results-quick` does it, with one part of a few steps."""
    part = Part("tiny", "learning", (*TINY, "--pictures", "PICTURES"))
    monkeypatch.setattr(runner, "QUICK", [part])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert runner.main(["--quick", "--out", str(tmp_path)]) == 0
    (line,) = read(tmp_path)
    (row,) = line["rows"]
    assert line["command"] == command_of("benchmarks.learning", part.given(tmp_path))
    assert (line["commit"], line["machine"]["threads"]) == (present_commit(), 1)
    assert len(row["failed"]) == round((1 - row["perfect"]) * row["scenes"]) > 0
    text = (tmp_path / PAGE).read_text(encoding="utf-8")
    for told in (f"| 3 **(trial)** | {row['fg_ari']:.4f} |", line["command"], row["failed"][0]["reason"]):
        assert told in text
    assert (tmp_path / "pictures" / row["picture"]).is_file()
    assert json.loads((tmp_path / "results.jsonl").read_text()) == line
