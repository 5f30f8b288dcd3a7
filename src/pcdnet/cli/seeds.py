"""`pcdnet train --seeds`: several seeds of one configuration side by side, and one table at the end."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pcdnet.config import flags
from pcdnet.errors import Interrupted, PcdnetError, Setting

if TYPE_CHECKING:
    from pcdnet.cli.train import Train
    from pcdnet.training.seeds import SeedPlan


def train_side_by_side(command: Train) -> int:
    """Train the seeds that a command asks for; the exit code says whether all learned something."""
    from pcdnet.cli.signals import stop_on_signal
    from pcdnet.cli.train import FAILED
    from pcdnet.training.seeds import plan_seeds, train_seeds

    jobs, seeds = _asked(command)
    plan = plan_seeds(command.out, seeds, _arguments(command), resume=command.resume, force=command.force)
    go_on = Setting("resume", True), " ", Setting("out", str(plan.out))
    with stop_on_signal() as stop:
        try:
            problems = train_seeds(plan, jobs, force=command.force, stop=stop)
        except KeyboardInterrupt:
            words = PcdnetError("stopped at once; go on from where it was last saved with ", *go_on)
            raise KeyboardInterrupt(_worded(words)) from None
        finished = sum(map(plan.is_finished, plan.seeds))
        if stop() and finished < len(plan.seeds):
            raise Interrupted(f"stopped with {finished} of {len(plan.seeds)} seeds finished; go on with ", *go_on)
    told = [_told(plan, seed, problems.get(seed, "")) for seed in plan.seeds]
    if command.json:
        print("\n".join(map(json.dumps, told)))
    else:
        print(_table(plan))
        print(f"wrote {plan.out}   next: pcdnet runs {plan.out}, or pcdnet report {plan.run(plan.seeds[0])}")
    failed = [each["seed"] for each in told if each["error"]]
    if failed:
        raise PcdnetError(
            f"{len(failed)} of {len(told)} seeds failed, as reported above; cure that, and go on with ", *go_on
        )
    return FAILED if any(each["verdict"] == "failed" for each in told) else 0


def _asked(command: Train) -> tuple[int, tuple[int, ...] | None]:
    """How many processes and which seeds were asked for, if that is no contradiction."""
    from pcdnet.training.seeds import parse_seeds

    seeds, jobs = Setting("seeds", command.seeds), 1 if command.jobs is None else command.jobs
    if jobs < 1:
        raise PcdnetError(Setting("jobs", jobs), " is no number of processes; give 1 or more")
    if command.seeds is None and not command.resume:
        raise PcdnetError(Setting("jobs", jobs), " is for several seeds; give ", seeds, " as well, such as 0-9")
    if "train.seed" in command.changes():
        one = Setting("train.seed" if command.seed is None else "seed", command.changes()["train.seed"])
        raise PcdnetError(one, " and ", seeds, " contradict each other; give one of them")
    return jobs, None if command.seeds is None else parse_seeds(command.seeds)


def _arguments(command: Train) -> list[str]:
    """What every seed is started with, in words: all that was given but for the seeds themselves."""
    from pcdnet.data.view import UNCHANGED

    usual, seen = dataclasses.asdict(UNCHANGED), dataclasses.asdict(command.view())
    settings: dict[str, Any] = {name: getattr(command, name) for name in ("preset", "config", "data", "minutes")}
    settings |= {"device": command.device if command.device != "cpu" else None}
    settings |= {"tensorboard": command.tensorboard or None}
    settings |= {name: value for name, value in seen.items() if value != usual[name]}
    settings |= dict(sorted(command.changes().items()))
    return [word for name, value in settings.items() if value is not None for word in flags(Setting(name, value))]


def _told(plan: SeedPlan, seed: int, problem: str) -> dict[str, Any]:
    """What programs are told of a seed: what `pcdnet train --json` tells of a run, the seed, and what went wrong."""
    from pcdnet.cli.train import as_json
    from pcdnet.run import RunFolder
    from pcdnet.training.verdict import kept_verdict

    known: dict[str, Any] = {"run": str(plan.run(seed)), "verdict": None, "reasons": [], "prototypes": None}
    known |= {"minutes": None}
    try:
        run = RunFolder.open(plan.run(seed))
        verdict = kept_verdict(run)
        known |= {} if verdict is None else as_json(run, verdict)
    except PcdnetError as error:
        problem = problem or str(error)
    return {**known, "seed": seed, "error": problem or None}


def _table(plan: SeedPlan) -> str:
    """The seeds, their verdicts and scores; those that were in the folder before are left out."""
    from pcdnet.output.runs import runs

    return str(runs(plan.out).only({plan.run(seed) for seed in plan.seeds}))


def _worded(error: PcdnetError) -> str:
    from pcdnet.cli.arguments import as_flag

    return error.worded(as_flag)
