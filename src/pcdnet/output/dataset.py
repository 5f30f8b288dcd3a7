"""Dataset: generated scenes as an .npz file that any NumPy can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pcdnet.data.tetrominoes import SPRITES, TetrominoScenes
from pcdnet.errors import PcdnetError
from pcdnet.output.files import whole_file


def save_scenes(scenes: TetrominoScenes, path: str | Path, *, force: bool = False) -> None:
    """Write images, masks, labels and factors; a file that is there already is kept unless `force` is set.

    `image` is (N 35 35 3) uint8; `mask` is (N 4 35 35) uint8, 0 or 255, the background first; `labels` is
    (N 35 35); `shapes`, `colours`, `rows` and `columns` are the factors of the sprites.
    """
    path = checked_target(path, force=force)
    entities = np.arange(1 + SPRITES)[:, None, None]
    mask = (scenes.labels[:, None] == entities).astype(np.uint8) * np.uint8(255)
    with whole_file(path) as file:
        np.savez_compressed(
            file,
            image=scenes.images,
            mask=mask,
            labels=scenes.labels,
            shapes=scenes.shapes,
            colours=scenes.colours,
            rows=scenes.rows,
            columns=scenes.columns,
        )


def checked_target(path: str | Path, *, force: bool) -> Path:
    """The path, if an .npz file may be written there; worth asking before the work begins."""
    path = Path(path)
    if path.suffix != ".npz":
        raise PcdnetError(f"{path} is no .npz file; use {path.with_suffix('.npz')}")
    if path.exists() and not force:
        raise PcdnetError(f"{path} exists already; use --force to overwrite it, or choose another name")
    return path
