"""Laws of the search for objects in poses, from images to placements."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import reference
from pcdnet.model.network import PCDNet
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.pose import ANGLE, MIRRORED, SCALE, CoarsePoses
from pcdnet.model.poses.resampling import sprites
from pcdnet.model.poses.search import PosedSearch
from pcdnet.model.poses.sprites import upright_positions
from tests.model.poses.smooth import FRAME, scene, smooth_bank, thing
from tests.oracle.poses import Posed

SIZE = (46, 50)
CONFIG = ModelConfig(
    num_prototypes=2,
    prototype_size=FRAME,
    max_objects=3,
    channels=1,
    rotations=12,
    scales=2,
    scale_range=(0.85, 1.2),
    mirror=True,
    localization="error_reduction",
    min_error_reduction=2.0,
    subpixel=True,
)
SCENES = [
    [thing(0, (14.3, 14.6), 40, 0.95), thing(1, (30.8, 33.2), 200, 1.1, True)],
    [],
    [thing(1, (20.2, 26.4), 331, 1.0)],
    [thing(0, (18.4, 17.7), 77, 1.0, True), thing(0, (24.1, 29.2), 260, 0.9)],
]


@pytest.fixture(params=["compiled", "reference"])
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """By compiled loops, and by tensors."""
    if request.param == "compiled":
        yield
        return
    with reference():
        yield


@pytest.fixture
def bank(rng: torch.Generator) -> PrototypeBank:
    """Two prototypes that look different in every pose."""
    return smooth_bank(rng)


def images_of(bank: PrototypeBank) -> Tensor:
    """The scenes as images."""
    empty = torch.zeros(1, *SIZE, dtype=torch.float64)
    return torch.stack([scene(bank, things, SIZE) if things else empty for things in SCENES])


def placed(
    bank: PrototypeBank, images: Tensor, *, training: bool = False, **fields: object
) -> tuple[Placement, Tensor]:
    """The objects of images, and the images that they make."""
    model = PCDNet.from_bank(bank, dataclasses.replace(CONFIG, **fields))  # type: ignore[arg-type]
    with torch.no_grad():
        layers = model.explain(images, None, training=training, refined=not training)
    return layers.placement, layers.reconstruction


def check_found(
    found: Placement,
    image: int,
    true: Posed,
    pixels: float,
    degrees: float,
    share: float,
    config: ModelConfig = CONFIG,
) -> None:
    """Assert that an object is among those that were found in an image."""
    places = upright_positions(found, config)[image] + torch.tensor([(side - 1) / 2 for side in FRAME])
    away = (places - torch.tensor(true.middle)).norm(dim=1) + 1000 * ~found.exists[image]
    n = int(away.argmin())
    pose = found.pose[image, n]
    assert float(away[n]) < pixels
    assert int(found.prototype[image, n]) == true.prototype
    assert abs((float(pose[ANGLE]) - true.angle + 180) % 360 - 180) < degrees
    assert float(pose[SCALE].log()) == pytest.approx(true.log_scale, abs=share)
    assert float(pose[MIRRORED]) == float(true.mirrored)


def test_objects_are_found_as_they_were_painted(bank: PrototypeBank, each_way: None) -> None:
    images = images_of(bank)
    found, made = placed(bank, images)
    assert found.exists.sum(1).tolist() == [len(things) for things in SCENES]
    for b, things in enumerate(SCENES):
        for true in things:
            check_found(found, b, true, pixels=0.15, degrees=2, share=0.02)
    assert ((made - images).square().sum((1, 2, 3)) < 0.5).all()


def test_a_batch_is_searched_as_its_images_are_one_by_one(bank: PrototypeBank) -> None:
    images = images_of(bank)
    together, made = placed(bank, images)
    for b in range(len(images)):
        alone, picture = placed(bank, images[b : b + 1])
        assert torch.equal(alone.prototype[0], together.prototype[b])
        torch.testing.assert_close(alone.pose[0], together.pose[b], atol=1e-6, rtol=0)
        torch.testing.assert_close(picture[0], made[b], atol=1e-6, rtol=0)


def test_in_training_they_are_found_too(bank: PrototypeBank) -> None:
    images = images_of(bank)
    found, _ = placed(bank, images, training=True)
    for b in (0, 2):
        for true in SCENES[b]:
            check_found(found, b, true, pixels=0.5, degrees=5, share=0.05)


def test_without_subpixel_objects_lie_at_whole_pixels(bank: PrototypeBank) -> None:
    images = images_of(bank)
    found, made = placed(bank, images, subpixel=False)
    assert not found.pose[..., 3:].any()
    check_found(found, 2, SCENES[2][0], pixels=0.5, degrees=6, share=0.05)
    assert float((made[2] - images[2]).square().sum()) < 0.8


def test_without_fine_poses_objects_lie_in_coarse_ones(bank: PrototypeBank) -> None:
    """At fractions of a pixel all the same, if these are asked for."""
    config = dataclasses.replace(CONFIG, scales=1, scale_range=(1.0, 1.0), fine_poses=False)
    found, _ = placed(bank, images_of(bank)[2:], scales=1, scale_range=(1.0, 1.0), fine_poses=False)
    coarse = CoarsePoses.of(config, bank.masks).values
    poses = found.pose[found.exists]
    assert len(poses) >= 3
    assert (poses[:, None, :3] == coarse[:, :3]).all(-1).any(-1).all()
    assert (poses[:, 3:] != 0).any()
    check_found(found, 0, SCENES[2][0], pixels=0.3, degrees=2, share=0.01, config=config)


def test_poses_stay_in_their_ranges(bank: PrototypeBank) -> None:
    images = torch.stack([scene(bank, [thing(0, (20, 24), angle, 1.3)], SIZE) for angle in (-37.0, 10.0, 48.0)])
    found, _ = placed(bank, images, rotations=4, rotation_range=(-30.0, 45.0), mirror=False)
    poses = found.pose[found.exists]
    assert len(poses) >= 3
    assert ((poses[:, ANGLE] + 30).remainder(360) <= 75 + 1e-6).all()
    assert (poses[:, SCALE] <= 1.2 + 1e-6).all()
    assert (poses[:, SCALE] >= 0.85 - 1e-6).all()
    assert not poses[:, MIRRORED].any()


def test_what_does_not_pay_is_left_out(bank: PrototypeBank) -> None:
    images = images_of(bank)
    every, _ = placed(bank, images)
    least = float(every.error_reduction[every.exists].min())
    fewer, _ = placed(bank, images, min_error_reduction=1.01 * least)
    assert 0 < fewer.exists.sum() < every.exists.sum()
    assert (fewer.error_reduction[fewer.exists] >= 1.01 * least).all()
    assert placed(bank, images, max_objects=1)[0].exists.sum(1).tolist() == [1, 0, 1, 1]


def test_objects_that_turn_are_found_over_any_background(bank: PrototypeBank) -> None:
    white = PrototypeBank(torch.ones_like(bank.masks), bank.masks)
    ramp = torch.linspace(0.1, 0.35, SIZE[1], dtype=torch.float64).expand(1, *SIZE)
    alpha = scene(white, SCENES[0], SIZE) / 0.8
    image = scene(bank, SCENES[0], SIZE) + (1 - alpha).clamp(0, 1) * ramp
    still = dataclasses.replace(bank, background=ramp)
    found, _ = placed(still, image[None], background="still")
    assert found.exists.sum() == 2
    for true in SCENES[0]:
        check_found(found, 0, true, pixels=0.2, degrees=2, share=0.02)


@pytest.mark.parametrize("fields", [{"scales": 1, "scale_range": (1.0, 1.0)}, {"scale_range": (0.5, 2.0)}])
def test_frames_hold_all_that_is_seen(fields: dict[str, object], bank: PrototypeBank) -> None:
    """Candidates are fitted in the middle of their frames: nothing that shows is outside."""
    config = dataclasses.replace(CONFIG, **fields)  # type: ignore[arg-type]
    search = PosedSearch.derive(SearchPlan.derive(bank, (120, 120), config))
    assert search.proposer is not None
    outer, inner = search.frame, search.core
    assert all(small <= large and (large - small) % 2 == 0 for small, large in zip(inner, outer, strict=True))
    largest = CoarsePoses.of(config, bank.masks).values
    largest = largest[largest[:, SCALE] == largest[:, SCALE].max()]
    top, left = ((large - small) // 2 for small, large in zip(inner, outer, strict=True))
    for p in range(2):
        pictures = torch.stack([bank.prototypes[p], bank.masks[p]]).expand(len(largest), 2, *FRAME)
        masks = sprites(pictures, largest, outer, config)[:, 1].clone()
        masks[:, top : top + inner[0], left : left + inner[1]] = 0
        assert float(masks.max()) < 0.1
