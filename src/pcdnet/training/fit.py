"""Fit: learn a model from images; what `pcdnet train` does, and what Python calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from pcdnet.config import Config
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import checked_device
from pcdnet.origin import Origin, fingerprint
from pcdnet.progress import phase, shown
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.trained import check_own
from pcdnet.training.backdrop import pixel_noise
from pcdnet.training.budget import Budget, budget_for
from pcdnet.training.colours import with_colours
from pcdnet.training.display import TrainingDisplay
from pcdnet.training.following import follow, share_model, share_task
from pcdnet.training.launch import own_device
from pcdnet.training.loop import Progress, Trainer
from pcdnet.training.ranks import Ranks, open_ranks
from pcdnet.training.settling import settle
from pcdnet.training.task import Data, Task, prepare
from pcdnet.training.verdict import judge_images


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
    began: float | None = None,
    reported: int = 0,
) -> PCDNet:
    """Learn prototypes from images, without looking at any label; the best model by validation is returned.

    Whether that worked is judged on the images kept apart, printed in a line and kept with the run (see `judge`).

    Parameters
    ----------
    data
        A folder of images, a video, a file or the name of a data set, as `pcdnet train --data` takes them; an array
        of images, `N H W C` of uint8, uint16 or floats of 0 to 1; or Scenes. Not needed with `resume`.
    config
        A Config, or the name of a preset. By default the preset that is made for the data, if there is one;
        otherwise everything is chosen from the images.
    changes
        Fields to set on top of that, by name: `{"model.max_objects": 5, "train.seed": 1}`.
    validation
        Scenes to choose the best weights by; by default a part of the data is kept apart for it.
    view
        How images are looked at: crop, resize, stride, grey, values, tiles, ignore. Values and tiles are chosen from
        the images, unless they are given.
    start
        A model to start from instead of the first prototypes; its sizes are kept, and without a `config` all else
        that is known of it.
    out
        Folder to keep the run in. Such a run can be resumed: whatever interrupted it, the end is the same as without
        the interruption.
    resume
        Go on with the run in the folder, with its own configuration and data; `data` may name the same images in
        another place.
    force
        Overwrite the run in the folder.
    minutes
        Time for all of it, to which the schedule of training is compressed: reading, looking for a background and first
        prototypes, training, settling and verdict. What comes after training is estimated, and a quarter of the time
        is left to the steps in any case. When a run is resumed, the earlier parts count, too.
    device
        Where to compute: `cpu`, `cuda`, ...
    quiet
        Show neither progress nor verdict.
    watch
        Called with the progress every now and then.
    stop
        Asked after every step; when it says True, training ends with `Interrupted`.
    began
        When the minutes began, as `time.monotonic` tells it; by default with the call.
    reported
        How many scenes will be decomposed for a report afterwards, for which the minutes leave time.

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
    stop, began = stop or (lambda: False), time.monotonic() if began is None else began
    with shown(quiet=quiet), open_ranks(stop, device) as ranks:
        target = checked_device(own_device(device))
        if not ranks.first:
            return follow(data, validation, target, ranks, stop)
        changes = changes or {}
        if minutes is not None and not minutes > 0:
            raise PcdnetError(Setting("minutes", minutes), " is no time to learn in; give more than 0")
        run = None
        if resume:
            run = _resumed(out, config, changes, force)
            config, changes = run.config, {}
            if run.is_settled and run.verdict() is not None:
                ranks.said(None)
                return share_model(run.load_model(str(target)), target, ranks)
            data, view = run.data if data is None else data, run.view_of(None, view)
            minutes = run.origin.minutes if minutes is None else minutes
        elif data is None:
            raise PcdnetError("there is nothing to learn from; give ", Setting("data"))
        elif out is not None:
            RunFolder.check_free(out, force=force)
            RunFolder.check_idle(out)
        settled = run is not None and run.has_origin
        task = prepare(
            data, config, changes, validation=validation, view=view, start=start, settled=settled, quiet=quiet
        )
        if not ranks.alone:
            share_task(task, run, data, minutes, ranks)
        with nullcontext() if out is None else RunFolder.locked(out):
            if out is not None:
                run = _begun(out, run, task, data, minutes, force)
                if start is not None and not resume:  # its prototypes stay, and so does what they are called
                    run.keep_names(start.names)
            budget = None if minutes is None else _budget(task, minutes, began, start, reported)
            best = _learned(task, run, target, budget, start, ranks, quiet=quiet, watch=watch, stop=stop)
        return share_model(best, target, ranks)


def _budget(task: Task, minutes: float, began: float, start: PCDNet | None, reported: int) -> Budget:
    """What the minutes must do for."""
    images, validation = task.scenes.images, task.validation.images
    settles = task.config.train.settle and start is None
    return budget_for(minutes, task.config, images, validation, began=began, settles=settles, report=reported)


def _begun(
    out: str | Path, run: RunFolder | None, task: Task, data: Data, minutes: float | None, force: bool
) -> RunFolder:
    """The folder of a training, new or resumed, that says what is learned from before the first step is made."""
    H, W = task.scenes.images.shape[1:3]
    mark = fingerprint(task.scenes, task.validation)
    name = str(data) if isinstance(data, str | Path) else None if run is None else run.origin.data
    origin = Origin(data=name, view=task.view, minutes=minutes, size=(H, W), fingerprint=mark)
    if run is None:
        return RunFolder.create(out, task.config, origin, force=force)
    run.check_same(mark)
    run = run.with_origin(origin)
    run.save_verdict(None)
    return run


def _learned(
    task: Task,
    run: RunFolder | None,
    device: torch.device,
    budget: Budget | None,
    start: PCDNet | None,
    ranks: Ranks,
    *,
    quiet: bool,
    watch: Callable[[Progress], None] | None,
    stop: Callable[[], bool],
) -> PCDNet:
    """Train, or what is left of it, and settle and judge what came of it; the arguments are those of `fit`."""
    if run is not None and run.is_settled:  # all that is missing is the end
        best = run.load_model(str(device))
    else:
        best = _trained(task, run, device, budget, start, ranks, quiet=quiet, watch=watch, stop=stop)
        if task.config.train.settle and start is None:  # a model to start from keeps its sizes
            best = _settled(best, task, run, quiet)
    best.names = with_colours(best, task.scenes.images, best.names)
    best.values = task.view.values
    if run is not None:
        run.keep_names(best.names)
    if run is not None or not quiet:
        verdict = judge_images(best, task.validation, run)
        if run is not None:
            run.save_verdict(verdict.to_json())
        if not quiet:
            print(f"verdict: {verdict}", file=sys.stderr)
    return best


def _trained(
    task: Task,
    run: RunFolder | None,
    device: torch.device,
    budget: Budget | None,
    start: PCDNet | None,
    ranks: Ranks,
    *,
    quiet: bool,
    watch: Callable[[Progress], None] | None,
    stop: Callable[[], bool],
) -> PCDNet:
    """The best model of all steps, from the first or from where the run stopped."""
    trainer = Trainer(task.scenes, task.validation, task.config, run, device, budget, ranks, task.picture)
    if run is not None and run.has_state:
        trainer.restore(run)
    else:
        trainer.begin(start, task.ignored, task.surfaces)
        if run is not None and run.metrics():
            run.rewind(0)  # of steps that were made, but never saved
    trainer.agree()
    with nullcontext() if quiet else TrainingDisplay() as display:

        def show(progress: Progress) -> None:
            for each in (display, watch):
                if each is not None:
                    each(progress)

        trainer.train(show, stop)
    best = trainer.finished()
    best.names = best.names if run is None else run.names()
    return best


def _settled(best: PCDNet, task: Task, run: RunFolder | None, quiet: bool) -> PCDNet:
    """The model without superfluous prototypes, which is kept as the run's last."""
    with phase("measuring the noise of the images"):
        noise = pixel_noise(task.scenes.images)
    best = settle(best, task.scenes.images, noise)
    if run is not None:
        best.names.write(run.path)
        run.save_weights(best, settled=True)
    if not quiet:
        count = task.config.model.num_prototypes
        gone = count - best.config.num_prototypes
        print(f"{gone} of {count} prototypes were superfluous, and are gone", file=sys.stderr)
    return best


def _resumed(out: str | Path | None, config: Config | str | None, changes: Mapping[str, Any], force: bool) -> RunFolder:
    """The run to go on with, if nothing that was asked for contradicts it."""
    resume, anew = Setting("resume", True), Setting("force", True)
    if out is None:
        raise PcdnetError(resume, " needs the folder of the run; give ", Setting("out"))
    if force:
        raise PcdnetError(resume, " goes on with a run and ", anew, " starts it anew; give one of them")
    check_own(Path(out))
    run = RunFolder.at(out)
    RunFolder.check_idle(out)
    given = Config.preset(config) if isinstance(config, str) else config or run.config
    for name, asked, stored in given.with_fields(changes).differences(run.config):
        raise PcdnetError(
            *(f"{out} was started with ", Setting(name, stored), ", not ", Setting(name, asked)),
            *(" and goes on with it; leave that out, or start another run with another ", Setting("out")),
        )
    return run
