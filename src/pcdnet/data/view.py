"""View: the part of the images that is looked at, in which size, in which colours; the ground truth follows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Integer, UInt8

from pcdnet.data.intake import check_memory, check_size, in_grey, resized
from pcdnet.errors import PcdnetError, Setting
from pcdnet.scene import Boxes, Scenes

VISIBLE = 0.5
"""Boxes of which less than this share lies inside a crop do not count; the others are cut at its border."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """How images are looked at. They are cropped first, then resized, then made grey."""

    crop: tuple[int, int, int, int] | None = None
    """Top, left, height and width of the part that is used, in pixels of the images as they are."""
    resize: tuple[int, int] | None = None
    """Height and width that images are brought to."""
    stride: int = 1
    """Of what lies in files every n-th scene is used, in their order."""
    grey: bool = False
    """Colour images become grey, by their ITU-R 601 luma."""

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise PcdnetError(f"the stride is {self.stride}; give 1 for every scene, 2 for every other one")
        if self.crop is not None:
            self.part(None)
        if self.resize is not None:
            check_size(self.resize)

    def chosen(self, limit: int | None) -> slice:
        """Which scenes of a file are used, if at most `limit` of them are wanted."""
        if limit is not None and limit < 1:
            raise PcdnetError(f"the limit is {limit} scenes; give at least 1, or none to read all of them")
        return slice(0, None if limit is None else limit * self.stride, self.stride)

    def part(self, size: tuple[int, ...] | None, what: str = "images") -> tuple[int, int, int, int]:
        """Top, left, height and width of what is seen of an image of that size, or any; `what` is for messages."""
        H, W = size or (2**31, 2**31)
        top, left, height, width = part = self.crop or (0, 0, H, W)
        if min(top, left) < 0 or min(height, width) < 1 or top + height > H or left + width > W:
            problem = "is empty or begins outside of images" if size is None else f"leaves {what} of {H}x{W}"
            crop = f"the crop of {height}x{width} at row {top}, column {left}"
            cure = "give top, left, height and width of a part of the images as ", Setting("crop")
            raise PcdnetError(f"{crop} {problem}; ", *cure)
        return part

    def size(self, size: tuple[int, ...], what: str = "images") -> tuple[int, int]:
        """Height and width that an image of that size is seen in."""
        part = self.part(size, what)
        return self.resize or part[2:]

    def image(self, image: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "h w c"]:
        """One image, seen so."""
        if self.crop is not None:
            top, left, height, width = self.part(image.shape[:2])
            image = image[top : top + height, left : left + width]
        if self.resize is not None:
            image = resized(image, self.resize)
        return in_grey(image) if self.grey else image

    def boxes(self, boxes: Boxes, size: tuple[int, int]) -> Boxes:
        """The boxes of an image of that size, seen so; the image itself cuts them as a crop does."""
        top, left, height, width = self.part(size)
        rows, columns = self.resize or (height, width)
        starts = boxes.corners[:, :2].astype(np.float64) - (top, left)
        ends = np.minimum(starts + boxes.corners[:, 2:], (height, width))
        starts = np.maximum(starts, 0)
        sides = np.maximum(ends - starts, 0)
        area = sides.prod(axis=1)
        seen = (area > 0) & (area >= VISIBLE * boxes.corners[:, 2:].prod(axis=1))
        corners = np.concatenate([starts, sides], axis=1) * np.array([rows / height, columns / width] * 2)
        return Boxes(corners=corners[seen].astype(np.float32), kinds=boxes.kinds[seen])

    def labels(self, labels: Integer[np.ndarray, "N H W"]) -> Integer[np.ndarray, "N h w"]:
        """True instances, seen so: resized, each pixel has the label at its centre."""
        top, left, height, width = self.part(labels.shape[1:])
        labels = labels[:, top : top + height, left : left + width]
        if self.resize is None:
            return labels
        sides = zip(self.resize, (height, width), strict=True)
        rows, columns = ((np.arange(new) * 2 + 1) * old // (2 * new) for new, old in sides)
        return labels[:, rows[:, None], columns]

    def scenes(self, scenes: Scenes) -> Scenes:
        """The scenes with their ground truth, seen so."""
        if self.stride > 1:
            scenes = scenes.part(slice(None, None, self.stride))
        if self.crop is None and self.resize is None and not (self.grey and scenes.images.shape[3] == 3):
            return scenes
        size: tuple[int, int] = scenes.images.shape[1:3]
        shape = (len(scenes), *self.size(size), 1 if self.grey else scenes.images.shape[3])
        check_memory(prod(shape), f"{len(scenes)} images of {shape[1]}x{shape[2]}")
        images = np.empty(shape, np.uint8)
        for target, image in zip(images, scenes.images, strict=True):
            target[...] = self.image(image)
        return dataclasses.replace(
            scenes.part(slice(None)),  # without what a special kind of scenes knows, as that need not hold any more
            images=images,
            labels=None if scenes.labels is None else self.labels(scenes.labels),
            boxes=None if scenes.boxes is None else [self.boxes(boxes, size) for boxes in scenes.boxes],
        )


UNCHANGED = View()
"""All of the images, as they are."""
