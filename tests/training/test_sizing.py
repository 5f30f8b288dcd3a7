"""Laws of sizing: sizes that lie beside the middle of the range come to lie in it, and nothing else changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from pcdnet.config import PRESETS
from pcdnet.data import multi_dsprites
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.poses.resampling import resampled
from pcdnet.training.sizing import centre_sizes


def model_of(size: float, **fields: object) -> PCDNet:
    """The shapes of Multi-dSprites as prototypes, so many times as large as they are."""
    config = dataclasses.replace(PRESETS["multi-dsprites"].model, **fields)  # type: ignore[arg-type]
    masks = torch.zeros(3, 37, 37)
    y, x = torch.meshgrid(torch.arange(37.0) - 18, torch.arange(37.0) - 18, indexing="ij")
    masks[0] = ((y.abs() <= 10.5) & (x.abs() <= 10.5)).float()
    masks[1] = ((y / 7.6).square() + (x / 13.2).square() <= 1).float()
    masks[2] = ((y.abs() + x.abs() <= 10.7) | ((y + 5).square() + (x.abs() - 5.4).square() <= 57)).float()
    poses = torch.tensor([[0.0, size, 0, 0, 0]]).expand(3, -1)
    masks = resampled(masks[:, None], poses, (37, 37))[:, 0]
    return PCDNet.from_bank(PrototypeBank(torch.ones_like(masks), masks), config)


def middle(model: PCDNet, images: np.ndarray) -> float:
    """The middle of the sizes that are found."""
    scales = np.concatenate([found.scales for found in model.decompose_all(images, refined=False)])
    return float(np.exp(np.quantile(np.log(scales), (0.02, 0.98)).mean()))


def test_prototypes_that_are_too_large_become_smaller() -> None:
    images = np.asarray(multi_dsprites.generate(48, seed=3).images)
    model = model_of(1.3)
    low, high = model.config.scale_range
    wanted, before = (low * high) ** 0.5, middle(model, images)
    areas = model.masks.detach().sum((1, 2))
    centre_sizes(model, images)
    assert abs(np.log(middle(model, images) / wanted)) < abs(np.log(before / wanted))
    assert (model.masks.detach().sum((1, 2)) < areas).all()


def test_without_sizes_nothing_changes() -> None:
    images = np.asarray(multi_dsprites.generate(2, seed=3).images)
    model = model_of(1.0, scales=1, scale_range=(1.0, 1.0))
    before = model.masks.detach().clone()
    centre_sizes(model, images)
    assert torch.equal(model.masks.detach(), before)
