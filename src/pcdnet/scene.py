"""Scene, Boxes and Scenes: images with, where it is known, the ground truth of what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int32, Integer, UInt8
from scipy.ndimage import find_objects

from pcdnet.errors import PcdnetError
from pcdnet.pixels import Images

VISIBLE = 0.5
"""Boxes of which less than this share lies inside a part of an image do not count there."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scene:
    """An image with optional ground truth."""

    image: Float32[np.ndarray, "H W C"]
    """Values in [0, 1]; C is 1 (grey) or 3 (RGB)."""
    labels: Int32[np.ndarray, "H W"] | None = None
    """True instance of every pixel: 0 is background, 1, 2, ... are objects. None where it is not known."""
    name: str = ""
    """Where the scene comes from, for messages and output files."""

    def __post_init__(self) -> None:
        shape, labels = self.image.shape, None if self.labels is None else self.labels.shape
        if len(shape) != 3 or shape[2] not in (1, 3):
            raise PcdnetError(
                f"scene {self.name!r} has an image of shape {shape}; give height x width x 1 or 3 channels"
            )
        if labels not in (None, shape[:2]):
            problem = f"labels of shape {labels} for an image of {shape[:2]}"
            raise PcdnetError(f"scene {self.name!r} has {problem}; give one label per pixel")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Boxes:
    """The true objects of one scene as boxes."""

    corners: Float32[np.ndarray, "n 4"]
    """Top, left, height and width of every box, in pixels."""
    kinds: Int32[np.ndarray, "n"]
    """The kind of every object, as an index into `Scenes.kinds`."""
    poses: Float32[np.ndarray, "n 5"] | None = None
    """Of every object the row and column of its centre, its angle in degrees, its scale, and whether it is mirrored.

    Whole numbers are the centres of pixels. Angles are of 0 to 360, counter-clockwise as one looks at the picture; a
    mirrored object, marked by 1 instead of 0, has left and right swapped before it is turned. Which angle is upright
    and which size is 1 is up to the data. None where poses are not known.
    """

    @staticmethod
    def from_rows(rows: Sequence[Sequence[float]], poses: Sequence[Sequence[float]] | None = None) -> Boxes:
        """Boxes of which each is top, left, height, width and kind; and their poses, where they are known."""
        values = np.array(rows, np.float64).reshape(-1, 5)
        return Boxes(
            corners=values[:, :4].astype(np.float32),
            kinds=values[:, 4].astype(np.int32),
            poses=None if poses is None else np.array(poses, np.float32).reshape(-1, 5),
        )

    def within(self, part: Sequence[float]) -> Boxes:
        """The boxes as they are seen in a part of the image, given by top, left, height and width.

        Those of which less than VISIBLE lies inside do not count; the others are cut at its border.
        """
        place, size = np.array(part[:2], np.float64), np.array(part[2:], np.float64)
        starts = self.corners[:, :2] - place
        ends = np.minimum(starts + self.corners[:, 2:], size)
        starts = np.maximum(starts, 0)
        sides = np.maximum(ends - starts, 0)
        area = sides.prod(axis=1)
        seen = (area > 0) & (area >= VISIBLE * self.corners[:, 2:].prod(axis=1))
        return Boxes(
            corners=np.concatenate([starts, sides], axis=1)[seen].astype(np.float32),
            kinds=self.kinds[seen],
            poses=None if self.poses is None else self.poses[seen] - np.array([*place, 0, 0, 0], np.float32),
        )

    def resized(self, rows: float, columns: float) -> Boxes:
        """The boxes of an image that is made so many times as high and as wide.

        Where the two differ, a turned object is not merely turned any more: then poses are not known.
        """
        poses = None
        if self.poses is not None and np.isclose(rows, columns):
            centres = (self.poses[:, :2] + 0.5) * (rows, columns) - 0.5
            poses = np.column_stack([centres, self.poses[:, 2], self.poses[:, 3] * rows, self.poses[:, 4]])
        return Boxes(
            corners=(self.corners * np.array([rows, columns] * 2)).astype(np.float32),
            kinds=self.kinds,
            poses=None if poses is None else poses.astype(np.float32),
        )

    def those(self, which: Bool[np.ndarray, "n"]) -> Boxes:
        """Some of the boxes."""
        poses = None if self.poses is None else self.poses[which]
        return Boxes(corners=self.corners[which], kinds=self.kinds[which], poses=poses)

    def __len__(self) -> int:
        return len(self.corners)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scenes:
    """Many images of one size, as training and evaluation want them.

    Examples
    --------
    >>> Scenes(images=np.zeros((10, 35, 35, 3), np.uint8), name="black")
    Scenes(10 images of 35x35x3: black)
    """

    images: UInt8[Images, "N H W C"]
    """Values of 0 to 255; C is 1 (grey) or 3 (RGB). An array or, of more than fits in memory, a PixelStore."""
    labels: Integer[np.ndarray, "N H W"] | None = None
    """True instance of every pixel: 0 is background, 1, 2, ... are objects. None where it is not known."""
    boxes: Sequence[Boxes] | None = None
    """The true objects of every scene as boxes; None where they are not known."""
    kinds: tuple[str, ...] = ()
    """The names of the kinds that boxes refer to."""
    scored: tuple[str, ...] = ()
    """The kinds that detection scores are about, where not all are; finding one of the others costs nothing."""
    names: tuple[str, ...] = ()
    """The name of every scene, a file's for example; empty where scenes have none."""
    name: str = ""
    """Where the scenes come from, for messages."""
    places: Int32[np.ndarray, "N 3"] | None = None
    """Of tiles, the number of the picture that each was cut from, its top and its left; None of whole pictures."""

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        known = " and ".join(name for name in ("labels", "boxes") if getattr(self, name) is not None)
        words = f"{len(self):,} images of {'x'.join(map(str, self.images.shape[1:]))}{known and f' with {known}'}"
        return f"Scenes({words}{self.name and f': {self.name}'})"

    def first(self, count: int) -> Scenes:
        """The first `count` scenes, or all if there are fewer."""
        return self.part(slice(0, count))

    def part(self, which: slice | Bool[np.ndarray, "N"], name: str | None = None) -> Scenes:
        """Some of the scenes, with their ground truth; under another name if one is given."""
        numbers = np.arange(len(self))[which].tolist()
        return Scenes(
            images=self.images[which],
            labels=None if self.labels is None else self.labels[which],
            boxes=None
            if self.boxes is None
            else [self.boxes[number] for number in numbers if number < len(self.boxes)],
            kinds=self.kinds,
            scored=self.scored,
            names=tuple(self.names[number] for number in numbers) if self.names else (),
            name=self.name if name is None else name,
            places=None if self.places is None else self.places[which],
        )


def visible_boxes(instances: Int32[np.ndarray, "H W"], count: int) -> list[tuple[int, int, int, int] | None]:
    """Top, left, height and width of the pixels labelled 1, 2, ... `count`; None where a label has none."""
    boxes: list[tuple[int, int, int, int] | None] = [None] * count
    for index, found in enumerate(find_objects(instances, max_label=count)):
        if found is not None:
            rows, columns = found
            boxes[index] = rows.start, columns.start, rows.stop - rows.start, columns.stop - columns.start
    return boxes
