"""Laws of the figures of a run: the scenes that were asked for, and other seeds give others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import BboxImage

from pcdnet.data.tetrominoes import generate
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.names import Names
from pcdnet.output.drawing import MOST, Kind, figure
from pcdnet.run import RunFolder
from tests.runs import true_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with the true prototypes of Tetrominoes, one of which has a name."""
    run = true_run(tmp_path_factory.mktemp("runs") / "true")
    Names(count=19).renamed(4, "four").write(run.path)
    return run


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A file of a few scenes."""
    np.savez(tmp_path / "scenes.npz", image=generate(8, seed=1).images)
    return str(tmp_path / "scenes.npz")


def pictures(drawn: Figure) -> list[np.ndarray]:
    """What the panels show, in the order of drawing."""
    return [np.asarray(panel.get_array()) for panel in drawn.artists if isinstance(panel, BboxImage)]


def images(drawn: Figure, count: int) -> list[np.ndarray]:
    """The images among the panels of a segmentation: the first of every four."""
    return pictures(drawn)[: 4 * count : 4]


@pytest.mark.parametrize("kind", ["prototypes", "decomposition", "segmentation"])
def test_every_kind_fits_the_width_of_a_paper_and_names_prototypes(kind: Kind, run: RunFolder) -> None:
    drawn = figure(run.path, kind, count=1)
    words = [text.get_text() for text in drawn.texts]
    assert drawn.get_figwidth() <= 7
    assert ("four" in words) == (kind != "decomposition")
    assert ("5" in words) == (kind != "decomposition")
    assert "4" not in words


def test_scenes_of_a_file_are_a_choice_in_their_order(run: RunFolder, data: str) -> None:
    known = generate(8, seed=1).images
    shown = images(figure(run, "segmentation", data, count=3), 3)
    places = [next(n for n in range(8) if (known[n] == image).all()) for image in shown]
    assert places == sorted(set(places))
    every = images(figure(run, "segmentation", data, count=20), 8)
    np.testing.assert_array_equal(every, known)


def test_more_scenes_make_a_taller_figure_of_the_same_width(run: RunFolder, data: str) -> None:
    one, three = (figure(run, "segmentation", data, count=count) for count in (1, 3))
    assert one.get_figwidth() == three.get_figwidth()
    assert three.get_figheight() > one.get_figheight() + 2 * 200 / 300


@pytest.mark.parametrize("generated", [False, True])
def test_a_seed_stands_for_its_scenes(generated: bool, run: RunFolder, data: str) -> None:
    name = None if generated else data
    first, again, other = (images(figure(run, "segmentation", name, count=2, seed=s), 2) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_images_are_looked_at_as_is_said(run: RunFolder, tmp_path: Path) -> None:
    plain = generate(2, seed=1).images
    np.savez(tmp_path / "wide.npz", image=np.pad(plain, ((0, 0), (3, 0), (0, 4), (0, 0))))
    drawn = figure(run, "segmentation", str(tmp_path / "wide.npz"), view=View(crop=(3, 0, 35, 35)))
    np.testing.assert_array_equal(images(drawn, 2), plain)


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"count": 0}, f"1 to {MOST}"),
        ({"count": MOST + 1}, f"1 to {MOST}"),
        ({"seed": -1}, "0 or more"),
        ({"data": "tetris"}, "use tetrominoes"),
        ({"source": "none"}, "is no run"),
    ],
)
def test_mistakes_name_their_cure(options: dict[str, Any], cure: str, run: RunFolder) -> None:
    with pytest.raises(PcdnetError, match=cure):
        figure(**{"source": run, "kind": "segmentation", **options})
