"""Laws of the metrics; scikit-learn and exhaustive matching are the oracles."""

from __future__ import annotations

import dataclasses
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import adjusted_rand_score

from pcdnet.errors import PcdnetError
from pcdnet.metrics import adjusted_rand_index, combined, foreground_ari, mean_iou, score


@st.composite
def label_pairs(draw: st.DrawFn, most: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """True and predicted labels of one image."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8))
    target, prediction = (draw(arrays(np.int32, shape, elements=st.integers(0, most))) for _ in range(2))
    return target, prediction


@given(label_pairs())
def test_ari_is_that_of_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    target, prediction = pair
    assert adjusted_rand_index(target, prediction) == pytest.approx(
        adjusted_rand_score(target.ravel(), prediction.ravel()), abs=1e-12
    )


@pytest.mark.parametrize(
    ("target", "prediction"),
    [
        ([], []),
        ([3], [0]),
        ([0, 0, 0], [5, 5, 5]),
        ([1, 1, 1], [1, 2, 3]),
        ([1, 1, 1, 1], [1, 1, 2, 2]),
        ([1, 2, 3], [1, 1, 1]),
        ([1, 2, 3], [3, 1, 2]),
        ([0, 0, 1, 1], [0, 1, 0, 1]),
    ],
)
def test_ari_of_edge_cases_is_that_of_scikit_learn(target: list[int], prediction: list[int]) -> None:
    expected = adjusted_rand_score(target, prediction)
    assert adjusted_rand_index(np.array(target, dtype=int), np.array(prediction, dtype=int)) == expected


@pytest.mark.parametrize("groups", [3, 300, 300_000])
def test_ari_of_four_million_pixels_does_not_overflow(groups: int) -> None:
    rng = np.random.default_rng(groups)
    target = rng.integers(0, groups, (2000, 2000))
    prediction = np.where(rng.random(target.shape) < 0.5, target, rng.integers(0, groups, target.shape))
    # Half of the pixels keep their label, so a quarter of the pairs stay together beyond chance.
    assert adjusted_rand_index(target, prediction) == pytest.approx(0.25, abs=0.01)
    assert adjusted_rand_index(target, target) == 1.0


@given(label_pairs(), st.integers(1, 2**62))
def test_which_numbers_objects_have_never_matters(pair: tuple[np.ndarray, np.ndarray], offset: int) -> None:
    target, prediction = pair
    names = np.array([0, *(offset + label for label in (3, 2, 1, 0))], dtype=np.uint64)
    renamed = names[prediction]
    for metric in (adjusted_rand_index, foreground_ari, mean_iou):
        assert metric(target, renamed) == pytest.approx(metric(target, prediction), abs=1e-12)


@given(label_pairs())
def test_foreground_ari_ignores_what_is_predicted_on_true_background(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    target, prediction = pair
    inside = target > 0
    expected = adjusted_rand_score(target[inside], prediction[inside])
    assert foreground_ari(target, prediction) == pytest.approx(expected, abs=1e-12)
    assert foreground_ari(target, np.where(inside, prediction, 9)) == foreground_ari(target, prediction)


def test_foreground_ari_without_foreground_is_one() -> None:
    assert foreground_ari(np.zeros((3, 3), int), np.arange(9).reshape(3, 3)) == 1.0


@given(label_pairs())
def test_mean_iou_is_the_best_of_all_matchings(pair: tuple[np.ndarray, np.ndarray]) -> None:
    target, prediction = pair
    true = [target == label for label in range(1, 5) if (target == label).any()]
    predicted = [prediction == label for label in range(1, 5) if (prediction == label).any()]
    if not true:
        assert mean_iou(target, prediction) == float(not predicted)
        return
    predicted += [np.zeros_like(target, dtype=bool)] * len(true)
    best = max(
        sum((t & p).sum() / (t | p).sum() for t, p in zip(true, chosen, strict=True))
        for chosen in permutations(predicted, len(true))
    )
    assert mean_iou(target, prediction) == pytest.approx(best / len(true), abs=1e-12)


def test_mean_iou_halves_when_one_of_two_objects_is_missed() -> None:
    target = np.array([[1, 1, 0, 2, 2]])
    assert mean_iou(target, np.where(target == 1, 7, 0)) == 0.5


def test_the_ground_truth_scores_perfectly() -> None:
    target = np.random.default_rng(0).integers(0, 4, (5, 9, 8))
    scores = score(target, (4 - target) % 4)
    assert (scores.scenes, scores.fg_ari, scores.ari, scores.miou) == (5, 1.0, 1.0, 1.0)
    assert (scores.count_accuracy, scores.perfect) == (1.0, 1.0)


@given(st.lists(label_pairs(), min_size=1, max_size=4))
def test_scores_are_the_means_over_scenes_of_any_size(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    scores = score([target for target, _ in pairs], [prediction for _, prediction in pairs])
    assert scores.scenes == len(pairs)
    assert scores.ari == pytest.approx(np.mean([adjusted_rand_index(t, p) for t, p in pairs]))
    assert scores.fg_ari == pytest.approx(np.mean([foreground_ari(t, p) for t, p in pairs]))
    assert scores.miou == pytest.approx(np.mean([mean_iou(t, p) for t, p in pairs]))
    assert scores.perfect == pytest.approx(np.mean([foreground_ari(t, p) == 1 for t, p in pairs]))
    counts = [len({*t.ravel()} - {0}) == len({*p.ravel()} - {0}) for t, p in pairs]
    assert scores.count_accuracy == pytest.approx(np.mean(counts))


def test_scores_of_parts_combine_to_those_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    target, prediction = rng.integers(0, 3, (7, 4, 4)), rng.integers(0, 3, (7, 4, 4))
    prediction[:2] = target[:2]
    parts = [score(target[part], prediction[part]) for part in (slice(0, 4), slice(4, 5), slice(5, 7))]
    assert dataclasses.asdict(combined(parts)) == pytest.approx(dataclasses.asdict(score(target, prediction)))
    with pytest.raises(PcdnetError, match="0 scores.*; give"):
        combined([])


@pytest.mark.parametrize("metric", [adjusted_rand_index, foreground_ari, mean_iou])
@pytest.mark.parametrize(
    ("target", "prediction", "complaint"),
    [
        (np.zeros((2, 3), int), np.zeros((3, 2), int), r"shape \(2, 3\).*\(3, 2\)"),
        (np.zeros((2, 2)), np.zeros((2, 2), int), "true labels are of type float64"),
        (np.zeros((2, 2), int), np.zeros((2, 2), bool), "predicted labels are of type bool"),
        (np.zeros((2, 2), int), np.full((2, 2), -1), "predicted labels go down to -1"),
    ],
)
def test_bad_labels_are_refused_with_a_cure(
    metric: Any, target: np.ndarray, prediction: np.ndarray, complaint: str
) -> None:
    with pytest.raises(PcdnetError, match=f"{complaint}.*; give"):
        metric(target, prediction)


@pytest.mark.parametrize(
    ("targets", "predictions", "complaint"),
    [
        (np.zeros((2, 3, 3), int), np.zeros((1, 3, 3), int), "2 true and 1 predicted"),
        ([], [], "0 scenes"),
        (np.zeros((3, 3), int), np.zeros((3, 3), int), r"scene 0 has shape \(3,\)"),
        ([np.zeros((3, 3), int)], [np.zeros((3, 4), int)], "of scene 0 have shape"),
    ],
)
def test_bad_stacks_are_refused_with_a_cure(targets: Any, predictions: Any, complaint: str) -> None:
    with pytest.raises(PcdnetError, match=f"{complaint}.*; give"):
        score(targets, predictions)
