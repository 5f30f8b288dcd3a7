"""Twins: prototypes that stand for one kind of object, told from kinds that merely look alike.

An O and a Q look alike, and still every letter lies at its own prototype. Of two prototypes of one kind, objects lie in
between: which of the two is chosen is an accident. So every object is painted with both, and its pixels tell where
between the two paintings it lies: at 0 it is its own prototype, at 1/2 either would do, at 1 the other. Of shapes that
differ, next to no object is nearer to the middle than to an end; of a kind that was cut in two, many are, wherever it
was cut.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from scipy.signal import correlate

from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.posed import posed_place, poses_of
from pcdnet.model.rendering import recompose
from pcdnet.training.foreground import LEAST_CONTRAST, standing_pieces
from pcdnet.training.reset import likeness
from pcdnet.turning import turned

ALIKE = 0.95
"""Only prototypes more alike than this can be twins: either then removes nine tenths of the error of the other."""
SAME_TURNED = 0.97
"""Of a model with poses, prototypes more alike than this in some pose are twins. Objects are not asked."""
PARTNERS = 3
"""Prototypes that each is compared with, the most alike: of three that are the same, two pairs say so."""
OBJECTS = 24
"""Objects of a prototype that are painted with another one, at most."""
NEARER = 1 / 4
"""An object so far from 0 (its own prototype) and from 1 (the other) is nearer to the middle than to either."""
TOLD = 1 / 2
"""An object counts if this share of what the prototypes differ by is seen of it, and not hidden by others."""
FAR = 8
"""Pixels that a turned and scaled frame may reach further than its diagonal."""
EXCEPTIONS = 1 / 10
"""A share of the objects that is no longer an exception; a single object is one in any case."""


@dataclass(slots=True)
class _Evidence:
    """What the objects of one prototype say of another one."""

    same: int = 0
    """Objects that look the same with either."""
    apart: int = 0
    """Objects that look otherwise with the other."""
    between: int = 0
    """Those of them that are nearer to the middle between the two than to either."""

    @property
    def objects(self) -> int:
        """All that count."""
        return self.same + self.apart


@dataclass(slots=True)
class Twins:
    """Which prototypes are interchangeable, as far as the objects that were added so far tell."""

    model: PCDNet
    _bank: PrototypeBank = field(init=False)
    _arrays: BankArrays = field(init=False)
    _pairs: list[tuple[int, int]] = field(default_factory=list)
    _turned: list[tuple[int, int]] = field(default_factory=list)
    _evidence: dict[tuple[int, int], _Evidence] = field(default_factory=lambda: defaultdict(_Evidence))

    def __post_init__(self) -> None:
        self._bank = self.model.weights().map(torch.Tensor.detach).clamped()
        self._arrays = self._bank.to_numpy()
        if self.model.config.poses > 1:
            alike = likeness(self.model.bank(), self.model.config).cpu().numpy()
            rows = range(len(alike))
            self._turned = [pair for pair in itertools.combinations(rows, 2) if alike[pair] > SAME_TURNED]
            return
        alike = likeness(self.model.bank()).cpu().numpy()
        np.fill_diagonal(alike, 0)
        nearest = np.argsort(-alike, axis=1, kind="stable")[:, :PARTNERS]
        pairs = {(min(a, b), max(a, b)) for a, row in enumerate(nearest.tolist()) for b in row if alike[a, b] > ALIKE}
        self._pairs = sorted(pairs)

    def add(self, images: Float32[np.ndarray, "n H W C"], found: Sequence[Decomposition]) -> None:
        """Look at the objects of some images, as many as are still needed."""
        ways = {way: _aligned(self._arrays, *way) for a, b in self._pairs for way in ((a, b), (b, a))}
        for image, scene in zip(images, found, strict=True):
            for (a, b), (shift, scale) in ways.items():
                evidence = self._evidence[a, b]
                for n in np.flatnonzero(scene.prototype_ids == a).tolist():
                    if evidence.objects < OBJECTS:
                        self._look(evidence, image, scene, n, _exchanged(scene, n, b, shift, scale))

    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of prototypes that are interchangeable, each with the lower number first."""
        return self._turned + [pair for pair in self._pairs if self._interchangeable(*pair)]

    def _interchangeable(self, a: int, b: int) -> bool:
        """Whether objects of either are as well explained by the other."""
        both = self._evidence[a, b], self._evidence[b, a]
        if not all(evidence.objects for evidence in both):
            return False
        if not any(evidence.apart for evidence in both):
            return True
        return any((evidence.between - 1) / max(1, evidence.apart) > EXCEPTIONS for evidence in both)

    def _look(
        self,
        evidence: _Evidence,
        image: Float32[np.ndarray, "H W C"],
        scene: Decomposition,
        n: int,
        other: Decomposition,
    ) -> None:
        """Add what one object says, which `other` has of another prototype."""
        part = self._window(scene, other, n)
        one, two = (self._painted(part, each) for each in (scene, other))
        alone = [self._painted(part, each, n) for each in (scene, other)]
        difference = two - one
        apart, visible = float(np.square(alone[1] - alone[0]).sum()), float(np.square(difference).sum())
        if visible < TOLD * apart:
            return
        seen = standing_pieces(difference, LEAST_CONTRAST) > 0
        if not seen.any():
            evidence.same += 1
            return
        left = image[part] - one
        noise = np.square(left[~seen]).mean() if not seen.all() else 0.0
        if np.square(left[seen]).sum() > visible + noise * left[seen].size:
            return  # it is neither of the two
        evidence.apart += 1
        evidence.between += bool(NEARER < float((left * difference).sum()) / visible < 1 - NEARER)

    def _painted(
        self, part: tuple[slice, slice], scene: Decomposition, only: int | None = None
    ) -> Float32[np.ndarray, "h w C"]:
        """A part of a scene, or one of its objects alone, painted without the rest."""
        channels = scene.colours.shape[1]
        height, width = part[0].stop - part[0].start, part[1].stop - part[1].start
        places = scene.positions - np.array([part[0].start, part[1].start])
        chosen = self._reaching(scene, part)
        if only is not None:
            chosen &= np.arange(len(scene)) == only
        behind = self._arrays.background if scene.background is None else scene.background
        own = np.zeros((height, width, channels), np.float32) if behind is None else np.ascontiguousarray(behind[part])
        smaller = dataclasses.replace(
            scene.only(chosen),
            positions=places[chosen].astype(scene.positions.dtype),
            instances=np.zeros((height, width), np.int32),
            reconstruction=np.zeros((height, width, channels), np.float32),
            error=0.0,
            background=None,
        )
        ground = torch.from_numpy(own).permute(2, 0, 1).to(self._bank.masks)
        return recompose(self._bank, smaller, None, ground, channels, config=self.model.config).reconstruction

    def _reaching(self, scene: Decomposition, part: tuple[slice, slice]) -> Bool[np.ndarray, "n"]:
        """Which objects are painted in a part of the image."""
        start, end = np.array([(each.start, each.stop) for each in part]).T
        away = np.zeros((len(scene), 1))
        if scene.posed:  # as far as a frame may reach that is turned and scaled
            away = FAR + np.ceil(scene.poses[:, 1:2] * np.hypot(*self._bank.frame))
        near = ((scene.positions + self._bank.frame + away > start) & (scene.positions - away < end)).all(axis=1)
        for n in np.flatnonzero(near).tolist() if scene.posed else ():
            corner, sides = self._frame(scene, n)
            near[n] = bool(((corner + sides > start) & (corner < end)).all())
        return np.asarray(near)

    def _frame(self, scene: Decomposition, n: int) -> tuple[Int64[np.ndarray, "2"], Int64[np.ndarray, "2"]]:
        """Where the frame begins in which an object is painted, and its sides."""
        row, column, sides = posed_place(self._bank.frame, poses_of(scene.only(np.array([n])))[0], self.model.config)
        return np.array([row, column]), np.array(sides)

    def _window(self, scene: Decomposition, other: Decomposition, n: int) -> tuple[slice, slice]:
        """The part of the image in which an object may be seen in either scene."""
        size, (one, two) = np.array(scene.instances.shape), [self._frame(each, n) for each in (scene, other)]
        start = np.minimum(one[0], two[0]).clip(0, size - 1).tolist()
        end = np.maximum(one[0] + one[1], two[0] + two[1]).clip(1, size).tolist()
        return slice(start[0], end[0]), slice(start[1], end[1])


def groups(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Pairs that share a prototype as one group, each in order."""
    found: list[set[int]] = []
    for pair in pairs:
        touching = [group for group in found if group & set(pair)]
        found = [group for group in found if group not in touching] + [set(pair).union(*touching)]
    return sorted(tuple(sorted(group)) for group in found)


def _aligned(bank: BankArrays, a: int, b: int) -> tuple[tuple[int, int], float]:
    """By how much the other's frame is shifted where it fits one best, and how much brighter it must be then."""
    one, other = (bank.prototypes[p] * bank.masks[p] for p in (a, b))
    fit = correlate(one, other, mode="full", method="fft")
    row, column = np.unravel_index(int(fit.argmax()), fit.shape)
    shift = int(row) - other.shape[0] + 1, int(column) - other.shape[1] + 1
    return shift, float(fit.max()) / max(float(np.square(other).sum()), 1e-9)


def _exchanged(scene: Decomposition, n: int, prototype: int, shift: tuple[int, int], scale: float) -> Decomposition:
    """The scene in which an object is of another prototype."""
    kinds, positions, colours = scene.prototype_ids.copy(), scene.positions.copy(), scene.colours.copy()
    kinds[n] = prototype
    (angle, scaled, mirrored), way = scene.poses[n].tolist(), np.array([shift], float)
    if scene.posed:
        positions = positions.astype(np.float32)
        way = turned(way, angle, scaled, mirrored=mirrored > 0)
    positions[n] += way[0].astype(positions.dtype)
    colours[n] *= np.float32(scale)
    return dataclasses.replace(scene, prototype_ids=kinds, positions=positions, colours=colours)
