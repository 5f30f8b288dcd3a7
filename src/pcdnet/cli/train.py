"""`pcdnet train`: learn prototypes from images."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pcdnet.cli.arguments import Device, Minutes, Preset, Seed, TrainingData, ViewOptions
from pcdnet.cli.origin import Origin, differences, option, stored_config
from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.data.sources import usual_preset
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.model.network import PCDNet
    from pcdnet.scene import Scenes
    from pcdnet.training.loop import Progress


@dataclass(frozen=True, kw_only=True)
class Train(ViewOptions):
    """Learn prototypes from images, without labels."""

    out: Path
    """Folder for the run: configuration, weights, metrics and the report."""

    preset: Preset = None

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

    given: ClassVar[frozenset[str]] = frozenset()
    """The fields of the configuration that the command line sets itself, such as `model.num_prototypes`."""

    automatic: ClassVar[bool] = False
    """Whether all other fields are to be chosen from the images."""

    def config(self) -> Config:
        """The configuration that the options make."""
        train = self.train if self.seed is None else dataclasses.replace(self.train, seed=self.seed)
        return Config(model=self.model, loss=self.loss, train=train)

    def run(self) -> None:
        """Run the command."""
        config = self.config()
        if self.resume:
            self._check_unchanged(config)
        origin = self._origin(config)

        from pcdnet.cli.evaluate import limit_warning
        from pcdnet.cli.page import write_page
        from pcdnet.data.opening import training_data
        from pcdnet.training.display import summary

        scenes, valid = training_data(origin.data, seed=config.train.seed, view=origin.view())
        if self.automatic:
            config = self._chosen(scenes, config)
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
        warning = limit_warning(scores, model.config.max_objects)
        if warning:
            print(warning, file=sys.stderr)
        print(f"validation  {summary(scores)}")
        print(f"wrote {self.out}   next: pcdnet eval {self.out} --data {origin.data}")

    def _origin(self, config: Config) -> Origin:
        """What to train on, and how to look at it; a run that goes on keeps what it was started with."""
        kept = Origin.read(self.out) if self.resume else Origin()
        view = kept.view(options=self)
        return Origin(
            data=self.data or kept.data,
            minutes=kept.minutes if self.minutes is None else self.minutes,
            crop=view.crop,
            resize=view.resize,
            stride=view.stride,
            # Models of one channel look at grey images; an automatic one takes what there is.
            grey=view.grey or (config.model.channels == 1 and not self.automatic),
        )

    def _chosen(self, scenes: Scenes, config: Config) -> Config:
        """The configuration read off the images, told to the user, with what the command line sets itself."""
        from pcdnet.training.automatic import choose

        choice = choose(scenes.images, config.train.seed)
        print("no preset fits these data, so everything is chosen from the images:", file=sys.stderr)
        for reason in choice.reasons:
            print(f"  {reason}", file=sys.stderr)
        chosen = with_fields(choice.config, config, self.given)
        told = [option(name, value) for name, value, _ in differences(chosen, Config())]
        print(f"  options: {' '.join(' '.join(words) for words in told)}", file=sys.stderr)
        return chosen

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
    out, unknown = _value(arguments, "--out"), False
    if "--resume" in arguments and out is not None:
        config = stored_config(Path(out))
    else:
        preset = _value(arguments, "--preset") or usual_preset(_value(arguments, "--data") or "tetrominoes")
        config, unknown = Config.preset(preset) if preset else Config(), preset is None

    @dataclass(frozen=True, kw_only=True)
    class TrainWithDefaults(Train):
        __doc__ = Train.__doc__
        given: ClassVar[frozenset[str]] = _fields(arguments)
        automatic: ClassVar[bool] = unknown
        model: ModelConfig = config.model
        loss: LossConfig = config.loss
        train: TrainConfig = config.train

    return TrainWithDefaults


def _fields(arguments: Sequence[str]) -> frozenset[str]:
    """The fields of the configuration (`model.num_prototypes`) that the arguments set."""
    found = (re.match(r"--(model|loss|train)\.(?:no-)?([a-z0-9_-]+)", word) for word in arguments)
    return frozenset(f"{match[1]}.{match[2].replace('-', '_')}" for match in found if match)


def with_fields(config: Config, source: Config, names: Collection[str]) -> Config:
    """The configuration with some fields (`model.num_prototypes`) taken from another; the seed always is."""
    changes: dict[str, dict[str, Any]] = {"model": {}, "loss": {}, "train": {"seed": source.train.seed}}
    for name in names:
        section, field_name = name.split(".")
        changes[section][field_name] = getattr(getattr(source, section), field_name)
    return Config(
        model=dataclasses.replace(config.model, **changes["model"]),
        loss=dataclasses.replace(config.loss, **changes["loss"]),
        train=dataclasses.replace(config.train, **changes["train"]),
    )


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
    from pcdnet.training.display import TrainingDisplay
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
