"""Laws of the figures: what is drawn is what was found, pixel for pixel."""

from __future__ import annotations

import dataclasses
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

from pcdnet.colours import instance_colours, prototype_colours
from pcdnet.data.tetrominoes import TetrominoScenes, generate, true_prototypes
from pcdnet.decomposition import BankArrays, Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.output.figures import (
    LAYERS,
    decomposition_sheet,
    object_pictures,
    object_sheet,
    prototype_sheet,
    save_figure,
    segmentation_sheet,
    tight_frame,
)


def perfect(scenes: TetrominoScenes, index: int, objects: int = 3) -> Decomposition:
    """What a perfect model would find, of the first objects only."""
    seen = scenes.labels[index] * (scenes.labels[index] <= objects)
    return Decomposition(
        prototype_ids=scenes.shapes[index, :objects].astype(np.int32),
        positions=np.zeros((objects, 2), np.int32),
        colours=scenes.colours[index, :objects].astype(np.float32),
        error_reductions=np.ones(objects, np.float32),
        instances=seen.astype(np.int32),
        reconstruction=(scenes.images[index] * (seen > 0)[..., None] / 255).astype(np.float32),
        error=0.0,
    )


@pytest.fixture(scope="module")
def scenes() -> TetrominoScenes:
    """Three scenes of Tetrominoes."""
    return generate(3, seed=0)


@pytest.fixture(scope="module")
def images(scenes: TetrominoScenes) -> np.ndarray:
    """Their images."""
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
    figure = decomposition_sheet(images, [perfect(scenes, i) for i in range(3)])
    for picture, dots in zip(pictures(figure), drawn(figure), strict=True):
        scale = len(dots) // len(picture)
        assert scale > 1
        np.testing.assert_array_equal(dots, picture.repeat(scale, axis=0).repeat(scale, axis=1))


def test_layers_add_up_to_the_reconstruction(scenes: TetrominoScenes, images: np.ndarray) -> None:
    image, reconstruction, *layers, _, _ = pictures(decomposition_sheet(images[:1], [perfect(scenes, 0)]))
    np.testing.assert_array_equal(image, scenes.images[0])
    np.testing.assert_array_equal(sum(layers), reconstruction)


def test_semantic_maps_have_the_colours_of_the_prototype_sheet(scenes: TetrominoScenes, images: np.ndarray) -> None:
    sheet = prototype_sheet(BankArrays(*true_prototypes()))
    corners = [panel.get_window_extent().p0.round().astype(int) - 2 for panel in panels(sheet)[::2]]
    dots = rendered(sheet)[::-1]
    frames = [dots[row, column] for column, row in corners]
    *_, semantics, instances = pictures(decomposition_sheet(images[:1], [perfect(scenes, 0)]))
    for sprite, shape in enumerate(scenes.shapes[0], start=1):
        where = scenes.labels[0] == sprite
        assert (semantics[where] == frames[shape]).all()
        assert (instances[where] == instance_colours(3)[sprite - 1]).all()
    background = scenes.labels[0] == 0
    assert not semantics[background].any()
    assert not instances[background].any()


def test_a_scene_with_fewer_objects_leaves_gaps(scenes: TetrominoScenes, images: np.ndarray) -> None:
    found = [perfect(scenes, i, objects=i) for i in range(3)]
    assert len(pictures(decomposition_sheet(images, found))) == 3 * 4 + 0 + 1 + 2
    assert len(pictures(decomposition_sheet(images[:1], found[:1]))) == 4


def test_of_many_objects_the_first_are_shown_one_by_one() -> None:
    found, _ = crowd(LAYERS + 3, (60, 140))
    assert len(pictures(decomposition_sheet(found.reconstruction[None], [found]))) == 4 + LAYERS


def test_grey_images_are_drawn_grey(scenes: TetrominoScenes, images: np.ndarray) -> None:
    found = perfect(scenes, 0)
    grey = Decomposition(
        prototype_ids=found.prototype_ids,
        positions=found.positions,
        colours=found.colours[:, :1],
        error_reductions=found.error_reductions,
        instances=found.instances,
        reconstruction=found.reconstruction[..., :1],
        error=0.0,
    )
    image = pictures(decomposition_sheet(images[:1, ..., :1], [grey]))[0]
    np.testing.assert_array_equal(image, scenes.images[0, ..., :1].repeat(3, axis=-1))


def test_prototypes_come_with_their_masks_whatever_their_number() -> None:
    prototypes, masks = true_prototypes()
    for count in (1, 10, 11, 19):
        shown = pictures(prototype_sheet(BankArrays(prototypes[:count], masks[:count])))
        assert len(shown) == 2 * count
        for p in range(count):
            np.testing.assert_array_equal(shown[2 * p][..., 0], np.round(255 * prototypes[p]))
            np.testing.assert_array_equal(shown[2 * p + 1][..., 0], np.round(255 * masks[p]))


def crowd(objects: int, size: tuple[int, int]) -> tuple[Decomposition, BankArrays]:
    """A grey scene of many small squares in a grid, with their prototypes, of which the second half is a bar."""
    masks = np.zeros((2, 20, 20), np.float32)
    masks[0, 6:14, 6:14] = masks[1, 9:11, 6:14] = 1
    kinds = (np.arange(objects) % 2).astype(np.int32)
    positions = np.array([(12 * (n // 10), 12 * (n % 10)) for n in range(objects)], np.int32)
    instances = np.zeros((size[0] + 20, size[1] + 20), np.int32)
    for n in reversed(range(objects)):
        top, left = positions[n]
        instances[top : top + 20, left : left + 20][masks[kinds[n]] > 0] = n + 1
    instances = instances[: size[0], : size[1]]
    found = Decomposition(
        prototype_ids=kinds,
        positions=positions,
        colours=np.full((objects, 1), 0.5, np.float32),
        error_reductions=np.ones(objects, np.float32),
        instances=instances,
        reconstruction=(0.5 * (instances > 0)[..., None]).astype(np.float32),
        error=0.0,
    )
    return found, BankArrays(masks, masks)


def test_objects_alone_make_the_image_in_their_places(scenes: TetrominoScenes) -> None:
    found = perfect(scenes, 0)
    corners = np.stack([scenes.rows[0], scenes.columns[0]], axis=-1)
    starts = np.array([np.argwhere(mask).min(axis=0) for mask in true_prototypes()[1]])
    placed = Decomposition(
        prototype_ids=found.prototype_ids,
        positions=(corners - starts[scenes.shapes[0]]).astype(np.int32),
        colours=found.colours,
        error_reductions=found.error_reductions,
        instances=found.instances,
        reconstruction=found.reconstruction,
        error=0.0,
    )
    bank = BankArrays(*true_prototypes())
    alone = object_pictures(placed, bank, canvas=True)
    assert abs(np.maximum.reduce(alone).astype(int) - scenes.images[0]).max() <= 1
    cut = object_pictures(placed, bank, canvas=False)
    assert {picture.shape for picture in cut} == {(*bank.masks[0][tight_frame(bank.masks)].shape, 3)}
    for large, small in zip(alone, cut, strict=True):
        assert large.astype(int).sum() == small.astype(int).sum()


def test_an_object_alone_is_whole_though_others_hide_it() -> None:
    masks = np.ones((1, 3, 3), np.float32)
    hidden = Decomposition(
        prototype_ids=np.zeros(2, np.int32),
        positions=np.array([[2, 2], [2, 2]], np.int32),
        colours=np.array([[1.0], [0.2]], np.float32),
        error_reductions=np.ones(2, np.float32),
        instances=np.pad(np.ones((3, 3), np.int32), 2),
        reconstruction=np.zeros((7, 7, 1), np.float32),
        error=0.0,
    )
    for background, grey in ((None, 0), (np.ones((7, 7, 1), np.float32), 128)):
        _, behind = object_pictures(hidden, BankArrays(masks, masks, background), canvas=True)
        assert (behind[2:5, 2:5] == 51).all()
        assert (behind[:2] == grey).all()
    over = dataclasses.replace(hidden, background=np.ones((7, 7, 1), np.float32))
    assert (object_pictures(over, BankArrays(masks, masks), canvas=True)[1][:2] == 128).all()


def test_objects_of_crowded_scenes_are_cut_out_and_framed_in_the_colours_of_their_prototypes() -> None:
    found, bank = crowd(50, (185, 160))
    figure = object_sheet(found.reconstruction[None], [found], bank)
    shown = pictures(figure)
    assert len(shown) == 2 + 50
    assert {picture.shape for picture in shown[2:]} == {(8, 8, 3)}  # without the empty margins of the frames
    dots = rendered(figure)[::-1]
    for panel, colour in zip(panels(figure)[2:], prototype_colours(found.prototype_ids), strict=True):
        column, row = panel.get_window_extent().p0.round().astype(int) - 2
        assert (dots[row, column] == colour).all()


def test_prototypes_of_one_name_have_one_colour_on_every_sheet() -> None:
    found, bank = crowd(50, (185, 160))
    names = ["spade"] * len(bank.masks)
    images, first = found.reconstruction[None], prototype_colours(np.array(0))
    semantics = pictures(segmentation_sheet(images, [found], bank, names))[2]
    assert (semantics[found.instances > 0] == first).all()
    for figure, framed in (
        (object_sheet(images, [found], bank, names), slice(2, None)),
        (prototype_sheet(bank, names), slice(None)),
    ):
        dots = rendered(figure)[::-1]
        for panel in panels(figure)[framed]:
            column, row = panel.get_window_extent().p0.round().astype(int) - 2
            assert (dots[row, column] == first).all()


@pytest.mark.parametrize(("objects", "size"), [(50, (185, 160)), (20, (98, 194)), (3, (720, 1280))])
def test_sheets_are_no_wider_than_the_text_of_a_paper(objects: int, size: tuple[int, int]) -> None:
    found, bank = crowd(objects, size)
    images, many = found.reconstruction[None], bank.masks.repeat(15, axis=0)
    for figure in (
        object_sheet(images, [found], bank),
        segmentation_sheet(images, [found], bank),
        prototype_sheet(BankArrays(many, many)),
    ):
        assert figure.get_figwidth() <= 7
        assert all(panel.get_window_extent().width >= 70 for panel in panels(figure))


def test_segmentation_has_the_colours_of_the_legend_and_parts_objects_of_a_kind() -> None:
    masks = np.ones((2, 4, 4), np.float32)
    instances = np.zeros((12, 12), np.int32)
    instances[2:6, 2:6], instances[2:6, 6:10], instances[7:11, 2:6] = 1, 2, 3
    found = Decomposition(
        prototype_ids=np.array([1, 1, 0], np.int32),
        positions=np.array([[2, 2], [2, 6], [7, 2]], np.int32),
        colours=np.ones((3, 1), np.float32),
        error_reductions=np.ones(3, np.float32),
        instances=instances,
        reconstruction=(instances > 0)[..., None].astype(np.float32),
        error=0.0,
    )
    shown = pictures(segmentation_sheet(found.reconstruction[None], [found], BankArrays(masks, masks)))
    semantics, outlined = shown[2:4]
    assert len(shown) == 4 + 2 * 2
    np.testing.assert_array_equal(semantics[instances > 0], prototype_colours(found.semantics[instances > 0] - 1))
    scale = len(outlined) // 12
    middle = outlined[scale // 2 :: scale, scale // 2 :: scale]
    assert (middle[4, 4] == prototype_colours(np.array(1))).all()
    assert (middle[8, 4] == prototype_colours(np.array(0))).all()
    assert (middle[4, 8] != middle[4, 4]).any()
    row = outlined[4 * scale]
    assert not row[6 * scale - 1 : 6 * scale + 1].any()  # a black line where two objects meet
    assert row[2 * scale].any()  # and none against the background


def test_the_frame_of_cut_outs_holds_what_is_seen() -> None:
    masks = np.zeros((2, 9, 9), np.float32)
    masks[0, 2:4, 5], masks[1, 6, 1], masks[1, 8, 8] = 1, 0.5, 0.05
    assert tight_frame(masks) == (slice(2, 7), slice(1, 6))
    assert masks[0][tight_frame(np.zeros_like(masks))].shape == (9, 9)


def test_images_without_decompositions_are_refused(scenes: TetrominoScenes, images: np.ndarray) -> None:
    with pytest.raises(PcdnetError, match="3 images and 1 decompositions"):
        decomposition_sheet(images, [perfect(scenes, 0)])
    with pytest.raises(PcdnetError, match="at least one prototype"):
        prototype_sheet(BankArrays(np.zeros((0, 5, 5), np.float32), np.zeros((0, 5, 5), np.float32)))


@pytest.fixture
def sheet() -> Figure:
    """A small figure."""
    prototypes, masks = true_prototypes()
    return prototype_sheet(BankArrays(prototypes[:1], masks[:1]))


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


def test_text_stays_text_in_vector_files_and_names_are_not_mathematics(tmp_path: Path) -> None:
    prototypes, masks = true_prototypes()
    sheet = prototype_sheet(BankArrays(prototypes[:3], masks[:3]), ["$x^2", "<b>&", "漢字"])
    save_figure(sheet, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for words in ("prototype", "mask", "$x^2", "&lt;b&gt;&amp;", "漢字"):
        assert f">{words}</text>" in text
    save_figure(sheet, tmp_path / "a.pdf")
    assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()
    save_figure(sheet, tmp_path / "a.png")


def test_long_names_are_cut() -> None:
    sheet = prototype_sheet(BankArrays(*true_prototypes()), ["w" * 60] * 19)
    words = [text.get_text() for text in sheet.texts]
    assert "w" * 60 not in words
    assert any(word.endswith("w…") for word in words)


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


@pytest.mark.parametrize("canvas", [True, False])
def test_objects_in_poses_are_drawn_in_them(canvas: bool) -> None:
    """A bar that lies is drawn standing where it is turned by a quarter."""
    bar = np.zeros((1, 9, 9), np.float32)
    bar[0, 4, 1:8] = 1
    things = [{"prototype": 0, "position": [3, 5], "colour": [1.0, 1.0, 1.0], "angle": 90.0}]
    found = Decomposition.from_dict({"size": [20, 30], "objects": things})
    (picture,) = object_pictures(found, BankArrays(bar, bar), canvas=canvas)
    rows, columns = np.nonzero(picture.max(axis=-1) > 128)
    assert len(set(columns)) == 1
    assert len(set(rows)) == 7
    if canvas:
        assert (picture.shape, rows.min(), columns.min()) == ((20, 30, 3), 4, 9)
    else:
        assert picture.shape[1] == 7 * picture.shape[0]  # panels have the proportions of the upright bar
