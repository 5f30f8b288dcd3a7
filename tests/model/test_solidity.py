"""What is there is seen all over."""

from __future__ import annotations

import torch

from pcdnet.config import ModelConfig
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.network import PCDNet


def _model(min_solid: float) -> PCDNet:
    bank = PrototypeBank(torch.ones(1, 8, 8), torch.ones(1, 8, 8), torch.full((1, 30, 30), 0.5))
    config = ModelConfig(
        num_prototypes=1,
        prototype_size=(8, 8),
        max_objects=2,
        channels=1,
        background="still",
        localization="error_reduction",
        restarts=0,
        min_solid=min_solid,
    )
    return PCDNet.from_bank(bank, config)


def test_a_flaw_in_a_spot_is_no_object() -> None:
    image = torch.full((1, 1, 30, 30), 0.5)
    image[0, 0, 10:18, 12:20] = 0.9  # a thing
    image[0, 0, 24:26, 3:5] = 1.0  # a flaw of the background
    with torch.no_grad():
        assert _model(0.0)(image).placement.exists.sum() == 2
        found = _model(0.5)(image).placement
    assert found.exists.tolist() == [[True, False]]
    assert (found.row[0, 0].item(), found.column[0, 0].item()) == (10, 12)


def test_what_hangs_over_the_border_is_judged_by_what_is_inside() -> None:
    image = torch.full((1, 1, 30, 30), 0.5)
    image[0, 0, 26:, 12:20] = 0.9
    with torch.no_grad():
        found = _model(0.9)(image).placement
    assert (found.row[0, 0].item(), found.column[0, 0].item()) == (26, 12)
