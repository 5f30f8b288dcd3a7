"""Pose: how an object is turned, scaled, mirrored and moved by less than a pixel; the coarse poses that are tried."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pcdnet.config import FULL_TURN, ModelConfig

ANGLE, SCALE, MIRRORED, DOWN, RIGHT = range(5)
"""What the numbers of a pose are: degrees counter-clockwise, a factor, 0 or 1, and pixels."""
VALUES = 5
"""How many they are."""
MARGIN = 2
"""Pixels that objects may move within their frames while they are fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class CoarsePoses:
    """The poses that every prototype is tried in, and what lies between them."""

    values: Float[Tensor, "R 5"]
    """The poses, none of them moved."""
    turn: float
    """Degrees between two angles; 0 if there is one."""
    growth: float
    """The logarithm of the ratio of two sizes; 0 if there is one."""

    @staticmethod
    def of(config: ModelConfig, like: Tensor) -> CoarsePoses:
        """Those of a configuration: every angle in every size, and the mirror image of each."""
        low, high = config.rotation_range
        whole, n = _whole(config), config.rotations
        turn = (high - low) / (n if whole else n - 1) if n > 1 else 0.0
        angles = [(low + turn * step) % FULL_TURN for step in range(n)] if n > 1 else [0.0]
        small, large = map(math.log, config.scale_range)
        growth = (large - small) / (config.scales - 1) if config.scales > 1 else 0.0
        scales = [math.exp(small + growth * step) for step in range(config.scales)] if config.scales > 1 else [1.0]
        poses = [
            (angle, scale, float(mirrored), 0.0, 0.0)
            for mirrored in range(1 + config.mirror)
            for scale in scales
            for angle in angles
        ]
        return CoarsePoses(like.new_tensor(poses), turn, growth)

    def __len__(self) -> int:
        return len(self.values)

    def near(self, one: Int[Tensor, "*#some"], other: Int[Tensor, "*#some"]) -> Tensor:
        """Whether two poses, by number, are the same or next to each other in angle and size."""
        a, b = self.values[one], self.values[other]
        turned = (a[..., ANGLE] - b[..., ANGLE]).remainder(FULL_TURN)
        turned = torch.minimum(turned, FULL_TURN - turned)
        grown = (a[..., SCALE].log() - b[..., SCALE].log()).abs()
        same = a[..., MIRRORED] == b[..., MIRRORED]
        return same & (turned <= 1.5 * self.turn) & (grown <= 1.5 * self.growth)


def pose_frame(frame: tuple[int, int], config: ModelConfig) -> tuple[int, int]:
    """Height and width that hold a frame in every pose, with as many odd sides as it has.

    Of one that has the same middle pixels, nothing has to be resampled that is not turned or scaled.
    """
    (h, w), largest = frame, config.scale_range[1] if config.scales > 1 else 1.0
    height, width = float(h), float(w)
    if config.rotations > 1:
        low, high = config.rotation_range
        steps = 360 if config.fine_poses else config.rotations - (not _whole(config))
        angles = [math.radians(low + (high - low) * n / steps) for n in range(steps + 1)]
        height = max(abs(math.cos(a)) * h + abs(math.sin(a)) * w for a in angles)
        width = max(abs(math.cos(a)) * w + abs(math.sin(a)) * h for a in angles)
    sides = math.ceil(height * largest - 1e-6), math.ceil(width * largest - 1e-6)
    margin = MARGIN if config.subpixel or (config.fine_poses and config.poses > 1) else 0
    rows, columns = (side + (side - own) % 2 + 2 * margin for side, own in zip(sides, (h, w), strict=True))
    return rows, columns


def _whole(config: ModelConfig) -> bool:
    """Whether the angles that are tried go around, so that the last one is next to the first."""
    low, high = config.rotation_range
    return math.isclose(high - low, FULL_TURN)
