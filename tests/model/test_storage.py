"""Laws of the files of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from pcdnet.config import Config
from pcdnet.errors import PcdnetError
from pcdnet.model.storage import (
    CONFIG,
    WEIGHTS,
    checked_device,
    fill,
    load_tensors,
    load_words,
    save_model,
    save_tensors,
)
from pcdnet.names import FILE, Names
from pcdnet.run import load
from tests.model.models import random_model


def test_a_model_is_its_configuration_its_weights_and_its_names(tmp_path: Path) -> None:
    model, _ = random_model(0, background="still")
    names = Names(count=3, given={2: "cup"})
    save_model(model.config, dict(model.state_dict()), names, tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert {path.name for path in folder.iterdir()} == {CONFIG, WEIGHTS, FILE}
    assert Config.load(folder / CONFIG).model == model.config
    tensors, _ = load_tensors(folder / WEIGHTS)
    assert tensors.keys() == model.state_dict().keys()
    assert all(torch.equal(tensors[name], values) for name, values in model.state_dict().items())


def test_tensors_and_words_survive_a_file(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6).view(2, 3).T, "b": torch.ones(2, dtype=torch.float64, requires_grad=True)}
    save_tensors(tmp_path / "file", tensors, {"step": "7"})
    again, words = load_tensors(tmp_path / "file")
    assert words == load_words(tmp_path / "file") == {"step": "7"}
    assert all(torch.equal(again[name], values) for name, values in tensors.items())


def test_a_file_that_cannot_be_read_is_reported_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="cannot read .*file: .*; use a sound file, or train anew"):
        load_tensors(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"not tensors at all")
    with pytest.raises(PcdnetError, match="cannot read .*file: .*; give another"):
        load_tensors(tmp_path / "file", "give another")
    with pytest.raises(PcdnetError, match="cannot read .*file: .*; use a sound file, or train anew"):
        load_words(tmp_path / "file")


def test_a_file_that_cannot_be_written_is_reported_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="cannot write .*; make room"):
        save_tensors(tmp_path / "missing" / "file", {}, None, "make room")


def test_a_model_takes_the_weights_that_fit_it_and_no_others(tmp_path: Path) -> None:
    model, path = nn.Linear(2, 3), tmp_path / WEIGHTS
    sound = {"weight": torch.ones(3, 2), "bias": torch.zeros(3), "more": torch.ones(1)}
    for broken, words in (
        ({"weight": sound["weight"]}, "holds nothing for bias, not .3,. of float32; it belongs to another config.toml"),
        ({**sound, "weight": torch.ones(3, 3)}, "holds .3, 3. of float32 for weight, not .3, 2."),
        ({**sound, "bias": torch.tensor([0, 1, torch.inf])}, "bias in .* holds values that are no finite numbers"),
        ({**sound, "bias": torch.tensor([0, 1, torch.nan])}, "bias in .* holds values that are no finite numbers"),
    ):
        before = {name: values.clone() for name, values in model.state_dict().items()}
        with pytest.raises(PcdnetError, match=words):
            fill(model, broken, path)
        assert all(torch.equal(before[name], values) for name, values in model.state_dict().items())
    save_file(sound, path)
    fill(model, load_tensors(path)[0], path)
    assert model.weight.eq(1).all()
    assert not model.bias.any()


def test_files_of_version_0_1_which_ignore_nothing_are_read(tmp_path: Path) -> None:
    model, _ = random_model(0, background="still")
    another, _ = random_model(1, background="still")
    older = {name: values for name, values in another.state_dict().items() if name != "ignored"}
    fill(model, older, tmp_path / WEIGHTS)
    assert torch.equal(model.masks, another.masks)
    assert model.ignored is not None
    assert not model.ignored.any()


def test_ignored_pixels_survive_a_file(tmp_path: Path) -> None:
    model, _ = random_model(0, background="still")
    assert model.ignored is not None
    model.ignored[3:9, 4:] = True
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.ignored is not None
    assert torch.equal(again.ignored, model.ignored)


def test_the_looks_of_a_background_survive_a_file_and_others_are_refused(tmp_path: Path) -> None:
    model, images = random_model(0, background="still")
    assert model.background is not None
    shape = (2, *model.background.shape)
    model.looks = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.looks is not None
    assert torch.equal(again.looks, model.looks)
    torch.testing.assert_close(again.seen(images), model.seen(images))
    fresh, _ = random_model(0, background="still")
    for wrong in (model.looks.float(), model.looks[:, :, :-1], model.looks[0]):
        with pytest.raises(PcdnetError, match="for looks, not some of its background"):
            fill(fresh, {**dict(fresh.state_dict()), "looks": wrong}, tmp_path / WEIGHTS)


def test_a_device_is_named_and_there() -> None:
    assert checked_device("cpu") == torch.device("cpu")
    for name in ("no such device", "cuda:99"):
        with pytest.raises(PcdnetError, match=f"the device '{name}' cannot be used: .*; use device='cpu'"):
            checked_device(name)
