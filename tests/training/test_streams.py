"""Laws of data that are larger than memory: the weights are those of the same data in memory, resumed or not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

import pcdnet
from pcdnet.data import tetrominoes
from pcdnet.errors import Interrupted
from pcdnet.pixels import PixelStore
from pcdnet.run import RunFolder
from tests.data.test_webdataset import archive, png

CHANGES = {
    "train.steps": 4,
    "train.batch": 4,
    "train.validate_every": 2,
    "model.num_prototypes": 3,
    "model.restarts": 0,
}


def weights(model: pcdnet.PCDNet) -> list[torch.Tensor]:
    return [*model.state_dict().values()]


def test_training_from_a_file_ends_as_from_memory_and_so_it_does_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    images = np.asarray(tetrominoes.generate(count=60, seed=0).images)
    data = archive(tmp_path / "a.tar", [(f"{n}.png", png(image)) for n, image in enumerate(images)])
    expected = weights(pcdnet.fit(data, "tetrominoes", changes=CHANGES, quiet=True))
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    unbroken = pcdnet.fit(data, "tetrominoes", changes=CHANGES, out=tmp_path / "a", quiet=True)
    assert isinstance(RunFolder.open(tmp_path / "a").training_scenes()[0].images, PixelStore)
    asked = iter([False, True])
    with suppress(Interrupted):
        pcdnet.fit(data, "tetrominoes", changes=CHANGES, out=tmp_path / "b", quiet=True, stop=lambda: next(asked))
    (kept,) = (tmp_path / "cache").rglob("*.pixels")
    kept.unlink()  # as somebody may who needs room
    resumed = pcdnet.fit(out=tmp_path / "b", resume=True, quiet=True)
    for found in (unbroken, resumed):
        assert all(torch.equal(*pair) for pair in zip(weights(found), expected, strict=True))
