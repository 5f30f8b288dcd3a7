"""Laws of `pcdnet figure`: a file of the kind that its name says, of the scenes that were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image

from pcdnet.cli.figure import DrawFigure
from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.names import Names
from pcdnet.output.drawing import MOST
from tests.runs import true_run

Kind = Literal["prototypes", "decomposition", "segmentation"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the true prototypes of Tetrominoes, one of which has a name."""
    folder = true_run(tmp_path_factory.mktemp("runs") / "true").path
    Names(count=19).renamed(4, "four").write(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of a few scenes."""
    path = tmp_path / "scenes.npz"
    np.savez(path, image=generate(8, seed=1).images)
    return path


def draw(folder: Path, kind: Kind, out: Path, **options: Any) -> bytes:
    """Run the command, and read what it wrote."""
    DrawFigure(folder=folder, kind=kind, out=out, **options).run()
    return out.read_bytes()


@pytest.mark.parametrize("kind", ["prototypes", "decomposition", "segmentation"])
def test_every_kind_is_drawn_and_named(
    kind: Kind, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"{kind}.png"
    draw(trained, kind, out, count=1)
    with Image.open(out) as picture:
        assert picture.width <= 7 * 300
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=1)
    assert capsys.readouterr().out == f"wrote {out}   next: look at it; pcdnet report {trained} shows all of the run\n"


def test_names_are_written_above_their_prototypes(trained: Path, tmp_path: Path) -> None:
    text = draw(trained, "prototypes", tmp_path / "a.svg").decode()
    assert ">four</text>" in text
    assert ">5</text>" in text
    assert ">4</text>" not in text


def test_more_scenes_make_a_taller_figure_of_the_same_width(trained: Path, data: Path, tmp_path: Path) -> None:
    sizes = []
    for count in (1, 3):
        draw(trained, "segmentation", tmp_path / "a.png", data=str(data), count=count)
        with Image.open(tmp_path / "a.png") as picture:
            sizes.append(picture.size)
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > sizes[0][1] + 2 * 200


@pytest.mark.parametrize("generated", [False, True])
def test_a_seed_stands_for_its_scenes(generated: bool, trained: Path, data: Path, tmp_path: Path) -> None:
    name = None if generated else str(data)
    first, again, other = (
        draw(trained, "decomposition", tmp_path / "a.png", data=name, count=2, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_images_are_looked_at_as_is_said(trained: Path, tmp_path: Path) -> None:
    images = generate(2, seed=1).images
    np.savez(tmp_path / "plain.npz", image=images)
    np.savez(tmp_path / "wide.npz", image=np.pad(images, ((0, 0), (3, 0), (0, 4), (0, 0))))
    plain = draw(trained, "decomposition", tmp_path / "a.png", data=str(tmp_path / "plain.npz"))
    wide = draw(trained, "decomposition", tmp_path / "a.png", data=str(tmp_path / "wide.npz"), crop=(3, 0, 35, 35))
    assert plain == wide


def test_mistakes_name_their_cure_and_leave_nothing(trained: Path, tmp_path: Path) -> None:
    for options, cure in (
        ({"out": tmp_path / "a.bmp"}, r"\.png, \.svg, \.pdf"),
        ({"count": 0}, f"1 to {MOST}"),
        ({"count": MOST + 1}, f"1 to {MOST}"),
        ({"seed": -1}, "0 or more"),
        ({"data": "tetris"}, "use tetrominoes"),
        ({"folder": tmp_path / "none"}, "is no run"),
    ):
        given: dict[str, Any] = {"folder": trained, "kind": "segmentation", "out": tmp_path / "a.png", **options}
        with pytest.raises(PcdnetError, match=cure):
            DrawFigure(**given).run()
    assert not list(tmp_path.iterdir())
