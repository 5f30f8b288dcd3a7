"""Laws of workers: they do what the driver's model would do, or say in a sentence why not; none dies for ever."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import pcdnet
from pcdnet.data.inputs import find_inputs
from pcdnet.data.tetrominoes import generate
from pcdnet.model.network import PCDNet
from pcdnet.output.distributed import _files
from pcdnet.output.parts import label_of
from pcdnet.output.pieces import pieces_of
from pcdnet.output.pipeline import model_digest
from pcdnet.output.worker import ATTEMPTS, Job, Worker
from tests.runs import true_run

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PCDNet:
    """The true prototypes of Tetrominoes."""
    return true_run(tmp_path_factory.mktemp("runs") / "true").load_model()


@pytest.fixture
def batch(tmp_path: Path) -> dict[str, Any]:
    """One piece of two pictures, one of them bad, by their names in the folder."""
    Image.fromarray(generate(1, seed=0).images[0]).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    inputs = find_inputs([str(tmp_path / name) for name in ("a.png", "b.png")])
    return {"number": [7], "piece": [next(pieces_of(inputs, [1, 1])).to_json()]}


def worker(model: PCDNet, folder: Path, changes: dict[str, Any] | None = None) -> Worker:
    """A worker in a folder, with settings that are changed."""
    settings = {"pcdnet": pcdnet.__version__, "model": model_digest(model), "resize": False, "values": None}
    settings |= changes or {}
    job = Job(folder=str(folder), out=str(folder / "out"), settings=settings, stride=1, pictures=False)
    return Worker(json.dumps(asdict(job)), _files(model), str)


def one(batch: dict[str, Any]) -> dict[str, Any]:
    """What became of the only piece."""
    (text,) = batch["done"]
    return dict(json.loads(text))


def test_a_piece_is_done_once_and_its_bad_images_are_named_every_time(
    model: PCDNet, batch: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for fresh in (1, 0):
        done = one(worker(model, tmp_path)(batch))
        assert (done["number"], done["images"], done["fresh"]) == (7, 1, fresh)
        assert list(done["failed"]) == [f"{tmp_path}/b.png"]
        assert done["notes"][0].startswith(f"note: skipped {tmp_path}/b.png: ")
        (part,) = (tmp_path / "out" / "parts").iterdir()
        label = label_of(part)
        assert label is not None
        assert (label.images, label.failed) == (1, done["failed"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({"pcdnet": "9.9"}, "install one version on all machines"), ({"model": "x"}, "has another model than was sent")],
)
def test_a_worker_that_is_not_as_its_driver_does_nothing(
    changes: dict[str, str],
    complaint: str,
    model: PCDNet,
    batch: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complaint in one(worker(model, tmp_path, changes)(batch))["problem"]
    assert not (tmp_path / "out").exists()


def test_a_piece_that_kills_its_workers_is_given_up(
    model: PCDNet, batch: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deadly = worker(model, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("pcdnet.output.worker.Pipeline", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
        for _ in range(ATTEMPTS):
            with pytest.raises(SystemExit):
                deadly(batch)
        assert one(deadly(batch))["given_up"]
        patch.setattr("pcdnet.output.worker._attempted", lambda _: True)
        patch.setattr("pcdnet.output.worker.Pipeline", lambda *_, **__: 1 / 0)
        assert "ZeroDivisionError" in one(deadly(batch))["crash"]
