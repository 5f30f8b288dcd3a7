"""Results: docs/results.md and the tables of README.md, written from what the benchmarks printed.

usage: python -m benchmarks.results [LOG ...] [--out FOLDER]

The last line of every log, one JSON object, is put into results.jsonl in place of what it measured again; then the
page is written anew from that file. `make results` runs all benchmarks (`python -m benchmarks.run`) and does the same
after each of them.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lines import Line, parsed, put, read, write
from benchmarks.page.found import atari, baselines, own, real
from benchmarks.page.learned import ablations, learning, quality
from benchmarks.page.markdown import FROM, section, table
from benchmarks.page.readme import filled
from benchmarks.page.timed import commands, speed
from benchmarks.provenance import ROOT
from pcdnet.files import folder, whole_file

DOCS = ROOT / "docs"
PAGE = "results.md"
README = ROOT / "README.md"
SECTIONS = (learning, ablations, quality, real, own, atari, baselines, speed, commands)
FRAGMENTS = ("limits.md",)
"""What people wrote, put at the end of the page; no figure in it is measured anew."""
HEAD = f"""# Results

Everything in the tables was printed by the benchmarks, on machines without a GPU. The column *{FROM}* names the
measurement, whose command, commit, seeds and machine are [at the end](#where-the-figures-come-from). `make results`
measures all of it anew, part by part; `python -m benchmarks.results` writes this page from
[results.jsonl](results.jsonl).

"""


def page(lines: Sequence[Line], out: Path = DOCS) -> str:
    """The page of these lines, for a folder."""
    numbered = list(enumerate(lines, start=1))
    return HEAD + "".join(part(numbered) for part in SECTIONS) + fragments(out) + sources(lines)


def fragments(out: Path) -> str:
    """What people wrote; links lead from the folder of the page to the documentation."""
    way = os.path.relpath(DOCS, out)
    texts = [(DOCS / name).read_text(encoding="utf-8").rstrip() + "\n\n" for name in FRAGMENTS]
    return "".join(texts) if way == "." else re.sub(r"\]\((?!\w+:|#)", f"]({way}/", "".join(texts))


def sources(lines: Sequence[Line]) -> str:
    """By what each line was measured; older lines do not say."""
    rows = []
    for n, line in enumerate(lines, start=1):
        command = f"`{line['command']}`" if "command" in line else f"benchmarks.{line['benchmark']}, not recorded"
        commit = line.get("commit") or "commit not recorded"
        rows.append([f"{n}", command, commit, seeds(line), line.get("date", "-"), machine(line)])
    head = (FROM, "command", "commit", "seeds", "begun (UTC)", "machine")
    about = (
        "A commit with a + had changes that were not committed. Load is the mean number of processes that wanted a "
        "core in the minute before the measurement began. Figures without a commit are older than this record.\n\n"
    )
    return section("Where the figures come from", about, table(head, rows)).rstrip() + "\n"


def seeds(line: Line) -> str:
    """The seeds that a line is about."""
    found = [line["seed"]] if "seed" in line else [row["seed"] for row in line.get("rows", ()) if "seed" in row]
    return ", ".join(dict.fromkeys(map(str, found))) or "-"


def machine(line: Line) -> str:
    """What a line was measured on, in words."""
    told = line.get("machine")
    if told is None:
        return "not recorded"
    load = "load unknown" if told["load"] is None else f"load {told['load'][0]:.1f}"
    threads = f"{told['threads']} thread{'s' * (told['threads'] != 1)}"
    return (
        f"{told['processor']}, {told['cores']} cores, {threads}, Python {told['python']}, torch {told['torch']}, {load}"
    )


def keep(lines: Sequence[Line], out: Path) -> None:
    """Write the lines and their page into a folder; the documentation's are those of the README, too."""
    write(lines, out)
    with whole_file(out / PAGE) as file:
        file.write(page(lines, out).encode())
    if out.resolve() == DOCS:
        text = filled(README.read_text(encoding="utf-8"), lines)
        with whole_file(README) as file:
            file.write(text.encode())


def main() -> None:
    """Take in the logs and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG", help="what a benchmark printed")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of the page")
    asked = parser.parse_args()
    lines = read(folder(asked.out))
    for log in asked.logs:
        lines = put(lines, parsed((log.read_text(encoding="utf-8").splitlines() or [""])[-1], str(log)))
    keep(lines, asked.out)
    print(f"wrote {asked.out / PAGE}")


if __name__ == "__main__":
    main()
