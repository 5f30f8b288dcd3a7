"""`pcdnet train`: learn prototypes from images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pcdnet.cli.arguments import Device, Minutes, Preset, Seed, TrainingData
from pcdnet.cli.origin import Origin, differences, option, stored_config
from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.model.network import PCDNet
    from pcdnet.scene import Scenes
    from pcdnet.training.loop import Progress


@dataclass(frozen=True, kw_only=True)
class Train:
    """Learn prototypes from images, without labels."""

    out: Path
    """Folder for the run: configuration, weights, metrics and the report."""

    preset: Preset = "tetrominoes"

    data: TrainingData = None

    seed: Seed = None

    minutes: Minutes = None

    resume: bool = False
    """Go on with the run in the folder, with its own configuration."""

    force: bool = False
    """Overwrite the run in the folder."""

    device: Device = "cpu"

    tensorboard: bool = False
    """Write curves and prototypes for TensorBoard, into the folder's subfolder tensorboard."""

    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def config(self) -> Config:
        """The configuration that the options make."""
        train = self.train if self.seed is None else dataclasses.replace(self.train, seed=self.seed)
        return Config(model=self.model, loss=self.loss, train=train)

    def run(self) -> None:
        """Do it."""
        config = self.config()
        if self.resume:
            self._check_unchanged(config)
        origin = Origin.read(self.out) if self.resume else Origin()
        minutes = origin.minutes if self.minutes is None else self.minutes
        origin = Origin(data=self.data or origin.data, minutes=minutes)

        from pcdnet.cli.page import write_page
        from pcdnet.data.source import training_data
        from pcdnet.output.display import summary

        scenes, valid = training_data(origin.data, config.train.seed)
        model = learn(
            scenes,
            valid,
            config,
            self.out,
            origin=origin,
            resume=self.resume,
            force=self.force,
            device=self.device,
            tensorboard=self.tensorboard,
        )
        scores = write_page(self.out, model, valid)
        print(f"validation  {summary(scores)}")
        print(f"wrote {self.out}   next: pcdnet eval {self.out} --data {origin.data}")

    def _check_unchanged(self, config: Config) -> None:
        if self.force:
            raise PcdnetError("--resume goes on with a run and --force starts it anew; give one of them")
        for name, given, stored in differences(config, stored_config(self.out)):
            raise PcdnetError(
                f"{self.out} was started with {' '.join(option(name, stored))}, not {' '.join(option(name, given))}, "
                f"and goes on with it; leave that option out, or start another run with another --out"
            )


def with_defaults(arguments: Sequence[str]) -> type[Train]:
    """The command whose options default to the values of the preset, or of the run that is resumed."""
    preset, out = _value(arguments, "--preset"), _value(arguments, "--out")
    if "--resume" in arguments and out is not None:
        config = stored_config(Path(out))
    else:
        config = Config.preset(preset or "tetrominoes")

    @dataclass(frozen=True, kw_only=True)
    class TrainWithDefaults(Train):
        __doc__ = Train.__doc__
        model: ModelConfig = config.model
        loss: LossConfig = config.loss
        train: TrainConfig = config.train

    return TrainWithDefaults


def learn(
    scenes: Scenes,
    valid: Scenes,
    config: Config,
    out: Path,
    *,
    origin: Origin,
    resume: bool = False,
    force: bool = False,
    device: str = "cpu",
    tensorboard: bool = False,
) -> PCDNet:
    """Train with a display on stderr; the first Ctrl-C ends it after the step, with a word how to go on."""
    from pcdnet.cli.signals import stop_on_signal
    from pcdnet.output.display import TrainingDisplay
    from pcdnet.training.loop import Interrupted, fit

    board = None
    if tensorboard:
        from pcdnet.cli.tensorboard import Board

        board = Board(out)
    noted = False

    with TrainingDisplay() as display, stop_on_signal() as stop:

        def watch(progress: Progress) -> None:
            nonlocal noted
            if not noted:  # not before: a folder that is refused must stay as it was
                origin.write(out)
                noted = True
            display(progress)
            if board is not None:
                board.follow(progress)

        try:
            return fit(
                scenes,
                config,
                valid=valid,
                out=out,
                resume=resume,
                force=force,
                minutes=origin.minutes,
                device=device,
                watch=watch,
                stop=stop,
            )
        except Interrupted as interruption:
            origin.write(out)
            raise KeyboardInterrupt(str(interruption)) from None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped at once; go on from where {out} was last saved: pcdnet train --resume --out {out}"
            ) from None
        finally:
            if board is not None:
                board.close()


def _value(arguments: Sequence[str], option: str) -> str | None:
    """What an option is set to, before the arguments are parsed in earnest; the last counts, as it will then."""
    value = None
    for index, word in enumerate(arguments):
        if word == option and index + 1 < len(arguments):
            value = arguments[index + 1]
        elif word.startswith(f"{option}="):
            value = word.removeprefix(f"{option}=")
    return value
