"""View: the part of the images that is looked at, in which size, in which colours; the truth follows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Integer, UInt8

from pcdnet.data.pictures import MOST_PIXELS, check_crop, cropped, in_grey, resized
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes

VISIBLE = 0.5
"""Boxes of which less than this share lies inside a crop are no truth of it; the others are cut at its border."""

MOST_BYTES = 8 * 2**30
"""Images that together take more memory than this are refused."""


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
            raise PcdnetError(f"the stride is {self.stride}; give 1 for every scene, 2 for every other")
        if self.crop is not None and (min(self.crop[:2]) < 0 or min(self.crop[2:]) < 1):
            top, left, height, width = self.crop
            raise PcdnetError(
                f"the crop of {height}x{width} at row {top}, column {left} is none; give TOP LEFT HEIGHT WIDTH, "
                f"the first two from 0 and the others from 1"
            )
        if self.resize is not None and (min(self.resize) < 1 or self.resize[0] * self.resize[1] > MOST_PIXELS):
            raise PcdnetError(
                f"images cannot be resized to {self.resize[0]}x{self.resize[1]}; give a HEIGHT and a WIDTH from 1, "
                f"of at most {MOST_PIXELS:,} pixels together"
            )

    def size(self, size: tuple[int, int], what: str = "images") -> tuple[int, int]:
        """Height and width that an image of that size is seen in; `what` is for messages."""
        if self.crop is not None:
            size = check_crop(self.crop, size, what)[2:]
        return self.resize or size

    def image(self, image: UInt8[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "h w c"]:
        """One image, seen so."""
        if self.crop is not None:
            image = cropped(image, self.crop)
        if self.resize is not None:
            image = resized(image, self.resize)
        return in_grey(image) if self.grey else image

    def boxes(self, boxes: Boxes, size: tuple[int, int]) -> Boxes:
        """The boxes of an image of that size, seen so; the image itself cuts them as a crop does."""
        top, left, height, width = self.crop or (0, 0, *size)
        rows, columns = self.size(size)
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
        if self.crop is not None:
            top, left, height, width = check_crop(self.crop, labels.shape[1:])
            labels = labels[:, top : top + height, left : left + width]
        if self.resize is None:
            return labels
        H, W = labels.shape[1:]
        rows, columns = (
            (np.arange(new) * 2 + 1) * old // (2 * new) for new, old in zip(self.resize, (H, W), strict=True)
        )
        return labels[:, rows[:, None], columns]

    def scenes(self, scenes: Scenes) -> Scenes:
        """The scenes with their truth, seen so; all of them, as the stride is for those who read them."""
        if self.crop is None and self.resize is None and not (self.grey and scenes.images.shape[3] == 3):
            return scenes
        size: tuple[int, int] = scenes.images.shape[1:3]
        shape = (len(scenes), *self.size(size), 1 if self.grey else scenes.images.shape[3])
        if prod(shape) > MOST_BYTES:
            raise PcdnetError(
                f"{len(scenes)} images of {shape[1]}x{shape[2]} take more than the limit of "
                f"{MOST_BYTES / 2**30:.0f} GiB; use fewer images, or a smaller size in --resize"
            )
        images = np.empty(shape, np.uint8)
        for target, image in zip(images, scenes.images, strict=True):
            target[...] = self.image(image)
        return dataclasses.replace(
            scenes,
            images=images,
            labels=None if scenes.labels is None else self.labels(scenes.labels),
            boxes=None if scenes.boxes is None else [self.boxes(boxes, size) for boxes in scenes.boxes],
        )


UNCHANGED = View()
"""All of the images, as they are."""
