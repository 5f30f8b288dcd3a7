"""Seeds: several trainings that differ in their seed alone, side by side in one folder.

OUT/seeds.json says which seeds there are and what they were started with, so that whatever stopped them, they go on;
the run of seed 3 is OUT/seed-3.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import folder as made
from pcdnet.files import whole_file
from pcdnet.model.storage import CONFIG
from pcdnet.progress import stepping
from pcdnet.run import REPORT, VERDICT, RunFolder
from pcdnet.training.display import LiveLines
from pcdnet.training.fleet import run_side_by_side

SEEDS = "seeds.json"
"""The file in the folder of several seeds."""
FORMAT = "pcdnet-seeds-1"
"""Names the schema of that file."""
PROGRAM = (sys.executable, "-P", "-m", "pcdnet")
"""How this program is started; not what happens to lie in the working folder under its name."""
MOST_SEEDS = 1000
"""Seeds of one call at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedPlan:
    """Which seeds are trained in a folder, and with what."""

    out: Path
    """The folder."""
    seeds: tuple[int, ...]
    """The seeds, in the order in which they are started."""
    arguments: tuple[str, ...]
    """What `pcdnet train` is given besides seed and folder."""

    def run(self, seed: int) -> Path:
        """The folder of a seed's run."""
        return self.out / f"seed-{seed}"

    def is_finished(self, seed: int) -> bool:
        """Whether a seed's run was judged and its report was written."""
        return all((self.run(seed) / name).is_file() for name in (CONFIG, VERDICT, REPORT))

    def command(self, seed: int, *, force: bool) -> list[str]:
        """What `pcdnet` is asked for to train one seed, or to go on with it."""
        begun = (self.run(seed) / CONFIG).is_file() and not force
        more = [*(["--resume"] if begun else []), *(["--force"] if force else [])]
        return ["train", *self.arguments, "--seed", str(seed), "--out", str(self.run(seed)), "--json", *more]

    def write(self, others: Sequence[int] = ()) -> None:
        """Keep the plan, with other seeds that were there before."""
        seeds = sorted({*self.seeds, *others})
        with whole_file(made(self.out) / SEEDS, "choose another ", Setting("out")) as file:
            words = {"format": FORMAT, "seeds": seeds, "arguments": self.arguments}
            file.write(json.dumps(words).encode() + b"\n")

    @staticmethod
    def read(out: Path) -> SeedPlan | None:
        """The plan of a folder; None where there is none."""
        path = out / SEEDS
        try:
            words = json.loads(path.read_bytes())
            if words["format"] != FORMAT:
                raise ValueError("it is of another version")
            return SeedPlan(
                out=out, seeds=tuple(map(int, words["seeds"])), arguments=tuple(map(str, words["arguments"]))
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise PcdnetError(f"cannot read {path}: {error}; delete it, and name the seeds again") from None


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds in words as numbers: 0-9, or 0,3,5, or both.

    Examples
    --------
    >>> parse_seeds("0-2,7")
    (0, 1, 2, 7)
    """
    found: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", word, flags=re.ASCII)
        span = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
        if not span:
            raise PcdnetError(Setting("seeds", text), " cannot be used; give a range such as 0-9, or a list as 0,3,5")
        if len(found) + len(span) > MOST_SEEDS:
            raise PcdnetError(Setting("seeds", text), f" are too many; give at most {MOST_SEEDS:,} at a time")
        found += span
    twice = next((seed for seed in found if found.count(seed) > 1), None)
    if twice is not None:
        raise PcdnetError(Setting("seeds", text), f" names {twice} twice; give each seed once")
    return tuple(found)


def plan_seeds(
    out: Path, seeds: tuple[int, ...] | None, arguments: Sequence[str], *, resume: bool = False, force: bool = False
) -> SeedPlan:
    """What to train, if nothing contradicts what is in the folder already; the plan is kept there.

    With `resume`, seeds and arguments are by default those of before.
    """
    kept = SeedPlan.read(out)
    if resume and force:
        raise PcdnetError(
            *(Setting("resume", True), " goes on with runs and ", Setting("force", True), " starts them anew; give one")
        )
    if resume and kept is not None:
        arguments = arguments or kept.arguments
        seeds = seeds or kept.seeds
    if not seeds:
        raise PcdnetError(f"{out} does not say which seeds it holds; give ", Setting("seeds"))
    plan = SeedPlan(out=out, seeds=seeds, arguments=tuple(arguments))
    if (out / CONFIG).exists():
        raise PcdnetError(f"{out} is a run itself, and no folder of several seeds; choose another ", Setting("out"))
    stay = [] if kept is None else [seed for seed in kept.seeds if not (force and seed in seeds)]
    if kept is not None and stay and kept.arguments != plan.arguments:
        there = shlex.join(kept.arguments) or "no option"
        raise PcdnetError(
            f"the seeds in {out} were begun with {there}; do the same, or choose another ", Setting("out")
        )
    for seed in seeds:
        if not resume:
            RunFolder.check_free(plan.run(seed), force=force)
    plan.write(stay)
    return plan


def train_seeds(
    plan: SeedPlan, jobs: int, *, force: bool = False, stop: Callable[[], bool] | None = None
) -> dict[int, str]:
    """Train what is not finished, so many at a time; what is wrong with each seed that was tried, or nothing.

    One that fails does not stop the others.
    """
    left = {f"seed {seed}": seed for seed in plan.seeds if force or not plan.is_finished(seed)}
    commands = {name: [*PROGRAM, *plan.command(seed, force=force)] for name, seed in left.items()}
    with LiveLines() as lines, stepping():
        ended = run_side_by_side(commands, jobs, lines, stop or (lambda: False))
    return {left[name]: problem for name, problem in ended.items()}
