"""Run: measure what the results page shows, part by part, and write it after each.

usage: python -m benchmarks.run [PART ...] [--quick] [--list] [--out FOLDER]

Runs the parts (benchmarks/parts.py) that have no line of the present code yet, or those that are named. A part's
closing line is kept as soon as it is there, so an interrupted run goes on where it was. A part that fails is reported
at the end, and does not stop the others; its log is in build/results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.lines import Line, parsed, put, read
from benchmarks.parts import PARTS, QUICK, Part
from benchmarks.provenance import ROOT, is_present
from benchmarks.results import DOCS, PAGE, keep
from pcdnet.errors import PcdnetError
from pcdnet.files import folder, locked_file

QUICK_OUT = ROOT / "build" / "results-quick"
LOGS = ROOT / "build" / "results"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(slots=True)
class Outcome:
    """What became of the parts."""

    failed: dict[str, str] = field(default_factory=dict)
    """Parts that failed, and how."""
    left_out: list[str] = field(default_factory=list)
    """Parts that had nothing to measure: their data is not there."""
    interrupted: bool = False

    @property
    def code(self) -> int:
        """The exit code of the program."""
        return INTERRUPTED if self.interrupted else int(bool(self.failed))


def measured(part: Part, lines: Sequence[Line], out: Path) -> bool:
    """Whether there is a line of this part by the code that is here now."""
    command = part.command(out)
    return any(line.get("command") == command and is_present(line.get("commit")) for line in lines)


def run_part(part: Part, out: Path, logs: Path) -> Line:
    """Run one benchmark; its closing line."""
    log = folder(logs) / f"{part.name}.log"
    command = [sys.executable, "-m", part.module, *part.given(out)]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, check=False)
    if done.returncode:
        raise PcdnetError(f"it ended with {done.returncode}; see {log}")
    return parsed((log.read_text(encoding="utf-8").splitlines() or [""])[-1], str(log))


def run(parts: Sequence[Part], out: Path, logs: Path) -> Outcome:
    """Run parts one after the other, and write the page after each."""
    outcome = Outcome()
    for n, part in enumerate(parts, start=1):
        print(f"{n}/{len(parts)}  {part.name}: {part.command(out)}", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            line = run_part(part, out, logs)
        except KeyboardInterrupt:
            outcome.interrupted = True
            break
        except PcdnetError as error:
            outcome.failed[part.name] = str(error)
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            continue
        if line.get("rows", True):
            keep(put(read(out), line), out)
        else:
            outcome.left_out.append(part.name)
        print(f"  {(time.monotonic() - start) / 60:.1f} minutes", file=sys.stderr, flush=True)
    return outcome


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__, formatter_class=form)
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to measure anew, whatever there is already")
    parser.add_argument("--quick", action="store_true", help="small budgets, to try the whole path in minutes")
    parser.add_argument("--list", action="store_true", help="name the parts, and those that are measured")
    parser.add_argument("--out", type=Path, help="folder of the page; docs, or build/results-quick with --quick")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet; the exit code."""
    asked = parser().parse_args(arguments)
    known = {part.name: part for part in (QUICK if asked.quick else PARTS)}
    if unknown := [name for name in asked.parts if name not in known]:
        parser().error(f"there is no part {unknown[0]!r}; use some of {', '.join(known)}")
    out = folder(asked.out or (QUICK_OUT if asked.quick else DOCS))
    logs = out / "logs" if asked.quick else LOGS
    lines = read(out)
    done = {name for name, part in known.items() if measured(part, lines, out)}
    if asked.list:
        for name, part in known.items():
            print(f"{'measured' if name in done else '-':10}{name:30}{part.command(out)}")
        return 0
    parts = [known[name] for name in asked.parts] or [part for name, part in known.items() if name not in done]
    if done and not asked.parts:
        print(f"{len(done)} of {len(known)} parts are measured already", file=sys.stderr)
    with locked_file(folder(logs) / "lock"):  # two at a time would spoil each other's figures
        outcome = run(parts, out, logs)
    keep(read(out), out)  # the page follows its lines, even if there was nothing to measure
    return reported(outcome, out)


def reported(outcome: Outcome, out: Path) -> int:
    """Say what became of the parts."""
    for name in outcome.left_out:
        print(f"left out: {name}, its data is not there")
    for name, reason in outcome.failed.items():
        print(f"failed: {name}: {reason}")
    if outcome.interrupted:
        print("interrupted; the same command goes on where it was")
    print(f"wrote {out / PAGE}")
    return outcome.code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PcdnetError as mistake:
        sys.exit(str(mistake))
