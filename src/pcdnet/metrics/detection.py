"""Detection: how many of the true objects were found, and how many of the found ones are true.

Scores are of all scenes together, not means of scenes, so that crowded scenes weigh more. Where no scene has a
true object that counts, they are None: nothing can be right or wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from pcdnet.errors import PcdnetError
from pcdnet.metrics.matching import Matches

RECALLS = np.linspace(0, 1, 101)
"""Where average precision reads the precision off, as COCO's does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectionScores:
    """Scores of all scenes together, at an IoU of 0.5 where nothing else is said."""

    precision: float | None = None
    """Share of the found objects that are true; 0 where nothing was found."""
    recall: float | None = None
    """Share of the true objects that were found."""
    f1: float | None = None
    """Harmonic mean of precision and recall."""
    f1_at_30: float | None = None
    """The same at an IoU of 0.3."""
    ap50: float | None = None
    """Mean precision over all recalls, as the scores of the objects rank them: COCO's AP at an IoU of 0.5."""
    count_accuracy: float | None = None
    """Share of scenes with the right number of objects."""
    count_error: float | None = None
    """Mean difference between the numbers of found and true objects, whichever is larger."""
    count_bias: float | None = None
    """How many more objects were found than there are, on average; negative where they were fewer."""
    purity: float | None = None
    """Share of the matches in which the true object is of its prototype's usual kind; None without any match."""
    semantic_accuracy: float | None = None
    """Share of the true objects found by a prototype whose usual kind is theirs."""
    recall_by_kind: dict[str, float] | None = None
    """Recall of every kind that occurs, also of those that do not count; None where kinds have no names."""


def score_detections(scenes: Sequence[Matches], kinds: Sequence[str] = ()) -> DetectionScores:
    """Return the scores of matched scenes; `kinds` are the names of their kinds, without which kinds are not scored.

    What is matched to a true object that does not count is left out of everything but the recall by kind, and a
    prototype's usual kind.
    """
    if not scenes:
        raise PcdnetError("there are 0 scenes to score; give the matches of at least one")
    num_true = sum(int(scene.counted.sum()) for scene in scenes)
    correct = [_correct(scene, scene.partners) for scene in scenes]
    precision, recall, f1 = _precision_recall(correct, num_true)
    loose = _precision_recall([_correct(scene, scene.loose) for scene in scenes], num_true)[2]
    surplus = np.array([len(found) - scene.counted.sum() for found, scene in zip(correct, scenes, strict=True)])
    ranks = [scene.scores[_kept(scene, scene.partners)] for scene in scenes]
    prototypes, found, counted = _pairs(scenes)
    right = counted & (found == _usual_kind(prototypes, found))
    return DetectionScores(
        precision=precision,
        recall=recall,
        f1=f1,
        f1_at_30=loose,
        ap50=average_precision(np.concatenate(correct), np.concatenate(ranks), num_true),
        count_accuracy=float(np.mean(surplus == 0)),
        count_error=float(np.mean(np.abs(surplus))),
        count_bias=float(np.mean(surplus)),
        purity=class_purity(scenes) if kinds else None,
        semantic_accuracy=float(right.sum() / num_true) if kinds and num_true else None,
        recall_by_kind=_recall_by_kind(scenes, found, kinds) if kinds and num_true else None,
    )


def class_purity(scenes: Sequence[Matches], among: Collection[int] | None = None) -> float | None:
    """Return the share of matches in which the true object is of its prototype's usual kind; None without matches.

    A prototype's usual kind is the one that it is matched with most often, whether it counts or not. With `among`
    only matches with true objects of these kinds are looked at, otherwise those that count.
    """
    prototypes, kinds, counted = _pairs(scenes)
    kept = counted if among is None else np.isin(kinds, list(among))
    return float(np.mean((kinds == _usual_kind(prototypes, kinds))[kept])) if kept.any() else None


def average_precision(correct: Bool[np.ndarray, "n"], scores: Float[np.ndarray, "n"], num_true: int) -> float | None:
    """Return the mean precision at 101 recalls, each the best at that recall or above; None without true objects.

    `correct` says which found objects are true, and `num_true` how many there are to find.
    """
    if num_true == 0:
        return None
    true = np.cumsum(correct[np.argsort(-scores, kind="stable")])
    precision = true / np.arange(1, len(true) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(true / num_true, RECALLS)
    return float(np.append(best, 0.0)[reached].mean())  # recalls that are never reached count 0


def _correct(scene: Matches, partners: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "k"]:
    """Which found objects are true, without those that are matched to what does not count."""
    correct: np.ndarray = (partners >= 0)[_kept(scene, partners)]
    return correct


def _kept(scene: Matches, partners: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    kept: np.ndarray = np.append(scene.counted, True)[partners]  # -1, no partner, reads the entry that is added
    return kept


def _precision_recall(
    correct: Sequence[Bool[np.ndarray, "_"]], num_true: int
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1."""
    if num_true == 0:
        return None, None, None
    true, found = sum(int(scene.sum()) for scene in correct), sum(map(len, correct))
    return true / max(found, 1), true / num_true, 2 * true / (found + num_true)


def _pairs(
    scenes: Sequence[Matches],
) -> tuple[Int64[np.ndarray, "n"], Int64[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
    """The prototype of every match, the kind of its true object, and whether that counts."""
    matches = []
    for scene in scenes:
        matched = scene.partners >= 0
        true = scene.partners[matched]
        matches.append([scene.prototype_ids[matched], scene.kinds[true], scene.counted[true]])
    prototypes, kinds, counted = np.concatenate(matches, axis=1, dtype=np.int64)
    return prototypes, kinds, counted > 0


def _usual_kind(prototypes: Int64[np.ndarray, "n"], kinds: Int64[np.ndarray, "n"]) -> Int64[np.ndarray, "n"]:
    """The kind that the prototype of each match is matched with most often; the first of equals."""
    times = np.zeros((prototypes.max(initial=0) + 1, kinds.max(initial=0) + 1), dtype=np.int64)
    np.add.at(times, (prototypes, kinds), 1)
    usual: np.ndarray = times.argmax(axis=1)[prototypes]
    return usual


def _recall_by_kind(scenes: Sequence[Matches], found: Int64[np.ndarray, "n"], names: Sequence[str]) -> dict[str, float]:
    true = np.bincount(np.concatenate([scene.kinds for scene in scenes]), minlength=len(names))
    times = np.bincount(found, minlength=len(names))
    return {name: float(times[k] / true[k]) for k, name in enumerate(names) if true[k]}
