"""Models of runs, loaded for the commands that use them."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import UInt8
from numpy import ndarray

from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.training.run import load


def load_model(folder: Path, device: str = "cpu") -> PCDNet:
    """The best model of a run, on a device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise PcdnetError(f"the device {device!r} cannot be used on this machine; use --device cpu") from None
    return load(folder, device)


def decompose(model: PCDNet, images: UInt8[ndarray, "n H W C"]) -> list[Decomposition]:
    """A stack of images, taken apart."""
    found = model.decompose(images)
    assert isinstance(found, list)
    return found
