"""Decomposition: what an image is made of, as plain NumPy."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Collection, Mapping
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
    position: tuple[int, int]
    """Top row and left column of the prototype's frame; negative where it hangs over the border."""
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
    positions: Int32[np.ndarray, "n 2"]
    """Top row and left column of every object's frame."""
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
    scales: Float32[np.ndarray, "n"] | None = None
    mirrored: Bool[np.ndarray, "n"] | None = None

    def __len__(self) -> int:
        return len(self.prototype_ids)

    @property
    def semantics(self) -> Int32[np.ndarray, "H W"]:
        """Which kind is seen at each pixel: 0 is background, p + 1 is prototype p."""
        kinds = np.concatenate([np.zeros(1, np.int32), self.prototype_ids + 1])
        semantics: np.ndarray = kinds[self.instances]
        return semantics

    @property
    def objects(self) -> tuple[SceneObject, ...]:
        """The objects, front to back."""
        boxes = visible_boxes(self.instances, len(self))
        return tuple(
            SceneObject(
                prototype=int(self.prototype_ids[n]),
                position=(int(self.positions[n, 0]), int(self.positions[n, 1])),
                colour=tuple(float(value) for value in self.colours[n]),
                depth=n,
                error_reduction=float(self.error_reductions[n]),
                box=boxes[n],
                instances=self.instances,
            )
            for n in range(len(self))
        )

    def without(self, prototypes: Collection[int]) -> Decomposition:
        """The same picture, but the objects of some prototypes are no objects of it: nobody asked for them."""
        kept = ~np.isin(self.prototype_ids, list(prototypes))
        if kept.all():
            return self
        labels = np.concatenate([np.zeros(1, np.int32), np.where(kept, np.cumsum(kept), 0).astype(np.int32)])
        return replace(
            self,
            prototype_ids=self.prototype_ids[kept],
            positions=self.positions[kept],
            colours=self.colours[kept],
            error_reductions=self.error_reductions[kept],
            instances=labels[self.instances],
        )

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
        is no object, only `channels` can say how many the image has.
        """
        try:
            things, (height, width) = record["objects"], record["size"]
            count, channels = len(things), len(things[0]["colour"]) if things else channels or 3
            return Decomposition(
                prototype_ids=np.array([thing["prototype"] for thing in things], np.int32).reshape(count),
                positions=np.array([thing["position"] for thing in things], np.int32).reshape(count, 2),
                colours=np.array([thing["colour"] for thing in things], np.float32).reshape(count, channels),
                error_reductions=np.array([thing.get("gain", 0.0) for thing in things], np.float32),
                instances=np.zeros((height, width), np.int32),
                reconstruction=np.zeros((height, width, channels), np.float32),
                error=float(record.get("error", 0.0)),
                name=str(record.get("name", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise PcdnetError(f"this is no record of a decomposition ({error!r}); give what `to_dict` made") from None

    def to_dict(self) -> dict[str, Any]:
        """The decomposition in words and numbers, ready for JSON; masks stay behind.

        `gain` is the error reduction of an object.
        """
        height, width = self.instances.shape
        # One count for all objects: a mask for each would take longer than all the rest. Some rows at a time, as
        # counting needs labels of 64 bits.
        counts = np.zeros(len(self) + 1, np.int64)
        for top in range(0, height, ROWS):
            counts += np.bincount(self.instances[top : top + ROWS].ravel(), minlength=len(self) + 1)
        pixels = counts[1:]
        columns = (self.prototype_ids, self.positions, self.colours, self.error_reductions, pixels)
        rows = zip(*(column.tolist() for column in columns), visible_boxes(self.instances, len(self)), strict=True)
        return {
            "format": FORMAT,
            "name": self.name,
            "size": [height, width],
            "error": self.error,
            "objects": [
                {
                    "prototype": prototype,
                    "position": position,
                    "colour": colour,
                    "depth": depth,
                    "gain": reduction,
                    "box": None if box is None else list(box),
                    "pixels": count,
                }
                for depth, (prototype, position, colour, reduction, count, box) in enumerate(rows)
            ],
        }

    def to_supervision(self, kinds: KindsLike | None = None, *, masks: bool = True) -> supervision.Detections:
        """The visible objects as supervision's detections, front to back; needs the extra `supervision`.

        `class_id` is the kind, and `data` has `class_name`, `prototype`, `depth`, `error_reduction` and `colour`, a row
        an object. There is no `confidence`: an error reduction ranks objects, but is no probability.

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
            },
        )

    def save(self, path: str | Path) -> None:
        """Write `to_dict` as a JSON file, whole or not at all."""
        with whole_file(path) as file:
            file.write(json.dumps(self.to_dict(), indent=1).encode() + b"\n")
