"""Laws of painting objects in their poses: gradients are finite differences, and reach what is painted alone."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from pcdnet.config import ColourModule, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.compiled import reference
from pcdnet.model.engine import Engine
from pcdnet.model.placement import Placement
from pcdnet.model.poses.pose import pose_frame
from pcdnet.model.poses.sprites import posed_sprites, upright_positions
from tests.oracle.poses import picture_in_pose
from tests.oracle.scenes import random_weights

SIZE, FRAME = (14, 13), (5, 4)
CONFIG = ModelConfig(
    num_prototypes=3,
    prototype_size=FRAME,
    max_objects=3,
    channels=3,
    rotations=8,
    scales=2,
    scale_range=(0.7, 1.4),
    mirror=True,
    subpixel=True,
)
POSES = [[37.0, 1.2, 1.0, 0.3, -0.4], [250.0, 0.8, 0.0, -0.2, 0.1], [0.0, 0.0, 0.0, 0.0, 0.0]]


def placement(dtype: torch.dtype = torch.float64) -> Placement:
    """Two objects in the first image, one over the other, and one that hangs over the border in the second."""
    pose = torch.tensor(POSES, dtype=dtype)
    zeros = torch.zeros(2, 3, dtype=dtype)
    return Placement(
        torch.tensor([[0, 1, -1], [1, -1, -1]]),
        torch.tensor([[-1, 1, 0], [4, 0, 0]]),
        torch.tensor([[0, -1, 0], [-4, 0, 0]]),
        0.7 * torch.ones(2, 3, 3, dtype=dtype),
        zeros,
        zeros,
        torch.stack([pose, pose[[1, 2, 2]]]),
    )


def weights(rng: torch.Generator) -> list[Tensor]:
    """Prototypes and masks away from 0 and 1, where values are cut off."""
    return [(0.1 + 0.8 * torch.rand(3, *FRAME, generator=rng, dtype=torch.float64)).requires_grad_() for _ in range(2)]


@pytest.mark.parametrize("colour", ["least_squares", "none", "network"])
@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_of_a_step_are_finite_differences(colour: ColourModule, compiled: bool, rng: torch.Generator) -> None:
    config = dataclasses.replace(CONFIG, colour=colour)
    engine, where = Engine(config).double().train(), placement()
    if engine.colour is not None:
        random_weights(rng, engine.colour)
    images = torch.rand(2, 3, *SIZE, generator=rng, dtype=torch.float64)

    def loss(prototypes: Tensor, masks: Tensor) -> Tensor:
        layers = engine._paint(images, PrototypeBank(prototypes, masks), None, where, None)
        return (layers.reconstruction - images).square().mean()

    def check() -> None:
        prototypes, masks = weights(rng)
        assert torch.autograd.gradcheck(loss, (prototypes, masks), atol=1e-6, rtol=1e-4)
        loss(prototypes, masks).backward()  # type: ignore[no-untyped-call]
        for values in (prototypes, masks):
            assert values.grad is not None
            assert (values.grad[:2] != 0).any(0).any()
            assert not values.grad[2].any(), "what is not in the images learns nothing"

    if compiled:
        check()
    else:
        with reference():
            check()


def test_a_training_step_has_gradients_where_objects_are_found(rng: torch.Generator) -> None:
    """Search and painting together: prototypes that are found learn to be brighter, if the images are."""
    config = dataclasses.replace(CONFIG, channels=1, max_objects=1, localization="error_reduction", colour="none")
    engine = Engine(config).train()
    with torch.no_grad():
        engine.prototypes.fill_(0.5)
        engine.masks.fill_(0.9)
        engine.masks[1:] = 0
    image = torch.zeros(1, 1, *SIZE)
    image[..., 4:9, 5:9] = 0.9
    layers = engine(image)
    assert layers.placement.exists.sum() == 1
    (layers.reconstruction - image).square().sum().backward()
    assert engine.prototypes.grad is not None
    assert (engine.prototypes.grad[0, 1:-1, 1:-1] < 0).all()
    assert not engine.prototypes.grad[1:].any()


def test_sprites_are_prototypes_in_their_poses(rng: torch.Generator) -> None:
    where, (prototypes, masks) = placement(), weights(rng)
    chosen = where.prototype.clamp(min=0)
    paint, alpha = posed_sprites(prototypes[chosen], masks[chosen], where, CONFIG)
    frame = (paint.shape[-2], paint.shape[-1])
    for b, n in where.exists.nonzero().tolist():
        pose = where.pose[b, n].tolist()
        for made, pictures in ((paint, prototypes), (alpha, masks)):
            literal = picture_in_pose(pictures[chosen[b, n]].detach(), pose, frame)
            torch.testing.assert_close(made[b, n], literal, atol=1e-12, rtol=0)
    assert not alpha[~where.exists].any()


def test_places_are_those_of_upright_frames() -> None:
    where = placement()
    places = upright_positions(where, CONFIG)
    (Y, X), (h, w) = pose_frame(FRAME, CONFIG), FRAME
    expected = [-1 + (Y - h) / 2 + 0.3, (X - w) / 2 - 0.4]
    assert places[0, 0].tolist() == pytest.approx(expected, abs=1e-6)
    still = dataclasses.replace(where, pose=where.pose[..., :0])
    assert upright_positions(still, ModelConfig()).tolist() == torch.stack([where.row, where.column], -1).tolist()
