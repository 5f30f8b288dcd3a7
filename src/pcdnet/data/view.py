"""View: the part of the images that is looked at, in which size, in which colours; the ground truth follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from math import inf, prod

import numpy as np
from jaxtyping import Bool, Integer, Num, UInt8

from pcdnet.data.intake import check_memory, check_size, in_eight_bits, in_grey, resized
from pcdnet.data.tiles import LEAST, tiled
from pcdnet.errors import PcdnetError, Setting
from pcdnet.scene import Boxes, Scenes


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """How images are looked at: cropped first, then brought to 8 bits, resized, made grey and cut into tiles."""

    crop: tuple[int, int, int, int] | None = None
    """Top, left, height and width of the part that is used, in pixels of the images as they are."""
    resize: tuple[int, int] | None = None
    """Height and width that images are brought to."""
    stride: int = 1
    """Of what lies in files every n-th scene is used, in their order."""
    grey: bool = False
    """Colour images become grey, by their ITU-R 601 luma."""
    values: tuple[float, float] | None = None
    """Which values are black and white in images of more than 8 bits; without them, all that the type holds."""
    tiles: int | None = None
    """Side of the squares that images are cut into which are larger, or of several sizes; 0 leaves them whole."""
    ignore: tuple[int, int, int, int] | None = None
    """Top, left, height and width of a part that does not count, in pixels of the images as they are seen."""

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise PcdnetError(f"the stride is {self.stride}; give 1 for every scene, 2 for every other one")
        if self.resize is not None:
            check_size(self.resize)
        if self.values is not None and not 0 < self.values[1] - self.values[0] < inf:
            cure = "; give the value that is black, and then that which is white"
            raise PcdnetError(Setting("values", self.values), " is no range", cure)
        if self.tiles and self.tiles < LEAST:
            raise PcdnetError(Setting("tiles", self.tiles), f" is too small; give at least {LEAST}, or 0 for none")
        for name in ("crop", "ignore"):
            _check_part(name, getattr(self, name), (2**31, 2**31), "is empty or begins outside of images")

    def chosen(self, limit: int | None) -> slice:
        """Which scenes of a file are used, if at most `limit` of them are wanted."""
        if limit is not None and limit < 1:
            raise PcdnetError(f"the limit is {limit} scenes; give at least 1, or none to read all of them")
        return slice(0, None if limit is None else limit * self.stride, self.stride)

    def part(self, size: tuple[int, ...], what: str = "images") -> tuple[int, int, int, int]:
        """Top, left, height and width of what is seen of an image of that size; `what` is for messages."""
        H, W = size
        _check_part("crop", self.crop, (H, W), f"leaves {what} of {H}x{W}")
        return self.crop or (0, 0, H, W)

    def size(self, size: tuple[int, ...], what: str = "images") -> tuple[int, int]:
        """Height and width that an image of that size is seen in."""
        part = self.part(size, what)
        return self.resize or part[2:]

    def cuts(self, sizes: Collection[tuple[int, int]]) -> bool:
        """Whether images that are seen in these sizes are cut into tiles."""
        side = self.tiles or inf
        return any(min(size) >= side for size in sizes) and any(size != (side, side) for size in sizes)

    def ignored(self, size: tuple[int, int]) -> Bool[np.ndarray, "H W"] | None:
        """Which pixels of images that are seen in this size do not count; None if all do, as in tiles."""
        if self.ignore is None or size == (self.tiles, self.tiles):  # tiles are cut where all counts
            return None
        top, left, height, width = self.ignore
        ignored = np.zeros(size, bool)
        ignored[top : top + height, left : left + width] = True
        return ignored

    def image(self, image: Num[np.ndarray, "H W C"], label: str = "the picture") -> UInt8[np.ndarray, "h w c"]:
        """One image, seen so; `label` is for messages."""
        if self.crop is not None:
            top, left, height, width = self.part(image.shape[:2])
            image = image[top : top + height, left : left + width]
        image = in_eight_bits(image, self.values, label)
        if self.resize is not None:
            image = resized(image, self.resize)
        return in_grey(image) if self.grey else image

    def boxes(self, boxes: Boxes, size: tuple[int, int]) -> Boxes:
        """The boxes of an image of that size, seen so; the image itself cuts them as a crop does."""
        part = self.part(size)
        rows, columns = self.resize or part[2:]
        seen = boxes.within(part)
        factors = rows / part[2], columns / part[3]
        corners = seen.corners * np.array(factors * 2)
        counts = np.ones(len(seen), bool)
        if self.ignore is not None:
            place = corners[:, :2] + corners[:, 2:] / 2 - self.ignore[:2]
            counts = ((place < 0) | (place >= self.ignore[2:])).any(axis=1)
        return seen.resized(*factors).those(counts)

    def labels(self, labels: Integer[np.ndarray, "N H W"]) -> Integer[np.ndarray, "N h w"]:
        """True instances, seen so: resized, each pixel has the label at its centre; what is ignored is background."""
        top, left, height, width = self.part(labels.shape[1:])
        labels = labels[:, top : top + height, left : left + width]
        if self.resize is not None:
            sides = zip(self.resize, (height, width), strict=True)
            rows, columns = ((np.arange(new) * 2 + 1) * old // (2 * new) for new, old in sides)
            labels = labels[:, rows[:, None], columns]
        ignored = self.ignored((labels.shape[1], labels.shape[2]))
        return labels if ignored is None else np.where(ignored, 0, labels)

    def scenes(self, scenes: Scenes) -> Scenes:
        """The scenes with their ground truth, seen so."""
        if self.stride > 1:
            scenes = scenes.part(slice(None, None, self.stride))
        size = scenes.images.shape[1], scenes.images.shape[2]
        seen = self.size(size)
        other = self.crop is not None or self.resize is not None or (self.grey and scenes.images.shape[3] == 3)
        if other or self.ignore is not None:
            scenes = dataclasses.replace(
                scenes.part(slice(None)),  # without what a special kind of scenes knows, as that need not hold any more
                images=self._images(scenes) if other else scenes.images,
                labels=None if scenes.labels is None else self.labels(scenes.labels),
                boxes=None if scenes.boxes is None else [self.boxes(boxes, size) for boxes in scenes.boxes],
            )
        return tiled(scenes, self.tiles, self.ignore) if self.tiles and self.cuts([seen]) else scenes

    def _images(self, scenes: Scenes) -> UInt8[np.ndarray, "N h w c"]:
        shape = (len(scenes), *self.size(scenes.images.shape[1:3]), 1 if self.grey else scenes.images.shape[3])
        check_memory(prod(shape), f"{len(scenes)} images of {shape[1]}x{shape[2]}")
        images = np.empty(shape, np.uint8)
        for target, image in zip(images, scenes.images, strict=True):
            target[...] = self.image(image)
        return images


def _check_part(name: str, part: tuple[int, int, int, int] | None, size: tuple[int, int], problem: str) -> None:
    """Refuse a part of images that is none, or that leaves them."""
    if part is None:
        return
    top, left, height, width = part
    if min(top, left) < 0 or min(height, width) < 1 or top + height > size[0] or left + width > size[1]:
        what = f"the {'crop' if name == 'crop' else 'ignored part'} of {height}x{width} at row {top}, column {left}"
        raise PcdnetError(
            f"{what} {problem}; give top, left, height and width of a part of the images as ", Setting(name)
        )


UNCHANGED = View()
"""All of the images, as they are."""
