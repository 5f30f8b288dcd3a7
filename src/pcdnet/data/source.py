"""Source: what `--data` names, opened as Scenes."""

from __future__ import annotations

from pathlib import Path

from pcdnet.data import npz, tetrominoes
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

USABLE = "tetrominoes (generated), a .tfrecords file of Tetrominoes, or an .npz file with the array 'image'"
"""What can be used as data, in words."""

TRAINING_SCENES = 20_000
"""Scenes that are generated for training."""
VALIDATION_SCENES = 320
"""Scenes that are kept apart to choose the best weights by; of short files a tenth."""
MOST_SCENES = 60_000
"""Scenes of a file that are used for training at most."""
TRAINING_SEED, VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000, 3_000_000
"""Seeds of generated scenes begin here, so that no two purposes share a scene."""


def is_generated(name: str) -> bool:
    """Whether data are made by seed, and not read from a file."""
    return name == "tetrominoes"


def open_data(name: str, *, count: int, seed: int) -> Scenes:
    """Return at most `count` scenes of what `name` stands for; `seed` is for those that are generated."""
    if is_generated(name):
        return _plain(tetrominoes.generate(count, seed), f"re-created Tetrominoes, seed {seed}")
    if count < 1:
        raise PcdnetError(f"{count} scenes were asked for; give a count of at least 1")
    path = Path(name)
    kind = path.suffix.lower()
    if kind in (".tfrecords", ".tfrecord"):
        return _plain(tetrominoes.read(path, limit=count), path.name)
    if kind == ".npz":
        scenes = npz.read(path, limit=count)
        return Scenes(images=scenes.images, labels=scenes.labels, name=path.name)
    raise PcdnetError(f"{name!r} is no data known here; use {USABLE}")


def training_data(name: str, seed: int) -> tuple[Scenes, Scenes]:
    """Return scenes for training and, apart from them, for validation."""
    if is_generated(name):
        return (
            open_data(name, count=TRAINING_SCENES, seed=TRAINING_SEED + seed),
            open_data(name, count=VALIDATION_SCENES, seed=VALIDATION_SEED + seed),
        )
    scenes = open_data(name, count=MOST_SCENES, seed=seed)
    kept = min(VALIDATION_SCENES, len(scenes) // 10)
    if kept == 0:
        raise PcdnetError(f"{name} holds {len(scenes)} scenes, too few to learn from; give at least 10")
    return scenes.first(len(scenes) - kept), _last(scenes, kept)


def _last(scenes: Scenes, count: int) -> Scenes:
    labels = None if scenes.labels is None else scenes.labels[-count:]
    return Scenes(images=scenes.images[-count:], labels=labels, name=f"the last {count} of {scenes.name}")


def _plain(scenes: tetrominoes.TetrominoScenes, name: str) -> Scenes:
    return Scenes(images=scenes.images, labels=scenes.labels, name=name)
