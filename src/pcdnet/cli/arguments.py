"""Arguments that several commands share, or whose help takes more than a sentence."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pcdnet.config import PRESETS, Config, flags
from pcdnet.data.sources import usable
from pcdnet.errors import PcdnetError, Setting

if TYPE_CHECKING:
    from pcdnet.data.view import View

_SCENES = f"{usable()}."
_TRUTH = "A folder may hold its ground truth in annotations.json (COCO)."

RunArgument = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(
        metavar="RUN",
        help="Folder of a run, as `pcdnet train --out` makes it, the name of a trained model, as `pcdnet models` lists "
        "them, or hf:OWNER/NAME for one of the Hugging Face Hub.",
    ),
]
TrainingData = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="DATA",
        help=f"Scenes to learn from: {_SCENES} The last 320 scenes of a file or folder, or a tenth, are kept for "
        f"validation; of a folder with the folders train and val, val is.",
        help_behavior_hint="(default: tetrominoes)",
    ),
]
RunData = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="DATA",
        help=f"Scenes to use: {_SCENES} {_TRUTH} Of a folder with the folders train, val and test, test is used.",
        help_behavior_hint="(default: what the run was trained on, but scenes that it did not learn from)",
    ),
]
Preset = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME",
        help=f"Where the options below have their defaults from: {', '.join(PRESETS)}.",
        help_behavior_hint="(default: that of the data if there is one; otherwise they are chosen from the images)",
    ),
]
ConfigFile = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="FILE",
        help="Where they have their defaults from instead: a TOML file, as the config.toml of a run or the best.toml "
        "of a study.",
        help_behavior_hint="(default: the preset)",
    ),
]
Seed = Annotated[
    int | None,
    tyro.conf.arg(
        metavar="INT",
        help="Seed of everything random, generated scenes included; the same as --train.seed.",
        help_behavior_hint="(default: 0)",
    ),
]
Minutes = Annotated[
    float | None,
    tyro.conf.arg(
        metavar="FLOAT",
        help="Time for everything from the command's start to its verdict, about, to which the schedule of training is "
        "compressed; with --resume that of the earlier parts counts, too.",
        help_behavior_hint="(default: as long as it takes)",
    ),
]
Values = Annotated[
    tuple[float, float] | None,
    tyro.conf.arg(
        metavar="LOW HIGH",
        help="Which values are black and white in images of more than 8 bits.",
        help_behavior_hint="(default: chosen from all images in training, and kept with the run)",
    ),
]
Device = Annotated[str, tyro.conf.arg(metavar="NAME", help="Where to compute: cpu, cuda, ...")]


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """Options of the commands that open data: how images are looked at."""

    resize: Annotated[
        tuple[int, int] | None, tyro.conf.arg(metavar="HEIGHT WIDTH", help_behavior_hint="(default: as they are)")
    ] = None
    """Bring images to this size, after cropping; true boxes follow."""

    crop: Annotated[
        tuple[int, int, int, int] | None,
        tyro.conf.arg(metavar="TOP LEFT HEIGHT WIDTH", help_behavior_hint="(default: all of them)"),
    ] = None
    """Use this part of the images only; of true boxes, those of which half or more lies inside."""

    stride: int = 1
    """Use every n-th frame of a video, or image of a folder or file."""

    grey: bool = False
    """Turn colour images into grey ones, as models with one channel want them."""

    values: Values = None

    tiles: Annotated[
        int | None,
        tyro.conf.arg(
            metavar="SIDE",
            help_behavior_hint="(default: chosen in training if images are few, large or of several sizes)",
        ),
    ] = None
    """Cut images into overlapping squares of this side; 0 leaves them whole."""

    ignore: Annotated[
        tuple[int, int, int, int] | None,
        tyro.conf.arg(metavar="TOP LEFT HEIGHT WIDTH", help_behavior_hint="(default: nothing)"),
    ] = None
    """Leave this part of the images, as they are after cropping and resizing, out of training and scores."""

    def view(self) -> View:
        """How to look at images, as far as the command line says it."""
        from pcdnet.data.view import View

        return View(**{name.name: getattr(self, name.name) for name in fields(View)})


def given_config(preset: str | None, file: Path | None) -> Config | str | None:
    """The configuration that the command line names: a preset, a file, or none of them."""
    if preset is not None and file is not None:
        raise PcdnetError(
            "two configurations are given, ", Setting("preset", preset), " and ", Setting("config"), "; give one"
        )
    return preset if file is None else Config.load(file)


def as_flag(setting: Setting) -> str:
    """A setting as the command line spells it, for messages."""
    return shlex.join(flags(setting))
