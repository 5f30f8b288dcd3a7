"""Laws of the verdict: it follows from figures, what is wrong has a cure, and a wrong background is never good."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pcdnet.config import Background, Config, ModelConfig
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.origin import Origin
from pcdnet.run import RunFolder
from pcdnet.training.diagnosis import Figures
from pcdnet.training.verdict import Verdict, judge, kept_verdict, verdict_of
from tests.runs import true_run

FINE = Figures(
    images=100,
    stands_out=0.2,
    explained=0.95,
    unexplained_background=0.01,
    left_in_large_pieces=0.2,
    bare_error=0.05,
    error=0.002,
    objects=4.0,
    at_limit=0.5,
    limited=0.02,
    overlooked=0.0,
    repeated=0.99,
    prototypes=10,
    in_use=9,
    shapeless=(),
    of_shapeless=0.0,
    alike=(),
)
"""Figures of a training that worked."""
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"explained": 0.7}, "partial", "num_prototypes"),
    ({"explained": 0.2}, "failed", "num_prototypes"),
    ({"explained": 0.7, "left_in_large_pieces": 0.9}, "partial", "prototype_size"),
    ({"limited": 0.4}, "partial", "max_objects"),
    ({"explained": 0.7, "limited": 0.4}, "partial", "max_objects"),
    ({"overlooked": 0.3}, "partial", "min_error_reduction"),
    ({"repeated": 0.7}, "partial", "min_error_reduction"),
    ({"repeated": 0.7, "limited": 0.9}, "partial", "min_error_reduction"),
    ({"unexplained_background": 0.3, "left_in_large_pieces": 0.9}, "partial", "background"),
    ({"unexplained_background": 0.7, "limited": 1.0, "repeated": 0.5}, "failed", "background"),
    ({"of_shapeless": 0.8, "shapeless": (0, 1), "limited": 1.0}, "partial", "longer"),
    ({"in_use": 0, "objects": 0.0, "explained": 0.0, "overlooked": 1.0}, "failed", "min_error_reduction"),
    ({"stands_out": 0.0, "in_use": 0, "objects": 0.0, "explained": 1.0}, "failed", "images that differ"),
    ({"in_use": 4}, "partial", "num_prototypes"),
    ({"alike": ((0, 1), (2, 3), (4, 5))}, "partial", "merge"),
]
"""What may be wrong, the verdict, and a word of the advice."""
SHARE = st.floats(0, 1)


def judged(figures: Figures, **changes: Any) -> Verdict:
    """The verdict on figures of a model of the usual sizes."""
    return verdict_of(dataclasses.replace(figures, **changes), ModelConfig(), (100, 100))


def test_fine_figures_are_good_and_need_no_advice() -> None:
    verdict = judged(FINE)
    assert (verdict.verdict, verdict.advice, verdict.changes) == ("good", (), {})
    assert verdict.figures == dataclasses.asdict(FINE)
    assert str(verdict).startswith("good: 95 % of what stands out is explained (mean squared error 0.0020, ")
    assert any("9 of 10 prototypes are in use" in reason for reason in verdict.reasons)


@pytest.mark.parametrize(("changes", "word", "cure"), WRONG)
def test_what_is_wrong_makes_the_verdict_and_has_its_own_cure(changes: dict[str, Any], word: str, cure: str) -> None:
    verdict = judged(FINE, **changes)
    assert verdict.verdict == word
    assert cure in " ".join(verdict.advice)
    assert len(verdict.advice) == 1 or "alike" in changes


@given(
    shares=st.fixed_dictionaries(
        dict.fromkeys(("stands_out", "explained", "unexplained_background", "left_in_large_pieces", "limited"), SHARE)
        | dict.fromkeys(("overlooked", "repeated", "of_shapeless"), SHARE)
    ),
    in_use=st.integers(0, 10),
    alike=st.lists(st.sampled_from([(0, 1), (2, 3), (4, 9)]), unique=True),
    background=st.sampled_from(get_args(Background)),
)
def test_whatever_is_wrong_there_is_advice_that_training_takes(
    shares: dict[str, Any], in_use: int, alike: list[tuple[int, int]], background: Background
) -> None:
    figures = dataclasses.replace(FINE, **shares, in_use=in_use, alike=tuple(alike))
    verdict = verdict_of(figures, ModelConfig(background=background), (100, 100))
    assert verdict.reasons
    assert verdict.verdict == "good" or verdict.advice
    assert verdict.verdict != "good" or not verdict.changes
    Config().with_fields(verdict.changes)
    if max(figures.unexplained_background, figures.limited, figures.overlooked, 1 - figures.repeated) > 0.2:
        assert verdict.verdict != "good"


@given(better=SHARE, worse=SHARE)
def test_explaining_less_is_never_judged_better(better: float, worse: float) -> None:
    order = ["failed", "partial", "good"]
    low, high = sorted([better, worse])
    ranks = [order.index(judged(FINE, explained=share).verdict) for share in (low, high)]
    assert ranks == sorted(ranks)


def test_what_speaks_against_a_training_is_said_first() -> None:
    verdict = judged(FINE, unexplained_background=0.8, limited=0.5)
    assert verdict.reasons[0].startswith("80 % of the pixels that no object covers")
    assert verdict.reasons[1].startswith("50 % of the images hold as many objects")
    assert str(verdict) == f"failed: {verdict.reasons[0]}"


def test_prototypes_are_unused_only_if_there_were_enough_objects_to_use_them() -> None:
    assert judged(FINE, in_use=3, images=5, objects=4.0).verdict == "partial"
    assert judged(FINE, in_use=3, images=4, objects=4.0).verdict == "good"


def test_larger_prototypes_are_no_advice_where_they_do_not_fit() -> None:
    figures = dataclasses.replace(FINE, explained=0.5, left_in_large_pieces=1.0)
    sizes = [
        verdict_of(figures, ModelConfig(), size).changes.get("model.prototype_size") for size in ((30, 90), (25, 25))
    ]
    assert sizes == [(30, 37), None]


@pytest.mark.parametrize("best", get_args(Background))
def test_the_background_that_fits_best_is_advised_unless_it_is_there_already(best: Background) -> None:
    figures = dataclasses.replace(FINE, unexplained_background=0.7)
    changes = verdict_of(figures, ModelConfig(background="still"), (100, 100), background=best).changes
    assert changes == ({} if best == "still" else {"model.background": best})


@pytest.mark.parametrize(("minutes", "change"), [(None, {"train.steps": 6400}), (2.0, {"minutes": 8.0})])
def test_a_run_is_trained_longer_in_the_terms_it_was_limited_in(
    minutes: float | None, change: dict[str, float], tmp_path: Path
) -> None:
    run = true_run(tmp_path / "run", Origin(data="tetrominoes", minutes=minutes))
    figures = dataclasses.replace(FINE, explained=0.4, of_shapeless=1.0)
    assert verdict_of(figures, run.config.model, (35, 35), run).changes == change


def test_the_true_prototypes_are_good_and_an_unlearned_model_fails(tmp_path: Path) -> None:
    run, images = true_run(tmp_path / "run"), generate(40, seed=4).images
    assert judge(run.load_model(), images).verdict == judge(run.path, images).verdict == "good"
    assert judge(run).figures["images"] == 200
    assert judge(PCDNet(run.config.model), images).verdict == "failed"


def textured(images: np.ndarray) -> np.ndarray:
    """The images on a ground that is blotchy, differently in each."""
    rng = np.random.default_rng(0)
    blotches = rng.uniform(40, 220, (len(images), 5, 5, 1)).repeat(7, axis=1).repeat(7, axis=2)
    return np.where(images.max(axis=-1, keepdims=True) > 0, images, blotches).astype(np.uint8)


def lit(images: np.ndarray) -> np.ndarray:
    """The images on paper that is lit from another side in each."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (len(images), 1, 1, 1))
    rows, columns = np.mgrid[-1:1:35j, -1:1:35j][..., None]
    paper = 140 + 60 * (np.sin(angles) * rows + np.cos(angles) * columns)
    return np.where(images.max(axis=-1, keepdims=True) > 0, images, paper).astype(np.uint8)


@pytest.mark.parametrize("spoiled", [textured, lit])
@pytest.mark.parametrize("learned", [False, True])
def test_a_ground_that_the_model_does_not_assume_is_never_good(spoiled: Any, learned: bool, tmp_path: Path) -> None:
    """Even with the true prototypes, many objects and the mean of the images behind them."""
    images, run = spoiled(generate(40, seed=4).images), true_run(tmp_path / "run")
    model = PCDNet(
        dataclasses.replace(run.config.model, background="still" if learned else "black", max_objects=12),
        (35, 35) if learned else None,
    )
    bank = run.load_model().bank()
    with torch.no_grad():
        model.prototypes.copy_(bank.prototypes)
        model.masks.copy_(bank.masks)
        if model.background is not None:
            model.background.copy_(torch.from_numpy(images.mean(axis=0) / 255).permute(2, 0, 1))
    verdict = judge(model, images)
    assert verdict.verdict != "good"
    assert "background" in verdict.advice[0]
    assert spoiled is textured or verdict.changes == {"model.background": "plain"}


def test_a_verdict_is_kept_as_it_is(tmp_path: Path) -> None:
    verdict = judged(FINE, explained=0.5, left_in_large_pieces=1.0)
    back = Verdict.from_json(verdict.to_json())
    assert back == dataclasses.replace(verdict, figures=back.figures)
    assert back.changes == {"model.prototype_size": (37, 37)}
    run = true_run(tmp_path / "run")
    assert kept_verdict(run) is None
    run.save_verdict(verdict.to_json())
    assert kept_verdict(run) == back
    run.save_verdict(None)
    assert kept_verdict(run) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "\0", "[" * 100_000, '{"verdict": "superb"}']
    + [judged(FINE).to_json().replace(f'"{name}": ', f'"{name}": 3, "x": ') for name in ("advice", "changes")]
    + [judged(FINE).to_json().replace('"reasons": [', '"reasons": [3, ')],
)
def test_a_damaged_verdict_is_reported(text: str, tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    (run.path / "verdict.json").write_text(text, encoding="utf-8")
    with pytest.raises(PcdnetError, match=r"verdict\.json.*; delete it"):
        kept_verdict(run)
    (run.path / "verdict.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PcdnetError, match=r"verdict\.json.*; delete it"):
        kept_verdict(RunFolder.open(run.path))


def test_mistakes_name_their_cure(tmp_path: Path) -> None:
    run = true_run(tmp_path / "run")
    with pytest.raises(PcdnetError, match="give at least one"):
        judge(run, np.zeros((0, 35, 35, 3), np.uint8))
    with pytest.raises(PcdnetError, match="give data"):
        judge(run.load_model())


def test_fixtures_are_reported_and_speak_against_nothing() -> None:
    found = dataclasses.replace(FINE, fixtures=((1, 36, 20, 12), (1, 116, 20, 12), (5, 5, 2, 2), (9, 9, 1, 1)))
    verdict = verdict_of(found, ModelConfig(), (210, 160))
    assert verdict.verdict == "good"
    assert any("4 places are left out as fixtures" in reason for reason in verdict.reasons)
    assert any("top 1, left 36, 20x12" in reason and "1 more" in reason for reason in verdict.reasons)
