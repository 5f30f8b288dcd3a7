"""A file drops the candidates that the model finds not to be solid."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from pcdnet.config import Background, ColourModule, Localization, ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet
from tests.model.onnx.models import SIZE, agree, random_model


def flawed(scenes: list[Tensor], seed: int) -> Tensor:
    """The scenes with four bright spots in each, far smaller than any object."""
    rng = torch.Generator().manual_seed(seed)
    images = torch.stack(scenes)
    for image in images:
        for _ in range(4):
            row, column = (int(torch.randint(side - 2, (), generator=rng)) for side in SIZE)
            image[:, row : row + 2, column : column + 2] = 1
    return images


@pytest.mark.parametrize("background", ["still", "black"])
@pytest.mark.parametrize("localization", ["phase", "error_reduction"])
@pytest.mark.parametrize("colour", ["least_squares", "network"])
def test_the_file_finds_what_the_model_finds_to_be_solid(
    colour: ColourModule, localization: Localization, background: Background
) -> None:
    kept = free = 0
    for seed, channels, min_visible in ((1, 3, 0.0), (2, 1, 0.0), (3, 3, 0.5)):
        fields = {"colour": colour, "localization": localization, "min_visible": min_visible}
        model, scenes = random_model(seed, channels, background, min_solid=0.4, **fields)
        images = flawed(scenes, seed)
        kept += agree(model, images)
        model.config = dataclasses.replace(model.config, min_solid=0.0)
        with torch.inference_mode():
            free += int(model(images).placement.exists.sum())
    assert 15 < kept < free, "too little is found, or all of it is solid anyway"


def test_what_hangs_over_the_border_is_solid_by_what_is_inside() -> None:
    """A square of 8x8 of which half is outside, and a flaw that would gain as much."""
    bank = PrototypeBank(torch.ones(1, 8, 8), torch.ones(1, 8, 8), torch.full((1, *SIZE), 0.5))
    config = ModelConfig(
        num_prototypes=1,
        prototype_size=(8, 8),
        max_objects=2,
        channels=1,
        background="still",
        restarts=0,
        depth_order=False,
    )
    image = torch.full((1, 1, *SIZE), 0.5)
    image[0, 0, 26:, 12:20] = 0.9
    image[0, 0, 4:6, 3:7] = 1.0
    for least, objects in ((0.0, 2), (0.9, 1)):
        chosen = dataclasses.replace(config, localization="error_reduction", min_solid=least)
        assert agree(PCDNet.from_bank(bank, chosen), image) == objects
