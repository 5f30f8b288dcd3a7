"""Laws of dead leaves: painting, its gradient, and the labels of pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from pcdnet.model.composition import compose, instance_labels
from pcdnet.model.geometry import Geometry

GEOMETRY = Geometry((7, 9), (4, 3), (3, 2))


def paint(textures: Tensor, masks: Tensor, background: Tensor, row: Tensor, column: Tensor, exists: Tensor) -> Tensor:
    return compose(textures, masks, row, column, exists, background, GEOMETRY)


def scene(rng: torch.Generator) -> tuple[Tensor, ...]:
    textures = torch.rand(2, 3, 4, 3, 2, generator=rng, dtype=torch.float64)
    masks = torch.rand(2, 3, 4, 3, generator=rng, dtype=torch.float64)
    background = torch.rand(2, 7, 9, generator=rng, dtype=torch.float64)
    row, column = torch.tensor([[-2, 1, 2], [5, 0, 3]]), torch.tensor([[0, 1, 2], [7, -2, 3]])
    exists = torch.tensor([[True, True, True], [True, True, False]])
    return textures, masks, background, row, column, exists


def test_painting_is_the_equation_on_the_full_canvas(rng: torch.Generator) -> None:
    textures, masks, background, row, column, exists = scene(rng)
    painted = paint(textures, masks, background, row, column, exists)
    for b in range(2):
        G = background.clone()
        for n in (2, 1, 0):
            if not exists[b, n]:
                continue
            wide_T, wide_M = torch.zeros(2, 20, 20).double(), torch.zeros(20, 20).double()
            r, c = int(row[b, n]) + 6, int(column[b, n]) + 6
            wide_T[:, r : r + 4, c : c + 3] = textures[b, n].permute(2, 0, 1)
            wide_M[r : r + 4, c : c + 3] = masks[b, n]
            T, M = wide_T[:, 6:13, 6:15], wide_M[6:13, 6:15]
            G = T * M + (1 - M) * G
        torch.testing.assert_close(painted[b], G)


def test_gradients_of_painting_are_right(rng: torch.Generator) -> None:
    textures, masks, background, row, column, exists = scene(rng)
    inputs = tuple(x.requires_grad_() for x in (textures, masks, background))
    assert torch.autograd.gradcheck(lambda t, m, b: paint(t, m, b, row, column, exists), inputs)


def test_an_opaque_layer_hides_what_is_behind_it(rng: torch.Generator) -> None:
    textures, masks, background, row, column, exists = scene(rng)
    masks[:, 0] = 1
    row[:, :], column[:, :] = 2, 3
    painted = paint(textures, masks, background, row, column, exists)
    torch.testing.assert_close(painted[:, :, 2:6, 3:6], textures[:, 0].permute(0, 3, 1, 2))


def test_an_object_that_does_not_exist_paints_nothing(rng: torch.Generator) -> None:
    textures, masks, background, row, column, exists = scene(rng)
    painted = paint(textures, masks, background, row, column, torch.zeros_like(exists))
    torch.testing.assert_close(painted, background.expand(2, -1, -1, -1))


def test_the_nearest_object_is_the_one_that_is_seen() -> None:
    masks = torch.ones(1, 2, 4, 3)
    masks[0, 0, :, 0] = 0.5  # one half is not above one half
    row, column = torch.tensor([[1, 2]]), torch.tensor([[2, 2]])
    labels = instance_labels(masks, row, column, torch.tensor([[True, True]]), (7, 9))[0]
    expected = torch.zeros(7, 9, dtype=torch.int32)
    expected[2:6, 2:5] = 2
    expected[1:5, 3:5] = 1
    assert torch.equal(labels, expected)
