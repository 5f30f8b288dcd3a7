"""Laws of tiling: a picture in tiles has the objects that it has in one piece, wherever the seams are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch

from pcdnet.config import Background, Localization
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model import tiling
from pcdnet.model.network import PCDNet
from pcdnet.model.posed import frame_corner
from pcdnet.model.tiling import Tiling
from tests.model.models import CONFIG
from tests.oracle.scenes import random_bank, random_scene

SIZE = (150, 170)
OBJECTS, PEAKS = 45, 50

Pictured = tuple[PCDNet, np.ndarray]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of a few frames, so that small pictures have many seams."""
    monkeypatch.setattr(tiling, "WHOLE", 100)
    monkeypatch.setattr(tiling, "LEAST", 48)
    monkeypatch.setattr(tiling, "FRAMES", 8)


@pytest.fixture
def in_one_piece(monkeypatch: pytest.MonkeyPatch) -> Callable[[PCDNet, np.ndarray], Decomposition]:
    """How a model decomposes a picture without tiles, with as many peaks as all tiles have together."""

    def decompose(model: PCDNet, picture: np.ndarray) -> Decomposition:
        with monkeypatch.context() as patch:
            patch.setattr(tiling, "WHOLE", 10_000)
            patch.setattr(model, "config", dataclasses.replace(model.config, peaks_per_prototype=5 * PEAKS))
            return model.decompose(picture)

    return decompose


def crowded(
    seed: int,
    background: Background = "black",
    localization: Localization = "error_reduction",
    objects: int = OBJECTS,
    noise: float = 0.0,
) -> Pictured:
    """A model and a picture of many objects, which overlap and hang over the border."""
    rng = torch.Generator().manual_seed(seed)
    bank = random_bank(rng, 3, (9, 8), None, torch.float32)
    picture = random_scene(rng, bank, SIZE, 3, objects, 0.0)
    if background == "plain":
        empty = random_scene(rng, bank, SIZE, 3, 0, 0.0)
        light = torch.linspace(0.4, 0.7, SIZE[1])[None, None] + torch.linspace(0, 0.2, SIZE[0])[:, None]
        picture = torch.where((picture != empty).any(dim=0), picture, light)
    picture = (picture + noise * torch.randn(picture.shape, generator=rng)).clamp(0, 1)
    config = dataclasses.replace(
        CONFIG,
        background=background,
        localization=localization,
        max_objects=3 * OBJECTS,
        peaks_per_prototype=PEAKS,
        min_error_reduction=0.5,
        restarts=0,
    )
    return PCDNet.from_bank(bank, config), picture.permute(1, 2, 0).contiguous().numpy()


def placed(found: Decomposition) -> list[tuple[int, ...]]:
    """Prototype, row and column of every object, front to back."""
    return [tuple(row) for row in np.column_stack([found.prototype_ids, found.positions]).tolist()]


def by_place(found: Decomposition) -> tuple[list[tuple[int, ...]], np.ndarray, np.ndarray, np.ndarray]:
    """The objects sorted by what and where they are, with colours, error reductions, and labels that follow.

    Those that do not overlap may come in any order; that of the others shows in the labels.
    """
    what = placed(found)
    order = sorted(range(len(what)), key=what.__getitem__)
    labels = np.concatenate([[0], 1 + np.argsort(order)])[found.instances]
    return sorted(what), found.colours[order], found.error_reductions[order], labels


@pytest.mark.parametrize("background", ["black", "plain"])
def test_labels_of_what_changes_follow_the_picture_in_tiles_too(background: Background) -> None:
    model, picture = crowded(2, background)
    if background == "black":
        model.prototypes.data[:, :3] = 0  # dark parts under the mask
    by_mask = model.decompose(picture)
    model.config = dataclasses.replace(model.config, labels="change")
    found = model.decompose(picture)
    assert (found.background is None) == (background == "black")
    behind = 0 if found.background is None else found.background
    visible = np.square(found.reconstruction - behind).mean(2) > 1e-3
    np.testing.assert_array_equal(found.instances, np.where(visible, by_mask.instances, 0))
    assert 0 < (found.instances > 0).sum() < (by_mask.instances > 0).sum()


@pytest.mark.parametrize("seed", range(4))
def test_tiles_find_what_one_piece_finds(
    seed: int, in_one_piece: Callable[[PCDNet, np.ndarray], Decomposition]
) -> None:
    model, picture = crowded(seed)
    layout = Tiling.of(model, SIZE, None)
    assert layout is not None
    assert len(layout.corners) >= 6
    whole, found = in_one_piece(model, picture), model.decompose(picture, name="large")
    one, other = by_place(found), by_place(whole)
    assert one[0] == other[0]
    for mine, its, within in zip(one[1:], other[1:], (1e-5, 1e-3, 0), strict=True):
        np.testing.assert_allclose(mine, its, atol=within, rtol=within)
    np.testing.assert_allclose(found.reconstruction, whole.reconstruction, atol=1e-5)
    assert found.error == pytest.approx(whole.error, rel=1e-3)
    assert found.name == "large"
    assert found.background is None
    seams = layout.columns.seams()
    across = [row for row in placed(found) if any(row[2] < seam < row[2] + 8 for seam in seams)]
    assert len(across) >= 3, "some objects lie across seams"


@pytest.mark.parametrize(("background", "localization"), [("black", "phase"), ("plain", "error_reduction")])
def test_other_ways_to_search_find_nearly_all_the_same(
    background: Background, localization: Localization, in_one_piece: Callable[[PCDNet, np.ndarray], Decomposition]
) -> None:
    """Phases are those of a whole image, and surfaces are fitted to a part of it: neither is exactly the same."""
    model, picture = crowded(5, background, localization, objects=25)
    whole, found = set(placed(in_one_piece(model, picture))), set(placed(model.decompose(picture)))
    assert len(whole & found) >= 0.9 * max(len(whole), len(found))


@pytest.mark.parametrize("shift", [(0, 7), (13, 0), (20, 31)])
def test_moving_a_picture_moves_its_objects(shift: tuple[int, int]) -> None:
    """So nothing depends on where the seams are."""
    model, picture = crowded(6)
    around = np.pad(picture, ((40, 40), (40, 40), (0, 0)))
    moved = np.roll(around, shift, axis=(0, 1))
    still = {(p, row + shift[0], column + shift[1]) for p, row, column in placed(model.decompose(around))}
    assert set(placed(model.decompose(moved))) == still


def test_no_object_is_found_twice_in_noise() -> None:
    model, picture = crowded(7, objects=60, noise=0.05)
    found = placed(model.decompose(picture))
    near = [
        (one, two)
        for n, one in enumerate(found)
        for two in found[:n]
        if one[0] == two[0] and max(abs(one[1] - two[1]), abs(one[2] - two[2])) <= 1
    ]
    assert not near


def test_refinement_works_in_tiles() -> None:
    model, picture = crowded(8, localization="phase")
    model.config = dataclasses.replace(model.config, restarts=1, peaks_per_prototype=4)
    greedy, refined = (model.decompose_all(picture[None], refined=refined)[0].error for refined in (False, True))
    assert refined < 0.8 * greedy, "few peaks are tried at first, and four times as many where an error is left"


def test_limits_grow_with_the_area() -> None:
    """What a model learned from is known: limits are meant for so many pixels, in tiles or in one piece."""
    model, picture = crowded(9)
    whole = model.decompose(picture)
    model.config = dataclasses.replace(model.config, max_objects=8, peaks_per_prototype=20)
    assert len(model.decompose(picture)) < len(whole), "so many objects are in a tile"
    model.learned_size = (40, 40)
    assert placed(model.decompose(picture)) == placed(whole)
    layout = Tiling.of(model, SIZE, (40, 40))
    assert layout is not None
    h, w = model.bank().tight()[0].frame
    assert layout.config.max_objects == -(-8 * (layout.size[0] + h) * (layout.size[1] + w) // 1600)
    assert model.max_objects_in((30, 50)) == 8
    assert model.max_objects_in(SIZE) == len(layout.corners) * layout.config.max_objects


def test_small_pictures_are_searched_in_one_piece() -> None:
    model, _ = crowded(10)
    assert Tiling.of(model, (100, 100), None) is None
    assert Tiling.of(model, (101, 20), None) is not None
    assert Tiling.of(model, (150, 170), (150, 170)) is None
    assert Tiling.of(model, (150, 171), (150, 170)) is not None
    model.config = dataclasses.replace(model.config, background="still")
    assert Tiling.of(model, (150, 171), None) is None


def test_tiles_hold_several_frames_and_share_what_is_misread_at_their_ends() -> None:
    model, _ = crowded(11)
    frame = model.bank().tight()[0].frame
    for size in ((101, 400), (333, 90), (1000, 2000)):
        layout = Tiling.of(model, size, None)
        assert layout is not None
        for pieces, length, side in zip((layout.rows, layout.columns), size, frame, strict=True):
            assert pieces.starts[0] == 0
            assert pieces.starts[-1] + pieces.piece == length
            assert pieces.piece >= min(length, tiling.FEWEST_FRAMES * side)
            gaps = np.diff(pieces.starts)
            assert (pieces.piece - gaps >= 2 * tiling.REACH * side).all()


def test_a_plain_background_has_no_step_at_seams() -> None:
    model, picture = crowded(12, "plain", objects=20, noise=0.01)
    model.learned_size = (48, 48)
    found = model.decompose(picture)
    assert found.background is not None
    for axis in (0, 1):
        steps = np.abs(np.diff(found.background, axis=axis)).max(axis=(1 - axis, 2))
        assert steps.max() < 0.02
        assert steps.max() < 4 * np.median(steps) + 0.003, "no line differs much more from the next than others do"
    free = found.instances == 0
    assert np.abs(found.reconstruction - picture)[free].mean() < 0.03


def test_pixels_are_taken_in_every_type_and_nonsense_is_refused() -> None:
    model, picture = crowded(13, objects=10)
    eight = np.round(255 * picture).astype(np.uint8)
    same = placed(model.decompose(eight))
    assert placed(model.decompose(eight / 255)) == same
    assert placed(model.decompose(eight.astype(np.uint16) * 257)) == same
    for wrong in (picture * 2, np.where(picture > 0.9, np.nan, picture), picture[..., :1]):
        with pytest.raises(PcdnetError):
            model.decompose(wrong)


def test_a_blank_picture_holds_nothing() -> None:
    for background in ("black", "plain"):
        model, picture = crowded(14, background)
        assert len(model.decompose(np.zeros_like(picture))) == 0


def test_the_largest_arrays_are_those_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory goes with a tile: nothing that is searched is larger than the tiles of a batch."""
    monkeypatch.setattr(tiling, "AT_ONCE", 1 << 14)
    model, picture = crowded(15)
    sizes = []
    search = model.search

    def watched(images: torch.Tensor, *rest: object, **more: object) -> object:
        sizes.append(images.shape[0] * images.shape[2] * images.shape[3])
        return search(images, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "search", watched)
    model.decompose(picture)
    assert len(sizes) > 3
    assert max(sizes) <= 1 << 14


@dataclasses.dataclass
class TrueObjects:
    """What a search finds that knows the objects, in the form of a placement; positions are of frames of all poses."""

    exists: torch.Tensor
    prototype: torch.Tensor
    row: torch.Tensor
    column: torch.Tensor
    colour: torch.Tensor
    error_reduction: torch.Tensor
    pose: torch.Tensor

    def on_host(self) -> TrueObjects:
        """The same."""
        return self


def posed_picture() -> tuple[PCDNet, Decomposition]:
    """A model whose objects turn, and objects that overlap and lie across seams, painted."""
    model = crowded(3)[0]
    config = dataclasses.replace(model.config, rotations=8, scales=2, scale_range=(0.8, 1.3), subpixel=True)
    model = PCDNet.from_bank(model.bank().map(torch.Tensor.detach), config)
    rng = np.random.default_rng(5)
    things = [
        {"prototype": int(p), "position": at, "colour": [0.9, 0.7, 0.5], "angle": float(a), "scale": float(s)}
        for p, at, a, s in zip(
            rng.integers(0, 3, 40),
            rng.uniform(0, np.array(SIZE) - 12, (40, 2)).tolist(),
            rng.uniform(0, 360, 40),
            rng.uniform(0.8, 1.3, 40),
            strict=True,
        )
    ]
    return model, model.recompose(Decomposition.from_dict({"size": SIZE, "objects": things}))


def test_objects_in_poses_are_those_of_the_picture_wherever_the_seams_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "FEWEST_FRAMES", 4)
    monkeypatch.setattr(tiling, "FRAMES", 4)
    model, scene = posed_picture()
    frame = model.config.prototype_size
    corner = np.array(frame_corner(frame, model.config))
    whole = np.round(scene.positions).astype(int)
    cut = Tiling.of(model, SIZE, None)
    assert cut is not None
    corners = iter(cut.corners)
    assert len(cut.corners) > 4

    def search(images: torch.Tensor, *_: object, **__: object) -> TrueObjects:
        tiles = [seen(*next(corners)) for _ in images]
        return TrueObjects(
            *(torch.nn.utils.rnn.pad_sequence(list(each), batch_first=True) for each in zip(*tiles, strict=True))
        )

    def seen(top: int, left: int) -> tuple[torch.Tensor, ...]:
        low, high = scene.positions - (top, left), scene.positions + frame - (top, left)
        which = ((low >= -4) & (high <= np.array(cut.size) + 4)).all(axis=1)
        row, column = (whole[which] - (top, left) - corner).T
        fraction = (scene.positions - whole)[which]
        pose = np.concatenate([scene.poses[which], fraction], axis=1).astype(np.float32)
        values = np.ones(which.sum(), bool), scene.prototype_ids[which], row, column, scene.colours[which]
        return tuple(map(torch.from_numpy, (*values, 10 - 0.1 * np.flatnonzero(which), pose)))

    monkeypatch.setattr(model, "search", search)
    found = model.decompose(scene.reconstruction)
    assert len(found) == len(scene)
    order = [int(np.abs(scene.positions - at).sum(axis=1).argmin()) for at in found.positions]
    assert sorted(order) == list(range(len(scene)))
    np.testing.assert_allclose(found.poses, scene.poses[order], atol=1e-4)
    np.testing.assert_allclose(found.positions, scene.positions[order], atol=1e-4)
    np.testing.assert_allclose(found.reconstruction, scene.reconstruction, atol=1e-4)
    labels = np.concatenate([[0], 1 + np.array(order)])[found.instances]
    np.testing.assert_array_equal(labels, scene.instances)
    assert found.error < 1e-3
