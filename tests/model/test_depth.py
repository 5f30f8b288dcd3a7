"""Laws of the depth order: what is drawn in front is found in front, and nothing else changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import permutations

import pytest
import torch
from torch import Tensor

from pcdnet.config import Background, Config, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.depth import consistent_order, in_depth_order
from pcdnet.model.engine import Layers
from pcdnet.model.network import PCDNet
from pcdnet.model.overlap import Stack, order_evidence
from pcdnet.model.placement import Placement
from pcdnet.model.selection import EMPTY
from tests.model.models import SIZE, on_canvas, random_model

FRAME = (12, 12)
BIG, SMALL, BAR = range(3)
Thing = tuple[int, int, int, tuple[float, ...]]
RED, GREEN, BLUE = (0.9, 0.2, 0.1), (0.2, 0.8, 0.3), (0.1, 0.3, 0.9)


def bank(dtype: torch.dtype = torch.float32) -> PrototypeBank:
    """A large square, a small one and a bar, each with a texture."""
    masks = torch.zeros(3, *FRAME, dtype=dtype)
    masks[BIG, 1:11, 1:11] = masks[SMALL, 3:9, 3:9] = masks[BAR, 4:8, 0:12] = 1
    texture = 0.3 + 0.7 * torch.rand(masks.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return PrototypeBank(texture.to(dtype) * masks, masks)


def painted(things: Sequence[Thing], dtype: torch.dtype = torch.float32) -> Tensor:
    """An image of things (prototype, row, column, colour), front to back, over black."""
    image, shapes = torch.zeros(3, *SIZE, dtype=dtype), bank(dtype)
    for p, row, column, colour in reversed(things):
        mask, texture = (on_canvas(x[p], row, column, SIZE) for x in (shapes.masks, shapes.prototypes))
        image = image + mask * (torch.tensor(colour, dtype=dtype)[:, None, None] * texture - image)
    return image


def model(dtype: torch.dtype = torch.float32, **fields: object) -> PCDNet:
    """A model of the three shapes that chooses greedily."""
    config = ModelConfig(
        num_prototypes=3,
        prototype_size=FRAME,
        localization="error_reduction",
        max_objects=4,
        peaks_per_prototype=4,
        min_error_reduction=1.0,
        restarts=0,
    )
    return PCDNet.from_bank(bank(dtype), dataclasses.replace(config, **fields)).eval()  # type: ignore[arg-type]


def objects(layers: Layers, b: int = 0) -> list[tuple[int, int, int]]:
    """Prototype, row and column of the objects of an image, front to back."""
    where = layers.placement
    rows = zip(where.prototype[b].tolist(), where.row[b].tolist(), where.column[b].tolist(), strict=True)
    return [row for row in rows if row[0] != EMPTY]


def placed(things: list[tuple[int, int, int]]) -> Placement:
    """Things in a given order, in colours and with error reductions that mean nothing yet."""
    p, row, column = (torch.tensor([values]) for values in zip(*things, strict=True))
    shape = p.shape
    zeros = torch.zeros(shape)
    return Placement(p, row, column, torch.ones(*shape, 3), zeros, zeros, torch.zeros(*shape, 0))


OVERLAPS: list[list[Thing]] = [
    [(SMALL, 5, 10, RED), (BIG, 8, 4, GREEN)],
    [(BIG, 8, 4, RED), (SMALL, 5, 10, GREEN)],
    [(BIG, 8, 4, (0.4, 0.3, 0.2)), (SMALL, 5, 10, (0.9, 0.9, 0.8))],
    [(BAR, 10, 8, BLUE), (BIG, 6, 4, GREEN)],
    [(BIG, 6, 4, GREEN), (BAR, 10, 8, BLUE)],
]


@pytest.mark.parametrize("things", OVERLAPS)
@pytest.mark.parametrize("background", ["black", "plain"])
@torch.no_grad()
def test_what_is_drawn_in_front_is_found_in_front(things: list[Thing], background: Background) -> None:
    """Whichever of the two removes more error."""
    found = model(background=background)(painted(things)[None])
    assert objects(found) == [thing[:3] for thing in things]


@pytest.mark.parametrize("things", OVERLAPS)
@torch.no_grad()
def test_colours_that_do_not_depend_on_the_order_stay(things: list[Thing]) -> None:
    image, given = painted(things)[None], torch.tensor([[thing[3] for thing in reversed(things)]])
    start = dataclasses.replace(placed([thing[:3] for thing in reversed(things)]), colour=given)
    found = in_depth_order(image, torch.zeros_like(image), model(colour="none").plan(SIZE), start)
    assert found.prototype[0].tolist() == [thing[0] for thing in things]
    assert torch.equal(found.colour, given.flip(1))


@torch.no_grad()
def test_greedy_alone_calls_what_removes_most_error_the_nearest() -> None:
    """So the law above is not trivially true, and `refined=False` and `depth_order=False` are plain greedy."""
    things = OVERLAPS[0]
    for found in (
        model().explain(painted(things)[None], None, training=False, refined=False),
        model(depth_order=False)(painted(things)[None]),
    ):
        assert objects(found)[0][0] == BIG
    assert not any(
        Config.preset(f"{name}-paper").model.depth_order for name in ("tetrominoes", "space-invaders", "ngsim")
    )


@torch.no_grad()
def test_the_object_behind_has_the_colour_that_is_seen_of_it() -> None:
    things = OVERLAPS[0]
    found = model()(painted(things)[None])
    torch.testing.assert_close(found.colour[0, :2], torch.tensor([RED, GREEN]), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.reconstruction, painted(things)[None], atol=1e-4, rtol=0)


@pytest.mark.parametrize("order", list(permutations(range(3))))
@torch.no_grad()
def test_a_chain_is_put_in_order(order: tuple[int, ...]) -> None:
    """A over B over C, from whatever order; what is reported is what greedy selection would say of that order."""
    chain = [(SMALL, 2, 3, RED), (BIG, 6, 6, GREEN), (BAR, 10, 10, BLUE)]
    image = painted(chain)[None]
    start = placed([chain[n][:3] for n in order])
    plan = model().plan(SIZE)
    found = in_depth_order(image, torch.zeros_like(image), plan, start)
    assert found.prototype.tolist() == [[SMALL, BIG, BAR]]
    if order != (0, 1, 2):
        torch.testing.assert_close(found.colour[0], torch.tensor([RED, GREEN, BLUE]), atol=1e-4, rtol=0)
        torch.testing.assert_close(found.error_reduction.sum(), image.square().sum(), atol=1e-2, rtol=0)
        assert (found.error_reduction > 0).all()


@torch.no_grad()
def test_objects_that_touch_nothing_keep_their_slots() -> None:
    things = [(BIG, 8, 4, GREEN), (SMALL, 20, 15, BLUE), (SMALL, 5, 10, RED), (BAR, -2, 14, BLUE)]
    image = painted([things[n] for n in (2, 0, 1, 3)])[None]
    found = in_depth_order(image, torch.zeros_like(image), model().plan(SIZE), placed([t[:3] for t in things]))
    assert list(zip(found.prototype[0].tolist(), found.row[0].tolist(), strict=True)) == [
        (SMALL, 5),
        (SMALL, 20),
        (BIG, 8),
        (BAR, -2),
    ]


@torch.no_grad()
def test_boxes_that_touch_are_no_overlap() -> None:
    """The bar lies beside the square, within one pixel of its box but on none of its pixels."""
    shapes = bank()
    shapes.masks[BIG, 1:4, 1:11] = 0.4  # seen through more than seen: no part of the object
    odd = PCDNet.from_bank(shapes, model().config).eval()
    for row, expected in ((2, 0), (9, 1)):
        where = placed([(BIG, 8, 8), (BAR, row, 10)])
        image = torch.zeros(1, 3, *SIZE)
        stack = Stack.of(image, image, odd.plan(SIZE), where)
        assert bool(stack.touching[0, 0, 1])
        assert len(stack.overlapping()) == expected


@torch.no_grad()
def test_no_error_rises_where_the_bank_fits_and_all_fields_are_true() -> None:
    changed = 0
    for seed in range(3):
        engine, images = random_model(seed, images=40, background="still", max_objects=6)
        greedy = engine.explain(images, None, training=False, refined=False)
        found = engine.explain(images, None, training=False, refined=True)
        assert engine.background is not None
        errors = [(x.reconstruction - images).square().sum(dim=(1, 2, 3)) for x in (greedy, found)]
        assert (errors[1] <= errors[0] + 1e-3).all()
        bare = (engine.background.detach().clamp(0, 1) - images).square().sum(dim=(1, 2, 3))
        torch.testing.assert_close(bare - found.placement.error_reduction.sum(1), errors[1], atol=1e-3, rtol=1e-4)
        changed += int((greedy.placement.row != found.placement.row).any(dim=1).sum())
    assert changed >= 4


@torch.no_grad()
def test_moving_the_image_moves_the_order_with_it() -> None:
    engine = model()
    for things in OVERLAPS:
        moved = [(p, row + 3, column - 2, colour) for p, row, column, colour in things]
        one, two = (objects(engine(painted(x)[None])) for x in (things, moved))
        assert [(p, row + 3, column - 2) for p, row, column in one] == two


@torch.no_grad()
def test_images_are_ordered_as_they_are_alone() -> None:
    engine, images = random_model(2, images=24, max_objects=6)
    together = engine(images)
    for b, image in enumerate(images):
        assert objects(engine(image[None])) == objects(together, b)


@torch.no_grad()
def test_single_precision_finds_the_order_of_double_precision() -> None:
    for things in OVERLAPS:
        found = [objects(model(dtype)(painted(things, dtype)[None])) for dtype in (torch.float32, torch.float64)]
        assert found[0] == found[1]


@torch.no_grad()
def test_a_few_pixels_that_fit_badly_decide_nothing() -> None:
    """Glare on the front object, brighter than all that the wrong order would get wrong."""
    things = [(SMALL, 5, 10, (0.3, 0.2, 0.25)), (BIG, 8, 4, (0.6, 0.3, 0.3))]
    image = painted(things)[None]
    image[..., 10:13, 13] = 1.0
    plan, where = model().plan(SIZE), placed([thing[:3] for thing in things])
    stack = Stack.of(image, torch.zeros_like(image), plan, where)
    assert order_evidence(stack, stack.overlapping()).item() > 0
    assert in_depth_order(image, torch.zeros_like(image), plan, where).prototype.tolist() == [[SMALL, BIG]]


def test_the_strongest_edges_hold_and_slots_without_edges_stay() -> None:
    assert consistent_order([0, 1, 2], []) == [0, 1, 2]
    assert consistent_order([0, 2, 5], [(5, 0, 1.0)]) == [2, 5, 0]
    assert consistent_order([0, 1, 2], [(0, 1, 3.0), (1, 2, 2.0), (2, 0, 1.0)]) == [0, 1, 2]
    assert consistent_order([0, 1, 2], [(0, 1, 1.0), (1, 2, 2.0), (2, 0, 3.0)]) == [1, 2, 0]
    assert consistent_order([0, 1, 2, 3], [(3, 1, 1.0), (1, 0, 1.0), (0, 3, 0.5)]) == [2, 3, 1, 0]
