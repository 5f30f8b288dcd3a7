"""Laws of the report: what it shows was found, the worst is shown with the best, and a run or a model will do."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcdnet.config import Background
from pcdnet.data.tetrominoes import generate, true_prototypes
from pcdnet.data.view import View
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.origin import Origin
from pcdnet.output.report import SHOWN, gallery, report, sightings, training_words, where
from pcdnet.run import RunFolder
from pcdnet.scene import Scenes
from tests.runs import GREY, grey_run, true_run

MADE = generate(9, seed=5)
SCENES = Scenes(images=MADE.images, labels=MADE.labels, name="nine scenes")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with the true prototypes of Tetrominoes, one of which has a name, and with a line of metrics."""
    run = true_run(tmp_path / "true")
    run.log(step=7, loss=0.5, in_use=19, seconds=62.0)
    Names(count=19).renamed(3, "<b>bar</b>").write(run.path)
    return run


def found(error: float, instances: np.ndarray | None = None) -> Decomposition:
    """A decomposition without objects but with an error."""
    return Decomposition(
        prototype_ids=np.zeros(0, np.int32),
        positions=np.zeros((0, 2), np.int32),
        colours=np.zeros((0, 3), np.float32),
        error_reductions=np.zeros(0, np.float32),
        instances=np.zeros((4, 4), np.int32) if instances is None else instances,
        reconstruction=np.zeros((4, 4, 3), np.float32),
        error=error,
    )


def test_the_page_shows_names_scores_and_how_to_do_it_again(run: RunFolder, tmp_path: Path) -> None:
    written = report(run, SCENES)
    assert written.path == run.path / "report.html"
    assert written.data == "nine scenes"
    assert written.scores.fg_ari == 1
    text = written.path.read_text(encoding="utf-8")
    assert "9 scenes: nine scenes" in text
    assert "7 steps in 1:02" in text
    assert "&lt;b&gt;bar&lt;/b&gt;" in text
    assert "<b>bar" not in text
    assert "--data tetrominoes" in text
    assert f"{tmp_path.name}/true" in text
    assert "FG-ARI, then by the squared error" in text
    assert len(text) < 1_000_000


def test_a_verdict_that_was_kept_stands_and_whatever_has_none_is_judged(run: RunFolder, tmp_path: Path) -> None:
    judged = report(run.load_model(), SCENES, out=tmp_path / "page.html")
    assert judged.verdict is not None
    assert (judged.verdict.verdict, judged.suggestions) == ("good", ())
    assert "Verdict: good" in judged.path.read_text(encoding="utf-8")
    assert judged.census.everything.counts.tolist() == [3] * 9
    figures = {**judged.verdict.figures, "alike": ((2, 5),)}
    kept = dataclasses.replace(judged.verdict, verdict="partial", reasons=("few <objects>",), figures=figures)
    run.save_verdict(kept.to_json())
    written = report(run, SCENES)
    assert [each.command for each in written.suggestions] == [f"pcdnet merge {run.path} 2 5"]
    text = written.path.read_text(encoding="utf-8")
    assert "Verdict: partial" in text
    assert "few &lt;objects&gt;" in text
    assert "2 and 5 are one kind" in text


def test_where_the_data_are_not_known_the_command_does_not_invent_them(tmp_path: Path) -> None:
    unknown = true_run(tmp_path / "unknown", Origin())
    report(unknown, SCENES.first(2), out=tmp_path / "page.html")
    assert "--data DATA" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(PcdnetError, match="name what to use with data"):
        report(unknown)


def test_a_background_and_grey_images_without_ground_truth_make_a_page(tmp_path: Path) -> None:
    page = report(grey_run(tmp_path / "grey").path, np.full((1, 20, 30, 1), 51, np.uint8)).path
    text = page.read_text(encoding="utf-8")
    assert "Background" in text
    assert "FG-ARI" not in text
    assert "1 scenes: an array" in text


@pytest.mark.parametrize("kind", ["plain", "moving"])
def test_a_background_of_each_image_makes_a_page(kind: Background, tmp_path: Path) -> None:
    behind = torch.rand(1, 30, 40, generator=torch.Generator().manual_seed(1)) / 2
    shapes = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(0))
    bank = PrototypeBank(shapes, torch.ones(2, 5, 5), behind if kind == "moving" else None)
    model = PCDNet.from_bank(bank, dataclasses.replace(GREY, background=kind))
    images = (255 * behind[:, 3:23, 4:34]).byte().permute(1, 2, 0)[None].numpy()
    text = report(model, images, out=tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert ("the learned background" in text) == (kind == "moving")


def test_where_superfluous_prototypes_went_the_page_says_whose_numbers_are_in_the_metrics(tmp_path: Path) -> None:
    run = grey_run(tmp_path / "grey")
    for step in (1, 2):
        run.log(step=step, loss=0.5, in_use=2)
    run.log(step=2, event="split", prototype=1, source=0)
    scenes = np.full((1, 20, 30, 1), 51, np.uint8)
    whole = report(run, scenes).path.read_text(encoding="utf-8")
    assert "last split" in whole
    assert "superfluous ones went" not in whole
    first = run.load_model().bank().map(lambda values: values[:1])
    one = PCDNet.from_bank(first, dataclasses.replace(GREY, num_prototypes=1))
    run.save_weights(one, settled=True)
    settled = report(run, scenes).path.read_text(encoding="utf-8")
    assert "last split" not in settled
    assert "The numbers are those of the 2 prototypes of the training; superfluous ones went afterwards." in settled
    assert "of 2" in settled


@pytest.mark.parametrize("kind", ["run", "model"])
def test_scenes_are_seen_and_counted_as_is_said(kind: str, run: RunFolder, tmp_path: Path) -> None:
    wide = np.pad(MADE.images, ((0, 0), (0, 0), (0, 5), (0, 0)))
    np.savez(tmp_path / "wide.npz", image=wide)
    source = run if kind == "run" else run.load_model()
    view = View(crop=(0, 0, 35, 35), stride=2)
    for data in (wide, str(tmp_path / "wide.npz"), Scenes(images=wide)):
        for count, scenes in ((3, 3), (1000, 5)):
            written = report(source, data, out=tmp_path / "page.html", count=count, view=view)
            assert written.scores.scenes == scenes
    shown = []
    for seed in (1, 1, 2):
        written = report(source, "tetrominoes", out=tmp_path / "page.html", count=4, seed=seed)
        assert written.scores.scenes == 4
        shown.append(re.findall(r'"data:image[^"]*"', written.path.read_text(encoding="utf-8")))
    assert shown[0] == shown[1] != shown[2]


def test_a_model_alone_needs_scenes_and_a_file(run: RunFolder, tmp_path: Path) -> None:
    model = run.load_model()
    for given_data, out in ((None, tmp_path / "a.html"), (SCENES, None)):
        with pytest.raises(PcdnetError, match="give data and out"):
            report(model, given_data, out=out)
    text = report(model, SCENES, out=tmp_path / "a.html").path.read_text(encoding="utf-8")
    assert "a model" in text
    assert "num_prototypes = 19" in text
    assert "[train]" not in text


def test_a_page_of_another_suffix_is_refused_before_any_work(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=r"use .*page\.html"):
        report(run, "no such data", out=tmp_path / "page.txt")


@settings(deadline=None, max_examples=60)
@given(errors=st.lists(st.floats(0, 100), max_size=12))
def test_the_gallery_holds_the_best_and_the_worst_and_no_scene_twice(errors: list[float]) -> None:
    things = [found(error) for error in errors]
    shown = gallery(Scenes(images=np.zeros((len(errors), 4, 4, 3), np.uint8)), things)
    assert len({id(item.found) for item in shown}) == len(shown) == min(len(errors), 3 * SHOWN)
    assert [item.found.error for item in shown] == sorted(item.found.error for item in shown)
    if errors:
        assert shown[0].title == "best"
        assert {shown[0].found.error, shown[-1].found.error} == {min(errors), max(errors)}
    if len(errors) >= 3 * SHOWN:
        assert [item.title for item in shown] == ["best"] * SHOWN + ["median"] * SHOWN + ["worst"] * SHOWN


def test_a_wrong_cut_is_worse_than_a_bad_picture() -> None:
    labels = np.zeros((2, 4, 4), np.int32)
    labels[:, 0], labels[:, 1] = 1, 2
    merged = (labels[1] > 0).astype(np.int32)
    scenes = Scenes(images=np.zeros((2, 4, 4, 3), np.uint8), labels=labels)
    shown = gallery(scenes, [found(9.0, labels[0]), found(0.0, merged)])
    assert [item.found.error for item in shown] == [9, 0]
    assert shown[0].note.startswith("FG-ARI 1.0000")


def test_colours_and_places_are_those_of_the_objects(run: RunFolder) -> None:
    things = run.load_model().decompose_all(MADE.images)
    bank = BankArrays(*true_prototypes())
    seen = sightings(things, bank)
    assert len(seen) == 19
    for p, sighting in enumerate(seen):
        used = p in MADE.shapes
        assert (sighting.places is not None) == bool(sighting.colours) == used
        if used and sighting.places is not None:
            assert sighting.places.sum() == pytest.approx((MADE.shapes == p).sum())
            assert sum(share for _, share in sighting.colours) == pytest.approx(1)
    square = int(MADE.shapes[0, 0])
    channels = {tuple((colour > 40).tolist()) for colour, _ in seen[square].colours}
    assert tuple((MADE.colours[0, 0] > 0).tolist()) in channels
    assert [item.places for item in sightings([found(1.0)], bank)] == [None] * 19


def test_objects_are_counted_where_they_are_even_outside() -> None:
    grid = where(np.array([[5.0, 190.0], [-3.0, 400.0]]), (100, 200))
    assert grid.shape == (12, 24)
    assert grid.sum() == pytest.approx(2)
    assert np.unravel_index(grid.argmax(), grid.shape)[0] == 0
    assert grid[:, :12].sum() == pytest.approx(0, abs=1e-3)
    assert where(np.zeros((1, 2)), (3, 5)).shape == (3, 5)


def test_a_run_without_metrics_says_nothing_of_its_training() -> None:
    assert training_words([]) == ""
    assert training_words([{"step": 3, "validation": {}}]) == ""
