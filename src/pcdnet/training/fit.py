"""Fit: learn a model from images; what `pcdnet train` does, and what Python calls."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcdnet.config import Config
from pcdnet.data.opening import split_scenes, to_scenes, training_data
from pcdnet.data.sources import usual_preset
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import checked_device
from pcdnet.run import Origin, RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.automatic import choose
from pcdnet.training.display import TrainingDisplay
from pcdnet.training.loop import Progress, Trainer

Data = str | Path | NDArray[np.generic] | Scenes
"""What can be learned from: a name or path as for `--data`, an array of images (N H W C), or Scenes."""


def fit(
    data: Data | None = None,
    config: Config | str | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    validation: Scenes | None = None,
    view: View = UNCHANGED,
    start: PCDNet | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    minutes: float | None = None,
    device: str = "cpu",
    quiet: bool = False,
    watch: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> PCDNet:
    """Learn prototypes from images, without looking at any label; the best model by validation is returned.

    Parameters
    ----------
    data
        A folder of images, a video, a file or the name of a data set, as `pcdnet train --data` takes them; an array
        of images, `N H W C` of uint8 or floats of 0 to 1; or Scenes. Not needed with `resume`.
    config
        A Config, or the name of a preset. By default the preset that is made for the data, if there is one;
        otherwise everything is chosen from the images.
    changes
        Fields to set on top of that, by name: `{"model.max_objects": 5, "train.seed": 1}`.
    validation
        Scenes to choose the best weights by; by default a part of the data is kept apart for it.
    view
        How images are looked at: crop, resize, stride, grey.
    start
        A model to start from instead of the first prototypes; its sizes are kept.
    out
        Folder to keep the run in. Such a run can be resumed: whatever interrupted it, the end is the same as without
        the interruption.
    resume
        Go on with the run in the folder, with its own configuration and data.
    force
        Overwrite the run in the folder.
    minutes
        Time for training, to which its schedule is compressed.
    device
        Where to compute: `cpu`, `cuda`, ...
    quiet
        Show nothing while training.
    watch
        Called with the progress every now and then.
    stop
        Asked after every step; when it says True, training ends with `Interrupted`.

    Returns
    -------
    PCDNet
        The best model, in evaluation mode.

    Examples
    --------
    >>> import pcdnet
    >>> from pcdnet.data import tetrominoes
    >>> images = tetrominoes.generate(count=100, seed=1).images
    >>> pcdnet.fit(images, "tetrominoes", changes={"train.steps": 2, "train.batch": 8}, quiet=True)
    PCDNet(19 prototypes of 25x25, up to 3 objects an image, 23,750 parameters)
    """
    target = checked_device(device)
    if minutes is not None and not minutes > 0:
        raise PcdnetError(Setting("minutes", minutes), " is no time to learn in; give more than 0")
    if resume:
        run = _resumed(out, config, changes, force)
        view = run.view_of(None, view)
        minutes = minutes if minutes is not None or run.origin is None else run.origin.minutes
        config, changes = run.config, {}
        scenes, valid = (
            _scenes(data, validation, config.train.seed, view) if data is not None else run.training_scenes()
        )
    else:
        if data is None:
            raise PcdnetError("there is nothing to learn from; give ", Setting("data"))
        if out is not None:
            RunFolder.check_free(out, force=force)
        plain = _configured(data, config, changes or {})
        # Models of one channel look at grey images; an automatic one takes what there is.
        grey = view.grey or (plain is not None and plain.model.channels == 1)
        view = dataclasses.replace(view, grey=grey)
        seed = plain.train.seed if plain is not None else int((changes or {}).get("train.seed", 0))
        scenes, valid = _scenes(data, validation, seed, view)
        config = plain or _chosen(scenes, changes or {}, seed, quiet)
    if start is not None:
        config = _started(config, start)
    _check(scenes, config)
    kept = None
    if out is not None:
        name = str(data) if isinstance(data, str | Path) else None
        H, W = scenes.images.shape[1:3]
        origin = Origin(data=name, view=view, minutes=minutes, size=(H, W))
        kept = run if resume else RunFolder.create(out, config, origin, force=force)
    trainer = Trainer(scenes, valid, config, kept, target, minutes)
    if kept is not None and resume and kept.has_state:
        trainer.restore(kept)
    else:
        trainer.begin(start)
    with nullcontext() if quiet else TrainingDisplay() as display:

        def show(progress: Progress) -> None:
            if display is not None:
                display(progress)
            if watch is not None:
                watch(progress)

        trainer.train(show, stop or (lambda: False))
    return trainer.finished()


def _resumed(
    out: str | Path | None, config: Config | str | None, changes: Mapping[str, Any] | None, force: bool
) -> RunFolder:
    """The run to go on with, if nothing that was asked for contradicts it."""
    if out is None:
        raise PcdnetError(Setting("resume", True), " needs the folder of the run; give ", Setting("out"))
    if force:
        raise PcdnetError(
            *(
                Setting("resume", True),
                " goes on with a run and ",
                Setting("force", True),
                " starts it anew; give one of them",
            )
        )
    run = RunFolder.open(out)
    given = Config.preset(config) if isinstance(config, str) else config or run.config
    for name, asked, stored in given.with_fields(changes or {}).differences(run.config):
        raise PcdnetError(
            f"{out} was started with ",
            *(Setting(name, stored), ", not ", Setting(name, asked), " and goes on with it; leave that out, or "),
            *("start another run with another ", Setting("out")),
        )
    return run


def _scenes(data: Data, validation: Scenes | None, seed: int, view: View) -> tuple[Scenes, Scenes]:
    """The scenes to learn from and, apart from them, those to choose the best weights by."""
    if isinstance(data, str | Path):
        scenes, kept = training_data(data, seed=seed, view=view)
    else:
        scenes = view.scenes(to_scenes(data))
        if validation is None:
            scenes, kept = split_scenes(scenes)
    return scenes, kept if validation is None else validation


def _configured(data: Data, config: Config | str | None, changes: Mapping[str, Any]) -> Config | None:
    """The configuration that was given or is usual for the data; None where it is to be chosen from the images."""
    if config is None:
        config = usual_preset(data) if isinstance(data, str | Path) else None
    if isinstance(config, str):
        config = Config.preset(config)
    return None if config is None else config.with_fields(changes)


def _chosen(scenes: Scenes, changes: Mapping[str, Any], seed: int, quiet: bool) -> Config:
    """The configuration read off the images, with some fields set otherwise; the reasons are reported."""
    choice = choose(scenes.images, seed)
    config = choice.config.with_fields(changes)
    if not quiet:
        print("no preset fits these data, so everything is chosen from the images:", file=sys.stderr)
        settings = " ".join(f"{name}={value!r}".replace(", ", ",") for name, value, _ in config.differences(Config()))
        for reason in (*choice.reasons, f"settings: {settings}"):
            print(f"  {reason}", file=sys.stderr)
    return config


def _started(config: Config, start: PCDNet) -> Config:
    """The configuration for a training that starts from another model, whose sizes must be kept."""
    fixed = ("num_prototypes", "prototype_size", "channels", "background", "colour")
    for name in fixed:
        asked, there = getattr(config.model, name), getattr(start.config, name)
        if asked != there:
            raise PcdnetError(
                "the model to start from has ",
                Setting(f"model.{name}", there),
                ", not ",
                Setting(f"model.{name}", asked),
            )
    return config


def _check(scenes: Scenes, config: Config) -> None:
    count, channels = len(scenes), scenes.images.shape[-1]
    if count < config.train.batch:
        raise PcdnetError(
            f"there are {count} scenes for batches of {config.train.batch}; give more, or use ",
            Setting("train.batch", max(count, 1)),
        )
    if channels != config.model.channels:
        raise PcdnetError(
            f"the scenes have {channels} channels, the model {config.model.channels}; use ",
            Setting("model.channels", channels),
        )
    H, W = scenes.images.shape[1:3]
    Geometry.for_overhang((H, W), config.model.prototype_size, config.model.overhang)  # refuses what cannot fit
