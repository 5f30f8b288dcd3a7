"""Laws of contexts: what an object was painted over, and where nothing hides it; and of what is found near a place."""

from __future__ import annotations

import pytest
import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.placement import Placement
from pcdnet.model.plan import SearchPlan
from pcdnet.model.poses.contexts import Contexts
from pcdnet.model.poses.nearby import peaks_near
from pcdnet.model.poses.pose import pose_frame
from pcdnet.model.selection import EMPTY

FRAME = (7, 7)
CONFIG = ModelConfig(num_prototypes=2, prototype_size=FRAME, max_objects=3, channels=1, rotations=4)


def bank() -> PrototypeBank:
    """A bar and a square, opaque."""
    masks = torch.zeros(2, *FRAME, dtype=torch.float64)
    masks[0, 2:5], masks[1, 1:6, 1:6] = 1, 1
    return PrototypeBank(torch.ones_like(masks), masks)


def placement(rows: list[list[tuple[int, int, int, float]]]) -> Placement:
    """Prototypes upright at places of posed frames, front to back, with their grey values."""
    B, N = len(rows), CONFIG.max_objects
    numbers = torch.full((B, N), EMPTY)
    row, column = torch.zeros(B, N, dtype=torch.long), torch.zeros(B, N, dtype=torch.long)
    colour, zeros = torch.zeros(B, N, 1, dtype=torch.float64), torch.zeros(B, N, dtype=torch.float64)
    pose = torch.zeros(B, N, 5, dtype=torch.float64)
    for b, things in enumerate(rows):
        for n, (p, y, x, value) in enumerate(things):
            numbers[b, n], row[b, n], column[b, n], colour[b, n, 0], pose[b, n, 1] = p, y, x, value, 1
    return Placement(numbers, row, column, colour, zeros, zeros, pose)


@pytest.mark.parametrize("size", [(40, 44), (12, 13)])
def test_a_context_shows_what_is_behind_an_object_and_where_nothing_is_in_front(size: tuple[int, int]) -> None:
    frame = pose_frame(FRAME, CONFIG)
    y = min(14, size[0] - frame[0] + 1)
    found = placement([[(0, y, 3, 0.9), (1, y, 2, 0.6), (1, y + 1, 4, 0.3)], []])
    images = torch.rand(2, 1, *size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ground = torch.full((2, 1, *size), 0.1, dtype=torch.float64)
    plan = SearchPlan.derive(bank(), size, CONFIG)
    which = torch.tensor([[False, True, False], [False, False, False]])
    made = Contexts.of(images, ground, plan, frame, found, which)
    assert made.image.tolist() == [0]
    h, w = made.shown.shape[-2:]
    top, left = int(made.row[0]), int(made.column[0])
    assert torch.equal(made.shown[0], images[0, :, top : top + h, left : left + w])
    inner = (frame[0] - FRAME[0]) // 2
    seen = torch.zeros(size, dtype=torch.bool)  # the bar in front
    seen[y + inner + 2 : y + inner + 5, 3 + inner : 3 + inner + 7] = True
    assert torch.equal(made.clear[0, 0] == 0, seen[top : top + h, left : left + w])
    under = torch.full(size, 0.1, dtype=torch.float64)  # the last square, and neither the bar nor the object itself
    under[y + 1 + inner + 1 : y + 1 + inner + 6, 4 + inner + 1 : 4 + inner + 6] = 0.3
    torch.testing.assert_close(made.behind[0, 0], under[top : top + h, left : left + w])
    assert made.place[0].tolist() == [y - top, 2 - left]


def test_contexts_do_not_grow_with_images() -> None:
    frame = pose_frame(FRAME, CONFIG)
    found = placement([[(0, 50, 70, 0.9)]])
    images = torch.zeros(1, 1, 90, 120, dtype=torch.float64)
    plan = SearchPlan.derive(bank(), (90, 120), CONFIG)
    made = Contexts.of(images, images, plan, frame, found, found.exists)
    assert made.shown.shape[-2:] == frame


def test_near_a_place_the_maps_are_those_of_all_places(rng: torch.Generator) -> None:
    size = 20, 24
    shapes = torch.rand(3, 5, 6, generator=rng, dtype=torch.float64)
    config = ModelConfig(
        num_prototypes=3, prototype_size=(5, 6), channels=3, localization="error_reduction", min_error_reduction=0.01
    )
    plan = SearchPlan.derive(PrototypeBank(shapes, 0.2 + 0.8 * shapes.flip(1)), size, config, unhidden=True)
    images, own = (torch.rand(4, 3, *size, generator=rng, dtype=torch.float64) for _ in range(2))
    clear = (torch.rand(4, 1, *size, generator=rng, dtype=torch.float64) > 0.2).double()
    maps = plan.localizer.maps_behind(images, own, clear)(slice(0, 4), slice(0, 3))  # type: ignore[union-attr]
    places = torch.tensor([[9, 11], [0, 0], [7, 20], [30, 3]])
    height, row, column = peaks_near(plan, images, own, clear, places)
    assert torch.isfinite(height).any()
    for b, p in torch.isfinite(height[..., 0]).nonzero().tolist():
        y, x = int(row[b, p, 0]), int(column[b, p, 0])
        torch.testing.assert_close(height[b, p, 0], maps[b, p, y, x], atol=1e-9, rtol=0)
        away = (torch.tensor([y, x]) - places[b].clamp(max=torch.tensor(maps.shape[-2:]) - 3)).abs().amax()
        assert int(away) <= 4
