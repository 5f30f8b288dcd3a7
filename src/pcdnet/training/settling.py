"""Settling: when training is over, the bank is left with the prototypes that it needs.

First it is settled how much of the error an object may leave where it is seen: most objects are what their prototypes
show, and those that leave many times as much as most are something else. Then fillers go, which patch what others leave
(see `fillers`). At last prototypes are tried one after the other, the least used first: images that one is chosen in
are decomposed without it. It is superfluous if nobody would see the difference, and if there are no more objects than
before; a rare one may be replaced by more objects, if the description of all images becomes shorter by that, and any
one by two that are mostly seen without each other (see `company`). So copies go, shapes that are cut off, and two
objects that happened to touch; what only several pieces would explain stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, UInt8

from pcdnet.config import ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.composition import OPAQUE
from pcdnet.model.fidelity import unexplained_shares
from pcdnet.model.network import PCDNet
from pcdnet.pixels import Pixels, spread
from pcdnet.progress import Phase, phase
from pcdnet.training.backdrop import to_tensor
from pcdnet.training.company import happen_to_touch
from pcdnet.training.fillers import fillers
from pcdnet.training.foreground import LEAST_CONTRAST, NOISE_FACTOR

IMAGES = 64
"""Images that use is counted in, at most."""
AT_ONCE = 16
"""Images that are looked at at a time."""
PASSES = 3
"""How often all prototypes are tried, at most."""
TRIED = 8
"""Images that a prototype is tried on: those with most of it."""
SEEN = 0.04
"""A mean difference of this much, in values of 0 to 1, is seen."""
MANY, LEAST_LEFT, MOST_LEFT = 4.0, 0.25, 0.75
"""An object may leave so many times the error that the median object leaves, as a share, within these bounds."""
FEW_MORE, RARE = 0.25, 1 / 3
"""Without a prototype there may be so many more objects for each of its own; more only if it is so much rarer than the
median one, as two objects are that happened to touch."""
PIXEL_BITS, COLOUR_BITS = 8, 8
"""What describes a pixel of a prototype, and a value of an object's colour."""
SHARE = 0.1
"""A prototype is also superfluous if others remove all but this share of the error that it removes."""


def settle(
    model: PCDNet, everything: UInt8[Pixels, "N H W C"], noise: float, watch: Callable[[int, int], None] | None = None
) -> PCDNet:
    """The model without its superfluous prototypes; `noise` is the standard deviation of the images' noise."""
    with phase("looking which prototypes are needed") as now:
        return _settled(model, everything, noise, watch or (lambda *_: None), now)


def _settled(
    model: PCDNet, everything: UInt8[Pixels, "N H W C"], noise: float, watch: Callable[[int, int], None], now: Phase
) -> PCDNet:
    total = len(everything)
    images = spread(everything, max(1, total // IMAGES), IMAGES)
    if model.config.max_unexplained == 1:  # nobody said how much may be left
        left = min(max(MANY * typically_left(model, images), LEAST_LEFT), MOST_LEFT)
        config = dataclasses.replace(model.config, max_unexplained=round(left, 2))
        model = _only(model, np.ones(config.num_prototypes, bool), config)
    found = model.decompose_all(images)
    kept = _use(found, model.config.num_prototypes) > 0
    useful = kept & ~fillers(model, images, found, max(NOISE_FACTOR * noise, LEAST_CONTRAST))
    if useful.any() and not useful.all():
        kept = useful
        found = _renumbered(_only(model, kept).decompose_all(images), kept)
        kept = _use(found, model.config.num_prototypes) > 0
    bank = _Bank(model, images, total, noise, kept, found)
    for number in range(PASSES):  # what goes late may make others superfluous that were tried before
        before = bank.kept
        for n, p in enumerate(bank.order()):
            watch(n, int(bank.kept.sum()))
            now(f"round {number + 1} of at most {PASSES}, {n} of {int(before.sum())} tried")
            bank = bank.without(p) or bank
        if (bank.kept == before).all():
            break
    return model if bank.kept.all() else _only(model, bank.kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Bank:
    """The prototypes that are left, and what they find in some images."""

    model: PCDNet
    images: UInt8[np.ndarray, "n H W C"]
    total: int
    """Images that these stand for."""
    noise: float
    kept: Bool[np.ndarray, "P"]
    found: list[Decomposition]

    def order(self) -> list[int]:
        """The prototypes, the least used first."""
        use = _use(self.found, len(self.kept))
        return [int(p) for p in np.argsort(use, kind="stable") if self.kept[p]]

    def without(self, p: int) -> _Bank | None:
        """The bank without a prototype; None if it is not superfluous."""
        trial = self.kept.copy()
        trial[p] = False
        if not trial.any():
            return None
        counts = np.array([(image.prototype_ids == p).sum() for image in self.found])
        where = np.argsort(-counts, kind="stable")[: min(TRIED, int((counts > 0).sum()))]
        tried = _only(self.model, trial).decompose_all(self.images[where])
        before = [self.found[i] for i in where]
        if not self._superfluous(p, before, tried) and not self._two(p, before, tried):
            return None
        # The images with most of it are not like all others: what they say is but worth a closer look.
        again = iter(_renumbered(_only(self.model, trial).decompose_all(self.images[counts > 0]), trial))
        found = [next(again) if counts[i] else image for i, image in enumerate(self.found)]
        areas = (self.model.masks.detach() > OPAQUE).sum(dim=(1, 2)).cpu().numpy().astype(float)
        pair = self._two(p, self.found, found) and happen_to_touch(p, self.found, found, areas)
        if not pair and not self._superfluous(p, self.found, found):
            return None
        return dataclasses.replace(self, kept=trial, found=found)

    def _superfluous(self, p: int, before: Sequence[Decomposition], after: Sequence[Decomposition]) -> bool:
        """Whether images look the same without a prototype and take no longer to describe."""
        more = _more(p, before, after)
        return (more <= FEW_MORE or self._shorter(p, more)) and _unseen(self.model, p, before, after, self.noise)

    def _two(self, p: int, before: Sequence[Decomposition], after: Sequence[Decomposition]) -> bool:
        """Whether images look the same without a prototype, with at most two objects for each of its own."""
        return _more(p, before, after) <= 1 + FEW_MORE and _unseen(self.model, p, before, after, self.noise)

    def _shorter(self, p: int, more: float) -> bool:
        """Whether a rare prototype takes more to describe than so many more objects for each of its own."""
        use = _use(self.found, len(self.kept))
        count = int(use[p])
        everywhere = more * count * self.total / len(self.images)
        return bool(count <= RARE * np.median(use[use > 0])) and _cheaper(self.model, p, everywhere, self.images.shape)


@torch.no_grad()
def typically_left(model: PCDNet, images: UInt8[np.ndarray, "N H W C"]) -> float:
    """The share of the bare background's error that the median object leaves where it is seen; 0 without objects."""
    shares = []
    for start in range(0, len(images), AT_ONCE):
        batch = model.seen(to_tensor(images[start : start + AT_ONCE]).to(model.masks.device))
        layers = model.explain(batch, None, training=False, refined=True)
        exists = layers.placement.exists
        behind = model.bank().behind(batch[0]).expand_as(batch) if layers.own is None else layers.own
        left = unexplained_shares(batch, layers.reconstruction, behind, layers.instances(), exists.shape[1])
        shares.append(left[exists])
    all_shares = torch.cat(shares)
    return float(all_shares.median()) if len(all_shares) else 0.0


def _more(p: int, before: Sequence[Decomposition], after: Sequence[Decomposition]) -> float:
    """How many more objects there are without a prototype, for each of its own."""
    count = sum(int((image.prototype_ids == p).sum()) for image in before)
    return (sum(map(len, after)) - sum(map(len, before))) / max(1, count)


def _use(found: Sequence[Decomposition], prototypes: int) -> np.ndarray:
    """How many objects every prototype explains."""
    return np.bincount(np.concatenate([image.prototype_ids for image in found]), minlength=prototypes)


def _renumbered(found: Sequence[Decomposition], kept: Bool[np.ndarray, "P"]) -> list[Decomposition]:
    """Decompositions by a part of the bank, with the numbers that the prototypes have in all of it."""
    numbers = np.flatnonzero(kept)
    return [dataclasses.replace(one, prototype_ids=numbers[one.prototype_ids].astype(np.int32)) for one in found]


def _cheaper(model: PCDNet, p: int, more: float, shape: tuple[int, ...]) -> bool:
    """Whether it takes fewer bits to describe so many more objects than the prototype."""
    _, H, W, C = shape
    an_object = np.log2(model.config.num_prototypes * H * W) + COLOUR_BITS * C
    area = float((model.masks[p].detach() > 0.5).sum())
    return bool(more * an_object <= area * PIXEL_BITS)


def _unseen(
    model: PCDNet, p: int, found: Sequence[Decomposition], without: Sequence[Decomposition], noise: float
) -> bool:
    """Whether the images look the same without a prototype."""
    objects = sum(int((image.prototype_ids == p).sum()) for image in found)
    removed = sum(float(image.error_reductions[image.prototype_ids == p].sum()) for image in found)
    more = sum(image.error for image in without) - sum(image.error for image in found)
    area = float(model.masks[p].detach().clamp(0, 1).sum()) * model.config.channels
    seen = max(SEEN, 2 * noise) ** 2
    return more <= max(objects * area * seen, SHARE * removed)


def _only(model: PCDNet, kept: Bool[np.ndarray, "P"], config: ModelConfig | None = None) -> PCDNet:
    """The model with some of its prototypes, and perhaps in another configuration."""
    chosen = torch.from_numpy(np.flatnonzero(kept))
    weights = model.weights().map(torch.Tensor.detach)
    bank = PrototypeBank(weights.prototypes[chosen], weights.masks[chosen], weights.background)
    smaller = PCDNet.from_bank(bank, dataclasses.replace(config or model.config, num_prototypes=len(chosen)))
    smaller.values, smaller.learned_size = model.values, model.learned_size
    given = {n: model.names.given[p] for n, p in enumerate(chosen.tolist()) if p in model.names.given}
    smaller.names = dataclasses.replace(model.names, count=len(chosen), given=given, colours={})
    smaller.look_as(model)
    return smaller
