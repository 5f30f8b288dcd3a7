"""Drills: work that is killed at random moments, run folders that are damaged at random, and disks that are full.

usage: python -m benchmarks.drills [--train N] [--decompose N] [--damages M] [--disks D] [--network N] [--workers N]
                                   [--seed S] [--minutes T]

A training and a `decompose` are killed by SIGKILL, half of the time in their first second, and started again until N
kills are done; what comes out must be the same, byte for byte, as what was never killed. Then M run folders are
damaged, and scored, shown in a report and resumed: each must be refused in a sentence, or give the same results, or say
what is missing. Disks are filled at a random byte, the network to the object store is cut, and workers die; each drill
says how often, and what was lost (benchmarks/drilling/).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.runs import ENDED, true_run

import pcdnet
from benchmarks.damages import damage
from benchmarks.provenance import Start
from pcdnet.cli import main as pcdnet_main
from pcdnet.data import tetrominoes
from pcdnet.errors import Interrupted, PcdnetError
from pcdnet.output.dataset import save_scenes
from pcdnet.run import RunFolder
from pcdnet.training.verdict import kept_verdict

TINY = (
    *("--preset", "tetrominoes", "--train.batch", "8", "--train.validate-every", "2", "--train.steps", "8"),
    *("--model.num-prototypes", "4", "--model.restarts", "0", "--train.settle"),
)
"""Options of a training that takes a moment."""
FIRST = 1.0
"""Seconds in which half of the kills happen, after the command is loaded."""
LEARNED = ("weights.safetensors", "state.safetensors", "names.toml", "verdict.json", "config.toml")
FOUND = ("decompositions.jsonl", "coco.json", "coco_results.json", "objects.csv")
"""What must be the same to the byte."""
TIMES = ("seconds", "images_per_second")
"""Scores that are never the same twice."""

FURTHER = {
    "disks": (4, "works on disks that become full"),
    "network": (0, "cuts of the network to the object store"),
    "workers": (0, "deaths of workers of a decomposition"),
}
"""Drills in files of their own, with how often by default and what that counts."""

Commands = Callable[[Path], Sequence[str]]
"""The command that starts, or goes on with, the work in a folder."""


def spawned(arguments: Sequence[str], log: Path) -> int:
    """Run a command in a process of its own, which shares what is imported already; its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            with log.open("ab", buffering=0) as file:
                for number in (1, 2):
                    os.dup2(file.fileno(), number)
            code = pcdnet_main(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def ended(pid: int, seconds: float | None) -> int | None:
    """The exit code of a process; None if it was killed when the seconds were over."""
    limit = None if seconds is None else time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if limit is not None and time.monotonic() >= limit:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            code = os.waitstatus_to_exitcode(status)
            return None if code == -signal.SIGKILL else code
        time.sleep(0.002)


def contents(folder: Path, names: Sequence[str]) -> dict[str, bytes | None]:
    """What is in the files, but for what tells the time."""
    found: dict[str, bytes | None] = {}
    for name in names:
        path = folder / name
        found[name] = path.read_bytes() if path.is_file() else None
        if name == "state.safetensors" and path.is_file():
            tensors, words = RunFolder.open(folder).load_state()
            parts = [f"{key} {value.tolist()}" for key, value in sorted(tensors.items())]
            found[name] = repr((parts, words["step"], words["best"])).encode()
    return found


def kill_drill(
    title: str, folder: Path, commands: Commands, names: Sequence[str], kills: int, rng: np.random.Generator, end: float
) -> dict[str, Any]:
    """Kill a command at so many random moments, and compare what it leaves in the end with what it leaves unbroken.

    There are fewer kills if the clock says that it is the `end`; those that were begun are brought to theirs.
    """
    log, done, early, works, lost = folder / f"{title}.log", 0, 0, 0, list[str]()
    expected, took = dict[str, bytes | None](), 0.0
    for whole in (folder / f"{title}-first", folder / f"{title}-second") if kills else ():
        start = time.monotonic()  # the first one may have to compile, which says nothing about the others
        assert ended(spawned(commands(whole), log), None) in ENDED, log.read_text()[-2000:]
        took, former, expected = time.monotonic() - start, expected, contents(whole, names)
        assert not former or former == expected, "what is never killed is the same every time"
    while done < kills and len(lost) < 10 and time.monotonic() < end:
        works += 1
        work = folder / f"{title}-{works}"
        while True:
            left = done < kills and time.monotonic() < end
            moment = float(rng.uniform(0, FIRST if rng.random() < 0.5 else took)) if left else None
            code = ended(spawned(commands(work), log), moment)
            if code is not None:
                break
            done += 1
            early += moment is not None and moment < FIRST
        if code not in ENDED:
            lost.append(f"{work.name}: exit code {code}; {log.read_text()[-300:]}")
        elif (found := contents(work, names)) != expected:
            lost.append(f"{work.name}: {[name for name in names if found[name] != expected[name]]} differ")
        elif spare := [path.name for path in work.iterdir() if path.suffix in (".partial", ".lock")]:
            lost.append(f"{work.name}: left {spare}")
        shutil.rmtree(work)
    print(f"{title}: {done} kills in {works} works of {took:.1f} s, {early} in their first second; lost: {len(lost)}")
    print("".join(f"  {each}\n" for each in lost), end="", flush=True)
    return {"kills": done, "first_second": early, "works": works, "lost": len(lost)}


def training(data: Path) -> Commands:
    """How a training in a folder is started, or goes on: as a person would who does not know when it was killed."""

    def command(out: Path) -> list[str]:
        words = ["train", "--out", str(out), "--data", str(data)]
        return [*words, "--resume"] if (out / "config.toml").is_file() else [*words, *TINY]

    return command


def decomposing(run: Path, data: Path) -> Commands:
    """How files are decomposed into a folder; the same command goes on."""
    return lambda out: ["decompose", str(run), str(data), "--out", str(out), "--format", "json,coco,csv"]


def stopped_run(data: Path, out: Path) -> Path:
    """A run that was stopped half way, with names."""
    changes = {"train.steps": 4, "train.batch": 4, "train.validate_every": 1}
    changes |= {"model.num_prototypes": 3, "model.restarts": 0}
    asked = iter([False, False, True])
    with contextlib.suppress(Interrupted):
        pcdnet.fit(data, "tetrominoes", changes=changes, out=out, quiet=True, stop=lambda: next(asked))
    run = RunFolder.open(out)
    run.merge([0, 2], "spade")
    run.save_verdict(pcdnet.judge(run).to_json())
    return out


def results(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """All that is asked of a damaged run, by name: each gives something that can be compared."""

    def scores(found: Any) -> dict[str, Any]:
        return {name: value for name, value in found.to_dict().items() if name not in TIMES}

    def model() -> object:
        loaded = pcdnet.load(folder)
        return [values.tolist() for values in loaded.state_dict().values()], loaded.config, loaded.names, loaded.values

    yield "eval", lambda: (model(), scores(pcdnet.evaluate(folder)))
    yield "report", lambda: (scores(pcdnet.report(folder, count=4).scores), RunFolder.open(folder).metrics())
    yield "verdict", lambda: kept_verdict(RunFolder.open(folder))
    yield "resume", lambda: [values.tolist() for values in pcdnet.fit(resume=True, out=folder, quiet=True).parameters()]


def outcome(folder: Path, expected: dict[str, object]) -> str:
    """What becomes of a damaged run: `same`, `refused` or `noted`; or what must not be, with what it was."""
    seen = "same"
    for name, ask in results(folder):
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                found = ask()
        except PcdnetError as error:
            if "\n" in str(error) or "; " not in str(error):
                return f"traceback: {name} says {error}"
            seen = "refused"
        except Exception:
            return f"traceback: {name} {traceback.format_exc(limit=-2)}"
        else:
            if repr(found) != repr(expected[name]):
                if "note: " not in said.getvalue():
                    return f"silent: {name} gives another result"
                seen = "noted"
    return seen


def damage_drill(folder: Path, data: Path, damages: int, seed: int, end: float) -> dict[str, Any]:
    """Damage so many copies of a run, or as many as there is time for, and count what becomes of them."""
    run = stopped_run(data, folder / "run")
    sound = shutil.copytree(run, folder / "sound")
    expected = {name: ask() for name, ask in results(sound)}
    counts, bad = Counter[str](), list[str]()
    for number in range(damages):
        if time.monotonic() >= end:
            break
        copy = folder / "copy"  # of the same name every time: it is part of what is said
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run, copy)
        what = damage(copy, number, seed)
        became, _, why = outcome(copy, expected).partition(": ")
        counts[became] += 1
        if why:
            bad.append(f"damage {number}, {what}: {became}, {why}")
    print(
        f"damage: {counts.total()} run folders; {', '.join(f'{count} {word}' for word, count in counts.most_common())}"
    )
    print("".join(f"  {each}\n" for each in bad), end="", flush=True)
    kept = {word: counts[word] for word in ("refused", "same", "noted")}
    return {"damages": counts.total(), **kept, "tracebacks": counts["traceback"], "silent": counts["silent"]}


def further(name: str, count: int, seed: int) -> dict[str, int] | None:
    """One of the drills in files of their own, so many times; None if it was not asked for, or lacks what it needs."""
    if count == 0:
        return None
    try:
        module = import_module(f"benchmarks.drilling.{name}")
    except ImportError as error:
        print(f"{name}: not tried, as {error.name} is missing; install it, then try again", flush=True)
        return None
    done: dict[str, int] = module.drill(count, seed)
    print(f"{name}: {', '.join(f'{number} {word}' for word, number in done.items())}", flush=True)
    return done


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drills", description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=5, help="kills of training")
    parser.add_argument("--decompose", type=int, default=5, help="kills of decompose")
    parser.add_argument("--damages", type=int, default=56, help="damaged run folders; 56 have every file and kind once")
    for name, (default, words) in FURTHER.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=words)
    parser.add_argument("--seed", type=int, default=0, help="seed of moments and damages")
    parser.add_argument("--minutes", type=float, default=60, help="time after which nothing new is begun")
    return parser


def main() -> int:
    """Print what was tried and lost, then one JSON line; the exit code says whether anything was lost."""
    start, asked = Start.now(), parser().parse_args()
    begin, end = time.perf_counter(), time.monotonic() + 60 * asked.minutes
    torch.set_num_threads(1)  # a process with more cannot be forked
    rng = np.random.default_rng(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, many = folder / "small.npz", folder / "many.npz"
        save_scenes(tetrominoes.generate(80, seed=1), small)
        save_scenes(tetrominoes.generate(640, seed=2), many)
        run = true_run(folder / "true").path
        work = training(small), decomposing(run, many)
        trained = kill_drill("train", folder, work[0], LEARNED, asked.train, rng, end)
        found = kill_drill("decompose", folder, work[1], FOUND, asked.decompose, rng, end)
        damaged = damage_drill(folder, small, asked.damages, asked.seed, end)
    others = {name: further(name, getattr(asked, name), asked.seed) for name in FURTHER}
    figures = {"train": trained, "decompose": found, "damage": damaged, **{k: v for k, v in others.items() if v}}
    start.close({"benchmark": "drills", "seed": asked.seed, **figures, "seconds": time.perf_counter() - begin})
    lost = sum(done.get("lost", 0) for done in others.values() if done)
    missing = any(done is None and getattr(asked, name) for name, done in others.items())
    return int(bool(trained["lost"] or found["lost"] or damaged["tracebacks"] or damaged["silent"] or lost or missing))


if __name__ == "__main__":
    sys.exit(main())
