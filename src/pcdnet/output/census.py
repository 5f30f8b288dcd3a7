"""Census: what was found of every kind of object: how many in an image, how large, and in which colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt8

from pcdnet.colours import as_hex, colour_words
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.kinds import Kind, Kinds
from pcdnet.model.composition import OPAQUE
from pcdnet.scene import visible_boxes

COLOURS = 6
"""Colours of the objects of a kind that are named at most."""
NEAR = 0.2
"""Colours nearer than this, in a cube of side 1, count as one."""

SECTORS = 24
"""Directions in which angles are counted."""

UsualColour = tuple[UInt8[np.ndarray, "3"], float]
"""A colour, and the share of the objects that have it."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Poses:
    """How some objects are turned, scaled and mirrored."""

    angles: Float[np.ndarray, "n"]
    """Degrees counter-clockwise."""
    scales: Float[np.ndarray, "n"]
    """Factors on the prototypes."""
    mirrored: Bool[np.ndarray, "n"]

    @property
    def turned(self) -> bool:
        """Whether any object is turned."""
        return bool(self.angles.any())

    @property
    def scaled(self) -> bool:
        """Whether any has another size than its prototype."""
        return bool((self.scales != 1).any())

    @property
    def directions(self) -> Int64[np.ndarray, "sectors"]:
        """How many objects are turned in each of some directions, of which the first is around 0."""
        sectors = np.round(self.angles * SECTORS / 360).astype(np.int64) % SECTORS
        return np.bincount(sectors, minlength=SECTORS).astype(np.int64)

    @property
    def percents(self) -> Int64[np.ndarray, "n"]:
        """The sizes in per cent of the prototypes'."""
        return np.round(100 * self.scales).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The numbers in short, ready for JSON."""
        mirrored = float(self.mirrored.mean()) if len(self.mirrored) else 0.0
        return {"directions": self.directions.tolist(), "scale": _spread(self.scales), "mirrored": round(mirrored, 4)}

    def part(self, which: Bool[np.ndarray, "n"]) -> Poses:
        """Those of some of the objects."""
        return Poses(angles=self.angles[which], scales=self.scales[which], mirrored=self.mirrored[which])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Counted:
    """The objects of one kind, or of all."""

    kind: Kind | None
    """Which kind; None stands for all."""
    counts: Int64[np.ndarray, "images"]
    """How many there are in every image."""
    sizes: Int64[np.ndarray, "n 2"]
    """Height and width of what is seen of every object that others do not hide, in pixels."""
    areas: Int64[np.ndarray, "n"]
    """How many pixels are seen of each of them."""
    colours: Sequence[UsualColour] = ()
    """The usual colours with their shares, most frequent first."""
    poses: Poses | None = None
    """Their poses; None where the model has none."""

    @property
    def objects(self) -> int:
        """How many there are in all images."""
        return int(self.counts.sum())

    def to_dict(self) -> dict[str, Any]:
        """The numbers in short, ready for JSON; sizes are null where nothing is seen."""
        height, width = (_spread(self.sizes[:, axis]) for axis in (0, 1))
        words = colour_words([(colour / 255).tolist() for colour, _ in self.colours])
        usual = zip(words, self.colours, strict=True)
        return {
            "name": None if self.kind is None else self.kind.name,
            "prototypes": None if self.kind is None else list(self.kind.prototypes),
            "objects": self.objects,
            "per_image": _spread(self.counts),
            "height": height,
            "width": width,
            "area": _spread(self.areas),
            "colours": [{"word": word, "hex": as_hex(c), "share": round(share, 4)} for word, (c, share) in usual],
            **({} if self.poses is None else {"poses": self.poses.to_dict()}),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Census:
    """What was found in some images."""

    images: int
    """How many images."""
    everything: Counted
    """All objects."""
    kinds: tuple[Counted, ...]
    """Those of every kind, in the order of the kinds."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers in short, ready for JSON."""
        total = self.everything.to_dict()
        names = "objects", "per_image", "height", "width", "area", *(["poses"] if "poses" in total else [])
        return {
            "images": self.images,
            **{name: total[name] for name in names},
            "kinds": [counted.to_dict() for counted in self.kinds],
        }


def census(found: Sequence[Decomposition], kinds: Kinds, bank: BankArrays) -> Census:
    """Count what was found, kind by kind; names, merges and kinds of one shape and several colours are respected.

    Objects and kinds of hidden prototypes are left out.
    """
    found = [scene.without(kinds.names.hidden) for scene in found]
    ids = [kinds.ids(scene.prototype_ids, scene.colours) for scene in found]
    channels = found[0].colours.shape[1] if found else 1
    counts = np.array([np.bincount(own, minlength=len(kinds)) for own in ids], np.int64).reshape(-1, len(kinds))
    kind = np.concatenate([np.zeros(0, np.int64), *ids])
    areas = np.concatenate([np.zeros(0, np.int64), *map(_areas, found)])
    sizes = np.concatenate([np.zeros((0, 2), np.int64), *map(_sizes, found)])
    paints = [scene.colours * brightness(bank)[scene.prototype_ids, None] for scene in found]
    colours = np.concatenate([np.zeros((0, channels)), *paints])
    seen, poses = areas > 0, _poses(found)
    return Census(
        images=len(found),
        everything=Counted(kind=None, counts=counts.sum(axis=1), sizes=sizes[seen], areas=areas[seen], poses=poses),
        kinds=tuple(
            Counted(
                kind=one,
                counts=counts[:, one.id],
                sizes=sizes[seen & (kind == one.id)],
                areas=areas[seen & (kind == one.id)],
                colours=usual_colours(colours[kind == one.id]),
                poses=None if poses is None else poses.part(kind == one.id),
            )
            for one in kinds
            if not kinds.names.hidden.issuperset(one.prototypes)
        ),
    )


def brightness(bank: BankArrays) -> Float[np.ndarray, "P"]:
    """How bright every prototype is under its mask: what is seen of an object is its colour times this."""
    inside = bank.masks * (bank.masks > OPAQUE)
    return np.asarray((bank.prototypes * inside).sum(axis=(1, 2)) / np.maximum(inside.sum(axis=(1, 2)), 1e-6))


def usual_colours(colours: Float[np.ndarray, "n C"]) -> list[UsualColour]:
    """The most frequent colours with their shares, most frequent first; those near to each other are one."""
    left = np.broadcast_to(colours.clip(0, 1), (len(colours), 3))
    usual: list[UsualColour] = []
    while len(left) and len(usual) < COLOURS:
        _, which, counts = np.unique(np.round(left * 8), axis=0, return_inverse=True, return_counts=True)
        middle = left[which.ravel() == counts.argmax()].mean(axis=0)
        near = np.linalg.norm(left - middle, axis=1) <= NEAR
        colour = np.round(255 * left[near].mean(axis=0)).astype(np.uint8)
        usual.append((colour, float(near.sum()) / len(colours)))
        left = left[~near]
    return sorted(usual, key=lambda pair: -pair[1])


def _poses(found: Sequence[Decomposition]) -> Poses | None:
    if not any(scene.posed for scene in found):
        return None
    angles, scales, mirrored = np.concatenate([scene.poses for scene in found]).T
    return Poses(angles=angles, scales=scales, mirrored=mirrored > 0)


def _areas(scene: Decomposition) -> Int64[np.ndarray, "n"]:
    return np.bincount(scene.instances.ravel(), minlength=len(scene) + 1)[1:].astype(np.int64)


def _sizes(scene: Decomposition) -> Int64[np.ndarray, "n 2"]:
    boxes = visible_boxes(scene.instances, len(scene))
    return np.array([(0, 0) if box is None else box[2:] for box in boxes], np.int64).reshape(-1, 2)


def _spread(values: Int64[np.ndarray, "n"] | Float[np.ndarray, "n"]) -> dict[str, float] | None:
    """Mean, median, and the range with a tenth of the values beyond each end; None of no value."""
    if len(values) == 0:
        return None
    low, median, high = np.percentile(values, (10, 50, 90)).tolist()
    return {"mean": round(float(values.mean()), 4), "median": median, "p10": low, "p90": high}
