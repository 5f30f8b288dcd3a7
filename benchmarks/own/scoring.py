"""Scoring: what was found against the ground truth, in the figures of each set.

A found object is right if it is matched, one to one, with a true one: by the IoU of their boxes, or by the distance of
their centres. Found kinds stand for the true kind that they are matched with most often.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linear_sum_assignment

from benchmarks.own import overlap
from benchmarks.own.automatic import Found, Outcome
from benchmarks.own.pictures import Pictures
from pcdnet.metrics import box_iou

LEAST = 0.5
"""Likeness from which two boxes are of the same object."""
AWAY = 3.0
"""Pixels that the centre of a soft spot may be off: half its width at half its height."""
RARE = 0.02
"""Share of a kind's objects below which a prototype that finds some of them does not stand for the kind."""

Boxes: TypeAlias = Float64[np.ndarray, "n 4"]
Likeness: TypeAlias = Callable[[Boxes, Boxes], Float64[np.ndarray, "n m"]]
Figures: TypeAlias = dict[str, Any]


def icons(pictures: Pictures, outcome: Outcome) -> Figures:
    """F1, kinds that are found, prototypes that stand for none, and found kinds that stand for the same as another."""
    partners = matched(pictures, outcome.found)
    votes = _votes(pictures, partners, [found.kinds for found in outcome.found])
    often = Counter(kind for true in pictures.ground_truth for kind in true.kinds.tolist())
    times = Counter[int]()
    for counts in votes.values():
        times.update(dict(counts.most_common(1)))
    kinds = _stood_for(votes, often)
    useful = _stood_for(_votes(pictures, partners, [found.prototypes.tolist() for found in outcome.found]), often)
    return {
        "kinds_found": sum(times[kind] > often[kind] / 2 for kind in often),
        "junk": outcome.prototypes - len(useful),
        "doubles": len(kinds) - len(set(kinds)),
        "purity": _purity(votes),
        **detection(pictures, outcome.found, partners),
    }


def sheet(pictures: Pictures, outcome: Outcome) -> Figures:
    """F1, and by how much the counts of the kinds are wrong, altogether."""
    partners = matched(pictures, outcome.found)
    votes = _votes(pictures, partners, [found.kinds for found in outcome.found])
    stands_for = {kind: times.most_common(1)[0][0] for kind, times in votes.items()}
    counts = Counter(stands_for.get(kind, -1) for found in outcome.found for kind in found.kinds)
    counts.subtract(kind for true in pictures.ground_truth for kind in true.kinds.tolist())
    return {
        "count_error": sum(map(abs, counts.values())),
        "kinds_found": len(set(stands_for.values())),
        "purity": _purity(votes),
        **detection(pictures, outcome.found, partners),
    }


def plain(pictures: Pictures, outcome: Outcome) -> Figures:
    """F1 and purity."""
    partners = matched(pictures, outcome.found)
    votes = _votes(pictures, partners, [found.kinds for found in outcome.found])
    return {"purity": _purity(votes), **detection(pictures, outcome.found, partners)}


def spots(pictures: Pictures, outcome: Outcome) -> Figures:
    """F1 by the distance of centres, as the box of a soft spot is a matter of taste; the other one beside it."""
    partners = matched(pictures, outcome.found, nearness)
    votes = _votes(pictures, partners, [found.kinds for found in outcome.found])
    by_boxes = detection(pictures, outcome.found, matched(pictures, outcome.found))
    return {
        "purity": _purity(votes),
        **detection(pictures, outcome.found, partners),
        "f1_at_iou_50": by_boxes["f1"],
    }


def depth(pictures: Pictures, outcome: Outcome) -> Figures:
    """The share of the pairs, of those with both found, whose front object is right, and F1.

    What is found is compared with whole objects: even the largest overlap leaves a box an IoU of 0.55 with them, so
    that being found does not depend on the order.
    """
    partners = matched(pictures, outcome.found, whole=True)
    pairs = both = right = 0
    for true, found, partner in zip(pictures.ground_truth, outcome.found, partners, strict=True):
        depths = {int(t): int(found.depths[n]) for n, t in enumerate(partner) if t >= 0}
        for front, back in overlap.pairs(true):
            pairs += 1
            both += front in depths and back in depths
            right += front in depths and back in depths and depths[front] < depths[back]
    return {
        "front_right": right / both if both else 0.0,
        "front_right_of_all": right / max(1, pairs),
        "pairs": pairs,
        "pairs_found": both,
        **detection(pictures, outcome.found, partners),
    }


def detection(pictures: Pictures, found: Sequence[Found], partners: Sequence[Int64[np.ndarray, "n"]]) -> Figures:
    """Precision, recall and F1; to find what does not count costs nothing."""
    true = sum(int(one.counted.sum()) for one in pictures.ground_truth)
    right = kept = 0
    for one, partner in zip(pictures.ground_truth, partners, strict=True):
        counts = np.append(one.counted, True)[partner]  # -1, no partner, reads the entry that is added
        kept += int(counts.sum())
        right += int((counts & (partner >= 0)).sum())
    return {
        "f1": 2 * right / max(1, kept + true),
        "precision": right / max(1, kept),
        "recall": right / max(1, true),
        "true": true,
        "count": sum(map(len, found)),
    }


def matched(
    pictures: Pictures, found: Sequence[Found], likeness: Likeness = box_iou, whole: bool = False
) -> list[Int64[np.ndarray, "n"]]:
    """The true object of every found one, -1 for none; as many as can be, and those that count first."""
    partners = []
    for true, one in zip(pictures.ground_truth, found, strict=True):
        alike = likeness(one.boxes, true.whole if whole else true.boxes)
        worth = np.where(alike >= LEAST, alike + 10 + 10 * true.counted, 0.0)
        partner = np.full(len(one), -1, dtype=np.int64)
        for n, t in zip(*linear_sum_assignment(worth, maximize=True), strict=True):
            if worth[n, t] > 0:
                partner[n] = t
        partners.append(partner)
    return partners


def nearness(found: Boxes, true: Boxes) -> Float64[np.ndarray, "n m"]:
    """1 where centres meet, and 0.5 where they are as far off as they may be."""
    ours, theirs = (boxes[:, :2] + boxes[:, 2:] / 2 for boxes in (found, true))
    distance = np.linalg.norm(ours[:, None] - theirs[None], axis=-1)
    near: np.ndarray = 1 - distance / AWAY / 2
    return near


def _votes(
    pictures: Pictures, partners: Sequence[Int64[np.ndarray, "n"]], names: Sequence[Sequence[Hashable]]
) -> dict[Hashable, Counter[int]]:
    """How often each name, of a found kind or a prototype, is matched with each true kind."""
    votes: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for true, partner, called in zip(pictures.ground_truth, partners, names, strict=True):
        for name, t in zip(called, partner.tolist(), strict=True):
            if t >= 0:
                votes[name][int(true.kinds[t])] += 1
    return votes


def _stood_for(votes: dict[Hashable, Counter[int]], often: Counter[int]) -> list[int]:
    """The true kinds that names stand for, without names that stand for a kind too rarely to matter."""
    usual = [times.most_common(1)[0] for times in votes.values()]
    return [kind for kind, count in usual if count >= RARE * often[kind]]


def _purity(votes: dict[Hashable, Counter[int]]) -> float:
    """The share of matches in which the true object is of the kind that the found one stands for."""
    total = sum(times.total() for times in votes.values())
    return sum(times.most_common(1)[0][1] for times in votes.values()) / total if total else 0.0
