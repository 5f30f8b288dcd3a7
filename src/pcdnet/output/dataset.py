"""Dataset: generated or recorded scenes as an .npz file that any NumPy can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from pcdnet.data.tetrominoes import SPRITES, TetrominoScenes
from pcdnet.errors import PcdnetError, Setting
from pcdnet.files import whole_file, with_ending
from pcdnet.scene import Scenes


def save_scenes(scenes: Scenes | TetrominoScenes, path: str | Path, *, force: bool = False) -> None:
    """Write images with all that is known about them; a file that is there already is kept unless `force` is set.

    `image` is (N H W C) uint8 and `labels`, if there are any, (N H W). Boxes are flat arrays over all scenes: `boxes`
    (M 4) top, left, height and width, `box_scene` (M) and `box_kind` (M) the scene and the kind of each, with the names
    `kinds`, and `scored` those that scores are about. Tetrominoes have no boxes but `mask` (N 4 35 35) uint8, 0 or 255,
    the background first, and the factors of the sprites: `shapes`, `colours`, `rows` and `columns`.
    """
    path = checked_target(path, force=force)
    with whole_file(path) as file:
        np.savez_compressed(file, **_arrays(scenes))  # type: ignore[arg-type]  # they have no array named allow_pickle


def _arrays(scenes: Scenes | TetrominoScenes) -> dict[str, Shaped[np.ndarray, "N *any"]]:
    arrays: dict[str, Shaped[np.ndarray, "N *any"]] = {"image": np.asarray(scenes.images)}
    if isinstance(scenes, TetrominoScenes):
        entities = np.arange(1 + SPRITES)[:, None, None]
        arrays["mask"] = (scenes.labels[:, None] == entities).astype(np.uint8) * np.uint8(255)
        return arrays | {name: getattr(scenes, name) for name in ("labels", "shapes", "colours", "rows", "columns")}
    if scenes.labels is not None:
        arrays["labels"] = scenes.labels
    if scenes.boxes is not None:
        counts = [len(boxes) for boxes in scenes.boxes]
        corners, kinds = np.zeros((0, 4), np.float32), np.zeros(0, np.int32)  # where there is no scene
        arrays |= {
            "boxes": np.concatenate([corners, *(boxes.corners for boxes in scenes.boxes)]),
            "box_scene": np.repeat(np.arange(len(counts), dtype=np.int32), counts),
            "box_kind": np.concatenate([kinds, *(boxes.kinds for boxes in scenes.boxes)]),
            "kinds": np.array(scenes.kinds, dtype=np.str_),
            "scored": np.array(scenes.scored, dtype=np.str_),
        }
    return arrays


def checked_target(path: str | Path, *, force: bool) -> Path:
    """The path, if an .npz file may be written there; worth asking before the work begins."""
    path = with_ending(path, ".npz")
    if path.exists() and not force:
        raise PcdnetError(f"{path} exists already; use ", Setting("force", True), " to overwrite it, or another name")
    return path
