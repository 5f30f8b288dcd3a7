"""Task: what a training is about: images to learn from, others to choose the best weights by, and how."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32
from numpy.typing import NDArray

from pcdnet.config import Config, ModelConfig, TrainConfig
from pcdnet.data.opening import split_scenes, to_scenes, training_data, training_view
from pcdnet.data.sources import usual_preset
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.model.background.plain import Surface
from pcdnet.model.geometry import Geometry
from pcdnet.model.network import PCDNet
from pcdnet.scene import Scenes
from pcdnet.training.automatic import Choice, choose

Data = str | Path | NDArray[np.generic] | Scenes
"""What can be learned from: a name or path as for `--data`, an array of images (N H W C), or Scenes."""


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
    picture: Float32[np.ndarray, "H W C"] | None = None
    """Their still background, where the configuration was chosen from them: finding it takes long."""
    surfaces: Sequence[Surface] | None = None
    """Or the plain surfaces of those that were looked at."""

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
    seed = known.train.seed if known is not None else TrainConfig(seed=changes.get("train.seed", 0)).seed
    view = view if settled else training_view(data, view, split=validation is None)
    scenes, valid = _scenes(data, validation, seed, view)
    picture = surfaces = None
    if known is None:
        choice = choose(scenes.images, seed, tiles=scenes.places is not None)
        if choice.tiles is not None and start is None and view.tiles is None:
            view = dataclasses.replace(view, tiles=choice.tiles)
            scenes, valid = _scenes(data, validation, seed, view)
            choice = choose(scenes.images, seed, tiles=True)
        known, picture, surfaces = _chosen(choice, changes, start, quiet), choice.picture, choice.surfaces
    check_fit(scenes, known, start)
    if (known.model.background, known.train.init) != ("still", "shapes"):
        picture = None  # another one was asked for
    return Task(config=known, scenes=scenes, validation=valid, view=view, picture=picture, surfaces=surfaces)


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
    _check_scaled((H, W), config.model)
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


def _check_scaled(image: tuple[int, int], model: ModelConfig) -> None:
    """Refuse poses that make a prototype larger than the image."""
    (H, W), (h, w), largest = image, model.prototype_size, model.scale_range[1]
    if h * largest > H or w * largest > W:
        fits = math.floor(100 * min(H / h, W / w)) / 100
        raise PcdnetError(
            f"prototypes of {h}x{w}, scaled by {largest:g}, are larger than the images ({H}x{W}); "
            f"use factors up to {fits:g} in ",
            Setting("model.scale_range"),
            ", a smaller ",
            Setting("model.prototype_size"),
            " or larger images",
        )
