"""`pcdnet tune`: search the settings with which training explains images best."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pcdnet.cli.arguments import ConfigFile, Device, Preset, TrainingData, ViewOptions, as_flag, given_config
from pcdnet.errors import Interrupted, Setting

if TYPE_CHECKING:
    from pcdnet.training.tuning.trials import TunedStudy


@dataclass(frozen=True, kw_only=True)
class Tune(ViewOptions):
    """Search the settings with which training explains the validation images best; no label is looked at."""

    out: Path
    """Folder for the study: best.toml, trials.json, report.html and, without --storage, the database. The same command
    again goes on with it."""

    preset: Preset = None

    config: ConfigFile = None

    data: TrainingData = None

    space: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: the hyper-parameters of the paper)"),
    ] = None
    """TOML file of the fields to search, with low and high, or choices, of each."""

    trials: int = 50
    """How many trials the study is to have in all."""

    steps: Annotated[
        int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: those of the configuration)")
    ] = None
    """Steps of each trial; the best configuration keeps its own."""

    minutes: Annotated[
        float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="(default: as long as it takes)")
    ] = None
    """Time for each trial, to which its schedule is compressed."""

    storage: Annotated[
        str | None, tyro.conf.arg(metavar="URL", help_behavior_hint="(default: a file in the folder, for one process)")
    ] = None
    """Database that several processes or machines share, such as postgresql+psycopg://user@host/database."""

    name: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="(default: that of the folder)")] = (
        None
    )
    """What the study is called in the storage."""

    seed: int = 0
    """Seed of the search and of every training, generated scenes included."""

    patience: float = 60.0
    """Seconds without a sign of life after which a trial of another process is tried again."""

    device: Device = "cpu"

    json: bool = False
    """Print one JSON object instead of words: study, trials, pruned, refused, interrupted, best (trial, error, values,
    config) and report."""

    def run(self) -> None:
        """Run the command."""
        from pcdnet.cli.signals import stop_on_signal
        from pcdnet.output.study import study_report
        from pcdnet.training.tuning import tune
        from pcdnet.training.tuning.trials import TRIALS

        with stop_on_signal() as stop:
            try:
                tuned = tune(
                    "tetrominoes" if self.data is None else self.data,
                    given_config(self.preset, self.config),
                    out=self.out,
                    space=self.space,
                    trials=self.trials,
                    steps=self.steps,
                    minutes=self.minutes,
                    storage=self.storage,
                    name=self.name,
                    seed=self.seed,
                    patience=self.patience,
                    view=self.view(),
                    device=self.device,
                    stop=stop,
                )
            except Interrupted:
                if (self.out / TRIALS).is_file():
                    study_report(self.out)
                raise
            except KeyboardInterrupt:
                raise KeyboardInterrupt("stopped at once; run the same command again to go on") from None
        page = study_report(self.out)
        if self.json:
            print(json.dumps(as_json(tuned, page)))
        else:
            print("\n".join(self.words(tuned)))
            print(f"wrote {page}   next: {self.training()}")

    def words(self, tuned: TunedStudy) -> list[str]:
        """What was found, in lines."""
        from pcdnet.training.tuning.trials import BEST

        record, best = tuned.record, tuned.record.best
        assert best is not None
        words = {"pruned": "pruned", "refused": "refused", "interrupted": "more interrupted and tried again"}
        ended = ", ".join(f"{count} {words[ending]}" for ending, count in _endings(tuned).items() if count)
        lines = [
            f"{len(record.finished)} trials{ended and f', {ended}'}",
            f"best  trial {best.number}  error {best.error:.4g}",
        ]
        lines += [f"  {as_flag(Setting(name, _worded(value)))}" for name, value in best.values.items()]
        return [*lines, f"wrote {self.out / BEST}"]

    def training(self) -> str:
        """The command that trains with the best configuration."""
        from pcdnet.data.view import UNCHANGED
        from pcdnet.training.tuning.trials import BEST

        usual, seen = dataclasses.asdict(UNCHANGED), dataclasses.asdict(self.view())
        settings: dict[str, Any] = {"config": self.out / BEST, "data": self.data, "out": "RUN"}
        settings |= {name: value for name, value in seen.items() if value != usual[name]}
        flags = [as_flag(Setting(name, value)) for name, value in settings.items() if value is not None]
        return " ".join(["pcdnet train", *flags])


def as_json(tuned: TunedStudy, page: Path) -> dict[str, Any]:
    """What programs are told of a study."""
    from pcdnet.training.tuning.trials import BEST

    best = tuned.record.best
    assert best is not None
    return {
        "study": str(tuned.out),
        "trials": len(tuned.record.finished),
        **_endings(tuned),
        "best": {
            "trial": best.number,
            "error": best.error,
            "values": best.values,
            "config": str(tuned.out / BEST),
        },
        "report": str(page),
    }


def _endings(tuned: TunedStudy) -> dict[str, int]:
    return {ending: tuned.record.count(ending) for ending in ("pruned", "refused", "interrupted")}


def _worded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
