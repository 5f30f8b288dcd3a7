"""Laws of the bank: clamping, tightening, and files."""

from __future__ import annotations

from pathlib import Path

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from safetensors.torch import save_file

from pcdnet.errors import PcdnetError
from pcdnet.model.bank import PrototypeBank, soft_clamp


def test_the_soft_clamp_is_the_authors() -> None:
    x = torch.linspace(-2, 3, 101)
    expected = (
        x.clamp(0, 1) + 0.01 * torch.minimum(x, torch.tensor(0.0)) + 0.01 * torch.maximum(x - 1, torch.tensor(0.0))
    )
    torch.testing.assert_close(soft_clamp(x), expected)


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_a_gradient_that_leads_back_into_the_range_passes_whole(direction: float) -> None:
    x = torch.linspace(-2, 3, 101).requires_grad_()
    (gradient,) = torch.autograd.grad(soft_clamp(x), x, torch.full_like(x, direction))
    leaves = (x > 1) if direction < 0 else (x < 0)  # descent goes against the gradient
    torch.testing.assert_close(gradient, torch.where(leaves, 0.01 * direction, direction))


@given(top=integers(0, 6), left=integers(0, 5), height=integers(1, 4), width=integers(1, 4), seed=integers(0, 9))
@settings(deadline=None)
def test_tightening_keeps_every_painted_pixel_in_its_place(
    top: int, left: int, height: int, width: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    prototypes, masks = torch.rand(2, 10, 9, generator=rng), torch.zeros(2, 10, 9)
    masks[0, top : top + height, left : left + width] = torch.rand(height, width, generator=rng) + 0.1
    masks[1, 2:7, 3:5] = 1
    tight, offset = PrototypeBank(prototypes, masks).tight()
    assert tight.frame == (max(height, 5), max(width, 2))
    for p in range(2):
        old = {(y, x): (prototypes[p, y, x].item(), masks[p, y, x].item()) for y, x in masks[p].nonzero().tolist()}
        dy, dx = offset[p].tolist()
        new = {
            (y + dy, x + dx): (tight.prototypes[p, y, x].item(), tight.masks[p, y, x].item())
            for y, x in tight.masks[p].nonzero().tolist()
        }
        assert new == old


def test_an_empty_mask_can_be_tightened() -> None:
    tight, _ = PrototypeBank(torch.zeros(2, 5, 5), torch.zeros(2, 5, 5)).tight()
    assert tight.frame == (1, 1)


def test_save_and_load_round_trip(tmp_path: Path, rng: torch.Generator) -> None:
    bank = PrototypeBank(
        torch.rand(3, 4, 5, generator=rng), torch.rand(3, 4, 5, generator=rng), torch.rand(1, 8, 9, generator=rng)
    )
    bank.save(tmp_path / "bank.safetensors")
    again = PrototypeBank.load(tmp_path / "bank.safetensors")
    assert torch.equal(bank.prototypes, again.prototypes)
    assert torch.equal(bank.masks, again.masks)
    assert bank.background is not None
    assert again.background is not None
    assert torch.equal(bank.background, again.background)
    assert [path.name for path in tmp_path.iterdir()] == ["bank.safetensors"]


def test_files_that_hold_no_sound_bank_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bank.safetensors"
    with pytest.raises(PcdnetError, match="cannot read .*; give a safetensors file"):
        PrototypeBank.load(path)
    path.write_bytes(b"not tensors at all")
    with pytest.raises(PcdnetError, match="cannot read .*; give a safetensors file"):
        PrototypeBank.load(path)
    save_file({"prototypes": torch.zeros(1, 2, 2)}, path)
    with pytest.raises(PcdnetError, match="but no masks"):
        PrototypeBank.load(path)
    save_file({"prototypes": torch.zeros(1, 2, 2), "masks": torch.full((1, 2, 2), torch.nan)}, path)
    with pytest.raises(PcdnetError, match="masks in .* no finite numbers"):
        PrototypeBank.load(path)
    save_file({"prototypes": torch.zeros(1, 2, 2), "masks": torch.zeros(1, 2, 3)}, path)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users have no checker of shapes
    with pytest.raises(PcdnetError, match=r"prototypes of shape .1, 2, 2. and masks of shape .1, 2, 3. do not fit"):
        PrototypeBank.load(path)
    save_file(
        {name: torch.zeros(1, 2, 2) for name in ("prototypes", "masks")} | {"background": torch.zeros(2, 2)}, path
    )
    with pytest.raises(PcdnetError, match=r"background has shape .2, 2.; give channels x height x width"):
        PrototypeBank.load(path)


def test_banks_are_equal_where_all_their_numbers_are(rng: torch.Generator) -> None:
    bank = PrototypeBank(torch.rand(2, 4, 5, generator=rng), torch.rand(2, 4, 5, generator=rng))
    behind = PrototypeBank(bank.prototypes, bank.masks, torch.rand(1, 8, 9, generator=rng))
    assert bank.equals(bank.map(torch.clone))
    assert behind.equals(behind.map(torch.clone))
    assert not bank.equals(behind)
    assert not behind.equals(bank)
    assert not bank.equals(bank.map(torch.Tensor.double))
    assert not bank.equals(PrototypeBank(bank.prototypes, bank.masks + 1e-6))


def test_black_stands_behind_where_there_is_no_background(rng: torch.Generator) -> None:
    bank = PrototypeBank(torch.ones(1, 2, 2), torch.ones(1, 2, 2))
    behind = PrototypeBank(bank.prototypes, bank.masks, torch.rand(3, 6, 7, generator=rng))
    image = torch.ones(3, 6, 7)
    assert bank.image_size is None
    assert not bank.behind(image).any()
    assert behind.image_size == (6, 7)
    assert torch.equal(behind.behind(image), behind.background)  # type: ignore[arg-type]


def test_a_bank_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="cannot write"):
        PrototypeBank(torch.zeros(1, 2, 2), torch.zeros(1, 2, 2)).save(tmp_path / "missing" / "bank.safetensors")
    assert not list(tmp_path.iterdir())
