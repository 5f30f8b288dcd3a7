"""Arguments that several commands share, or whose help takes more than a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from pcdnet.config import PRESETS

_SCENES = "tetrominoes (generated), a .tfrecords file of Tetrominoes, or an .npz file with the array image."

RunFolder = Annotated[
    tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN", help="Folder of a run, as `pcdnet train --out` makes it.")
]
DataName = Annotated[str, tyro.conf.arg(metavar="DATA", help=f"Scenes to use: {_SCENES}")]
TrainingData = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="DATA",
        help=f"Scenes to learn from: {_SCENES} The last 320 scenes of a file, or a tenth, are kept for validation.",
        help_behavior_hint="(default: tetrominoes)",
    ),
]
ReportData = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="DATA",
        help=f"Scenes to score and show: {_SCENES}",
        help_behavior_hint="(default: as in training, but scenes that were not learned from)",
    ),
]
Preset = Annotated[
    str,
    tyro.conf.arg(metavar="NAME", help=f"Where the options below have their defaults from: {', '.join(PRESETS)}."),
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
        help="Time for training, to which its schedule is compressed.",
        help_behavior_hint="(default: as long as it takes)",
    ),
]
Device = Annotated[str, tyro.conf.arg(metavar="NAME", help="Where to compute: cpu, cuda, ...")]
