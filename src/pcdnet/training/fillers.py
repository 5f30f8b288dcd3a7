"""Fillers: prototypes that patch what others leave, and are hardly ever an object of their own.

A bar or a speck that was seen now and then fits everywhere. What is an object stands alone in many places: there its
pixels are a blob of foreground, and all of it, or several where it has several parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from pcdnet.decomposition import Decomposition
from pcdnet.model.network import PCDNet
from pcdnet.training.backdrop import to_tensor

WHOLE = 0.5
"""An object is a blob if they share this much of the pixels that they have together."""
RARELY = 0.25
"""A filler stands alone less often than this share of the median prototype."""


def fillers(
    model: PCDNet, images: UInt8[np.ndarray, "N H W C"], found: Sequence[Decomposition], threshold: float
) -> Bool[np.ndarray, "P"]:
    """Which prototypes are fillers in decomposed images; what differs from the background by `threshold` stands out."""
    times, alone = np.zeros((2, model.config.num_prototypes))
    for image, one in zip(images, found, strict=True):
        np.add.at(times, one.prototype_ids, 1)
        np.add.at(alone, one.prototype_ids, stand_alone(one, _foreground(model, image, one, threshold)))
    used = times > 0
    shares = alone[used] / times[used]
    result = np.zeros(len(times), bool)
    result[used] = shares < RARELY * np.median(shares) if used.any() else False
    return result


def stand_alone(one: Decomposition, foreground: Bool[np.ndarray, "H W"]) -> Bool[np.ndarray, "n"]:
    """Which objects are blobs of the foreground, or several that have no other part."""
    blobs, count = ndimage.label(foreground, structure=np.ones((3, 3)))
    pairs = np.bincount(one.instances.ravel() * (count + 1) + blobs.ravel(), minlength=(len(one) + 1) * (count + 1))
    shared: Float[np.ndarray, "n blobs"] = pairs.reshape(len(one) + 1, count + 1).astype(float)
    of_blobs, of_objects = shared.sum(axis=0)[1:], shared.sum(axis=1)[1:]
    shared = shared[1:, 1:]
    own = shared >= WHOLE * of_blobs
    inside = (shared * own).sum(axis=1)
    alone: np.ndarray = (inside > 0) & (inside >= WHOLE * (of_objects + (own * of_blobs).sum(axis=1) - inside))
    return alone


def _foreground(
    model: PCDNet, image: UInt8[np.ndarray, "H W C"], one: Decomposition, threshold: float
) -> Bool[np.ndarray, "H W"]:
    seen = model.seen(to_tensor(image[None]).to(model.masks.device))[0].permute(1, 2, 0).cpu().numpy()
    shared = model.bank().to_numpy().background
    behind = one.background if one.background is not None else 0.0 if shared is None else shared
    standing_out: np.ndarray = np.abs(seen - behind).max(axis=-1) > threshold
    return standing_out
