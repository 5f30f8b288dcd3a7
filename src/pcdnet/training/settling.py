"""Settling: when training is over, the bank is left with the prototypes that it needs.

Three kinds of prototypes are superfluous: those that are never chosen, those that others explain as well (copies of a
shape, or a shape cut off), and those of two objects that happened to touch, which the two explain themselves. All are
found by one trial: the images that a prototype is chosen in are decomposed without it. Where nobody would see the
difference, it goes. Prototypes are tried one after the other, the least used first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, UInt8

from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet

IMAGES = 64
"""Images that use is counted in, at most."""
TRIED = 8
"""Images that a prototype is tried on: those with most of it."""
SEEN = 0.04
"""A mean difference of this much, in values of 0 to 1, is seen."""
SHARE = 0.05
"""A prototype is also superfluous if others remove all but this share of the error that it removes."""


def settle(
    model: PCDNet, images: UInt8[np.ndarray, "N H W C"], noise: float, watch: Callable[[int, int], None] | None = None
) -> PCDNet:
    """The model without its superfluous prototypes; `noise` is the standard deviation of the images' noise."""
    images = images[:: max(1, len(images) // IMAGES)][:IMAGES]
    found = model.decompose_all(images, refined=False)
    kept = _use(found, model.config.num_prototypes) > 0
    for n, p in enumerate(_order(found, kept)):
        if watch is not None:
            watch(n, int(kept.sum()))
        trial = kept.copy()
        trial[p] = False
        if not trial.any():
            break
        counts = np.array([(image.prototype_ids == p).sum() for image in found])
        where = np.argsort(-counts, kind="stable")[: min(TRIED, int((counts > 0).sum()))]
        without = _only(model, trial).decompose_all(images[where], refined=False)
        if _superfluous(model, p, [found[i] for i in where], without, noise):
            kept = trial
            everywhere = np.flatnonzero(counts)
            again = _only(model, kept).decompose_all(images[everywhere], refined=False)
            numbers = np.flatnonzero(kept)
            for i, image in zip(everywhere.tolist(), again, strict=True):
                found[i] = dataclasses.replace(image, prototype_ids=numbers[image.prototype_ids].astype(np.int32))
    return _only(model, kept) if not kept.all() else model


def _use(found: Sequence[Decomposition], prototypes: int) -> np.ndarray:
    """How many objects every prototype explains."""
    return np.bincount(np.concatenate([image.prototype_ids for image in found]), minlength=prototypes)


def _order(found: Sequence[Decomposition], kept: Bool[np.ndarray, "P"]) -> list[int]:
    use = _use(found, len(kept))
    return [int(p) for p in np.argsort(use, kind="stable") if kept[p]]


def _superfluous(
    model: PCDNet, p: int, found: Sequence[Decomposition], without: Sequence[Decomposition], noise: float
) -> bool:
    """Whether the images look the same without a prototype."""
    objects = sum(int((image.prototype_ids == p).sum()) for image in found)
    removed = sum(float(image.error_reductions[image.prototype_ids == p].sum()) for image in found)
    more = sum(image.error for image in without) - sum(image.error for image in found)
    area = float(model.masks[p].detach().clamp(0, 1).sum()) * model.config.channels
    seen = max(SEEN, 2 * noise) ** 2
    return more <= max(objects * area * seen, SHARE * removed)


def _only(model: PCDNet, kept: Bool[np.ndarray, "P"]) -> PCDNet:
    """The model with some of its prototypes."""
    chosen = torch.from_numpy(np.flatnonzero(kept))
    weights = model.weights().map(torch.Tensor.detach)
    bank = PrototypeBank(weights.prototypes[chosen], weights.masks[chosen], weights.background)
    config = dataclasses.replace(model.config, num_prototypes=len(chosen))
    smaller = PCDNet.from_bank(bank, config)
    smaller.values, smaller.learned_size = model.values, model.learned_size
    given = {n: model.names.given[p] for n, p in enumerate(chosen.tolist()) if p in model.names.given}
    smaller.names = dataclasses.replace(model.names, count=len(chosen), given=given, colours={})
    if smaller.ignored is not None and model.ignored is not None:
        smaller.ignored.copy_(model.ignored)
    smaller.looks = model.looks
    return smaller
