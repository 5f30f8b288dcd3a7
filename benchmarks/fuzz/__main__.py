"""Fuzz the package: mutated inputs for every reader of what strangers give, until the time is over.

usage: python -m benchmarks.fuzz [TARGET ...] [--seconds N] [--seed S] [--jobs J] [--input FILE]

Each target has a process of its own. Nothing but a PcdnetError that names a cure may leave, in bounded time and memory;
the first input of whatever else happens is kept in build/fuzz/TARGET, beside it what happened. `--input` reads one of
these again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.fuzz.engine import RUNNING, fuzz, last_input
from benchmarks.fuzz.law import bound_memory, judged
from benchmarks.fuzz.registry import TARGETS
from benchmarks.provenance import ROOT, Start

ENVIRONMENT = {**os.environ, "PCDNET_MAX_PIXELS": str(1 << 22), "OMP_NUM_THREADS": "1"}
"""Fewer pixels are allowed than usual, so that sound pictures stay below the bounds on memory."""
SHARED = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Where small files are quick."""
FINDINGS = ROOT / "build" / "fuzz"
BEYOND = 4096
"""MiB beyond what a process has when it begins that the system refuses it."""


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all by default: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=600, help="time for each target")
    parser.add_argument("--seed", type=int, default=0, help="seed of the mutations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="targets side by side")
    parser.add_argument("--input", type=Path, help="read this file alone, as the one target named")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser


def alone(name: str, seconds: float, seed: int) -> int:
    """Fuzz one target in this process, and print what came of it as JSON."""
    bound_memory(BEYOND)
    with tempfile.TemporaryDirectory(dir=SHARED) as work:
        tally = fuzz(TARGETS[name], Path(work), FINDINGS / name, seconds=seconds, seed=seed)
    found = [[*key, count] for key, count in tally.found.items()]
    print(json.dumps({"inputs": tally.inputs, "kept": tally.kept, "lines": tally.lines, "found": found}))
    return 0


def fuzzed(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Fuzz one target in a process of its own, another one after each that an input ended."""
    end, folder, crashes = time.monotonic() + seconds, FINDINGS / name, 0
    total: dict[str, Any] = {"inputs": 0, "kept": 0, "lines": 0}
    found: Counter[str] = Counter()
    folder.mkdir(parents=True, exist_ok=True)
    while (left := end - time.monotonic()) > 0 or not crashes + total["inputs"]:
        words = (name, "--alone", "--seconds", f"{left}", "--seed", f"{seed + 1000 * crashes}")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.fuzz", *words], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True
        )
        if done.returncode == 0:
            told = json.loads(done.stdout.splitlines()[-1])
            total = {key: total[key] + told[key] if key != "lines" else told[key] for key in total}
            found.update({f"{kind} {place}": count for kind, place, count in told["found"]})
            break
        crashes += 1
        found["the process ended"] += 1
        if (folder / RUNNING).exists():
            (folder / f"ended-{crashes}").write_bytes(last_input(folder / RUNNING))
        (folder / f"ended-{crashes}.txt").write_text(f"{done.returncode}\n{done.stderr[-4000:]}", encoding="utf-8")
        if crashes == 5:
            break
    print(f"{name}: {total['inputs']} inputs, {total['kept']} kept, {total['lines']} lines; {len(found)} findings")
    print("".join(f"  {place} ({count} times)\n" for place, count in found.most_common()), end="", flush=True)
    return {**total, "findings": len(found)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was tried and found, then one JSON line; the exit code says whether anything was found."""
    start, asked = Start.now(), parser().parse_args(arguments)
    names = asked.targets or list(TARGETS)
    for name in names:
        if name not in TARGETS:
            parser().error(f"there is no target {name}; choose from {', '.join(TARGETS)}")
    if asked.alone:
        return alone(names[0], asked.seconds, asked.seed)
    if asked.input:
        with tempfile.TemporaryDirectory() as work:
            finding = judged(TARGETS[names[0]], TARGETS[names[0]].prepare(Path(work)), asked.input.read_bytes())
        print(
            f"{finding.kind}: {finding.place}\n{finding.what}" if finding else "it is refused, or read, as it should be"
        )
        return int(finding is not None)
    with ThreadPoolExecutor(asked.jobs) as pool:
        done = dict(zip(names, pool.map(lambda name: fuzzed(name, asked.seconds, asked.seed), names), strict=True))
    findings = sum(each["findings"] for each in done.values())
    sizes = {"seconds": asked.seconds, "seed": asked.seed, "inputs": sum(each["inputs"] for each in done.values())}
    start.close({"benchmark": "fuzz", **sizes, "findings": findings, "targets": done})
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
