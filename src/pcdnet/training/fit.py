"""Fit: learn a model from images; what `pcdnet train` does, and what Python calls."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray

from pcdnet.config import Config
from pcdnet.data.opening import split_scenes, to_scenes, training_data, training_view
from pcdnet.data.sources import usual_preset
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.model.storage import checked_device
from pcdnet.origin import Origin, fingerprint, in_words
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from pcdnet.training.automatic import Choice, choose
from pcdnet.training.backdrop import pixel_noise
from pcdnet.training.colours import with_colours
from pcdnet.training.display import TrainingDisplay
from pcdnet.training.launch import own_device
from pcdnet.training.loop import Progress, Trainer
from pcdnet.training.ranks import Ranks, open_ranks
from pcdnet.training.settling import settle
from pcdnet.training.verdict import judge_images

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
        Time for training, to which its schedule is compressed.
    device
        Where to compute: `cpu`, `cuda`, ...
    quiet
        Show neither progress nor verdict.
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
    stop = stop or (lambda: False)
    with open_ranks(stop, device) as ranks:
        target = checked_device(own_device(device))
        if not ranks.first:
            return _followed(data, validation, target, ranks, stop)
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
            _share_task(task, run, data, minutes, ranks)
        with nullcontext() if out is None else RunFolder.locked(out):
            if out is not None:
                run = _begun(out, run, task, data, minutes, force)
            best = _learned(task, run, target, minutes, start, ranks, quiet=quiet, watch=watch, stop=stop)
        return share_model(best, target, ranks)


def _share_task(task: Task, run: RunFolder | None, data: Data, minutes: float | None, ranks: Ranks) -> None:
    """Tell the other ranks what is learned and how, and have them check that they see the same images."""
    if task.config.train.batch < ranks.world:
        raise PcdnetError(
            f"{ranks.world} processes cannot share batches of {task.config.train.batch} images; start fewer, or use ",
            Setting("train.batch", ranks.world),
        )
    if run is not None and run.is_settled:
        ranks.said(None)
        return
    terms: dict[str, Any] = {"config": task.config.to_toml(), "view": dataclasses.asdict(task.view), "minutes": minutes}
    terms |= {"data": str(data) if isinstance(data, str | Path) else None}
    ranks.said({**terms, "fingerprint": fingerprint(task.scenes, task.validation)})
    ranks.meet()


def _followed(
    data: Data | None, validation: Scenes | None, device: torch.device, ranks: Ranks, stop: Callable[[], bool]
) -> PCDNet:
    """Learn what the first rank learns: another rank's part of the work; the model in the end is the first one's."""
    terms: Any = ranks.said(None)
    if terms is not None:
        sides: dict[str, Any] = {
            name: tuple(side) if isinstance(side, list) else side for name, side in terms["view"].items()
        }
        data, config = terms["data"] if data is None else data, Config.from_toml(terms["config"])
        if data is None:
            raise PcdnetError("there is nothing to learn from; give ", Setting("data"))
        with redirect_stderr(StringIO()):  # the first rank has said it
            task = prepare(
                data, config, {}, validation=validation, view=View(**sides), start=None, settled=True, quiet=True
            )
        mark = fingerprint(task.scenes, task.validation)
        if mark != terms["fingerprint"]:
            raise PcdnetError(
                f"rank {ranks.rank} sees {in_words(mark)}, and the first rank {in_words(terms['fingerprint'])}, or "
                "others as many; give all processes the same images with ",
                Setting("data"),
            )
        ranks.meet()
        trainer = Trainer(task.scenes, task.validation, config, None, device, terms["minutes"], ranks)
        trainer.agree()
        trainer.train(lambda _: None, stop)
    return share_model(None, device, ranks)


def share_model(model: PCDNet | None, device: torch.device, ranks: Ranks) -> PCDNet:
    """The first rank's model, on all of them."""
    if ranks.alone and model is not None:
        return model
    with TemporaryDirectory() as folder:
        if model is not None:
            model.save(folder)
        kept = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
        for name, content in ranks.files(kept).items():
            (Path(folder) / name).write_bytes(content)
        return model or RunFolder.open(folder).load_model(str(device))


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
    minutes: float | None,
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
        best = _trained(task, run, device, minutes, start, ranks, quiet=quiet, watch=watch, stop=stop)
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
    minutes: float | None,
    start: PCDNet | None,
    ranks: Ranks,
    *,
    quiet: bool,
    watch: Callable[[Progress], None] | None,
    stop: Callable[[], bool],
) -> PCDNet:
    """The best model of all steps, from the first or from where the run stopped."""
    trainer = Trainer(task.scenes, task.validation, task.config, run, device, minutes, ranks)
    if run is not None and run.has_state:
        trainer.restore(run)
    else:
        trainer.begin(start, task.ignored)
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
    best = settle(best, task.scenes.images, pixel_noise(task.scenes.images))
    if run is not None:
        best.names.write(run.path)
        run.save_weights(best, settled=True)
    if not quiet:
        count = task.config.model.num_prototypes
        gone = count - best.config.num_prototypes
        print(f"{gone} of {count} prototypes were superfluous, and are gone", file=sys.stderr)
    return best


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """All that a training is about: what to learn from, and how."""

    config: Config
    """What is trained."""
    scenes: Scenes
    """What is learned from."""
    validation: Scenes
    """What the best weights are chosen by."""
    view: View
    """How images are looked at, in which all that was left open is chosen."""

    @property
    def ignored(self) -> Bool[np.ndarray, "H W"] | None:
        """Which pixels of the images do not count; None if all do."""
        H, W = self.scenes.images.shape[1:3]
        return self.view.ignored((H, W))


def prepare(
    data: Data,
    config: Config | str | None,
    changes: Mapping[str, Any],
    *,
    validation: Scenes | None = None,
    view: View = UNCHANGED,
    start: PCDNet | None = None,
    settled: bool = False,
    quiet: bool = False,
) -> Task:
    """Open the data and choose whatever the configuration and the view leave open; `settled` views leave nothing.

    The other arguments are those of `fit`. What cannot be trained is refused.
    """
    known = _known(data, config, changes, start)
    wanted = known.model if known is not None else None if start is None else start.config
    # Models of one channel look at grey images; an automatic one takes what there is.
    view = dataclasses.replace(view, grey=view.grey or (wanted is not None and wanted.channels == 1))
    seed = known.train.seed if known is not None else int(changes.get("train.seed", 0))
    view = view if settled else training_view(data, view, split=validation is None)
    scenes, valid = _scenes(data, validation, seed, view)
    if known is None:
        choice = choose(scenes.images, seed, tiles=scenes.places is not None)
        if choice.tiles is not None and start is None and view.tiles is None:
            view = dataclasses.replace(view, tiles=choice.tiles)
            scenes, valid = _scenes(data, validation, seed, view)
            choice = choose(scenes.images, seed, tiles=True)
        known = _chosen(choice, changes, start, quiet)
    check_fit(scenes, known, start)
    return Task(config=known, scenes=scenes, validation=valid, view=view)


def _resumed(out: str | Path | None, config: Config | str | None, changes: Mapping[str, Any], force: bool) -> RunFolder:
    """The run to go on with, if nothing that was asked for contradicts it."""
    resume, anew = Setting("resume", True), Setting("force", True)
    if out is None:
        raise PcdnetError(resume, " needs the folder of the run; give ", Setting("out"))
    if force:
        raise PcdnetError(resume, " goes on with a run and ", anew, " starts it anew; give one of them")
    run = RunFolder.open(out)
    RunFolder.check_idle(out)
    given = Config.preset(config) if isinstance(config, str) else config or run.config
    for name, asked, stored in given.with_fields(changes).differences(run.config):
        raise PcdnetError(
            *(f"{out} was started with ", Setting(name, stored), ", not ", Setting(name, asked)),
            *(" and goes on with it; leave that out, or start another run with another ", Setting("out")),
        )
    return run


def _known(data: Data, config: Config | str | None, changes: Mapping[str, Any], start: PCDNet | None) -> Config | None:
    """The configuration that was given or is usual for the data; None where it is to be chosen from the images."""
    if config is not None:
        return (Config.preset(config) if isinstance(config, str) else config).with_fields(changes)
    preset = usual_preset(data) if isinstance(data, str | Path) else None
    return None if preset is None else _like(Config.preset(preset), start).with_fields(changes)


def _like(config: Config, start: PCDNet | None) -> Config:
    """The configuration for a training that starts from a model, if it does: that of the model with all its sizes."""
    return config if start is None else dataclasses.replace(config, model=start.config)


def _scenes(data: Data, validation: Scenes | None, seed: int, view: View) -> tuple[Scenes, Scenes]:
    """The scenes to learn from and, apart from them, those to choose the best weights by."""
    kept = None if validation is None else view.scenes(validation)
    if isinstance(data, str | Path):
        scenes, last = training_data(data, seed=seed, view=view)
    else:
        scenes = to_scenes(data, view=view)
        scenes, last = split_scenes(scenes) if kept is None else (scenes, kept)
    return scenes, last if kept is None else kept


def _chosen(choice: Choice, changes: Mapping[str, Any], start: PCDNet | None, quiet: bool) -> Config:
    """The configuration read off the images, with some fields set otherwise; the reasons are reported."""
    config = _like(choice.config, start).with_fields(changes)
    if not quiet:
        print("no preset fits these data, so everything is chosen from the images:", file=sys.stderr)
        settings = " ".join(f"{name}={value!r}".replace(", ", ",") for name, value, _ in config.differences(Config()))
        for reason in (*choice.reasons, f"settings: {settings}"):
            print(f"  {reason}", file=sys.stderr)
    return config


def check_fit(scenes: Scenes, config: Config, start: PCDNet | None = None) -> None:
    """Refuse scenes that the configuration, or the model to start from, does not fit."""
    count, (H, W), channels = len(scenes), scenes.images.shape[1:3], scenes.images.shape[3]
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
    Geometry.for_overhang((H, W), config.model.prototype_size, config.model.overhang)  # refuses what cannot fit
    if start is None:
        return
    for name in ("num_prototypes", "prototype_size", "channels", "background", "colour"):
        asked, there = (Setting(f"model.{name}", getattr(each, name)) for each in (config.model, start.config))
        if asked != there:
            raise PcdnetError("the model to start from has ", there, ", not ", asked, "; leave that out")
    if start.image_size not in (None, (H, W)):
        raise PcdnetError(
            f"the model to start from has a background of another size than the images, {H}x{W}; use ",
            Setting("resize", start.image_size),
        )
