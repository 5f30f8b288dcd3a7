"""Laws of objects in their poses: an independent program paints them the same."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

from pcdnet.config import ModelConfig
from pcdnet.decomposition import Decomposition
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.posed import Pose, frame_corner, posed_sprite
from pcdnet.model.poses.pose import pose_frame
from pcdnet.model.poses.resampling import sprites
from pcdnet.turning import turned

SIZE = (40, 50)
CONFIG = ModelConfig(num_prototypes=2, prototype_size=(9, 12), rotations=8, scales=2, scale_range=(0.5, 2), mirror=True)


def bank() -> PrototypeBank:
    """Two prototypes of which no pixel is as another."""
    rng = torch.Generator().manual_seed(3)
    return PrototypeBank(torch.rand(2, 9, 12, generator=rng), torch.rand(2, 9, 12, generator=rng).round())


def scene(*things: tuple[float | bool, ...], size: tuple[int, int] = SIZE) -> Decomposition:
    """Objects of which each is prototype, row, column, angle, scale and whether it is mirrored."""
    records = [
        {
            "prototype": p,
            "position": [row, column],
            "colour": [1.0, 0.5, 0.2],
            "angle": a,
            "scale": s,
            "mirrored": m > 0,
        }
        for p, row, column, a, s, m in things
    ]
    return Decomposition.from_dict({"size": size, "objects": records})


def by_scipy(picture: np.ndarray, row: float, column: float, angle: float, scale: float, mirrored: bool) -> np.ndarray:
    """A picture in its pose on the whole canvas, read pixel by pixel from where it comes from."""
    middle = (np.array(picture.shape) - 1) / 2
    down, right = np.mgrid[: SIZE[0], : SIZE[1]] - (middle + np.array([row, column]))[:, None, None]
    cosine, sine = math.cos(math.radians(angle)) / scale, math.sin(math.radians(angle)) / scale
    y, x = cosine * down + sine * right, (cosine * right - sine * down) * (-1 if mirrored else 1)
    made: np.ndarray = map_coordinates(picture, [y + middle[0], x + middle[1]], order=1, mode="grid-constant")
    return made


@pytest.mark.parametrize("config", [CONFIG, None], ids=["as the model has them", "as somebody edited them"])
@pytest.mark.parametrize(
    "pose",
    [
        (5, 7, 90, 1, False),
        (5.25, 7.5, 33, 1, False),
        (-3, 30.75, 200, 1.7, True),
        (20, 20, 0, 0.6, False),
        (10, 10, 0, 1, True),
    ],
)
def test_objects_are_painted_as_another_program_paints_them(
    pose: tuple[float, float, float, float, bool], config: ModelConfig | None
) -> None:
    plain = CONFIG if config else dataclasses.replace(CONFIG, rotations=1, scales=1, scale_range=(1, 1), mirror=False)
    model, prototypes = PCDNet.from_bank(bank(), plain), bank()
    found = model.recompose(scene((1, *pose)))
    row, column, angle, scale, mirrored = pose
    T, M = (
        by_scipy(x[1].numpy(), row, column, angle, scale, mirrored > 0)
        for x in (prototypes.prototypes, prototypes.masks)
    )
    expected = (T * M)[..., None] * np.array([1.0, 0.5, 0.2])
    np.testing.assert_allclose(found.reconstruction, expected, atol=1e-4)
    np.testing.assert_array_equal(found.instances[np.abs(M - 0.5) > 1e-3], (M > 0.5)[np.abs(M - 0.5) > 1e-3])
    assert found.objects[0].angle == pytest.approx(angle)


def test_a_point_of_a_prototype_is_where_it_is_said_to_be() -> None:
    prototypes = torch.zeros(2, 9, 12)
    prototypes[0, 2, 9] = 1  # two above the middle, three and a half right of it
    model = PCDNet.from_bank(PrototypeBank(prototypes, torch.ones(2, 9, 12)), CONFIG)
    made = model.render(scene((0, 10.5, 10.5, 90, 1, True)))[..., 0]
    (down, right), *_ = turned(np.array([[-2.0, 3.5]]), 90, mirrored=True).tolist()
    row, column = divmod(int(made.argmax()), SIZE[1])
    assert (row, column) == (18, 14) == (round(10.5 + 4 + down), round(10.5 + 5.5 + right))


def test_scenes_without_poses_are_painted_as_ever() -> None:
    upright = PCDNet.from_bank(bank(), ModelConfig(num_prototypes=2, prototype_size=(9, 12)))
    things = scene((0, 3, 4, 0, 1, False), (1, -2, 8, 0, 1, False))
    plain = dataclasses.replace(things, angles=None, scales=None, mirrored=None)
    one, two, posed = (
        upright.recompose(plain),
        upright.recompose(things),
        PCDNet.from_bank(bank(), CONFIG).recompose(plain),
    )
    assert one.angles is None
    for other in (two, posed):
        np.testing.assert_array_equal(other.reconstruction, one.reconstruction)
        np.testing.assert_array_equal(other.instances, one.instances)
    assert posed.posed  # a model with poses says of every object that it is upright
    assert [thing.scale for thing in posed.objects] == [1, 1]


def test_whole_pixels_away_it_is_the_same_picture() -> None:
    model = PCDNet.from_bank(bank(), dataclasses.replace(CONFIG, subpixel=True))
    one, two = (model.render(scene((1, 8.3 + by, 9.6, 77, 1.2, False))) for by in (0, 5))
    np.testing.assert_allclose(one[:-5], two[5:], atol=1e-4)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ((0, 3, 4, 10, 17, False), r"object 0 has the scale 17; use one from 0\.0625 to 16"),
        (
            (0, 3, 4, 10, 12, False),
            r"scale 12 has \d+x\d+ pixels in a picture of 40x50; use a smaller scale",
        ),
        ((0, 300, 4, 10, 1, False), r"object 0 at row 300, column 4 is outside a picture of 40x50; move it back"),
    ],
)
def test_what_cannot_be_painted_is_refused(thing: tuple[float, ...], words: str) -> None:
    with pytest.raises(PcdnetError, match=words):
        PCDNet.from_bank(bank(), CONFIG).recompose(scene(thing))


def test_what_is_no_number_is_refused() -> None:
    found = scene((0, 3.5, 4, 10, 1, False))
    for name in ("positions", "angles", "scales"):
        values = getattr(found, name).astype(np.float32)
        values[0] = np.nan
        with pytest.raises(PcdnetError, match="object 0 lies at no finite place, angle or scale; use numbers"):
            PCDNet.from_bank(bank(), CONFIG).recompose(dataclasses.replace(found, **{name: values}))


@pytest.mark.parametrize(
    "config",
    [CONFIG, dataclasses.replace(CONFIG, subpixel=True), ModelConfig(num_prototypes=2, subpixel=True)],
    ids=["turned", "turned, at fractions of a pixel", "at fractions of a pixel"],
)
def test_objects_are_the_sprites_of_the_search_where_it_has_them(config: ModelConfig) -> None:
    turns = config.poses > 1
    pose = Pose(7.25, 3.5, 40.0 if turns else 0.0, 1.25 if turns else 1.0, turns)
    prototypes, frame = bank(), pose_frame((9, 12), config)
    layers = torch.stack([prototypes.prototypes[0], prototypes.masks[0]])
    wanted = sprites(layers[None], torch.tensor([[pose.angle, pose.scale, float(turns), 0.25, -0.5]]), frame, config)[0]
    made = posed_sprite(layers[0], layers[1], pose, config)
    torch.testing.assert_close(torch.stack([made.prototype, made.mask]), wanted)
    corner = frame_corner((9, 12), config)
    assert (made.row + corner[0], made.column + corner[1]) == (7, 4)
