"""Scores: how every score is called and written, for tables in a terminal and tiles on a page alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Score(NamedTuple):
    """A score as people read it."""

    key: str
    """Its name in an `Evaluation`."""
    name: str
    """What it is called."""
    form: str
    """How the number is written; shares are written as percentages."""
    unit: str
    """What follows the number."""
    group: str
    """What it is a score of; empty where it is of everything."""
    meaning: str
    """What it says."""


SCORES = (
    Score("fg_ari", "FG-ARI", ".2f", "%", "segmentation", "agreement with the true objects, on their pixels"),
    Score("perfect", "perfect scenes", ".2f", "%", "segmentation", "scenes whose objects are all right to the pixel"),
    Score("f1", "F1", ".2f", "%", "detection", "harmonic mean of precision and recall, at an IoU of 0.5"),
    Score("precision", "precision", ".2f", "%", "detection", "found objects that are true"),
    Score("recall", "recall", ".2f", "%", "detection", "true objects that were found"),
    Score("ap50", "AP50", ".2f", "%", "detection", "average precision at an IoU of 0.5"),
    Score("f1_at_30", "F1 at IoU 0.3", ".2f", "%", "detection", "the same, where boxes need not fit so well"),
    Score("count_accuracy", "count accuracy", ".2f", "%", "detection", "scenes with the right number of objects"),
    Score("count_error", "count error", ".2f", "per image", "detection", "objects too many or too few"),
    Score("count_bias", "count bias", "+.2f", "per image", "detection", "objects too many, or too few where negative"),
    Score("miou", "mIoU", ".2f", "%", "segmentation", "overlap of true and found objects"),
    Score("ari", "ARI", ".2f", "%", "segmentation", "agreement on all pixels, background included"),
    Score("purity", "purity", ".2f", "%", "kinds", "matched objects of the kind that is usual for their prototype"),
    Score(
        "semantic_accuracy", "semantic accuracy", ".2f", "%", "kinds", "true objects found by their kind's prototype"
    ),
    Score("mse", "MSE", ".2g", "", "", "squared error per pixel and channel"),
    Score("objects", "objects", ".2f", "per image", "", "found on average"),
    Score("images_per_second", "speed", ",.0f", "images/s", "", "decomposed on this machine"),
    Score("parameters", "parameters", ",.0f", "", "", "numbers that were learned"),
)
"""Every score that people are shown, the most telling first."""


def known_scores(scores: Mapping[str, Any]) -> Iterator[tuple[Score, str]]:
    """The scores that are known, with their numbers as text; those of single kinds come last."""
    for score in SCORES:
        if (value := scores.get(score.key)) is not None:
            yield score, f"{100 * value if score.unit == '%' else value:{score.form}}"
    for kind, recall in (scores.get("recall_by_kind") or {}).items():
        yield Score("recall_by_kind", f"recall of {kind}", ".2f", "%", "kinds", ""), f"{100 * recall:.2f}"
