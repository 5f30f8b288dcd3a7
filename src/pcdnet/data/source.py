"""Source: what `--data` names, opened as Scenes.

A folder that has folders `train`, `val` and `test` instead of images is a data set: `train` is learned from, the best
weights are chosen on `val`, and whoever just opens it gets `test`, or `val` where there is no `test`.
"""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from pathlib import Path

from pcdnet.data import folder, npz, tetrominoes, video
from pcdnet.data.notes import Note, to_stderr
from pcdnet.data.pictures import is_picture
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

USABLE = (
    "tetrominoes (generated), space-invaders or atari:GAME (played and recorded), a folder of images, a video, "
    "a .tfrecords file of Tetrominoes, or an .npz file with the array 'image'"
)
"""What can be used as data, in words."""

TRAINING_SCENES = 20_000
"""Scenes that are generated for training."""
VALIDATION_SCENES = 320
"""Scenes that are kept apart to choose the best weights by; of short files a tenth."""
TRAINING_FRAMES, VALIDATION_FRAMES = 3_000, 100
"""Frames of games that are recorded for training, and apart from them for validation."""
MOST_SCENES = 60_000
"""Scenes of a file that are used for training at most."""
TRAINING_SEED, VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000, 3_000_000
"""Seeds of generated scenes begin here, so that no two purposes share a scene."""

TETROMINOES, SPACE_INVADERS, ATARI = "tetrominoes", "space-invaders", "atari:"


def is_generated(name: str) -> bool:
    """Whether data are made by seed, and not read from a file."""
    return name in (TETROMINOES, SPACE_INVADERS) or name.startswith(ATARI)


def open_data(name: str, *, count: int, seed: int, view: View = UNCHANGED, note: Note = to_stderr) -> Scenes:
    """Return at most `count` scenes of what `name` stands for; `seed` is for those that are generated.

    `note` hears of what is passed over, damaged images for example.
    """
    if is_generated(name):
        if view.stride != 1:
            raise PcdnetError(f"{name} is made by seed, so a stride of {view.stride} skips nothing; leave out --stride")
        return view.scenes(_generated(name, count, seed))
    if count < 1:
        raise PcdnetError(f"{count} scenes were asked for; give a count of at least 1")
    path = _path(name)
    kind = path.suffix.lower()
    if name and path.is_dir():
        return _folder(_part_to_open(path, note), count, view, note)
    if kind in (".tfrecords", ".tfrecord"):
        return _thinned(_plain(tetrominoes.read(path, limit=count * view.stride), path.name), view)
    if kind == ".npz":
        return _thinned(dataclasses.replace(npz.read(path, limit=count * view.stride), name=path.name), view)
    if video.is_video(path):
        return video.read(
            path, limit=count, stride=view.stride, crop=view.crop, resize=view.resize, grey=view.grey, note=note
        )
    raise PcdnetError(_unknown(name))


def training_data(name: str, seed: int, view: View = UNCHANGED, note: Note = to_stderr) -> tuple[Scenes, Scenes]:
    """Return scenes for training and, apart from them, for validation."""
    if is_generated(name):
        counts = (TRAINING_SCENES, VALIDATION_SCENES) if name == TETROMINOES else (TRAINING_FRAMES, VALIDATION_FRAMES)
        return (
            open_data(name, count=counts[0], seed=TRAINING_SEED + seed, view=view),
            open_data(name, count=counts[1], seed=VALIDATION_SEED + seed, view=view),
        )
    parts = folder.parts(_path(name)) if name else {}
    if parts and "train" not in parts:
        raise PcdnetError(f"{name} has no folder train to learn from; name the folder of images itself")
    if "val" in parts:
        return _apart(_folder(parts["train"], MOST_SCENES, view, note), _folder(parts["val"], MOST_SCENES, view, note))
    scenes = open_data(str(parts.get("train", name)), count=MOST_SCENES, seed=seed, view=view, note=note)
    kept = min(VALIDATION_SCENES, len(scenes) // 10)
    if kept == 0:
        raise PcdnetError(f"{name} holds {len(scenes)} scenes, too few to learn from; give at least 10")
    rest = len(scenes) - kept
    return scenes.first(rest), scenes.part(slice(rest, None), f"the last {kept} of {scenes.name}")


def _path(name: str) -> Path:
    path = Path(name)
    try:
        path.exists()
    except OSError as error:  # too long for a name, for example
        raise PcdnetError(f"{name[:40]!r}... cannot be looked up ({error.strerror}); use {USABLE}") from None
    return path


def _generated(name: str, count: int, seed: int) -> Scenes:
    if name == TETROMINOES:
        return _plain(tetrominoes.generate(count, seed), f"re-created Tetrominoes, seed {seed}")
    if count < 1:
        raise PcdnetError(f"{count} scenes were asked for; give a count of at least 1")
    if name == SPACE_INVADERS:
        from pcdnet.data import space_invaders

        return space_invaders.record(count, seed)
    from pcdnet.data import atari

    return atari.scenes(name.removeprefix(ATARI), count, seed)


def _folder(path: Path, count: int, view: View, note: Note) -> Scenes:
    return folder.read(
        path, limit=count, stride=view.stride, crop=view.crop, resize=view.resize, grey=view.grey, note=note
    )


def _part_to_open(path: Path, note: Note) -> Path:
    """The folder of images that a folder stands for: itself, or one of its parts."""
    parts = folder.parts(path)
    if list(parts) == ["train"]:
        note(f"{path} has neither a folder test nor val, so these are scenes for training")
    return parts.get("test") or parts.get("val") or parts.get("train") or path


def _apart(train: Scenes, valid: Scenes) -> tuple[Scenes, Scenes]:
    """Both, if one model can look at both."""
    if train.images.shape[1:] != valid.images.shape[1:]:
        one, other = ("x".join(map(str, scenes.images.shape[1:])) for scenes in (train, valid))
        raise PcdnetError(
            f"the images of {train.name} are {one} (height, width, channels), those of {valid.name} {other}; "
            f"use --resize or --crop for the size, --grey for the channels"
        )
    return train, valid


def _thinned(scenes: Scenes, view: View) -> Scenes:
    return view.scenes(scenes if view.stride == 1 else scenes.part(slice(None, None, view.stride)))


def _unknown(name: str) -> str:
    """Why a name opens nothing, in a sentence."""
    path = Path(name)
    alike = get_close_matches(name.lower().replace("_", "-"), (TETROMINOES, SPACE_INVADERS), n=1, cutoff=0.75)
    if alike and not path.exists():
        return f"{name!r} is no data known here; did you mean {alike[0]}?"
    if is_picture(path):
        return f"{name!r} is one picture, not many; use the folder that it is in"
    if not path.exists() and (path.suffix or len(path.parts) > 1):
        return f"{name!r} does not exist; use {USABLE}"
    return f"{name!r} is no data known here; use {USABLE}"


def _plain(scenes: tetrominoes.TetrominoScenes, name: str) -> Scenes:
    return Scenes(images=scenes.images, labels=scenes.labels, name=name)
