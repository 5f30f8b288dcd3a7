"""Laws of the scores in words: every score of an evaluation that people care for is named, and only what is known."""

from __future__ import annotations

import dataclasses

from pcdnet.output.scores import SCORES, known_scores
from pcdnet.training.evaluation import Evaluation


def test_every_score_is_one_of_an_evaluation_and_stands_once() -> None:
    keys = [score.key for score in SCORES]
    fields = {field.name for field in dataclasses.fields(Evaluation)}
    assert len(set(keys)) == len(keys)
    assert set(keys) <= fields
    assert fields - set(keys) == {"scenes", "seconds", "at_limit", "limited", "recall_by_kind"}


def test_shares_are_percentages_and_other_numbers_stay_what_they_are() -> None:
    known = {"fg_ari": 0.98765, "mse": 0.00123, "count_bias": 0.5, "parameters": 23750, "miou": None}
    shown = {score.key: (number, score.unit) for score, number in known_scores(known)}
    assert shown == {
        "fg_ari": ("98.77", "%"),
        "count_bias": ("+0.50", "per image"),
        "mse": ("0.0012", ""),
        "parameters": ("23,750", ""),
    }


def test_kinds_come_last_by_their_names() -> None:
    shown = list(known_scores({"recall_by_kind": {"crab": 0.5, "<i>": 1.0}, "f1": 1.0}))
    assert [(score.name, number) for score, number in shown] == [
        ("F1", "100.00"),
        ("recall of crab", "50.00"),
        ("recall of <i>", "100.00"),
    ]
    assert list(known_scores({})) == []
