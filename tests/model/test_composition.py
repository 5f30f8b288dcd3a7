"""Laws of dead leaves: painting, its gradient, and the labels of pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from pcdnet.model import compiled
from pcdnet.model.bank import soft_clamp
from pcdnet.model.composition import FAINT, OPAQUE, changed, compose, instance_labels, paint, painted_behind
from pcdnet.model.geometry import Geometry
from pcdnet.model.windows import Frames, canvas
from tests.model.models import on_canvas

GEOMETRY = Geometry.touching((7, 9), (4, 3))
LEARNED = "prototypes", "masks", "colour", "background"


@pytest.fixture(autouse=True, params=["compiled", "tensors"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """All laws hold for compiled loops and for tensors."""
    with compiled.reference() if request.param == "tensors" else nullcontext():
        yield


class Scene(NamedTuple):
    """What `compose` takes."""

    prototypes: Tensor
    masks: Tensor
    colour: Tensor
    frames: Frames
    background: Tensor


def scene(rng: torch.Generator, backgrounds: int = 1) -> Scene:
    """Two images of two channels with three and two objects, over each other and over the border."""
    row, column = torch.tensor([[-2, 1, 2], [5, 0, 3]]), torch.tensor([[0, 1, 2], [7, -2, 3]])
    exists = torch.tensor([[True, True, True], [True, True, False]])
    return Scene(
        prototypes=torch.rand(2, 3, 4, 3, generator=rng, dtype=torch.float64),
        masks=torch.rand(2, 3, 4, 3, generator=rng, dtype=torch.float64),
        colour=torch.rand(2, 3, 2, generator=rng, dtype=torch.float64),
        frames=Frames(GEOMETRY, row, column, exists),
        background=torch.rand(backgrounds, 2, 7, 9, generator=rng, dtype=torch.float64),
    )


def layers(given: Scene, b: int) -> list[tuple[Tensor, Tensor]]:
    """What the objects of an image paint on the whole canvas, and through which masks, front to back."""
    found = []
    for n in range(3):
        if given.frames.exists[b, n]:
            place = int(given.frames.row[b, n]), int(given.frames.column[b, n]), GEOMETRY.image
            T, M = on_canvas(given.prototypes[b, n], *place), on_canvas(given.masks[b, n], *place)
            found.append((given.colour[b, n][:, None, None] * T, M))
    return found


@pytest.mark.parametrize("backgrounds", [1, 2])
def test_painting_is_the_equation_on_the_full_canvas(backgrounds: int, rng: torch.Generator) -> None:
    given = scene(rng, backgrounds)
    painted = compose(*given)
    for b in range(2):
        G = given.background.expand(2, -1, -1, -1)[b]
        for T, M in reversed(layers(given, b)):
            G = T * M + (1 - M) * G
        torch.testing.assert_close(painted[b], G)


def test_painting_front_to_back_gives_the_same_picture(rng: torch.Generator) -> None:
    given = scene(rng)
    painted = compose(*given)
    for b in range(2):
        shown, clear = torch.zeros_like(given.background[0]), torch.ones_like(given.background[0, :1])
        for T, M in layers(given, b):
            shown, clear = painted_behind(shown, clear, M, T)
        torch.testing.assert_close(painted[b], shown + clear * given.background[0])


def test_what_a_frame_covered_is_what_those_behind_it_show(rng: torch.Generator) -> None:
    given = scene(rng)
    textures = given.prototypes[..., None] * given.colour[:, :, None, None]
    picture = canvas(given.background.expand(2, -1, -1, -1), GEOMETRY)
    covered = paint(picture, textures, given.masks, given.frames)
    for n in range(3):
        behind = given.frames.exists.clone()
        behind[:, : n + 1] = False
        rest = compose(*given._replace(frames=Frames(GEOMETRY, given.frames.row, given.frames.column, behind)))
        windows = given.frames.nth(n)
        torch.testing.assert_close(covered[windows.image, n], windows.cut(canvas(rest, GEOMETRY)))


@pytest.mark.parametrize("backgrounds", [1, 2])
def test_gradients_of_painting_are_right(backgrounds: int, rng: torch.Generator) -> None:
    given = scene(rng, backgrounds)
    inputs = tuple(x.requires_grad_() for x in (given.prototypes, given.masks, given.colour, given.background))
    assert torch.autograd.gradcheck(lambda p, m, c, b: compose(p, m, c, given.frames, b), inputs)


def hidden_paint(rng: torch.Generator) -> tuple[Scene, Tensor]:
    """A scene whose masks are empty here and there; where paint behind them looks like what it covers."""
    given = scene(rng)
    given.masks[torch.rand(given.masks.shape, generator=rng) < 0.4] = 0
    textures = given.prototypes[..., None] * given.colour[:, :, None, None]
    covered = paint(canvas(given.background.expand(2, -1, -1, -1), GEOMETRY), textures, given.masks, given.frames)
    alike = (given.masks == 0) & ((textures - covered).abs() < FAINT).all(dim=-1) & given.frames.exists[..., None, None]
    assert alike.any()
    assert ((given.masks == 0) & ~alike).any()
    return given, alike


def gradients(given: Scene, weights: Tensor) -> dict[str, Tensor]:
    """Of the weighted sum of the picture, by everything in it."""
    inputs = {name: getattr(given, name).clone().requires_grad_() for name in LEARNED}
    picture = compose(**inputs, frames=given.frames)
    return dict(zip(LEARNED, torch.autograd.grad((picture * weights).sum(), list(inputs.values())), strict=True))


def slope(given: Scene, weights: Tensor, name: str, index: tuple[int, ...]) -> float:
    """The same by one number, from two pictures: a picture is linear in every number of it."""
    values = getattr(given, name)
    changed = given._replace(**{name: values.index_put(tuple(map(torch.tensor, index)), values[index] + 1)})
    return float(((compose(*changed) - compose(*given)) * weights).sum())


def test_gradients_are_those_of_the_picture_but_for_paint_that_nobody_sees(rng: torch.Generator) -> None:
    given, alike = hidden_paint(rng)
    weights = torch.randn(2, 2, 7, 9, generator=rng, dtype=torch.float64)
    for name, gradient in gradients(given, weights).items():
        where = ~alike if name == "prototypes" else torch.ones_like(gradient, dtype=torch.bool)
        indices = where.nonzero().tolist()
        expected = [slope(given, weights, name, tuple(index)) for index in indices]
        torch.testing.assert_close(gradient[where], torch.tensor(expected, dtype=torch.float64))


def test_paint_behind_an_empty_mask_learns_as_if_it_were_faintly_seen(rng: torch.Generator) -> None:
    given, alike = hidden_paint(rng)
    weights = torch.randn(2, 2, 7, 9, generator=rng, dtype=torch.float64)
    gradient = gradients(given, weights)["prototypes"]
    for index in map(tuple, alike.nonzero().tolist()):
        seen = given._replace(masks=given.masks.clone())
        seen.masks[index] = FAINT
        assert float(gradient[index]) == pytest.approx(slope(seen, weights, "prototypes", index))


@pytest.mark.parametrize("ground", [0.0, 0.9])
def test_an_object_whose_pixel_has_neither_mask_nor_paint_gets_it_back(ground: float) -> None:
    row, column, exists = torch.tensor([[2]]), torch.tensor([[3]]), torch.tensor([[True]])
    frames, colour = Frames(GEOMETRY, row, column, exists), torch.ones(1, 1, 2)
    background = torch.full((1, 2, 7, 9), ground)
    image = compose(torch.full((1, 1, 4, 3), 0.5), torch.ones(1, 1, 4, 3), colour, frames, background)
    raw_prototype, raw_mask = torch.full((1, 1, 4, 3), 0.5), torch.ones(1, 1, 4, 3)
    raw_prototype[0, 0, 1, 1], raw_mask[0, 0, 1, 1] = ground - 0.1, -0.3
    raw_prototype.requires_grad_(), raw_mask.requires_grad_()
    optimizer = torch.optim.Adam([raw_prototype, raw_mask], lr=0.05)
    for _ in range(60):
        painted = compose(soft_clamp(raw_prototype), soft_clamp(raw_mask), colour, frames, background)
        optimizer.zero_grad()
        (painted - image).square().sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert raw_mask[0, 0, 1, 1] > OPAQUE


def test_an_opaque_layer_hides_what_is_behind_it(rng: torch.Generator) -> None:
    given = scene(rng)
    given.masks[:, 0] = 1
    given.frames.row[:, :], given.frames.column[:, :] = 2, 3
    nearest = given.prototypes[:, 0, None] * given.colour[:, 0, :, None, None]
    torch.testing.assert_close(compose(*given)[:, :, 2:6, 3:6], nearest)


def test_an_object_that_does_not_exist_paints_nothing(rng: torch.Generator) -> None:
    given = scene(rng)
    given.frames.exists[:] = False
    torch.testing.assert_close(compose(*given), given.background.expand(2, -1, -1, -1))


def test_the_nearest_object_is_the_one_that_is_seen() -> None:
    masks = torch.ones(1, 2, 4, 3)
    masks[0, 0, :, 0] = 0.5  # one half is not above one half
    row, column = torch.tensor([[1, 2]]), torch.tensor([[2, 2]])
    labels = instance_labels(masks, Frames(GEOMETRY, row, column, torch.tensor([[True, True]])))[0]
    expected = torch.zeros(7, 9, dtype=torch.int32)
    expected[2:6, 2:5] = 2
    expected[1:5, 3:5] = 1
    assert torch.equal(labels, expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_visible_change_is_three_hundredths_in_all_channels_together(channels: int) -> None:
    behind = torch.full((2, channels, 1, 4), 0.4)
    picture = behind + torch.tensor([0.0, 0.03, -0.034, 0.034])
    assert changed(picture, behind, 1).tolist() == [[[False, False, True, True]]] * 2
    last = picture.permute(0, 2, 3, 1).numpy(), behind.permute(0, 2, 3, 1).numpy()
    assert changed(*last, 3).tolist() == [[[False, False, True, True]]] * 2
    if channels == 3:
        one = behind.clone()
        one[:, 0] += 0.05  # in one of three channels it must be larger
        assert not changed(one, behind, 1).any()
