"""Objects that leave most of the error where they are seen are none."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pcdnet.config import ModelConfig
from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank
from pcdnet.model.fidelity import unexplained_shares
from pcdnet.model.network import PCDNet


def test_the_share_is_that_of_the_pixels_in_which_an_object_is_seen() -> None:
    images = torch.zeros(1, 1, 4, 6)
    images[..., :3] = 1.0
    behind, painted = torch.zeros_like(images), torch.zeros_like(images)
    painted[..., 0, :3] = 1.0  # of the first object's twelve pixels, three are explained
    painted[..., 5] = 0.5  # the second is painted where nothing is
    instances = torch.zeros(1, 4, 6, dtype=torch.long)
    instances[..., :3], instances[..., 5] = 1, 2
    shares = unexplained_shares(images, painted, behind, instances, 3)
    assert shares[0, 0] == pytest.approx(0.75)
    assert shares[0, 1:].tolist() == [0.0, 0.0]  # there was no error to explain, and the third is not seen


def specks() -> tuple[PCDNet, torch.Tensor]:
    """A bar of five pixels, and an image of such a bar and of three specks in a row."""
    mask = torch.zeros(1, 3, 7)
    mask[0, 1, 1:6] = 1
    image = torch.zeros(1, 1, 20, 24)
    image[..., 4, 5:10] = 0.8
    image[..., 14, 12:17:2] = 0.8
    config = ModelConfig(
        num_prototypes=1,
        prototype_size=(3, 7),
        channels=1,
        max_objects=4,
        peaks_per_prototype=4,
        localization="error_reduction",
        min_error_reduction=0.3,
    )
    return PCDNet.from_bank(PrototypeBank(mask.clone(), mask), config), image


def test_a_bar_is_not_found_in_specks_if_little_may_be_left() -> None:
    model, image = specks()
    assert model(image).placement.exists.sum() == 2
    strict = PCDNet.from_bank(model.weights(), dataclasses.replace(model.config, max_unexplained=0.25))
    where = strict(image).placement
    assert where.exists.sum() == 1
    assert (where.row[0, 0] + 1, where.column[0, 0] + 1) == (4, 5)
    assert where.colour[0, 1:].abs().sum() == 0


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(PcdnetError, match="max_unexplained"):
        ModelConfig(max_unexplained=1.5)
