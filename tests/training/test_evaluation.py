"""Laws of evaluation: what is known of the ground truth is scored, and the rest is None."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
import torch

from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.errors import PcdnetError
from pcdnet.metrics import found_objects, score
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.scene import Boxes, Scenes
from pcdnet.training import evaluation
from pcdnet.training.evaluation import Evaluation, evaluate

MADE = tetrominoes.generate(24, seed=7)
LABELLED = Scenes(images=MADE.images, labels=MADE.labels)
BARE = Scenes(images=MADE.images)
DETECTION = ("precision", "recall", "f1", "f1_at_30", "ap50", "count_error", "count_bias")
KINDS = ("purity", "semantic_accuracy", "recall_by_kind")


def true_model(objects: int = 3) -> PCDNet:
    prototypes, masks = tetrominoes.true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    return PCDNet.from_bank(bank, dataclasses.replace(Config.preset("tetrominoes").model, max_objects=objects))


def boxed(kinds: tuple[str, ...] = (), scored: tuple[str, ...] = (), labels: bool = False) -> Scenes:
    """The same scenes with boxes; the first object of each is of kind 0, the others of kind 1."""
    boxes = []
    for truth in MADE.labels:
        seen = found_objects(truth.astype(np.int32), np.array([0, 1, 1], np.int32), np.ones(3, np.float32))
        boxes.append(Boxes(corners=seen.boxes, kinds=seen.prototype_ids.astype(np.int32)))
    return Scenes(images=MADE.images, labels=MADE.labels if labels else None, boxes=boxes, kinds=kinds, scored=scored)


def known(scores: Evaluation) -> dict[str, float]:
    """The numbers that are known, but for times."""
    numbers = {name: value for name, value in scores.to_dict().items() if isinstance(value, int | float)}
    return {name: value for name, value in numbers.items() if "second" not in name}


def test_true_prototypes_find_every_object() -> None:
    scores = evaluate(true_model(), LABELLED)
    assert scores.scenes == 24
    assert (scores.precision, scores.recall, scores.f1, scores.f1_at_30, scores.ap50) == (1, 1, 1, 1, 1)
    assert (scores.count_accuracy, scores.count_error, scores.count_bias) == (1, 0, 0)
    assert scores.fg_ari is not None
    assert scores.fg_ari > 0.99
    assert [getattr(scores, name) for name in KINDS] == [None] * 3


def test_without_ground_truth_its_scores_are_none() -> None:
    scores = evaluate(true_model(), BARE)
    named = ("fg_ari", "ari", "miou", "perfect", "count_accuracy", *DETECTION, *KINDS)
    assert [getattr(scores, name) for name in named] == [None] * len(named)
    assert (scores.objects, scores.at_limit, scores.limited) == (3, 1, 1)
    assert scores.mse < 1e-4


def test_boxes_tell_of_detection_and_count_but_not_of_pixels() -> None:
    scores = evaluate(true_model(), boxed())
    assert (scores.f1, scores.ap50, scores.count_accuracy, scores.count_error) == (1, 1, 1, 0)
    assert (scores.fg_ari, scores.miou, scores.purity, scores.recall_by_kind) == (None,) * 4
    both = evaluate(true_model(), boxed(labels=True))
    assert both.fg_ari == evaluate(true_model(), LABELLED).fg_ari
    assert both.f1 == 1


def test_kinds_are_scored_where_they_are_named() -> None:
    scores = evaluate(true_model(), boxed(("first", "other")))
    assert scores.recall_by_kind == {"first": 1, "other": 1}
    assert scores.purity == scores.semantic_accuracy  # everything was found
    assert scores.purity is not None
    assert 0.5 < scores.purity < 1  # shapes know nothing of who is first


def test_kinds_that_are_not_scored_cost_nothing() -> None:
    short = true_model(objects=1)
    all_kinds, some = (evaluate(short, boxed(("first", "other"), scored)) for scored in ((), ("first",)))
    assert all_kinds.recall == pytest.approx(1 / 3)
    assert some.recall_by_kind == all_kinds.recall_by_kind
    assert some.recall_by_kind is not None
    assert some.recall == some.recall_by_kind["first"]
    assert some.precision == 1
    assert some.count_error is not None
    assert some.count_error < 1


def test_to_find_as_many_as_there_are_is_not_to_be_limited() -> None:
    few, enough, many = (evaluate(true_model(objects), LABELLED) for objects in (2, 3, 4))
    assert (few.at_limit, few.limited) == (1, 1)
    assert (enough.at_limit, enough.limited) == (1, 0)
    assert (many.at_limit, many.limited) == (0, 0)
    assert few.recall == pytest.approx(2 / 3)
    assert few.count_bias == -1


@pytest.mark.parametrize("scenes", [LABELLED, BARE, boxed(("first", "other"), ("other",), labels=True)])
def test_scores_do_not_depend_on_how_many_scenes_are_taken_at_a_time(
    scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = true_model(objects=2)
    whole = evaluate(model, scenes, refined=False)
    monkeypatch.setattr(evaluation, "CHUNK", 5)
    parts = evaluate(model, scenes, refined=False)
    assert parts.recall_by_kind == whole.recall_by_kind
    assert known(parts) == pytest.approx(known(whole), rel=1e-6)


def test_only_the_decomposition_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def lasting(seconds: float, real: Any) -> Any:
        def slow(*given: Any, **options: Any) -> Any:
            nonlocal now
            now += seconds
            return real(*given, **options)

        return slow

    model = true_model()
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(model, "decompose_all", lasting(2.0, model.decompose_all))
    monkeypatch.setattr(evaluation, "CHUNK", 8)
    monkeypatch.setattr(evaluation, "score", lasting(100.0, score))
    scores = evaluate(model, LABELLED)
    assert scores.seconds == 6
    assert scores.images_per_second == 4


def test_refinement_is_left_out_where_it_is_not_wanted() -> None:
    scenes = tetrominoes.generate(120, seed=6)
    model, bare = true_model(), Scenes(images=scenes.images)
    assert evaluate(model, bare, refined=False).mse > evaluate(model, bare).mse


@pytest.mark.parametrize("training", [False, True])
def test_evaluation_changes_nothing_in_the_model(training: bool) -> None:
    model = true_model().train(training)
    config, before = model.config, {name: value.clone() for name, value in model.state_dict().items()}
    scores = evaluate(model, LABELLED.first(8), refined=False)
    assert scores.fg_ari == evaluate(true_model(), LABELLED.first(8), refined=False).fg_ari
    assert model.training == training
    assert model.config is config
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("scenes", "complaint"),
    [
        (BARE.first(0), "0 scenes to score"),
        (dataclasses.replace(BARE, boxes=[]), "0 lists of boxes for 24 images"),
        (boxed(("first", "other"), ("third",)), "third should be scored.*first, other"),
        (boxed((), ("third",)), "third should be scored.*not named"),
        (boxed(("first",)), "scene 0 is of kind 1"),
    ],
)
def test_ground_truth_that_does_not_fit_is_refused_with_a_cure(scenes: Scenes, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=f"{complaint}.*; "):
        evaluate(true_model(), scenes)


def test_the_line_of_scores_begins_with_the_best_that_is_known() -> None:
    known_scores = Evaluation(
        scenes=9,
        fg_ari=0.91234,
        perfect=0.5,
        mse=0.00021,
        objects=2.5,
        parameters=7,
        images_per_second=70.0,
        seconds=0.1,
    )
    rest = "MSE 2.1e-04  2.50 objects per image"
    boxes = dataclasses.replace(known_scores, fg_ari=None, perfect=None, f1=0.75, ap50=0.5)
    assert str(dataclasses.replace(known_scores, f1=0.75, ap50=0.5)) == f"FG-ARI 0.9123  perfect 50.0 %  {rest}"
    assert str(boxes) == f"F1 0.7500  AP50 0.5000  {rest}"
    assert str(dataclasses.replace(boxes, ap50=None)) == f"F1 0.7500  {rest}"
    assert str(dataclasses.replace(boxes, f1=None, ap50=None)) == rest
