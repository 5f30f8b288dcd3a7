"""Tetrominoes: 35 x 35 images of three coloured sprites on black, generated or read from the original file.

The genuine images are reproduced bit for bit from their factors. How the original draws its factors is not
published, so numbers on generated scenes are numbers on "re-created Tetrominoes".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int64, Integer, Shaped, UInt8

from pcdnet.data.tfrecord import parse_example, read_records
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scene

SIZE = 35
"""Height and width of an image."""

SPRITES = 3
"""Sprites in a scene."""

# In the order of the original's shape ids 1 to 19; "/" parts the rows of tiles. Ids 1, 4 and 8 are inferred:
# the genuine scenes at hand do not show them, and three shapes are left over. Wide shapes come before tall
# ones in every family (I; L and J; S and Z; T; O), which gives each of the three its place.
# fmt: off
_PICTURES = (
    "####", "#/#/#/#",
    "###/#..", "#../###", "..#/###", "###/..#", "##/.#/.#", ".#/.#/##", "##/#./#.", "#./#./##",
    "##./.##", ".##/##.", ".#/##/#.", "#./##/.#",
    ".#./###", "###/.#.", ".#/##/.#", "#./##/#.",
    "##/##",
)
# fmt: on

SHAPES: Int64[np.ndarray, "19 4 2"] = np.array(
    [
        [(row, column) for row, line in enumerate(picture.split("/")) for column, c in enumerate(line) if c == "#"]
        for picture in _PICTURES
    ],
    dtype=np.int64,
)
"""The four tiles (row, column) of every tetromino; the original's shape ids are larger by 1."""

TILE: UInt8[np.ndarray, "5 5"] = np.array(
    [
        [191, 255, 255, 255, 223],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [127, 159, 159, 159, 191],
        [95, 63, 63, 63, 127],
    ],
    dtype=np.uint8,
)
"""The texture of one tile, to be multiplied by the bits of a colour."""

COLOURS: UInt8[np.ndarray, "6 3"] = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=np.uint8
)
"""Red, green, blue, yellow, magenta, cyan."""

_EDGE = TILE.shape[0]
_EXTENTS = (SHAPES.max(axis=1) + 1) * _EDGE  # height and width of every sprite in pixels
# Pixels of every sprite, tile by tile: rows and columns from the corner of its bounding box, and grey values.
_PIXELS = (SHAPES[:, :, None] * _EDGE + np.argwhere(TILE > 0)).reshape(len(SHAPES), -1, 2)
_GREYS = np.tile(TILE.ravel(), SHAPES.shape[1])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TetrominoScenes:
    """Images with their labels and the factors that they are rendered from."""

    images: UInt8[np.ndarray, "N 35 35 3"]
    """RGB."""

    labels: UInt8[np.ndarray, "N 35 35"]
    """0 is background; 1, 2, 3 are the sprites in the order of the factors."""

    shapes: Int64[np.ndarray, "N 3"]
    """Index into SHAPES and true_prototypes."""

    colours: UInt8[np.ndarray, "N 3 3"]
    """Bits for red, green and blue."""

    rows: Int64[np.ndarray, "N 3"]
    """Top row of the sprite's bounding box."""

    columns: Int64[np.ndarray, "N 3"]
    """Left column of the sprite's bounding box."""

    name: str
    """What the names of the scenes begin with."""

    def __len__(self) -> int:
        return len(self.images)

    def scenes(self) -> Iterator[Scene]:
        """Yield the scenes one by one with images in [0, 1]."""
        for index, (image, labels) in enumerate(zip(self.images, self.labels, strict=True)):
            yield Scene(
                image=image.astype(np.float32) / 255,
                labels=labels.astype(np.int32),
                name=f"{self.name}-{index}",
            )


def render(
    shapes: Integer[np.ndarray, "N S"],
    colours: Integer[np.ndarray, "N S 3"],
    rows: Integer[np.ndarray, "N S"],
    columns: Integer[np.ndarray, "N S"],
) -> tuple[UInt8[np.ndarray, "N 35 35 3"], UInt8[np.ndarray, "N 35 35"]]:
    """Return the images and labels of scenes; positions are the top left corners of the bounding boxes.

    Sprites may overlap here, although they never do in the data set: later ones hide earlier ones.
    """
    if not (shapes.ndim == 2 and shapes.shape == rows.shape == columns.shape == colours.shape[:-1]):
        raise PcdnetError(
            f"tetromino shapes, colours, rows and columns are arrays of {shapes.shape}, {colours.shape}, "
            f"{rows.shape} and {columns.shape}; give scenes x sprites of each, and three bits a colour"
        )
    if np.any((shapes < 0) | (shapes >= len(SHAPES))):
        raise PcdnetError(
            f"tetromino shapes range from {shapes.min()} to {shapes.max()}; give indexes from 0 to {len(SHAPES) - 1}"
        )
    if np.any((colours != 0) & (colours != 1)):
        raise PcdnetError(
            f"tetromino colours range from {colours.min()} to {colours.max()}; "
            f"give a 0 or 1 each for red, green and blue"
        )
    outside = ~_inside(shapes, rows, columns)
    if outside.any():
        scene, sprite = np.argwhere(outside)[0]
        raise PcdnetError(
            f"sprite {sprite} of scene {scene} leaves the image at row {rows[scene, sprite]}, column "
            f"{columns[scene, sprite]}; give positions that keep every sprite within {SIZE}x{SIZE} pixels"
        )
    images = np.zeros((len(shapes), SIZE, SIZE, 3), dtype=np.uint8)
    labels = np.zeros((len(shapes), SIZE, SIZE), dtype=np.uint8)
    scene = np.arange(len(shapes))[:, None]
    for sprite in range(shapes.shape[1]):
        pixels = _PIXELS[shapes[:, sprite]]
        row = rows[:, sprite, None] + pixels[:, :, 0]
        column = columns[:, sprite, None] + pixels[:, :, 1]
        images[scene, row, column] = _GREYS[:, None] * colours[:, None, sprite].astype(np.uint8)
        labels[scene, row, column] = sprite + 1
    return images, labels


def _inside(
    shapes: Integer[np.ndarray, "N S"], rows: Integer[np.ndarray, "N S"], columns: Integer[np.ndarray, "N S"]
) -> Bool[np.ndarray, "N S"]:
    heights, widths = _EXTENTS[shapes, 0], _EXTENTS[shapes, 1]
    inside: Bool[np.ndarray, "N S"] = (
        (rows >= 0) & (columns >= 0) & (rows + heights <= SIZE) & (columns + widths <= SIZE)
    )
    return inside


def generate(count: int, seed: int) -> TetrominoScenes:
    """Return scenes drawn at random: the same for the same seed on every platform.

    More scenes of a seed begin with the fewer. Sprites are drawn independently and uniformly, and a scene is
    rejected as a whole when one leaves the image or two overlap; the compact square survives this 1.5 times
    as often as other shapes.
    """
    if count < 1:
        raise PcdnetError(f"{count} scenes were asked for; give a count of at least 1")
    if seed < 0:
        raise PcdnetError(f"the seed is {seed}; give 0 or a positive integer")
    rng = np.random.Generator(np.random.PCG64(seed))
    batches: list[tuple[Int64[np.ndarray, "n 3"], ...]] = []
    found = 0
    while found < count:
        batches.append(_draw(rng))
        found += len(batches[-1][0])
    shapes, hues, rows, columns = (np.concatenate(factor)[:count] for factor in zip(*batches, strict=True))
    colours = COLOURS[hues]
    images, labels = render(shapes, colours, rows, columns)
    return TetrominoScenes(
        images=images,
        labels=labels,
        shapes=shapes,
        colours=colours,
        rows=rows,
        columns=columns,
        name=f"tetrominoes-{seed}",
    )


def _draw(rng: np.random.Generator) -> tuple[Int64[np.ndarray, "n 3"], ...]:
    """Draw a fixed number of candidates; return shapes, hues, rows and columns of those that are scenes."""
    draws = (4096, SPRITES)
    # Positions end at 29, although a lying I would fit in row 30: this comes close to the genuine scenes.
    shapes, hues, rows, columns = (
        rng.integers(0, n, draws, dtype=np.int64) for n in (len(SHAPES), len(COLOURS), 30, 30)
    )
    inside = _inside(shapes, rows, columns).all(axis=1)
    shapes, hues, rows, columns = shapes[inside], hues[inside], rows[inside], columns[inside]
    corners = np.stack([rows, columns], axis=-1)[:, :, None] + SHAPES[shapes] * _EDGE  # of every tile
    apart = np.ones(len(shapes), dtype=bool)
    for a in range(SPRITES):
        for b in range(a):
            distance = abs(corners[:, a, :, None] - corners[:, b, None, :])
            apart &= (distance >= _EDGE).any(axis=-1).all(axis=(1, 2))
    return shapes[apart], hues[apart], rows[apart], columns[apart]


def true_prototypes(
    size: int = 25,
) -> tuple[Float32[np.ndarray, "19 size size"], Float32[np.ndarray, "19 size size"]]:
    """Return every sprite in grey, centred in a square, with its mask of zeros and ones.

    Where the advantages cannot be equal, the upper and left ones are a pixel smaller.
    """
    smallest = int(_EXTENTS.max())
    if size < smallest:
        raise PcdnetError(f"prototypes of {size}x{size} cannot hold a tetromino; use a size of {smallest} or more")
    prototypes = np.zeros((len(SHAPES), size, size), dtype=np.float32)
    masks = np.zeros_like(prototypes)
    pixels = _PIXELS + (size - _EXTENTS[:, None]) // 2
    shape = np.arange(len(SHAPES))[:, None]
    prototypes[shape, pixels[:, :, 0], pixels[:, :, 1]] = _GREYS.astype(np.float32) / 255
    masks[shape, pixels[:, :, 0], pixels[:, :, 1]] = 1
    return prototypes, masks


# Every entity has its mask and factors; the first one is the background.
_FEATURES = {
    "image": (SIZE, SIZE, 3),
    "mask": (1 + SPRITES, SIZE, SIZE),
    "shape": (1 + SPRITES,),
    "color": (1 + SPRITES, 3),
    "x": (1 + SPRITES,),
    "y": (1 + SPRITES,),
}
_RANGES = {"shape": (1, len(SHAPES)), "color": (0, 1), "x": (0, SIZE - _EDGE), "y": (0, SIZE - _EDGE)}


def read(path: str | Path, limit: int | None = None) -> TetrominoScenes:
    """Return the scenes of an original .tfrecords file, at most `limit` of them.

    The file's x is the top row and its y the left column; its background entity has no factors here.
    """
    if limit is not None and limit < 1:
        raise PcdnetError(f"the limit is {limit} scenes; give at least 1, or none to read the whole file")
    read_so_far: dict[str, list[Shaped[np.ndarray, "*any"]]] = {name: [] for name in _FEATURES}
    for number, record in enumerate(islice(read_records(path), limit)):
        source = f"record {number} of {path}"
        features = parse_example(record, source)
        for name, values in read_so_far.items():
            values.append(_feature(features, name, source))
    stacks = {name: np.stack(values) for name, values in read_so_far.items()}
    return TetrominoScenes(
        images=stacks["image"],
        labels=stacks["mask"],
        shapes=stacks["shape"] - 1,
        colours=stacks["color"].astype(np.uint8),
        rows=stacks["x"],
        columns=stacks["y"],
        name=Path(path).stem,
    )


def _feature(features: dict[str, Shaped[np.ndarray, " n"]], name: str, source: str) -> Shaped[np.ndarray, "*any"]:
    """Return the pixels of an image, the labels of the masks, or the factors of the sprites as integers."""
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
        raise PcdnetError(
            f"{name!r} of {source} is {values[1:].tolist()}, not whole numbers from {first} to {last}; {cure}"
        )
    return values[1:].astype(np.int64)
