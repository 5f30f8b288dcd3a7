"""Laws of placement: chosen candidates in the frames of the bank."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from pcdnet.config import Config
from pcdnet.data import tetrominoes
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from pcdnet.model.placement import Placement, in_front, reported, to_placement
from pcdnet.model.selection import EMPTY, select
from tests.model.models import FRAME, SIZE, on_canvas, random_model, true_bank


@torch.no_grad()
def test_objects_paint_the_pixels_that_their_candidates_painted() -> None:
    """The tight frame of the search and the roomy one of the bank are different frames of the same object."""
    model, images = random_model(0, restarts=0)
    for p, (cut, side) in enumerate(((slice(0, 4), 0), (slice(3, 9), 0), (slice(0, 5), 1))):
        model.masks[p].select(side, 0)[:] = 0
        model.masks[p][cut if side == 0 else slice(None), cut if side else slice(None)] = 0
    plan = model.plan(SIZE)
    assert plan.tight.frame != plan.bank.frame
    assert len({tuple(offset) for offset in plan.offset.tolist()}) > 1
    given = model.selection_input(images, plan, 4)
    found = select(given)
    placed = to_placement(given, found)
    assert placed.exists.sum() > 5
    for b, n in placed.exists.nonzero().tolist():
        t, p = int(found.candidate[b, n]), int(placed.prototype[b, n])
        here = int(given.candidates.row[b, t]), int(given.candidates.column[b, t]), SIZE
        there = int(placed.row[b, n]), int(placed.column[b, n]), SIZE
        assert torch.equal(on_canvas(plan.tight.masks[p], *here), on_canvas(plan.bank.masks[p], *there))


@torch.no_grad()
def test_what_is_empty_is_nowhere() -> None:
    model, images = random_model(1)
    given = model.selection_input(images, model.plan(SIZE), 4)
    found = select(given)
    placed = to_placement(given, found)
    empty = found.candidate == EMPTY
    assert empty.any()
    assert torch.equal(placed.exists, ~empty)
    assert (placed.prototype[empty] == EMPTY).all()
    for values in (placed.row, placed.column, placed.colour, placed.error_reduction):
        assert not values[empty].any()


@torch.no_grad()
def test_every_placed_frame_shares_a_pixel_with_the_image() -> None:
    model, images = random_model(2, min_error_reduction=0.0, max_objects=8)
    where = model(images).placement
    frames = where.frames(SIZE, FRAME)
    assert frames.geometry.padding == (FRAME[0] - 1, FRAME[1] - 1)
    for n in range(8):
        windows = frames.nth(n)
        assert ((windows.row > -FRAME[0]) & (windows.row < SIZE[0])).all()
        assert ((windows.column > -FRAME[1]) & (windows.column < SIZE[1])).all()


def test_a_prototype_off_its_frames_centre_reaches_every_border() -> None:
    bank = true_bank()
    moved = PrototypeBank(bank.prototypes.roll((4, -4), (1, 2)), bank.masks.roll((4, -4), (1, 2)))
    square = 18  # the 2x2 sprite, 10x10 pixels from (7, 7) of its frame, now from (11, 3)
    model = PCDNet.from_bank(moved, Config.preset("tetrominoes").model)
    for row, column in ((0, 0), (0, 25), (25, 0), (25, 25)):
        images = tetrominoes.render(
            np.array([[square, 0, 0]]),
            np.array([[[1, 0, 0]] * 3]),
            np.array([[row, 15, 15]]),
            np.array([[column, 10, 10]]),
        ).images
        found = model.decompose(images[0])
        assert (square, (row - 11, column - 3)) in [(thing.prototype, thing.position) for thing in found.objects]


def placement(*prototypes: list[int]) -> Placement:
    """Objects that differ in everything; EMPTY ones are at 0."""
    which = torch.tensor(prototypes)
    value = which.clamp(min=0).float()
    place = which.clamp(min=0)
    return Placement(which, place + 10, place + 20, value[..., None], value / 2, value / 4, value[..., None] / 8)


def test_found_objects_come_in_front_of_all_the_others_in_their_order() -> None:
    found = placement([7, 5, EMPTY, EMPTY], [8, 6, 9, EMPTY], [4, EMPTY, EMPTY, EMPTY], [EMPTY] * 4)
    others = placement([3, 1, EMPTY, EMPTY], [2, 3, 1, EMPTY], [3, 2, 1, 0], [1, 0, EMPTY, EMPTY])
    both = in_front(found, others)
    expected = [[7, 5, 3, 1], [8, 2, 3, 1], [3, 2, 1, 0], [1, 0, EMPTY, EMPTY]]
    assert both.prototype.tolist() == expected
    there, same = both.exists, placement(*expected)
    for field in dataclasses.fields(Placement):
        assert torch.equal(getattr(both, field.name)[there], getattr(same, field.name)[there]), field.name


@torch.no_grad()
def test_what_the_border_cuts_off_is_explained_but_not_reported() -> None:
    """The objects that are left are those that were found among all, in their order, and they alone are painted."""
    model, images = random_model(3, overhang=0.8, max_objects=6, images=12)
    every = model(images).placement
    model.config = dataclasses.replace(model.config, min_inside=0.8)
    plan, layers = model.plan(SIZE), model(images)
    assert 5 < layers.placement.exists.sum() < every.exists.sum()
    for b in range(len(images)):
        kept = []
        for p, row, column in torch.stack([every.prototype[b], every.row[b], every.column[b]], dim=1).tolist():
            mask = plan.bank.masks[p]
            if p != EMPTY and on_canvas(mask, row, column, SIZE).sum() >= 0.8 * mask.sum():
                kept.append((p, row, column))
        there = layers.placement.exists[b]
        assert there.tolist() == [n < len(kept) for n in range(6)]
        places = (
            x[b][there].tolist() for x in (layers.placement.prototype, layers.placement.row, layers.placement.column)
        )
        assert list(zip(*places, strict=True)) == kept
        assert int(layers.instances()[b].max()) <= len(kept)
    assert torch.equal(reported(every, plan).prototype, layers.placement.prototype)


def test_in_training_what_the_border_cuts_off_is_kept() -> None:
    model, images = random_model(3, overhang=0.8, min_inside=0.8, images=12)
    with torch.no_grad():
        kept, every = (
            model.explain(images, None, training=training, refined=False).placement for training in (False, True)
        )
    assert kept.exists.sum() < every.exists.sum()
