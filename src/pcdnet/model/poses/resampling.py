"""Resampling: prototypes and masks in any pose, with gradients for what is resampled and for the pose.

What is turned or scaled is interpolated linearly between the pixels of the prototype; the middle of its frame stays in
the middle. What is only moved by a fraction of a pixel is shifted in the Fourier domain, as in equation 3 of the paper.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from pcdnet.config import ModelConfig
from pcdnet.model.poses.pose import ANGLE, DOWN, MIRRORED, RIGHT, SCALE
from pcdnet.model.spectrum import fourier_shift

LEAST_SCALE = 1e-3
"""Objects are no smaller than this; where there is no object, its size is 0."""


def resampled(
    pictures: Float[Tensor, "n layers h w"], poses: Float[Tensor, "n 5"], frame: tuple[int, int]
) -> Float[Tensor, "n layers y x"]:
    """Each picture in its pose: mirrored left to right, then scaled, then turned, then moved; black around."""
    h, w = pictures.shape[-2:]
    rows = torch.arange(frame[0], dtype=poses.dtype, device=poses.device) - (frame[0] - 1) / 2
    columns = torch.arange(frame[1], dtype=poses.dtype, device=poses.device) - (frame[1] - 1) / 2
    down = rows[None, :, None] - poses[:, DOWN, None, None]
    right = columns[None, None, :] - poses[:, RIGHT, None, None]
    angle = torch.deg2rad(poses[:, ANGLE, None, None])
    scale = poses[:, SCALE, None, None].clamp(min=LEAST_SCALE)
    cosine, sine = angle.cos() / scale, angle.sin() / scale
    y = sine * right + cosine * down
    x = (1 - 2 * poses[:, MIRRORED, None, None]) * (cosine * right - sine * down)
    places = torch.stack([2 * x / w, 2 * y / h], dim=-1)
    made: Tensor = grid_sample(pictures, places, mode="bilinear", padding_mode="zeros", align_corners=False)
    return made


def moved(
    pictures: Float[Tensor, "n layers h w"], poses: Float[Tensor, "n 5"], frame: tuple[int, int]
) -> Float[Tensor, "n layers y x"]:
    """Each picture in a larger frame, moved by the fractions of a pixel of its pose."""
    (h, w), (y, x) = pictures.shape[-2:], frame
    top, left = (y - h) // 2, (x - w) // 2
    framed = pad(pictures, (left, x - w - left, top, y - h - top))
    layers = framed.shape[1]
    down, right = (poses[:, value, None].expand(-1, layers) for value in (DOWN, RIGHT))
    return fourier_shift(framed, down, right)


def sprites(
    pictures: Float[Tensor, "n layers h w"],
    poses: Float[Tensor, "n 5"],
    frame: tuple[int, int],
    config: ModelConfig,
) -> Float[Tensor, "n layers y x"]:
    """Pictures of values from 0 to 1 as a model of this configuration paints them in these poses."""
    if config.poses > 1:
        return resampled(pictures, poses, frame)
    made = moved(pictures, poses, frame)
    return made + (made.clamp(0, 1) - made).detach()  # beside sharp edges it overshoots
