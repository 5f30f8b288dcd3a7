"""How well predicted instance labels agree with the ground truth.

A label map gives every pixel an integer: 0 is background, 1, 2, ... are objects, and which object has which
number never matters. Scores lie in [0, 1], except that ARI falls below 0 for predictions worse than chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float64, Int64, Integer, Shaped
from scipy.optimize import linear_sum_assignment

from pcdnet.errors import PcdnetError

# Loose on purpose: type and shape are checked by hand, because wrong labels are a user's mistake.
Labels: TypeAlias = Shaped[np.ndarray, "..."]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Means over scenes."""

    scenes: int
    """How many scenes were scored."""
    fg_ari: float
    """ARI over the pixels that truly belong to objects: what the paper reports."""
    ari: float
    """ARI over all pixels, the background being one more group."""
    miou: float
    """Mean IoU of true objects with the predicted objects that match them best, one to one."""
    count_accuracy: float
    """Share of scenes with the right number of objects."""
    perfect: float
    """Share of scenes with an FG-ARI of exactly 1."""


def adjusted_rand_index(target: Labels, prediction: Labels) -> float:
    """Return how well two groupings agree: 1 for the same groups, 0 on average for chance.

    Arrays of any shape will do, and label 0 is a group like any other. Nothing to group counts as agreement.
    """
    return _ari(_overlap(*_checked(target, prediction)))


def foreground_ari(target: Labels, prediction: Labels) -> float:
    """Return the ARI over the pixels whose true label is an object; 1 if there are none.

    Objects that spill into the background cost nothing here, and the predicted background counts as a group.
    """
    return _ari(_foreground(_overlap(*_checked(target, prediction))))


def mean_iou(target: Labels, prediction: Labels) -> float:
    """Return the mean IoU of the true objects, matched one to one with predicted objects to make it largest.

    A true object without a partner counts 0, and superfluous predicted objects cost nothing; but where the
    ground truth is empty, the score is 1 for an empty prediction and 0 for any other.
    """
    return _mean_iou(mask_iou(target, prediction))


def mask_iou(target: Labels, prediction: Labels) -> Float64[np.ndarray, "true predicted"]:
    """Return the IoU of every true object with every predicted one, both in the order of their labels.

    Labels that no pixel carries have no row or column.
    """
    return _ious(_overlap(*_checked(target, prediction)))


def score(targets: Sequence[Labels] | Labels, predictions: Sequence[Labels] | Labels) -> Scores:
    """Return the mean scores over scenes, given as two equally long stacks or lists of (H W) label maps."""
    if len(targets) != len(predictions):
        counts = f"{len(targets)} true and {len(predictions)} predicted label maps"
        raise PcdnetError(f"there are {counts}; give one prediction for every scene")
    if len(targets) == 0:
        raise PcdnetError("there are 0 scenes to score; give at least one label map")
    parts = []
    for index, (target, prediction) in enumerate(zip(targets, predictions, strict=True)):
        if np.ndim(target) != 2:
            problem = f"the true label map of scene {index} has shape {np.shape(target)}"
            raise PcdnetError(f"{problem}; give height x width maps, and a single map as a list of one")
        parts.append(_scene_scores(_overlap(*_checked(target, prediction, f" of scene {index}"))))
    return combined(parts)


def combined(parts: Sequence[Scores]) -> Scores:
    """Return the scores of all scenes together, from those of parts of any size."""
    scenes = [part.scenes for part in parts]
    if not sum(scenes):
        raise PcdnetError("there are 0 scores to combine; give those of at least one part")
    names = [field.name for field in fields(Scores) if field.name != "scenes"]
    means = {name: float(np.average([getattr(part, name) for part in parts], weights=scenes)) for name in names}
    return Scores(scenes=sum(scenes), **means)


class _Overlap(NamedTuple):
    """How many pixels carry each pair of labels that occurs; sparse, since labels may be many."""

    target: Int64[np.ndarray, " pairs"]
    prediction: Int64[np.ndarray, " pairs"]
    pixels: Int64[np.ndarray, " pairs"]


def _checked(
    target: Labels, prediction: Labels, which: str = ""
) -> tuple[Integer[np.ndarray, "*shape"], Integer[np.ndarray, "*shape"]]:
    maps = {"true": np.asarray(target), "predicted": np.asarray(prediction)}
    for name, labels in maps.items():
        problem = f"are of type {labels.dtype}" if labels.dtype.kind not in "iu" else ""
        if not problem and labels.min(initial=0) < 0:
            problem = f"go down to {labels.min()}"
        if problem:
            cure = "give integers, 0 for background and 1, 2, ... for objects"
            raise PcdnetError(f"the {name} labels{which} {problem}; {cure}")
    true, predicted = maps.values()
    if true.shape != predicted.shape:
        problem = f"have shape {true.shape} and the predicted ones {predicted.shape}"
        raise PcdnetError(f"the true labels{which} {problem}; give one label for every pixel of the same image")
    return true, predicted


def _overlap(target: Integer[np.ndarray, "*shape"], prediction: Integer[np.ndarray, "*shape"]) -> _Overlap:
    true, predicted = _numbered(target), _numbered(prediction)
    base = predicted.max(initial=0) + 1
    pairs, pixels = np.unique(true * base + predicted, return_counts=True)  # below the square of the pixels' number
    return _Overlap(pairs // base, pairs % base, pixels)


def _numbered(labels: Integer[np.ndarray, "*shape"]) -> Int64[np.ndarray, " n"]:
    """The same grouping by the numbers 1, 2, ...; 0 stays 0."""
    distinct, numbers = np.unique(labels, return_inverse=True)
    return numbers.ravel() + int(0 not in distinct[:1])


def _scene_scores(overlap: _Overlap) -> Scores:
    fg_ari, iou = _ari(_foreground(overlap)), _ious(overlap)
    return Scores(
        scenes=1,
        fg_ari=fg_ari,
        ari=_ari(overlap),
        miou=_mean_iou(iou),
        count_accuracy=float(iou.shape[0] == iou.shape[1]),
        perfect=float(fg_ari == 1),
    )


def _foreground(overlap: _Overlap) -> _Overlap:
    kept = overlap.target > 0
    return _Overlap(overlap.target[kept], overlap.prediction[kept], overlap.pixels[kept])


def _ari(overlap: _Overlap) -> float:
    # Ordered pairs of pixels that share a group in both, in the ground truth, in the prediction. Sums fit 64 bits up
    # to 3e9 pixels, their products do not: hence Python's integers, which never overflow.
    n = int(overlap.pixels.sum())
    areas = (np.bincount(labels, overlap.pixels).astype(np.int64) for labels in (overlap.target, overlap.prediction))
    both, true, predicted = (int(np.square(sizes).sum()) for sizes in (overlap.pixels, *areas))
    together, split, merged, apart = both - n, true - both, predicted - both, n * n - true - predicted + both
    if split == merged == 0:
        return 1.0
    chance_free = together * apart - split * merged
    return 2 * chance_free / ((together + split) * (split + apart) + (together + merged) * (merged + apart))


def _mean_iou(iou: Float64[np.ndarray, "true predicted"]) -> float:
    true, predicted = iou.shape
    if true == 0 or predicted == 0:
        return float(true == predicted)
    return float(iou[linear_sum_assignment(iou, maximize=True)].sum() / true)


def _ious(overlap: _Overlap) -> Float64[np.ndarray, "true predicted"]:
    true, row = np.unique(overlap.target, return_inverse=True)
    predicted, column = np.unique(overlap.prediction, return_inverse=True)
    shared = np.zeros((true.size, predicted.size))
    shared[row, column] = overlap.pixels
    union = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0, keepdims=True) - shared
    iou: np.ndarray = (shared / union)[true > 0][:, predicted > 0]
    return iou
