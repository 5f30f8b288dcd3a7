"""Posed: one object at a time in its pose, for whoever paints it where it lies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from pcdnet.config import FULL_TURN, MOST_SCALE, ModelConfig
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.poses.pose import MARGIN, pose_frame
from pcdnet.model.poses.resampling import resampled, sprites

LARGEST = 4
"""An object has at most so many times the pixels of the picture in which it lies, unless its model has such objects."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Where an object lies, and how: what a decomposition says of it."""

    row: float
    """Top of the prototype's upright frame."""
    column: float
    """Left of it."""
    angle: float = 0.0
    scale: float = 1.0
    mirrored: bool = False

    @property
    def upright(self) -> bool:
        """Whether it is neither turned nor scaled nor mirrored."""
        return (self.angle, self.scale, self.mirrored) == (0, 1, False)

    @property
    def plain(self) -> bool:
        """Whether the prototype is painted as it is, at whole pixels."""
        return self.upright and float(self.row).is_integer() and float(self.column).is_integer()


@dataclass(frozen=True, slots=True)
class PosedSprite:
    """A prototype and its mask as they are painted, and where."""

    row: int
    """Top row in the picture."""
    column: int
    """Left column."""
    prototype: Float[Tensor, "y x"]
    mask: Float[Tensor, "y x"]


def posed_place(frame: tuple[int, int], pose: Pose, config: ModelConfig | None) -> tuple[int, int, tuple[int, int]]:
    """Top row and left column of the frame that an object is painted in, and its size.

    It is that of the model's poses; objects that somebody turned or scaled beyond them have one of their own.
    """
    if pose.plain:
        return int(pose.row), int(pose.column), frame
    config = _painting(config)
    sides = poses_frame(frame, config) if _has(config, pose) else _frame_of(frame, pose)
    row, column = math.floor(pose.row + 0.5), math.floor(pose.column + 0.5)
    return row - (sides[0] - frame[0]) // 2, column - (sides[1] - frame[1]) // 2, sides


@torch.no_grad()
def posed_sprite(
    prototype: Float[Tensor, "h w"], mask: Float[Tensor, "h w"], pose: Pose, config: ModelConfig | None
) -> PosedSprite:
    """An object as a model of this configuration paints it; None stands for one without poses."""
    h, w = mask.shape
    row, column, frame = posed_place((h, w), pose, config)
    if pose.plain:
        return PosedSprite(row, column, prototype, mask)
    fraction = pose.row - math.floor(pose.row + 0.5), pose.column - math.floor(pose.column + 0.5)
    values = mask.new_tensor([[pose.angle, pose.scale, pose.mirrored, *fraction]])
    layers = torch.stack([prototype, mask])[None]
    # In models whose objects do not turn somebody may have turned them.
    made = sprites(layers, values, frame, _painting(config)) if pose.upright else resampled(layers, values, frame)
    return PosedSprite(row, column, made[0, 0], made[0, 1])


def poses_of(scene: Decomposition) -> list[Pose]:
    """Where the objects of a scene lie, and how."""
    rows = zip(scene.positions.tolist(), scene.poses.tolist(), strict=True)
    return [Pose(row, column, angle, scale, mirrored > 0) for (row, column), (angle, scale, mirrored) in rows]


def posed_arrays(
    bank: BankArrays, scene: Decomposition
) -> Iterator[tuple[tuple[int, int], Float[np.ndarray, "y x"], Float[np.ndarray, "y x"]]]:
    """The objects of a scene for pictures: where each lies, its prototype and its mask in its pose."""
    for p, pose in zip(scene.prototype_ids.tolist(), poses_of(scene), strict=True):
        layers = bank.prototypes[p], bank.masks[p]
        if pose.plain:
            yield (int(pose.row), int(pose.column)), *layers
        else:
            sprite = posed_sprite(torch.tensor(layers[0]), torch.tensor(layers[1]), pose, None)
            yield (sprite.row, sprite.column), sprite.prototype.numpy(), sprite.mask.numpy()


def check_pose(n: int, pose: Pose, frame: tuple[int, int], size: tuple[int, int], config: ModelConfig | None) -> None:
    """Refuse the pose of the n-th object of a picture where it is none, or takes too much to paint."""
    if not all(map(math.isfinite, (pose.row, pose.column, pose.angle, pose.scale))):
        raise PcdnetError(f"object {n} lies at no finite place, angle or scale; use numbers")
    if not 1 / MOST_SCALE <= pose.scale <= MOST_SCALE:
        raise PcdnetError(f"object {n} has the scale {pose.scale:g}; use one from {1 / MOST_SCALE} to {MOST_SCALE:g}")
    h, w = posed_place(frame, pose, config)[2]
    large = h * w > LARGEST * max(size[0] * size[1], frame[0] * frame[1])
    if large and not (pose.plain or _has(_painting(config), pose)):
        problem = f"object {n} of the scale {pose.scale:g} has {h}x{w} pixels in a picture of {size[0]}x{size[1]}"
        raise PcdnetError(f"{problem}; use a smaller scale")


@lru_cache(maxsize=64)
def poses_frame(frame: tuple[int, int], config: ModelConfig) -> tuple[int, int]:
    """The frame that holds a frame in all poses of a model, which is asked for with every object."""
    return pose_frame(frame, config) if config.posed else frame


def frame_corner(frame: tuple[int, int], config: ModelConfig) -> tuple[int, int]:
    """Where in the frame of all poses the prototype's upright frame begins."""
    height, width = poses_frame(frame, config)
    return (height - frame[0]) // 2, (width - frame[1]) // 2


@lru_cache(maxsize=64)
def _painting(config: ModelConfig | None) -> ModelConfig:
    """How objects are painted; without poses they can be moved by fractions of a pixel all the same."""
    if config is None:
        return ModelConfig(subpixel=True)
    return config if config.posed else dataclasses.replace(config, subpixel=True)


def _has(config: ModelConfig, pose: Pose) -> bool:
    """Whether the frame of the model's poses is made for a pose."""
    low, high = config.rotation_range
    turned = (pose.angle - low) % FULL_TURN <= high - low if config.rotations > 1 else pose.angle == 0
    small, large = config.scale_range if config.scales > 1 else (1.0, 1.0)
    return turned and small <= pose.scale <= large


def _frame_of(frame: tuple[int, int], pose: Pose) -> tuple[int, int]:
    """Height and width that hold a frame in one pose, with as many odd sides as it has."""
    h, w = (pose.scale * (side + 1) for side in frame)  # what is interpolated ends a pixel beyond the last one's middle
    angle = math.radians(pose.angle)
    cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
    sides = math.ceil(cosine * h + sine * w), math.ceil(cosine * w + sine * h)
    height, width = (side + (side - own) % 2 + 2 * MARGIN for side, own in zip(sides, frame, strict=True))
    return height, width
