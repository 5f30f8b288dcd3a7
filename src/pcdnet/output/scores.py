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
    group: str
    """What it is a score of; empty where it is of everything."""
    meaning: str
    """What it says."""
    form: str = ".2f"
    """How the number is written."""
    unit: str = "%"
    """What follows the number; shares are written as percentages."""


SCORES = (
    Score("fg_ari", "FG-ARI", "segmentation", "agreement with the true objects, on their pixels"),
    Score("perfect", "perfect scenes", "segmentation", "scenes whose objects are all right to the pixel"),
    Score("f1", "F1", "detection", "harmonic mean of precision and recall, at an IoU of 0.5"),
    Score("precision", "precision", "detection", "found objects that are true"),
    Score("recall", "recall", "detection", "true objects that were found"),
    Score("ap50", "AP50", "detection", "average precision at an IoU of 0.5"),
    Score("f1_at_30", "F1 at IoU 0.3", "detection", "the same, where boxes need not fit so well"),
    Score("count_accuracy", "count accuracy", "detection", "scenes with the right number of objects"),
    Score("count_error", "count error", "detection", "objects too many or too few", ".2f", "per image"),
    Score("count_bias", "count bias", "detection", "objects too many, or too few where negative", "+.2f", "per image"),
    Score("miou", "mIoU", "segmentation", "overlap of true and found objects"),
    Score("ari", "ARI", "segmentation", "agreement on all pixels, background included"),
    Score("purity", "purity", "kinds", "matched objects of the kind that is usual for their prototype"),
    Score("semantic_accuracy", "semantic accuracy", "kinds", "true objects found by their kind's prototype"),
    Score("mse", "MSE", "", "squared error per pixel and channel", ".2g", ""),
    Score("objects", "objects", "", "found on average", ".2f", "per image"),
    Score("images_per_second", "speed", "", "decomposed on this machine", ",.0f", "images/s"),
    Score("parameters", "parameters", "", "numbers that were learned", ",.0f", ""),
)
"""Every score that people are shown, the most telling first."""


def known_scores(scores: Mapping[str, Any]) -> Iterator[tuple[Score, str]]:
    """The scores that are known, with their numbers as text; those of single kinds come last."""
    for score in SCORES:
        if (value := scores.get(score.key)) is not None:
            yield score, f"{100 * value if score.unit == '%' else value:{score.form}}"
    for kind, recall in (scores.get("recall_by_kind") or {}).items():
        yield Score("recall_by_kind", f"recall of {kind}", "kinds", ""), f"{100 * recall:.2f}"
