"""Origin: what a run was trained on, kept beside it; and the command that repeats its training."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcdnet.cli.arguments import ViewOptions
from pcdnet.config import PRESETS, Config
from pcdnet.errors import PcdnetError

if TYPE_CHECKING:
    from pcdnet.data.view import View

ORIGIN = "origin.json"
CONFIG = "config.toml"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What the configuration of a run does not say."""

    data: str = "tetrominoes"
    """What `--data` named."""

    minutes: float | None = None
    """How long training was to take, if that was said."""

    crop: tuple[int, ...] | None = None
    resize: tuple[int, ...] | None = None
    stride: int = 1
    grey: bool = False
    """How the images were looked at: see `pcdnet.data.view.View`."""

    def view(self, data: str | None = None, options: ViewOptions | None = None) -> View:
        """How to look at images for this run: as in training, but for what the options say otherwise.

        The stride is that of the data of the training; other `data` have none of their own.
        """
        from pcdnet.data.view import View

        said = options or ViewOptions()
        kept: Any = said.crop or self.crop, said.resize or self.resize
        stride = self.stride if data in (None, self.data) else 1
        return View(
            crop=kept[0],
            resize=kept[1],
            stride=said.stride if said.stride != 1 else stride,
            grey=said.grey or self.grey,
        )

    def write(self, folder: Path) -> None:
        """Put it into the run's folder."""
        from pcdnet.files import whole_file

        with whole_file(folder / ORIGIN) as file:
            file.write(json.dumps(dataclasses.asdict(self), indent=1).encode() + b"\n")

    @staticmethod
    def read(folder: Path) -> Origin:
        """The origin of a run; the usual one where nothing is written down, as for runs made in Python."""
        path = folder / ORIGIN
        if not path.is_file():
            return Origin()
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
            data, minutes = words["data"], words["minutes"]
            stride, grey = words.get("stride", 1), words.get("grey", False)
            crop, resize = (_sides(words.get(name), count) for name, count in (("crop", 4), ("resize", 2)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PcdnetError(f"cannot read {path}: {error!r}; delete it, and name the data with --data") from None
        if not isinstance(data, str) or not isinstance(minutes, int | float | None):
            raise PcdnetError(f"{path} holds data {data!r} and minutes {minutes!r}; delete it, and name them again")
        if type(stride) is not int or type(grey) is not bool:
            raise PcdnetError(f"{path} holds stride {stride!r} and grey {grey!r}; delete it, and name the data again")
        return Origin(data=data, minutes=minutes, crop=crop, resize=resize, stride=stride, grey=grey)


def _sides(value: Any, count: int) -> tuple[int, ...] | None:
    """So many whole numbers, or nothing."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count or any(type(side) is not int for side in value):
        raise ValueError(f"{value!r} is not {count} whole numbers")
    return tuple(value)


def stored_config(folder: Path) -> Config:
    """The configuration of an existing run."""
    if not (folder / CONFIG).is_file():
        raise PcdnetError(f"{folder} is no run that can be resumed; leave out --resume to start one there")
    return Config.load(folder / CONFIG)


def differences(ours: Config, theirs: Config) -> Iterator[tuple[str, Any, Any]]:
    """The fields (`model.num_prototypes`) in which two configurations differ, with both values."""
    for section in dataclasses.fields(Config):
        one, other = getattr(ours, section.name), getattr(theirs, section.name)
        for field in dataclasses.fields(one):
            a, b = getattr(one, field.name), getattr(other, field.name)
            if a != b:
                yield f"{section.name}.{field.name}", a, b


def option(field: str, value: Any) -> list[str]:
    """The words that set a field of the configuration on the command line."""
    section, name = field.replace("_", "-").split(".")
    if isinstance(value, bool):
        return [f"--{section}.{name}" if value else f"--{section}.no-{name}"]
    return [f"--{section}.{name}", *map(str, value if isinstance(value, tuple) else (value,))]


def command(folder: Path, config: Config, origin: Origin) -> str:
    """The command line that trains the same again: the nearest preset, and what differs from it."""
    seedless = {
        name: [change for change in differences(config, preset) if change[0] != "train.seed"]
        for name, preset in PRESETS.items()
    }
    preset = min(seedless, key=lambda name: len(seedless[name]))
    words = ["pcdnet", "train", "--preset", preset, "--data", origin.data, "--out", str(folder)]
    words += ["--seed", str(config.train.seed)]
    if origin.minutes is not None:
        words += ["--minutes", f"{origin.minutes:g}"]
    for name, sides in (("--crop", origin.crop), ("--resize", origin.resize)):
        words += [name, *map(str, sides)] if sides is not None else []
    words += ["--stride", str(origin.stride)] if origin.stride != 1 else []
    words += ["--grey"] if origin.grey else []
    for field, value, _ in seedless[preset]:
        words += option(field, value)
    return shlex.join(words)
