"""`pcdnet train`: learn prototypes from images."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from pcdnet.cli.arguments import (
    ConfigFile,
    Device,
    Minutes,
    Preset,
    Seed,
    TrainingData,
    ViewOptions,
    as_flag,
    given_config,
)
from pcdnet.config import RENAMED, RENAMED_VALUES, Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.data.notes import printable
from pcdnet.data.sources import usual_preset
from pcdnet.errors import Setting
from pcdnet.progress import began

if TYPE_CHECKING:
    from pcdnet.origin import Origin
    from pcdnet.run import RunFolder
    from pcdnet.training.loop import Progress
    from pcdnet.training.verdict import Verdict

FAILED = 3
"""The exit code of a training that explains next to nothing; all that it made is kept."""
REPORTED = 320
"""Held-out scenes that the report after training is about."""


@dataclass(frozen=True, kw_only=True)
class Train(ViewOptions):
    """Learn prototypes from images, without labels."""

    out: Path
    """Folder for the run: configuration, weights, metrics and the report."""

    preset: Preset = None

    config: ConfigFile = None

    data: TrainingData = None

    seed: Seed = None

    seeds: Annotated[
        str | None, tyro.conf.arg(metavar="LIST", help_behavior_hint="(default: one training, with --seed)")
    ] = None
    """Train several seeds, 0-9 or 0,3,5 for example, each in a folder of its own in the folder, such as seed-3."""

    jobs: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 1)")] = None
    """How many of these seeds are trained at a time, each with its share of the threads."""

    minutes: Minutes = None

    resume: bool = False
    """Go on with the run in the folder, with its own configuration."""

    force: bool = False
    """Overwrite the run in the folder."""

    device: Device = "cpu"

    tensorboard: bool = False
    """Write curves and prototypes for TensorBoard, into the folder's subfolder tensorboard."""

    json: bool = False
    """Print one JSON object instead of words: run, verdict, reasons, prototypes (those in use) and minutes. Of several
    seeds a line each, with seed and error (null if there was none)."""

    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    given: ClassVar[frozenset[str]] = frozenset()
    """The fields of the configuration that the command line sets itself, such as `model.max_objects`."""

    def changes(self) -> dict[str, Any]:
        """What the command line says of the configuration, by field."""
        said = {name: attrgetter(name)(self) for name in self.given}
        return said if self.seed is None else {**said, "train.seed": self.seed}

    def run(self) -> int:
        """Run the command; the exit code says whether anything was learned."""
        from pcdnet.cli.seeds import train_side_by_side
        from pcdnet.cli.torchrun import check_one_seed
        from pcdnet.training.seeds import SEEDS

        if self.seeds is not None or self.jobs is not None or (self.resume and (self.out / SEEDS).is_file()):
            check_one_seed(self.seeds)
            return train_side_by_side(self)
        return self.run_one()

    def run_one(self) -> int:
        """Train with one seed."""
        from pcdnet.cli.signals import stop_on_signal
        from pcdnet.output.report import report
        from pcdnet.output.tensorboard import board
        from pcdnet.run import RunFolder
        from pcdnet.training.fit import fit
        from pcdnet.training.verdict import kept_verdict

        data = "tetrominoes" if self.data is None and not self.resume else self.data
        steps: list[int] = []
        with board(self.out) if self.tensorboard else nullcontext() as watching, stop_on_signal() as stop:

            def watch(progress: Progress) -> None:
                steps.append(progress.step)
                if watching is not None:
                    watching(progress)

            try:
                fit(
                    data,
                    given_config(self.preset, self.config),
                    changes=self.changes(),
                    view=self.view(),
                    out=self.out,
                    resume=self.resume,
                    force=self.force,
                    minutes=self.minutes,
                    device=self.device,
                    watch=watch,
                    stop=stop,
                    began=began(),
                    reported=REPORTED,
                )
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"stopped at once; go on from where it was last saved: pcdnet train --resume --out {self.out}"
                    if steps or self.resume or ((self.out / "origin.json").is_file() and not self.force)
                    else "stopped before the first step, so there is nothing to go on from; give the command again"
                ) from None
        run = RunFolder.open(self.out)
        try:
            scores, verdict = report(run, count=REPORTED, device=self.device).scores, kept_verdict(run)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped when all was learned; next: pcdnet report {self.out}") from None
        assert verdict is not None, "training ends with a verdict"
        if self.json:
            print(json.dumps(as_json(run, verdict)))
        else:
            print(f"held-out scenes  {scores}")
            print("\n".join(map(printable, self.words(verdict, run.origin))))
            print(printable(f"wrote {self.out}   next: pcdnet report {self.out}, or pcdnet serve {self.out}"))
        return FAILED if verdict.verdict == "failed" else 0

    def words(self, verdict: Verdict, origin: Origin) -> list[str]:
        """The verdict in lines: the word, the reasons, and advice with the command that follows it."""
        from pcdnet.data.view import UNCHANGED

        lines = [f"verdict: {verdict.verdict}", *(f"  {reason}" for reason in verdict.reasons)]
        lines += [f"  advice: {advice}" for advice in verdict.advice]
        if verdict.changes:
            usual, seen = dataclasses.asdict(UNCHANGED), dataclasses.asdict(origin.view)
            settings: dict[str, Any] = {
                "preset": self.preset,
                "config": self.config,
                "data": origin.data,
                "out": f"{self.out}-2",
            }
            settings |= {"minutes": origin.minutes}
            settings |= {name: value for name, value in seen.items() if value != usual[name]}
            settings |= {**dict(sorted(self.changes().items())), **verdict.changes}
            flags = [as_flag(Setting(name, value)) for name, value in settings.items() if value is not None]
            lines.append(f"    {' '.join(['pcdnet train', *flags])}")
        return lines


def as_json(run: RunFolder, verdict: Verdict) -> dict[str, Any]:
    """What programs are told of a training that ended."""
    seconds = [line["seconds"] for line in run.metrics() if "seconds" in line]
    return {
        "run": str(run.path),
        "verdict": verdict.verdict,
        "reasons": verdict.reasons,
        "prototypes": verdict.figures["in_use"],
        "minutes": round(seconds[-1] / 60, 2) if seconds else 0.0,
    }


def with_defaults(arguments: Sequence[str]) -> type[Train]:
    """The command whose options default to the values of the preset, of the file, or of the run that is resumed."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--out", "--preset", "--config", "--data"):
        early.add_argument(option, nargs="?")
    given, _ = early.parse_known_args(arguments)
    if "--resume" in arguments and given.out is not None and (Path(given.out) / "config.toml").is_file():
        config = Config.load(Path(given.out) / "config.toml", complete=("model", "loss", "train"))
    elif given.config is not None:
        config = Config.load(given.config)
    else:
        preset = given.preset or usual_preset("tetrominoes" if given.data is None else given.data)
        config = Config.preset(preset) if preset else Config()

    @dataclass(frozen=True, kw_only=True)
    class TrainWithDefaults(Train):
        __doc__ = Train.__doc__
        given: ClassVar[frozenset[str]] = _fields(arguments)
        model: ModelConfig = config.model
        loss: LossConfig = config.loss
        train: TrainConfig = config.train

    return TrainWithDefaults


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """The arguments in which options of version 0.1, and their values, have the names that they have now."""
    words, field_name = [], ""
    for word, after in zip_longest(arguments, arguments[1:], fillvalue="--"):
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if option:
            field_name = option.removeprefix("--").replace("-", "_")
        if option and field_name in RENAMED:
            field_name = f"{field_name.partition('.')[0]}.{RENAMED[field_name]}"
            option = f"--{field_name.replace('_', '-')}"
        flag = field_name.replace(".no_", ".")
        if option and not equals and after.startswith("--") and True in RENAMED_VALUES.get(flag, {}):
            words.append(f"--{flag}={RENAMED_VALUES[flag][flag == field_name]}")
            continue
        words.append(f"{option}{equals}{RENAMED_VALUES.get(field_name, {}).get(value, value)}")
    return words


def _fields(arguments: Sequence[str]) -> frozenset[str]:
    """The fields of the configuration (`model.max_objects`) that the arguments set."""
    found = (re.match(r"--(model|loss|train)\.(?:no-)?([a-z0-9_-]+)", word) for word in arguments)
    return frozenset(f"{match[1]}.{match[2].replace('-', '_')}" for match in found if match)
