"""Laws of detection scores; pycocotools is the oracle."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcdnet.errors import PcdnetError
from pcdnet.metrics import Found, Matches, average_precision, box_iou, class_purity, match_scene, score_detections

KINDS = ("crab", "squid", "bullet")


def scene(
    pairs: Sequence[tuple[int, int]] = (),
    *,
    surplus: Sequence[int] = (),
    missed: Sequence[int] = (),
    uncounted: Sequence[int] = (),
) -> Matches:
    """A scene in which prototypes found true objects of kinds, some found nothing, and some kinds were missed."""
    kinds = np.array([*(kind for _, kind in pairs), *missed], dtype=np.int32)
    prototypes = np.array([*(prototype for prototype, _ in pairs), *surplus], dtype=np.int32)
    partners = np.array([*range(len(pairs)), *[-1] * len(surplus)], dtype=np.int64)
    return Matches(
        scores=np.linspace(2, 1, len(prototypes)),
        prototype_ids=prototypes,
        kinds=kinds,
        counted=~np.isin(kinds, uncounted),
        partners=partners,
        loose=partners,
    )


def random_case(seed: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Found boxes, scores, true boxes and which of them count, of some images; with equal scores and overlaps."""
    rng = np.random.default_rng(seed)
    case = []
    for _ in range(rng.integers(1, 6)):
        n, m = rng.integers(0, 9, 2)
        target = np.concatenate([rng.integers(0, 20, (m, 2)), rng.integers(2, 12, (m, 2))], axis=1)
        copies = target[rng.integers(0, m, n)] if m else np.full((n, 4), 5)
        found = np.clip(copies + rng.integers(-2, 3, (n, 4)), 1, None)
        scores = rng.integers(0, 5, n) / 4 if seed % 2 else rng.random(n)
        counted = rng.random(m) < (0.7 if seed % 3 else 1.0)
        case.append((found.astype(np.float32), scores, target.astype(np.float32), counted))
    return case


def by_coco(case: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]], least: float) -> dict[str, float]:
    """Precision, recall and AP of pycocotools, where objects that do not count are those of a huge area."""
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    true: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for image, (boxes, scores, target, counted) in enumerate(case):
        common = {"image_id": image, "category_id": 1, "iscrowd": 0}
        for (top, left, height, width), counts in zip(target.tolist(), counted, strict=True):
            area = 1.0 if counts else 1e9
            true.append({**common, "id": len(true) + 1, "bbox": [left, top, width, height], "area": area})
        for (top, left, height, width), score in zip(boxes.tolist(), scores.tolist(), strict=True):
            place = {"bbox": [left, top, width, height], "area": 1.0, "score": score}
            found.append({**common, **place, "id": len(found) + 1})
    with contextlib.redirect_stdout(io.StringIO()):
        sets = []
        for annotations in (true, found):
            made = coco.COCO()
            images = [{"id": image} for image in range(len(case))]
            made.dataset = {"images": images, "categories": [{"id": 1}], "annotations": annotations}
            made.createIndex()
            sets.append(made)
        judge = cocoeval.COCOeval(*sets, "bbox")
        judge.params.iouThrs, judge.params.maxDets = np.array([least]), [1000]
        judge.params.areaRng, judge.params.areaRngLbl = [[0, 1e6]], ["all"]
        judge.evaluate()
        judge.accumulate()
    judged = [image for image in judge.evalImgs if image is not None]
    ignored = np.concatenate([np.zeros(0), *(image["dtIgnore"][0] for image in judged)]) > 0
    right = np.concatenate([np.zeros(0), *(image["dtMatches"][0] for image in judged)]) > 0
    return {
        "precision": float(right[~ignored].sum() / max((~ignored).sum(), 1)),
        "recall": float(judge.eval["recall"].item()),
        "ap": float(judge.eval["precision"].mean()),
    }


def matched(case: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> list[Matches]:
    """The scenes of a case, matched."""
    return [
        match_scene(
            Found(boxes=boxes, scores=scores, prototype_ids=np.zeros(len(boxes), np.int32)),
            box_iou(boxes, target),
            counted=counted,
        )
        for boxes, scores, target, counted in case
    ]


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_scores_are_those_of_coco(seed: int) -> None:
    case = random_case(seed)
    scores, usual, loose = score_detections(matched(case)), by_coco(case, 0.5), by_coco(case, 0.3)
    if not any(counted.any() for *_, counted in case):
        assert (scores.ap50, scores.recall, scores.f1_at_30) == (None, None, None)
        assert usual["ap"] == -1
        return
    assert scores.ap50 == pytest.approx(usual["ap"], abs=1e-9)
    assert scores.precision == pytest.approx(usual["precision"])
    assert scores.recall == pytest.approx(usual["recall"])
    assert scores.f1 == pytest.approx(harmonic(usual))
    assert scores.f1_at_30 == pytest.approx(harmonic(loose))


def harmonic(scores: dict[str, float]) -> float:
    """F1 of precision and recall."""
    both = scores["precision"] + scores["recall"]
    return 2 * scores["precision"] * scores["recall"] / both if both else 0.0


@given(arrays(np.bool_, st.integers(0, 12)), st.integers(1, 20), st.randoms(use_true_random=False))
def test_average_precision_knows_only_the_order(correct: np.ndarray, more: int, random: Any) -> None:
    scores = np.array(random.sample(range(100), len(correct)), dtype=np.float64)
    num_true = int(correct.sum()) + more
    ap = average_precision(correct, scores, num_true)
    assert ap is not None
    assert 0 <= ap <= 1
    assert ap == average_precision(correct, np.exp(scores / 50), num_true)
    best = average_precision(correct, correct.astype(float), num_true)
    assert best is not None
    assert ap <= best + 1e-12


def test_average_precision_by_hand() -> None:
    # Right, wrong, right, of two: precision is 1 up to a recall of one half, and 2/3 above it.
    ap = average_precision(np.array([True, False, True]), np.array([3.0, 2.0, 1.0]), 2)
    assert ap == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)


def test_the_ground_truth_scores_perfectly() -> None:
    target = np.array([[0, 0, 3, 3], [5, 5, 2, 4]], dtype=np.float32)
    kinds = np.array([1, 0], dtype=np.int32)
    found = Found(boxes=target, scores=np.ones(2), prototype_ids=np.array([4, 7], dtype=np.int32))
    scores = score_detections([match_scene(found, box_iou(target, target), kinds=kinds)] * 3, KINDS)
    assert (scores.precision, scores.recall, scores.f1, scores.f1_at_30, scores.ap50) == (1, 1, 1, 1, 1)
    assert (scores.count_accuracy, scores.count_error, scores.count_bias) == (1, 0, 0)
    assert (scores.purity, scores.semantic_accuracy) == (1, 1)
    assert scores.recall_by_kind == {"crab": 1, "squid": 1}


def test_scores_are_of_all_scenes_together() -> None:
    scores = score_detections([scene([(0, 0)], surplus=[0, 0]), scene([(0, 0)] * 4, missed=[0] * 3)])
    assert scores.precision == pytest.approx(5 / 7)
    assert scores.recall == pytest.approx(5 / 8)
    assert scores.f1 == pytest.approx(2 * 5 / 15)
    assert (scores.count_accuracy, scores.count_error, scores.count_bias) == (0, 2.5, -0.5)
    assert (scores.purity, scores.semantic_accuracy, scores.recall_by_kind) == (None, None, None)


def test_where_nothing_is_found_everything_is_missed() -> None:
    scores = score_detections([scene(missed=[0, 1])], KINDS)
    assert (scores.precision, scores.recall, scores.f1, scores.ap50) == (0, 0, 0, 0)
    assert (scores.purity, scores.semantic_accuracy) == (None, 0)
    assert scores.recall_by_kind == {"crab": 0, "squid": 0}
    assert (scores.count_error, scores.count_bias) == (2, -2)


@pytest.mark.parametrize("surplus", [[], [0, 1]])
def test_where_nothing_is_to_be_found_only_the_count_can_be_wrong(surplus: list[int]) -> None:
    scores = score_detections([scene(surplus=surplus), scene()], KINDS)
    assert (scores.precision, scores.recall, scores.f1, scores.f1_at_30, scores.ap50) == (None,) * 5
    assert (scores.purity, scores.semantic_accuracy, scores.recall_by_kind) == (None,) * 3
    assert scores.count_error == scores.count_bias == len(surplus) / 2
    assert scores.count_accuracy == (0.5 if surplus else 1.0)
    assert class_purity([scene(surplus=surplus)]) is None


def test_without_scenes_there_is_no_score() -> None:
    with pytest.raises(PcdnetError, match="0 scenes.*; give"):
        score_detections([])


@given(st.integers(0, 4), st.integers(0, 4))
def test_to_find_or_to_miss_what_does_not_count_costs_nothing(found: int, missed: int) -> None:
    plain = score_detections([scene([(0, 0), (1, 1)], surplus=[0], missed=[1])], KINDS)
    pairs = [(0, 0), (1, 1), *[(9, 2)] * found]
    more = score_detections([scene(pairs, surplus=[0], missed=[1, *[2] * missed], uncounted=(2,))], KINDS)
    for name in ("precision", "recall", "f1", "ap50", "count_error", "count_bias", "purity", "semantic_accuracy"):
        assert getattr(more, name) == pytest.approx(getattr(plain, name)), name
    assert plain.recall_by_kind == {"crab": 1, "squid": 0.5}
    apart = {"bullet": found / (found + missed)} if found + missed else {}
    assert more.recall_by_kind == {"crab": 1, "squid": 0.5, **apart}


def test_purity_and_semantic_accuracy_go_by_the_usual_kind_of_a_prototype() -> None:
    scenes = [scene([(0, 0), (0, 0), (0, 1), (1, 1)], missed=[1]), scene([(0, 0), (1, 1), (2, 0)])]
    scores = score_detections(scenes, KINDS)
    assert scores.purity == pytest.approx(6 / 7)
    assert scores.semantic_accuracy == pytest.approx(6 / 8)
    assert class_purity(scenes, among=[1]) == pytest.approx(2 / 3)
    assert class_purity(scenes, among=[0]) == 1
    assert class_purity(scenes, among=[2]) is None


def test_a_prototype_that_is_usually_a_bullet_is_one() -> None:
    scenes = [scene([(0, 2), (0, 2), (0, 0), (1, 0)], uncounted=(2,))]
    assert class_purity(scenes) == 0.5
    assert class_purity(scenes, among=[0, 2]) == 0.75
