"""Batch: arrays that users call images, as a checked batch of tensors."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from pcdnet.errors import PcdnetError, Setting


def to_batch(images: NDArray[np.generic], channels: int) -> Float[Tensor, "B C H W"]:
    """A batch from one image (H W or H W C) or a stack of them (B H W C); uint8 of 0-255 or floats of 0-1."""
    shape = images.shape
    if images.dtype != np.uint8 and images.dtype not in (np.float32, np.float64, np.float16):
        raise PcdnetError(f"images have dtype {images.dtype}; give uint8 of 0 to 255 or floats of 0 to 1")
    if images.ndim == 2:
        images = images[..., None]
    if images.ndim == 3:
        images = images[None]
    if images.ndim != 4:
        raise PcdnetError(
            f"images have shape {shape}; give height x width x channels, or a stack of such images along a first axis"
        )
    if images.shape[-1] != channels:
        raise PcdnetError(
            f"images have shape {shape}, so {images.shape[-1]} channels, but the model wants {channels}; "
            f"convert them to {'grey' if channels == 1 else 'RGB'} or use ",
            Setting("model.channels", images.shape[-1]),
        )
    batch = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    batch = (
        batch.float() / 255 if images.dtype == np.uint8 else batch.to(torch.promote_types(batch.dtype, torch.float32))
    )
    check_batch(batch, channels)
    return batch


def check_batch(images: Tensor, channels: int) -> None:
    """Refuse a batch that the model would misread: wrong axes, dtype, range, or values that are no numbers."""
    shape = tuple(images.shape)
    if images.ndim != 4 or shape[1] != channels:
        raise PcdnetError(
            f"a batch of shape {shape} was given; the model wants images x {channels} channels x height x width"
        )
    if 0 in shape:
        raise PcdnetError(f"a batch of shape {shape} holds no pixel; give at least one image")
    if not images.is_floating_point():
        raise PcdnetError(f"a batch of dtype {images.dtype} was given; convert it to floats of 0 to 1")
    low, high = torch.stack(torch.aminmax(images.detach())).tolist()
    if not (low >= 0 and high <= 1):
        if low != low or high != high:
            raise PcdnetError("images hold NaN; replace the missing values, by 0 say")
        cure = "divide by 255, or give uint8" if high > 1 and low >= 0 else "scale them to 0 to 1"
        raise PcdnetError(f"image values go from {low:.4g} to {high:.4g}; {cure}")
