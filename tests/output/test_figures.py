"""Laws of the figures: what is drawn is what was found, pixel for pixel."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.image import BboxImage
from PIL import Image

from pcdnet.data.tetrominoes import TetrominoScenes, generate, true_prototypes
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.figures import PALETTE, decomposition_sheet, instance_colours, prototype_sheet, save_figure


def truth(scenes: TetrominoScenes, index: int, objects: int = 3) -> Decomposition:
    """What a perfect model would find, of the first objects only."""
    seen = scenes.labels[index] * (scenes.labels[index] <= objects)
    return Decomposition(
        prototypes=scenes.shapes[index, :objects].astype(np.int32),
        positions=np.zeros((objects, 2), np.int32),
        colours=scenes.colours[index, :objects].astype(np.float32),
        gains=np.ones(objects, np.float32),
        instances=seen.astype(np.int32),
        reconstruction=(scenes.images[index] * (seen > 0)[..., None] / 255).astype(np.float32),
        error=0.0,
    )


@pytest.fixture(scope="module")
def scenes() -> TetrominoScenes:
    return generate(3, seed=0)


@pytest.fixture(scope="module")
def images(scenes: TetrominoScenes) -> np.ndarray:
    return scenes.images.astype(np.float32) / 255


def panels(figure: Figure) -> list[BboxImage]:
    """The panels in the order of drawing."""
    return [artist for artist in figure.artists if isinstance(artist, BboxImage)]


def pictures(figure: Figure) -> list[np.ndarray]:
    """What the panels show."""
    return [np.asarray(panel.get_array()) for panel in panels(figure)]


def rendered(figure: Figure) -> np.ndarray:
    """The dots of the whole sheet."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi)
    with Image.open(buffer) as picture:
        return np.asarray(picture.convert("RGB"))


def drawn(figure: Figure) -> list[np.ndarray]:
    """The dots of every panel."""
    sheet = rendered(figure)
    boxes = [panel.get_window_extent() for panel in panels(figure)]
    height = len(sheet)
    return [sheet[height - round(b.y1) : height - round(b.y0), round(b.x0) : round(b.x1)] for b in boxes]


def test_every_pixel_is_drawn_as_an_equal_square_of_its_colour(scenes: TetrominoScenes, images: np.ndarray) -> None:
    figure = decomposition_sheet(images, [truth(scenes, i) for i in range(3)])
    for picture, dots in zip(pictures(figure), drawn(figure), strict=True):
        scale = len(dots) // len(picture)
        assert scale > 1
        np.testing.assert_array_equal(dots, picture.repeat(scale, axis=0).repeat(scale, axis=1))


def test_layers_add_up_to_the_reconstruction(scenes: TetrominoScenes, images: np.ndarray) -> None:
    image, reconstruction, *layers, _, _ = pictures(decomposition_sheet(images[:1], [truth(scenes, 0)]))
    np.testing.assert_array_equal(image, scenes.images[0])
    np.testing.assert_array_equal(sum(layers), reconstruction)


def test_semantic_maps_have_the_colours_of_the_prototype_sheet(scenes: TetrominoScenes, images: np.ndarray) -> None:
    sheet = prototype_sheet(*true_prototypes())
    corners = [panel.get_window_extent().p0.round().astype(int) - 2 for panel in panels(sheet)[::2]]
    dots = rendered(sheet)[::-1]
    frames = [dots[row, column] for column, row in corners]
    *_, semantics, instances = pictures(decomposition_sheet(images[:1], [truth(scenes, 0)]))
    for sprite, shape in enumerate(scenes.shapes[0], start=1):
        where = scenes.labels[0] == sprite
        assert (semantics[where] == frames[shape]).all()
        assert (instances[where] == instance_colours(3)[sprite - 1]).all()
    background = scenes.labels[0] == 0
    assert not semantics[background].any()
    assert not instances[background].any()


def test_a_scene_with_fewer_objects_leaves_gaps(scenes: TetrominoScenes, images: np.ndarray) -> None:
    found = [truth(scenes, i, objects=i) for i in range(3)]
    assert len(pictures(decomposition_sheet(images, found))) == 3 * 4 + 0 + 1 + 2
    assert len(pictures(decomposition_sheet(images, found, layers=1))) == 3 * 4 + 0 + 1 + 1
    assert len(pictures(decomposition_sheet(images[:1], found[:1]))) == 4


def test_grey_images_are_drawn_grey(scenes: TetrominoScenes, images: np.ndarray) -> None:
    found = truth(scenes, 0)
    grey = Decomposition(
        prototypes=found.prototypes,
        positions=found.positions,
        colours=found.colours[:, :1],
        gains=found.gains,
        instances=found.instances,
        reconstruction=found.reconstruction[..., :1],
        error=0.0,
    )
    image = pictures(decomposition_sheet(images[:1, ..., :1], [grey]))[0]
    np.testing.assert_array_equal(image, scenes.images[0, ..., :1].repeat(3, axis=-1))


def test_prototypes_come_with_their_masks_whatever_their_number() -> None:
    prototypes, masks = true_prototypes()
    for count in (1, 10, 11, 19):
        shown = pictures(prototype_sheet(prototypes[:count], masks[:count]))
        assert len(shown) == 2 * count
        for p in range(count):
            np.testing.assert_array_equal(shown[2 * p][..., 0], np.round(255 * prototypes[p]))
            np.testing.assert_array_equal(shown[2 * p + 1][..., 0], np.round(255 * masks[p]))


def test_no_two_colours_of_the_palette_are_alike() -> None:
    for colours in (PALETTE, instance_colours(12)):
        everything = np.concatenate([colours, [[0, 0, 0]]]).astype(float)
        distance = np.linalg.norm(everything[:, None] - everything[None], axis=-1)
        assert distance[~np.eye(len(everything), dtype=bool)].min() > 32


def test_images_without_decompositions_are_refused(scenes: TetrominoScenes, images: np.ndarray) -> None:
    with pytest.raises(PcdnetError, match="3 images and 1 decompositions"):
        decomposition_sheet(images, [truth(scenes, 0)])
    with pytest.raises(PcdnetError, match="at least one prototype"):
        prototype_sheet(np.zeros((0, 5, 5), np.float32), np.zeros((0, 5, 5), np.float32))


@pytest.fixture
def sheet() -> Figure:
    prototypes, masks = true_prototypes()
    return prototype_sheet(prototypes[:1], masks[:1])


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_suffix_says_what_is_written_and_the_same_figure_gives_the_same_file(
    name: str, magic: bytes, tmp_path: Path, sheet: Figure
) -> None:
    save_figure(sheet, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    save_figure(sheet, tmp_path / name)
    assert first.startswith(magic)
    assert (tmp_path / name).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_suffix_that_is_not_known_is_refused(tmp_path: Path, sheet: Figure) -> None:
    with pytest.raises(PcdnetError, match=r"picture\.bmp.*\.png, \.svg, \.pdf"):
        save_figure(sheet, tmp_path / "picture.bmp")
    assert not list(tmp_path.iterdir())


def test_a_failed_figure_leaves_the_old_file_alone(tmp_path: Path, sheet: Figure) -> None:
    class Broken(Artist):
        def draw(self, renderer: object) -> None:
            raise RuntimeError("no ink")

    target = tmp_path / "a.png"
    target.write_bytes(b"old")
    sheet.add_artist(Broken())
    with pytest.raises(RuntimeError, match="no ink"):
        save_figure(sheet, target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_figures_need_neither_pyplot_nor_torch() -> None:
    code = "import sys, pcdnet.output.figures; print(*{'matplotlib.pyplot', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
