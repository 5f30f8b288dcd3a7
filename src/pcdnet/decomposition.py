"""Decomposition: what an image is made of, as plain NumPy."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Float32, Int32, Int64, Integer
from PIL import Image

from pcdnet.colours import as_rgb, coloured, instance_colours
from pcdnet.errors import PcdnetError
from pcdnet.files import whole_file
from pcdnet.scene import visible_boxes

if TYPE_CHECKING:
    import supervision

FORMAT = "pcdnet-decomposition-1"
"""Names the schema of `to_dict`."""
ROWS = 512
"""Rows of labels that are counted at a time."""
FARTHEST, LARGEST_SCALE = 2**31, 2.0**100
"""No position of a record is as far from the picture's corner, and no object as much larger than its prototype."""
UPRIGHT = {"angle": 0.0, "scale": 1.0, "mirrored": False}
"""What records say of objects that have poses, and what is meant where they do not."""
POSE = tuple(UPRIGHT)
"""The names of it."""


class BankArrays(NamedTuple):
    """What objects look like: the prototypes of a model with their masks, and what is behind them."""

    prototypes: Float[np.ndarray, "P h w"]
    masks: Float[np.ndarray, "P h w"]
    background: Float[np.ndarray, "H W C"] | None = None
    """None stands for black."""


@runtime_checkable
class Named(Protocol):
    """A kind of objects, as far as its name goes."""

    @property
    def name(self) -> str:
        """What it is called."""


@runtime_checkable
class KindsLike(Protocol):
    """What tells the kinds of objects, such as `PCDNet.kinds`."""

    def ids(self, prototype_ids: Integer[np.ndarray, "n"], colours: Float[np.ndarray, "n C"]) -> Int64[np.ndarray, "n"]:
        """The kinds of objects, by their prototypes and colours."""

    def __getitem__(self, kind: int) -> Named:
        """One of the kinds."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SceneObject:
    """One object of an image."""

    prototype: int
    """Which prototype it is an instance of, from 0."""
    position: tuple[float, float]
    """Top row and left column of the prototype's frame, upright; negative where it hangs over the border."""
    colour: tuple[float, ...]
    """Factor per channel on the grey prototype."""
    depth: int
    """0 is nearest the viewer."""
    error_reduction: float
    """How much the squared error fell when the object was added behind those before it."""
    box: tuple[int, int, int, int] | None
    """Top, left, height and width of its visible pixels; None where others hide it."""
    instances: Int32[np.ndarray, "H W"] = field(repr=False)
    """The labels of the whole image."""
    angle: float = 0.0
    """By how many degrees it is turned counter-clockwise around the middle of its frame."""
    scale: float = 1.0
    """How much larger it is than its prototype."""
    mirrored: bool = False
    """Whether it is a mirror image, left to right, before it is turned."""

    @property
    def mask(self) -> Bool[np.ndarray, "H W"]:
        """Its visible pixels; made when it is asked for, as those of all objects of a large image fill the memory."""
        mask: Bool[np.ndarray, "H W"] = self.instances == self.depth + 1
        return mask


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Decomposition:
    """An image as a stack of objects, front to back.

    Examples
    --------
    >>> record = {"size": [8, 8], "objects": [{"prototype": 3, "position": [2, -1], "colour": [0.5], "gain": 1.5}]}
    >>> found = Decomposition.from_dict(record)
    >>> found
    Decomposition(1 object of prototype 3, squared error 0)
    >>> found.objects[0].position
    (2, -1)
    """

    prototype_ids: Int32[np.ndarray, "n"]
    """The prototype of every object."""
    positions: Int32[np.ndarray, "n 2"] | Float32[np.ndarray, "n 2"]
    """Top row and left column of every object's frame, upright: around its middle, (h - 1) / 2 rows below and
    (w - 1) / 2 columns to the right, the prototype is mirrored left to right, then scaled, then turned."""
    colours: Float32[np.ndarray, "n C"]
    """Factor per channel on every object's grey prototype."""
    error_reductions: Float32[np.ndarray, "n"]
    """How much the squared error fell with every object."""
    instances: Int32[np.ndarray, "H W"]
    """The object that each pixel belongs to: 0 is background, n + 1 the n-th object from the front."""
    reconstruction: Float32[np.ndarray, "H W C"]
    """The image that the objects make."""
    error: float
    """Squared error of the reconstruction, summed over pixels and channels."""
    name: str = ""
    """Where the image came from."""
    background: Float32[np.ndarray, "H W C"] | None = None
    """What is behind the objects, where the model makes it for each image."""
    angles: Float32[np.ndarray, "n"] | None = None
    """By how many degrees, from 0 to 360, every object is turned counter-clockwise as one looks at the picture. Like
    `scales` and `mirrored` it is None where the model has no poses."""
    scales: Float32[np.ndarray, "n"] | None = None
    """How much larger every object is than its prototype."""
    mirrored: Bool[np.ndarray, "n"] | None = None
    """Which objects are mirror images."""

    def __len__(self) -> int:
        return len(self.prototype_ids)

    @property
    def posed(self) -> bool:
        """Whether it says how objects are turned, scaled and mirrored."""
        return not (self.angles is None and self.scales is None and self.mirrored is None)

    @property
    def poses(self) -> Float32[np.ndarray, "n 3"]:
        """Angle, scale, and 1 for a mirror image, of every object; upright where that is not known."""
        poses = np.tile(np.array([0, 1, 0], np.float32), (len(self), 1))
        for place, values in enumerate((self.angles, self.scales, self.mirrored)):
            if values is not None:
                poses[:, place] = values
        return poses

    def with_poses(self, poses: Float32[np.ndarray, "n 3"]) -> Decomposition:
        """The same objects in other poses, as `poses` has them."""
        return replace(self, angles=poses[:, 0] % 360, scales=poses[:, 1].copy(), mirrored=poses[:, 2] > 0.5)

    @property
    def semantics(self) -> Int32[np.ndarray, "H W"]:
        """Which kind is seen at each pixel: 0 is background, p + 1 is prototype p."""
        kinds = np.concatenate([np.zeros(1, np.int32), self.prototype_ids + 1])
        semantics: np.ndarray = kinds[self.instances]
        return semantics

    @property
    def objects(self) -> tuple[SceneObject, ...]:
        """The objects, front to back."""
        boxes, positions, poses = visible_boxes(self.instances, len(self)), _plain(self.positions), self.poses.tolist()
        return tuple(
            SceneObject(
                prototype=int(self.prototype_ids[n]),
                position=(positions[n][0], positions[n][1]),
                colour=tuple(float(value) for value in self.colours[n]),
                depth=n,
                error_reduction=float(self.error_reductions[n]),
                box=boxes[n],
                instances=self.instances,
                angle=poses[n][0],
                scale=poses[n][1],
                mirrored=poses[n][2] > 0,
            )
            for n in range(len(self))
        )

    def only(self, which: Bool[np.ndarray, "n"] | Integer[np.ndarray, "m"]) -> Decomposition:
        """Some of the objects, over the labels and the picture of all."""
        return replace(
            self,
            prototype_ids=self.prototype_ids[which],
            positions=self.positions[which],
            colours=self.colours[which],
            error_reductions=self.error_reductions[which],
            angles=None if self.angles is None else self.angles[which],
            scales=None if self.scales is None else self.scales[which],
            mirrored=None if self.mirrored is None else self.mirrored[which],
        )

    def without(self, prototypes: Collection[int]) -> Decomposition:
        """The same picture, but the objects of some prototypes are no objects of it: nobody asked for them."""
        kept = ~np.isin(self.prototype_ids, list(prototypes))
        if kept.all():
            return self
        labels = np.concatenate([np.zeros(1, np.int32), np.where(kept, np.cumsum(kept), 0).astype(np.int32)])
        return replace(self.only(kept), instances=labels[self.instances])

    def __repr__(self) -> str:
        often = sorted(Counter(self.prototype_ids.tolist()).items())
        kinds = ", ".join(f"{count} of prototype {p}" for p, count in often)
        found = {0: "no object", 1: kinds.replace(" of", " object of")}.get(len(self), f"{len(self)} objects: {kinds}")
        return f"Decomposition({self.name and f'{self.name}: '}{found}, squared error {self.error:.3g})"

    def _repr_html_(self) -> str:
        """For notebooks: the image that the objects make, and its objects in colours of their own."""
        labels = coloured(self.instances, instance_colours(len(self)))
        pictures = np.concatenate([as_rgb(self.reconstruction), labels], axis=1)
        buffer = io.BytesIO()
        Image.fromarray(pictures).save(buffer, format="png")
        source = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        style = f"image-rendering: pixelated; width: {max(320, pictures.shape[1])}px; max-width: 100%"
        return f'<figure><img src="{source}" style="{style}"><figcaption>{escape(repr(self))}</figcaption></figure>'

    @staticmethod
    def from_dict(record: Mapping[str, Any], channels: int | None = None) -> Decomposition:
        """The objects of a record: of `to_dict`, or of a line of `decompositions.jsonl`.

        A record holds no pixels: labels and reconstruction are empty until `PCDNet.recompose` paints them. Where there
        is no object, only `channels` can say how many the image has. Where any object has a pose, those that have none
        are upright.
        """
        try:
            things, (height, width) = record["objects"], record["size"]
            count, channels = len(things), len(things[0]["colour"]) if things else channels or 3
            found = Decomposition(
                prototype_ids=np.array([thing["prototype"] for thing in things], np.int32).reshape(count),
                positions=_positions(things),
                colours=np.array([thing["colour"] for thing in things], np.float32).reshape(count, channels),
                error_reductions=np.array([thing.get("gain", 0.0) for thing in things], np.float32),
                instances=np.zeros((height, width), np.int32),
                reconstruction=np.zeros((height, width, channels), np.float32),
                error=float(record.get("error", 0.0)),
                name=str(record.get("name", "")),
            )
            return found.with_poses(_poses(things)) if any(set(POSE) & thing.keys() for thing in things) else found
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise PcdnetError(f"this is no record of a decomposition ({error!r}); give what `to_dict` made") from None

    def to_dict(self) -> dict[str, Any]:
        """The decomposition in words and numbers, ready for JSON; masks stay behind.

        `gain` is the error reduction of an object; `angle`, `scale` and `mirrored` are there where there are poses.
        """
        height, width = self.instances.shape
        # One count for all objects: a mask for each would take longer than all the rest. Some rows at a time, as
        # counting needs labels of 64 bits.
        counts = np.zeros(len(self) + 1, np.int64)
        for top in range(0, height, ROWS):
            counts += np.bincount(self.instances[top : top + ROWS].ravel(), minlength=len(self) + 1)
        pixels = counts[1:]
        columns = (column.tolist() for column in (self.prototype_ids, self.colours, self.error_reductions, pixels))
        places, boxes = _plain(self.positions), visible_boxes(self.instances, len(self))
        poses: list[dict[str, Any]] = [{}] * len(self)
        if self.posed:
            poses = [{"angle": a, "scale": s, "mirrored": m > 0} for a, s, m in self.poses.tolist()]
        rows = zip(*columns, places, poses, boxes, strict=True)
        return {
            "format": FORMAT,
            "name": self.name,
            "size": [height, width],
            "error": self.error,
            "objects": [
                {
                    "prototype": prototype,
                    "position": position,
                    **pose,
                    "colour": colour,
                    "depth": depth,
                    "gain": reduction,
                    "box": None if box is None else list(box),
                    "pixels": count,
                }
                for depth, (prototype, colour, reduction, count, position, pose, box) in enumerate(rows)
            ],
        }

    def to_supervision(self, kinds: KindsLike | None = None, *, masks: bool = True) -> supervision.Detections:
        """The visible objects as supervision's detections, front to back; needs the extra `supervision`.

        `class_id` is the kind, and `data` has `class_name`, `prototype`, `depth`, `error_reduction` and `colour`, and
        `angle`, `scale` and `mirrored` where there are poses, a row an object. There is no `confidence`: an error
        reduction ranks objects, but is no probability.

        Parameters
        ----------
        kinds
            The kinds of the model, `model.kinds`; without them every prototype is a kind of its own, by number.
        masks
            Whether to give the pixels of every object: as many values as the image has, for each of them.

        Returns
        -------
        supervision.Detections
            What its annotators, trackers and metrics take.
        """
        try:
            from supervision import Detections
        except ImportError:
            raise PcdnetError(
                "to_supervision needs the package supervision, which is missing; pip install 'pcdnet[supervision]'"
            ) from None
        boxes = visible_boxes(self.instances, len(self))
        seen = np.array([n for n, box in enumerate(boxes) if box is not None], np.int64)
        corners = np.array([box for box in boxes if box is not None], np.float32).reshape(-1, 4)
        prototypes, colours = self.prototype_ids[seen], self.colours[seen]
        classes = prototypes.astype(np.int64) if kinds is None else kinds.ids(prototypes, colours)
        angles, scales, mirrored = self.poses[seen].T
        pose = {"angle": angles, "scale": scales, "mirrored": mirrored > 0} if self.posed else {}
        names = [f"prototype {kind}" if kinds is None else kinds[kind].name for kind in classes.tolist()]
        return Detections(
            xyxy=np.concatenate([corners[:, 1::-1], corners[:, 1::-1] + corners[:, :1:-1]], axis=1),
            mask=self.instances == seen[:, None, None] + 1 if masks else None,
            class_id=classes,
            data={
                "class_name": np.array(names, np.str_),
                "prototype": prototypes,
                "depth": seen,
                "error_reduction": self.error_reductions[seen],
                "colour": colours,
                **pose,
            },
        )

    def save(self, path: str | Path) -> None:
        """Write `to_dict` as a JSON file, whole or not at all."""
        with whole_file(path) as file:
            file.write(json.dumps(self.to_dict(), indent=1).encode() + b"\n")


def _plain(positions: Int32[np.ndarray, "n 2"] | Float32[np.ndarray, "n 2"]) -> list[list[float]]:
    """Positions as plain numbers: whole ones are ints."""
    if positions.dtype.kind == "i":
        whole: list[list[float]] = positions.tolist()
        return whole
    return [[int(at) if at == int(at) else at for at in position] for position in positions.tolist()]


def _positions(things: Sequence[Mapping[str, Any]]) -> Int32[np.ndarray, "n 2"] | Float32[np.ndarray, "n 2"]:
    """The positions of a record's objects, or ValueError; integers where all of them are whole pixels."""
    exact = np.array([thing["position"] for thing in things], np.float64).reshape(len(things), 2)
    if not (np.abs(exact) < FARTHEST).all():
        raise ValueError("a position is no number of pixels")
    return exact.astype(np.int32 if (exact == np.floor(exact)).all() else np.float32)


def _poses(things: Sequence[Mapping[str, Any]]) -> Float32[np.ndarray, "n 3"]:
    """The poses of a record's objects, as `Decomposition.poses` has them, or ValueError."""
    given = [[thing.get(name, usual) for name, usual in UPRIGHT.items()] for thing in things]
    if not all(type(mirrored) is bool for _, _, mirrored in given):
        raise ValueError("mirrored is neither true nor false")
    poses = np.array(given, np.float64)
    angles, scales = poses[:, 0], poses[:, 1]
    if not np.isfinite(angles).all() or not ((scales > 1 / LARGEST_SCALE) & (scales < LARGEST_SCALE)).all():
        raise ValueError("an angle is no number, or a scale is none above 0")
    poses[:, 0] %= 360
    return poses.astype(np.float32)
