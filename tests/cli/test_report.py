"""Laws of the report's page: what it shows was found, the worst is shown with the best, and names come along."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pcdnet.cli.model import decompose
from pcdnet.cli.origin import Origin
from pcdnet.cli.page import COLOURS, SHOWN, gallery, sightings, training_words, usual_colours, where, write_page
from pcdnet.training.run import Run, load

from pcdnet.cli.report import WriteReport
from pcdnet.config import Config, LossConfig, ModelConfig, TrainConfig
from pcdnet.data.tetrominoes import generate, true_prototypes
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.names import Names
from pcdnet.scene import Scenes

MADE = generate(9, seed=5)
SCENES = Scenes(images=MADE.images, labels=MADE.labels, name="nine scenes")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the true prototypes of Tetrominoes."""
    folder = tmp_path_factory.mktemp("runs") / "true"
    config = Config.preset("tetrominoes")
    prototypes, masks = true_prototypes()
    bank = PrototypeBank(torch.from_numpy(prototypes), torch.from_numpy(masks))
    run = Run.create(folder, config)
    run.save_weights(PCDNet.from_bank(bank, config.model))
    run.log(step=7, loss=0.5, in_use=19, seconds=62.0)
    return folder


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


def blank(count: int) -> Scenes:
    return Scenes(images=np.zeros((count, 4, 4, 3), np.uint8))


def test_the_page_tells_names_scores_and_how_to_do_it_again(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(trained, folder)
    Names(prototypes=19).renamed(3, "<b>bar</b>").write(folder)
    Origin(data="tetrominoes", minutes=2).write(folder)
    scores = write_page(folder, load(folder), SCENES)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert scores.fg_ari == 1
    assert "9 scenes: nine scenes" in text
    assert "7 steps in 1:02" in text
    assert "&lt;b&gt;bar&lt;/b&gt;" in text
    assert "<b>bar" not in text
    assert "--data tetrominoes" in text
    assert f"{tmp_path.name}/copy" in text
    assert "FG-ARI, then by the squared error" in text
    assert len(text) < 1_000_000


def test_where_the_data_are_not_known_the_command_does_not_invent_them(trained: Path, tmp_path: Path) -> None:
    write_page(trained, load(trained), SCENES.first(2), tmp_path / "page.html")
    assert "--data DATA" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_background_and_boxless_grey_images_make_a_page(tmp_path: Path) -> None:
    bank = PrototypeBank(torch.ones(2, 5, 5), torch.ones(2, 5, 5), torch.full((1, 20, 30), 0.2))
    config = ModelConfig(
        num_prototypes=2, prototype_size=(5, 5), max_objects=2, peaks_per_prototype=2, channels=1, background=True
    )
    run = Run.create(tmp_path / "grey", Config(model=config, loss=LossConfig(), train=TrainConfig()))
    run.save_weights(PCDNet.from_bank(bank, config))
    images = np.full((1, 20, 30, 1), 51, np.uint8)
    write_page(run.folder, load(run.folder), Scenes(images=images, name="grey"))
    text = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "Background" in text
    assert "FG-ARI" not in text


def test_the_command_scores_what_it_is_told_to(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, page = tmp_path / "wide.npz", tmp_path / "page.html"
    np.savez(data, image=np.pad(MADE.images, ((0, 0), (0, 0), (0, 5), (0, 0))))
    WriteReport(folder=trained, data=str(data), out=page, crop=(0, 0, 35, 35), stride=4).run()
    assert "3 scenes: wide.npz" in page.read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"wrote {page}   next: open it in a browser\n"
    with pytest.raises(PcdnetError, match=r"use .*page\.html"):
        WriteReport(folder=trained, out=tmp_path / "page.txt").run()


@settings(deadline=None, max_examples=60)
@given(errors=st.lists(st.floats(0, 100), max_size=12))
def test_the_gallery_holds_the_best_and_the_worst_and_no_scene_twice(errors: list[float]) -> None:
    things = [found(error) for error in errors]
    shown = gallery(blank(len(errors)), things)
    assert len({id(item.found) for item in shown}) == len(shown) == min(len(errors), 3 * SHOWN)
    assert [item.found.error for item in shown] == sorted(item.found.error for item in shown)
    if errors:
        assert shown[0].title == "best"
        assert {shown[0].found.error, shown[-1].found.error} == {min(errors), max(errors)}
    if len(errors) >= 3 * SHOWN:
        assert [item.title for item in shown] == ["best"] * SHOWN + ["median"] * SHOWN + ["worst"] * SHOWN


def test_a_wrong_cut_is_worse_than_a_bad_picture() -> None:
    truth = np.zeros((2, 4, 4), np.int32)
    truth[:, 0], truth[:, 1] = 1, 2
    merged = (truth[1] > 0).astype(np.int32)
    scenes = Scenes(images=np.zeros((2, 4, 4, 3), np.uint8), labels=truth)
    shown = gallery(scenes, [found(9.0, truth[0]), found(0.0, merged)])
    assert [item.found.error for item in shown] == [9, 0]
    assert shown[0].note.startswith("FG-ARI 1.0000")


def test_colours_and_places_are_those_of_the_objects(trained: Path) -> None:
    things = decompose(load(trained), MADE.images)
    prototypes, masks = true_prototypes()
    seen = sightings(things, prototypes, masks)
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
    assert [item.places for item in sightings([found(1.0)], prototypes, masks)] == [None] * 19


def test_usual_colours_come_by_frequency_and_near_ones_are_one() -> None:
    red, blue = [0.9, 0.0, 0.0], [0.0, 0.0, 0.6]
    usual = usual_colours(np.array([red, blue, red, [0.85, 0.02, 0.0]]))
    assert [share for _, share in usual] == [0.75, 0.25]
    assert usual[0][0][0] > 200
    assert usual[1][0].tolist() == [0, 0, 153]
    grey = usual_colours(np.array([[0.5], [2.0]]))
    assert sorted(colour.tolist() for colour, _ in grey) == [[128] * 3, [255] * 3]


@given(colours=st.lists(st.tuples(*[st.floats(-1, 3)] * 3), min_size=1, max_size=30))
def test_there_are_never_more_usual_colours_than_are_shown(colours: list[tuple[float, float, float]]) -> None:
    usual = usual_colours(np.array(colours))
    shares = [share for _, share in usual]
    assert 1 <= len(usual) <= COLOURS
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9


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
