"""Matching: which of the found objects are which of the true ones.

It goes as COCO's does: found objects take their turn by score, and each takes the true object that it overlaps
most. True objects that do not count are taken only by those that find no other, so that neither costs anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int32, Int64, Integer

from pcdnet.scene import visible_boxes

IOU, LOOSE_IOU = 0.5, 0.3
"""Overlap that makes a found object a true one: the usual, and a lenient one for small or blurred objects."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Found:
    """The objects found in one image, as far as they are seen."""

    boxes: Float32[np.ndarray, "n 4"]
    """Top, left, height and width of their visible pixels."""
    scores: Float[np.ndarray, "n"]
    """How much speaks for each: by how much it lowers the squared error."""
    prototype_ids: Integer[np.ndarray, "n"]
    """What each is an instance of."""

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Matches:
    """The found and the true objects of one scene, and which are the same."""

    scores: Float[np.ndarray, "n"]
    """How much speaks for each found object."""
    prototype_ids: Integer[np.ndarray, "n"]
    """What each found object is an instance of."""
    kinds: Integer[np.ndarray, "m"]
    """The kind of each true object."""
    counted: Bool[np.ndarray, "m"]
    """Which true objects count; to find or to miss one of the others costs nothing."""
    partners: Int64[np.ndarray, "n"]
    """The true object that each found one is, at an IoU of 0.5; -1 where it is none."""
    loose: Int64[np.ndarray, "n"]
    """The same at an IoU of 0.3."""


def found_objects(
    instances: Int32[np.ndarray, "H W"], prototype_ids: Integer[np.ndarray, "n"], scores: Float[np.ndarray, "n"]
) -> Found:
    """Return what is seen of the objects of a label map, whose n-th has the label n + 1; hidden ones are left out."""
    boxes = visible_boxes(instances, len(prototype_ids))
    seen = [n for n, box in enumerate(boxes) if box is not None]
    return Found(
        boxes=np.array([boxes[n] for n in seen], dtype=np.float32).reshape(-1, 4),
        scores=scores[seen],
        prototype_ids=prototype_ids[seen],
    )


def box_iou(found: Float[np.ndarray, "n 4"], target: Float[np.ndarray, "m 4"]) -> Float64[np.ndarray, "n m"]:
    """Return the IoU of every found with every true box; boxes are top, left, height and width, in float pixels."""
    ours, theirs = found.astype(np.float64)[:, None], target.astype(np.float64)[None]
    ends = np.minimum(ours[..., :2] + ours[..., 2:], theirs[..., :2] + theirs[..., 2:])
    shared = np.clip(ends - np.maximum(ours[..., :2], theirs[..., :2]), 0, None).prod(axis=-1)
    union = ours[..., 2:].prod(axis=-1) + theirs[..., 2:].prod(axis=-1) - shared
    iou: np.ndarray = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return iou


def match(
    iou: Float[np.ndarray, "n m"],
    scores: Float[np.ndarray, "n"],
    counted: Bool[np.ndarray, "m"],
    least: float = IOU,
) -> Int64[np.ndarray, "n"]:
    """Return the true object of every found one, -1 for none; each true object is given away once at most.

    What does not count is taken only by those that find nothing that counts, however well they overlap with it.
    """
    partners = np.full(len(scores), -1, dtype=np.int64)
    # Any true object that counts is preferred to any that does not. Unusable pairs are far below both.
    worth = np.where(iou >= least, iou + 2.0 * counted, -1.0)
    for n in np.argsort(-scores, kind="stable"):
        if worth.shape[1] == 0:
            break
        best = worth.shape[1] - 1 - int(worth[n, ::-1].argmax())  # the last of equals, as COCO's
        if worth[n, best] >= 0:
            partners[n] = best
            worth[:, best] = -1.0
    return partners


def match_scene(
    found: Found,
    iou: Float[np.ndarray, "n m"],
    *,
    kinds: Integer[np.ndarray, "m"] | None = None,
    counted: Bool[np.ndarray, "m"] | None = None,
) -> Matches:
    """Return which found objects of a scene are which true ones, by how they overlap: `box_iou`, or that of masks.

    Without `kinds` all true objects are of one kind, and without `counted` all of them count.
    """
    kinds = np.zeros(iou.shape[1], dtype=np.int32) if kinds is None else kinds
    counted = np.ones(iou.shape[1], dtype=bool) if counted is None else counted
    return Matches(
        scores=found.scores,
        prototype_ids=found.prototype_ids,
        kinds=kinds,
        counted=counted,
        partners=match(iou, found.scores, counted, IOU),
        loose=match(iou, found.scores, counted, LOOSE_IOU),
    )
