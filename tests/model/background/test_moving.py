"""Laws of moving backgrounds: where in a large picture the camera was."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pcdnet.model.background.moving import find_places, look, shift_between, stitch

SIZE = (40, 48)
TOLERANCE = 0.05
PLACES = torch.tensor([[0, 0], [3, 9], [10, 14], [16, 25], [20, 32], [7, 20]])


def ground(seed: int = 0, size: tuple[int, int] = (60, 80)) -> Tensor:
    """A large picture of soft blotches, as of soil or grass."""
    rng = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, size[0] // 4, size[1] // 4, generator=rng)
    return torch.nn.functional.interpolate(coarse, size, mode="bilinear")[0]


def with_objects(images: Tensor, seed: int) -> Tensor:
    """Two bright squares in each image that move on their own, and noise."""
    rng = torch.Generator().manual_seed(seed)
    images = images.clone()
    for image in images:
        for row, column in torch.randint(0, 32, (2, 2), generator=rng).tolist():
            image[:, row : row + 8, column : column + 8] = 1.0
    return (images + 0.01 * torch.randn(images.shape, generator=rng)).clamp(0, 1)


@pytest.mark.parametrize(("down", "right"), [(0, 0), (5, 0), (-7, 12), (4, -9), (-11, -3)])
def test_a_known_shift_is_found(down: int, right: int) -> None:
    places = torch.tensor([[12, 13], [12 + down, 13 + right]])
    one, two = with_objects(look(ground(), places, SIZE), seed=1)
    found = shift_between(one, two, TOLERANCE)
    assert found is not None
    assert found[:2] == (down, right)
    assert found[2] > 0.7


def test_the_shift_is_that_of_the_ground_and_not_of_the_objects() -> None:
    one, two = look(ground(), torch.tensor([[5, 5], [5, 11]]), SIZE).clone()
    for image in (one, two):
        image[:, 10:22, 10:22] = 1.0  # it moves with the camera
    assert (shift_between(one, two, TOLERANCE) or ())[:2] == (0, 6)


def test_unrelated_images_have_no_shift_and_no_large_picture() -> None:
    images = torch.stack([look(ground(seed), PLACES[:1], SIZE)[0] for seed in range(4)])
    assert shift_between(images[0], images[1], TOLERANCE) is None
    assert stitch(images, TOLERANCE) is None


def test_images_are_put_together_as_the_camera_saw_them() -> None:
    images = with_objects(look(ground(), PLACES, SIZE), seed=2)
    panorama = stitch(images, TOLERANCE)
    assert panorama is not None
    assert torch.equal(panorama.places, PLACES)
    assert panorama.picture.shape == ground().shape
    often = torch.zeros(60, 80)
    for row, column in PLACES.tolist():
        often[row : row + SIZE[0], column : column + SIZE[1]] += 1
    away = (panorama.picture - ground()).abs().amax(dim=0)
    assert (away[often >= 3] < TOLERANCE).float().mean() > 0.95, "objects stay where several images saw the ground"


def test_places_do_not_depend_on_where_the_first_image_is() -> None:
    images = look(ground(), PLACES.flip(0), SIZE)
    panorama = stitch(images, TOLERANCE)
    assert panorama is not None
    assert torch.equal(panorama.places, PLACES.flip(0))
    torch.testing.assert_close(look(panorama.picture, panorama.places, SIZE), images)


def test_looking_from_the_found_places_shows_the_images() -> None:
    images = with_objects(look(ground(), PLACES, SIZE), seed=3)
    places = find_places(images, ground())
    assert torch.equal(places, PLACES)
    away = (look(ground(), places, SIZE) - images).abs().amax(dim=1)
    assert ((away < TOLERANCE).flatten(1).float().mean(1) > 0.9).all()


def test_an_image_as_large_as_the_picture_is_in_its_corner() -> None:
    assert not find_places(ground()[None], ground()).any()


def test_gradients_reach_the_seen_part_of_the_picture_alone() -> None:
    picture = ground().requires_grad_()
    (gradient,) = torch.autograd.grad(look(picture, PLACES[:2], SIZE).sum(), picture)
    assert gradient[0, 5, 20] == 2
    assert gradient[0, 0, 0] == 1
    assert not gradient[:, 43:].any()


def test_places_do_not_drift_over_a_smooth_ground() -> None:
    smooth = torch.nn.functional.avg_pool2d(ground(4, (90, 150))[None], 9, 1, 4)[0]
    places = torch.tensor([[n // 2, 3 * n // 2] for n in range(60)])
    images = with_objects(look(smooth, places, SIZE), seed=5)
    panorama = stitch(images, 2 * TOLERANCE)
    assert panorama is not None
    assert torch.equal(panorama.places, places)


def test_the_large_picture_does_not_depend_on_how_many_rows_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    images = with_objects(look(ground(), PLACES, SIZE), seed=2)
    whole = stitch(images, TOLERANCE)
    monkeypatch.setattr("pcdnet.model.background.moving.BAND", 1)
    rows = stitch(images, TOLERANCE)
    assert whole is not None
    assert rows is not None
    assert torch.equal(whole.picture, rows.picture)
