"""Tetromino records: the scenes of an original .tfrecords file, read all at once or one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8

from pcdnet.data.keeping import Keep, most_in_memory, stamp
from pcdnet.data.notes import to_stderr
from pcdnet.data.streaming import streamed
from pcdnet.data.tetrominoes import SHAPES, SIZE, SPRITES, TILE, TetrominoScenes
from pcdnet.data.tfrecord import claimed_records, parse_example, read_records
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

# Every entity has its mask and factors; the first one is the background.
_ALL = 1 + SPRITES
_SHAPES = (SIZE, SIZE, 3), (_ALL, SIZE, SIZE), (_ALL,), (_ALL, 3), (_ALL,), (_ALL,)
_FEATURES = dict(zip(("image", "mask", "shape", "color", "x", "y"), _SHAPES, strict=True))
_LAST = SIZE - len(TILE)  # the last row and column that a sprite can begin in
_RANGES = {"shape": (1, len(SHAPES)), "color": (0, 1), "x": (0, _LAST), "y": (0, _LAST)}


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the scenes of a file as they are to be seen, at most `limit` of them."""
    chosen = view.chosen(limit)
    count = claimed_records(path) if chosen.stop is None else min(chosen.stop, claimed_records(path))
    if count * prod(_FEATURES["image"]) <= most_in_memory():
        return view.scenes(factored(path, chosen.stop))
    to_stderr(f"{path} would fill the memory, so its ground truth is left out; use a smaller file for scores")

    def stream() -> Iterator[tuple[str, UInt8[np.ndarray, "35 35 3"]]]:
        wanted = None if chosen.stop is None else -(-chosen.stop // view.stride)
        return (
            (f"record {number} of {path}", image) for number, image in islice(images(path, stride=view.stride), wanted)
        )

    keep = Keep(name=str(path), key=(str(path.absolute()), stamp(path), chosen.stop, repr(view)))
    found = streamed(stream, view, keep)
    return Scenes(images=found.images, name=path.name, places=found.places)


def factored(path: Path, limit: int | None = None) -> TetrominoScenes:
    """Return the scenes of a file with the factors that they are rendered from.

    The file's x is the top row and its y the left column; its background entity has no factors here.
    """
    with closing(read_records(path)) as records:
        numbered = enumerate(islice(records, limit))
        scenes = [_features(record, _FEATURES, f"record {number} of {path}") for number, record in numbered]
    stacks = {name: np.stack([scene[name] for scene in scenes]) for name in _FEATURES}
    return TetrominoScenes(
        images=stacks["image"],
        labels=stacks["mask"],
        shapes=stacks["shape"] - 1,
        colours=stacks["color"].astype(np.uint8),
        rows=stacks["x"],
        columns=stacks["y"],
        name=path.name,
    )


def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, UInt8[np.ndarray, "35 35 3"]]]:
    """Yield every `stride`-th image with its number."""
    with closing(read_records(path)) as records:
        for number, record in islice(enumerate(records), 0, None, stride):
            yield number, _features(record, ["image"], f"record {number} of {path}")["image"]


count = claimed_records
"""How many images a file seems to hold."""


def _features(record: bytes, names: Iterable[str], source: str) -> dict[str, Shaped[np.ndarray, "*any"]]:
    """The pixels of an image, the labels of the masks, and the factors of the sprites as integers, by name."""
    features = parse_example(record, source)
    return {name: _checked(features, name, source) for name in names}


def _checked(features: dict[str, Shaped[np.ndarray, " n"]], name: str, source: str) -> Shaped[np.ndarray, "*any"]:
    cure = "give a tetrominoes .tfrecords file of 35x35 images with three sprites"
    if name not in features:
        there = ", ".join(sorted(features)) or "none"
        raise PcdnetError(f"{source} has no feature {name!r} (its features: {there}); {cure}")
    values, shape = features[name], _FEATURES[name]
    if values.size != np.prod(shape):
        raise PcdnetError(f"{name!r} of {source} has {values.size} values, not {np.prod(shape)}; {cure}")
    values = values.reshape(shape)
    if name not in _RANGES:
        if values.dtype != np.uint8:
            raise PcdnetError(f"{name!r} of {source} is of type {values.dtype}, not bytes; {cure}")
        return values if name == "image" else values.argmax(axis=0).astype(np.uint8)
    first, last = _RANGES[name]
    if not np.isin(values[1:], np.arange(first, last + 1)).all():
        raise PcdnetError(f"{name!r} of {source} is {values[1:].tolist()}, not whole from {first} to {last}; {cure}")
    return values[1:].astype(np.int64)
