"""Laws of fitting: a pose is found again from nearby, by compiled loops as by tensors, and stays where it may be."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from pcdnet.config import ModelConfig
from pcdnet.model.compiled import reference
from pcdnet.model.poses.fitting import Freedom, Seen, derivatives, fitted
from pcdnet.model.poses.pose import ANGLE, DOWN, MIRRORED, RIGHT, SCALE
from pcdnet.model.poses.resampling import resampled
from tests.model.poses.smooth import looks, smooth_pictures

CONFIG = ModelConfig(
    num_prototypes=4,
    prototype_size=(17, 15),
    rotations=18,
    scales=3,
    scale_range=(0.7, 1.5),
    mirror=True,
    subpixel=True,
)
FULL = Freedom.of(CONFIG)
BOX = (31, 31)
FITS = 6
"""Steps; the search begins nearer, and needs fewer."""


@pytest.fixture(params=["compiled", "reference"])
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """By compiled loops, and by tensors."""
    if request.param == "compiled":
        yield
        return
    with reference():
        yield


def true_poses(rng: torch.Generator, count: int) -> Tensor:
    """Poses anywhere, moved by less than half a pixel."""
    drawn = torch.rand(count, 5, generator=rng, dtype=torch.float64)
    spread = torch.tensor([360, 0.3, 0, 1, 1], dtype=torch.float64)
    poses = drawn * spread + torch.tensor([0, 0.85, 0, -0.5, -0.5], dtype=torch.float64)
    poses[:, MIRRORED] = (drawn[:, MIRRORED] > 0.5).double()
    return poses


def beside(poses: Tensor, rng: torch.Generator) -> Tensor:
    """The same poses turned by 6 degrees, 12 % larger or smaller, and moved by 1.5 pixels, each to either side."""
    side = torch.randint(2, poses.shape, generator=rng).double() * 2 - 1
    moved = poses.clone()
    moved[:, ANGLE] += 6 * side[:, ANGLE]
    moved[:, SCALE] *= (math.log(1.12) * side[:, SCALE]).exp()
    moved[:, [DOWN, RIGHT]] += 1.5 / math.sqrt(2) * side[:, [DOWN, RIGHT]]
    return moved


def colours(rng: torch.Generator, count: int, channels: int) -> Tensor:
    """Neither dark nor the brightest."""
    return 0.5 + 0.4 * torch.rand(count, channels, generator=rng, dtype=torch.float64)


def fitted_as_in_search(pictures: Tensor, start: Tensor, seen: Seen, config: ModelConfig = CONFIG) -> Tensor:
    """Robustly, and then by all that is seen."""
    freedom = Freedom.of(config)
    robust = fitted(pictures, start, seen, config, freedom, FITS, robust=True)
    return fitted(pictures, robust, seen, config, freedom, (FITS + 1) // 2, robust=False)


def check_near(found: Tensor, true: Tensor, degrees: float, share: float, pixels: float) -> None:
    """Assert that poses are the true ones."""
    turned = (found[:, ANGLE] - true[:, ANGLE] + 180).remainder(360) - 180
    assert turned.abs().max() < degrees
    assert (found[:, SCALE] / true[:, SCALE] - 1).abs().max() < share
    assert (found[:, DOWN:] - true[:, DOWN:]).norm(dim=1).max() < pixels
    assert torch.equal(found[:, MIRRORED], true[:, MIRRORED])


@pytest.mark.parametrize("channels", [1, 3])
def test_a_pose_is_found_again_from_nearby(channels: int, each_way: None, rng: torch.Generator) -> None:
    pictures, true = smooth_pictures(rng, 12), true_poses(rng, 12)
    seen = looks(pictures, true, colours(rng, 12, channels), CONFIG, BOX)
    found = fitted_as_in_search(pictures, beside(true, rng), seen)
    check_near(found, true, degrees=0.5, share=0.005, pixels=0.05)


def test_a_pose_is_found_again_where_a_third_is_hidden(each_way: None, rng: torch.Generator) -> None:
    """Robustly: what lies over an object hardly counts; without that, it is far off."""
    pictures, true = smooth_pictures(rng, 12), true_poses(rng, 12)
    seen = looks(pictures, true, colours(rng, 12, 3), CONFIG, BOX)
    area = looks(pictures, true, torch.ones(12, 1).double(), CONFIG, BOX).shown[:, 0] > 0.2
    hidden = seen.shown.clone()
    for n in range(12):  # from the left as many columns as cover a third
        covered = int((area[n].sum(0).cumsum(0) < area[n].sum() / 3).sum())
        hidden[n, :, :, :covered] = torch.tensor([0.1, 0.9, 0.4], dtype=torch.float64)[:, None, None]
    start = beside(true, rng)
    robust, plain = (
        fitted(pictures, start, dataclasses.replace(seen, shown=hidden), CONFIG, FULL, 3 * FITS, robust=robust)
        for robust in (True, False)
    )
    check_near(robust, true, degrees=3, share=0.05, pixels=0.5)
    assert (plain[:, DOWN:] - true[:, DOWN:]).norm(dim=1).median() > 0.5


def test_what_lies_outside_the_image_does_not_count(each_way: None, rng: torch.Generator) -> None:
    pictures, true = smooth_pictures(rng, 6), true_poses(rng, 6)
    seen = looks(pictures, true, colours(rng, 6, 1), CONFIG, BOX)
    inside = seen.inside.clone()
    inside[:, :12] = 0
    cut = Seen(seen.shown * inside[:, None], seen.behind, inside)
    found = fitted_as_in_search(pictures, beside(true, rng), cut)
    check_near(found, true, degrees=1, share=0.01, pixels=0.1)


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"colour": "none"},
        {"max_colour": 0.6},
        {"scales": 1, "scale_range": (1.0, 1.0)},
        {"rotation_range": (-30.0, 30.0), "scale_range": (0.9, 1.0), "subpixel": False},
    ],
)
def test_compiled_fits_are_those_of_tensors(
    fields: dict[str, float], channels: int, robust: bool, rng: torch.Generator
) -> None:
    config = dataclasses.replace(CONFIG, **fields)  # type: ignore[arg-type]
    pictures, true = smooth_pictures(rng, 10), true_poses(rng, 10)
    seen = looks(pictures, true, colours(rng, 10, channels), CONFIG, BOX)
    noisy = (seen.shown + 0.05 * torch.randn(seen.shown.shape, generator=rng, dtype=torch.float64)).clamp(0, 1)
    given = pictures, beside(true, rng), dataclasses.replace(seen, shown=noisy), config, Freedom.of(config), FITS
    compiled = fitted(*given, robust=robust)
    with reference():
        tensors = fitted(*given, robust=robust)
    assert (compiled - given[1]).abs().max() > 1e-3
    torch.testing.assert_close(compiled, tensors, atol=1e-6, rtol=0)


@pytest.mark.parametrize("turning", [(-20.0, 40.0), (300.0, 330.0)])
def test_poses_stay_in_their_ranges(turning: tuple[float, float], each_way: None, rng: torch.Generator) -> None:
    """Objects that are turned and grown beyond what may be are found at the ends."""
    config = dataclasses.replace(CONFIG, rotations=4, rotation_range=turning, scale_range=(0.95, 1.1))
    pictures, true = smooth_pictures(rng, 12), true_poses(rng, 12)
    low, high = turning
    true[:6, ANGLE], true[6:, ANGLE] = high + 4, low - 4
    true[:, SCALE] = 1.17
    start = true.clone()
    start[:6, ANGLE], start[6:, ANGLE], start[:, SCALE] = high - 2, low + 2, 1.05
    found = fitted_as_in_search(pictures, start, looks(pictures, true, colours(rng, 12, 1), config, BOX), config)
    assert ((found[:, ANGLE] - low).remainder(360) <= high - low + 1e-9).all()
    assert (found[:, SCALE] <= 1.1 + 1e-9).all()
    assert (found[:, SCALE] >= 0.95 - 1e-9).all()
    assert (found[:, SCALE] > 1.08).any()
    turned = (found[:6, ANGLE] - high).remainder(360)
    assert (torch.minimum(turned, 360 - turned) < 1).sum() >= 4


def test_no_pose_moves_further_than_half_way_and_some_from_where_it_began(each_way: None, rng: torch.Generator) -> None:
    pictures = smooth_pictures(rng, 8)
    start = true_poses(rng, 8)
    noise = torch.rand(8, 1, *BOX, generator=rng, dtype=torch.float64)
    seen = Seen(noise, torch.zeros_like(noise), torch.ones(8, *BOX).double())
    found = fitted(pictures, start, seen, CONFIG, FULL, 12, robust=False)
    assert (found - start)[:, ANGLE].abs().max() <= FULL.reach[ANGLE] + 1e-9
    assert (found[:, SCALE] / start[:, SCALE]).log().abs().max() <= FULL.reach[SCALE] + 1e-9
    assert (found - start)[:, DOWN:].abs().max() <= FULL.reach[DOWN] + 1e-9
    assert (found != start).any(1).sum() > 4


def test_what_is_not_free_stays(each_way: None, rng: torch.Generator) -> None:
    config = ModelConfig(num_prototypes=1, prototype_size=(17, 15), mirror=True, subpixel=True)
    pictures, true = smooth_pictures(rng, 4), true_poses(rng, 4)
    true[:, ANGLE], true[:, SCALE] = 0, 1
    start = true.clone()
    start[:, [DOWN, RIGHT]] += 0.8
    found = fitted_as_in_search(pictures, start, looks(pictures, true, colours(rng, 4, 1), config, BOX), config)
    check_near(found, true, degrees=1e-9, share=1e-9, pixels=0.01)
    none, seen = Freedom.of(config, moving=False), looks(pictures, true, colours(rng, 4, 1), config, BOX)
    assert none.free == ()
    assert fitted(pictures, start, seen, config, none, 3, robust=True) is start


def test_slopes_are_how_sprites_change(rng: torch.Generator) -> None:
    """Of sprites without edges, about as finite differences say."""
    y, x = torch.arange(-8, 9).double()[:, None], torch.arange(-7, 8).double()
    blob = (-((y - 2) / 3).square() / 2 - ((x + 1) / 2).square() / 2).exp() * (1 + 0.1 * y - 0.1 * x)
    pictures, poses = blob.expand(6, 1, 17, 15), true_poses(rng, 6)
    made = resampled(pictures, poses, BOX)
    slopes = derivatives(made, poses, FULL)
    for k, (value, step) in enumerate(zip(FULL.free, (1.0, 0.02, 0.2, 0.2), strict=True)):
        ahead, back = poses.clone(), poses.clone()
        if value == SCALE:
            ahead[:, SCALE] *= math.exp(step)
            back[:, SCALE] *= math.exp(-step)
        else:
            ahead[:, value] += step
            back[:, value] -= step
        change = (resampled(pictures, ahead, BOX) - resampled(pictures, back, BOX)) / (2 * step)
        agreement = torch.nn.functional.cosine_similarity(change.flatten(1), slopes[:, k].flatten(1))
        assert agreement.min() > 0.9
        assert (change.flatten(1).norm(dim=1) / slopes[:, k].flatten(1).norm(dim=1) - 1).abs().max() < 0.3
