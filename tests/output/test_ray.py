"""Laws of the engine Ray: the files of the local engine, whoever dies meanwhile; its mistakes are sentences."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.drilling.workers import killing
from PIL import Image

from pcdnet.data.tetrominoes import generate
from pcdnet.errors import PcdnetError
from pcdnet.output import cluster as cluster_module
from pcdnet.output import pieces
from pcdnet.output.cluster import cluster
from pcdnet.output.decompose import decompose_files
from pcdnet.run import RunFolder
from tests.runs import true_run

pytest.importorskip("ray", reason="the engine ray needs Ray: pip install 'pcdnet[scale]'")
SCENES = generate(40, seed=3)
FORMATS = "json,coco,csv,parquet,png"


@pytest.fixture(scope="module", autouse=True)
def started() -> Iterator[None]:
    """One cluster for all tests, as its start takes seconds."""
    with cluster():
        yield


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few images are cut into several pieces."""
    monkeypatch.setattr(pieces, "SMALLEST", 16)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with the true prototypes of Tetrominoes."""
    return true_run(tmp_path_factory.mktemp("runs") / "true")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures, two of them bad, and a file of several pieces whose images are too large from one on."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "photos").mkdir()
    for n, image in enumerate(SCENES.images[:6]):
        Image.fromarray(image).save(folder / "photos" / f"{n}.png")
    (folder / "photos" / "2.png").write_bytes(b"no picture")
    Image.fromarray(SCENES.images[3, :9, :9]).save(folder / "photos" / "3.png")
    np.savez(folder / "many.npz", image=SCENES.images)
    return [folder / "photos", folder / "many.npz"]


def contents(out: Path) -> dict[str, bytes]:
    """All that both engines write."""
    own = ("journal.jsonl", "parts")
    paths = [path.relative_to(out) for path in out.rglob("*.*")]
    return {path.as_posix(): (out / path).read_bytes() for path in paths if path.parts[0] not in own}


def test_a_killed_worker_loses_nothing_and_what_is_done_is_not_done_again(
    run: RunFolder, inputs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = decompose_files(run, inputs, tmp_path / "local", formats=FORMATS, quiet=True)
    said, out = capsys.readouterr().err, tmp_path / "ray"
    options: dict[str, Any] = {"formats": FORMATS, "engine": "ray", "quiet": True}
    with killing(lambda: any((out / "parts").glob("part-*")), np.random.default_rng(0)) as killed:
        done = decompose_files(run, inputs, out, **options)
    assert len(killed) == 1
    assert contents(out) == contents(tmp_path / "local")
    assert (done.fresh, done.known, done.failed) == (here.fresh, 0, here.failed)
    assert (done.summary.text(), done.inputs) == (here.summary.text(), here.inputs)
    assert [path.name for path in done.files] == [*(path.name for path in here.files), "parts"]
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]  # Ray reports deaths
    assert sorted(notes) == sorted(said.splitlines())
    parts = {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    assert len(parts) == 4
    assert {path.suffix for path in parts} == {".parquet"}

    (out / "parts" / "stale.partial").touch()
    again = decompose_files(run, inputs, out, formats="parts", engine="ray", quiet=True)
    assert (again.fresh, again.known, again.failed) == (0, here.fresh, here.failed)  # the bad are looked at once more
    assert set((out / "parts").iterdir()) == set(parts)
    assert sum(path.stat().st_mtime_ns != time for path, time in parts.items()) == 1
    with pytest.raises(PcdnetError, match=r"holds the results of the engine ray, not of all images; choose"):
        decompose_files(run, inputs, out, quiet=True)


def test_what_is_done_needs_no_cluster_and_other_inputs_leave_no_parts_of_former_ones(
    run: RunFolder, inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [inputs[0] / "0.png", inputs[0] / "1.png"]
    decompose_files(run, paths, tmp_path / "out", engine="ray", quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr("pcdnet.output.distributed.cluster", None)
        assert decompose_files(run, paths, tmp_path / "out", engine="ray", quiet=True).known == 2
    assert decompose_files(run, paths[:1], tmp_path / "out", engine="ray", quiet=True).fresh == 1
    assert len([*(tmp_path / "out" / "parts").iterdir()]) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"engine": "spark"}, "engine='spark' is unknown; use local or ray"),
        ({"engine": "local", "address": "a:1"}, "address is that of a Ray cluster; add engine='ray'"),
        ({"engine": "local", "formats": "parts"}, "the format parts is written by the engine ray alone"),
        ({"shard": (0, 2)}, "a cluster needs no shards; leave out shard or engine"),
        ({"device": "cuda"}, "the engine ray computes on processors; leave out device"),
        ({"address": "127.0.0.1:1"}, "Ray is connected already in this process; leave out address"),
    ],
)
def test_what_the_engine_cannot_do_is_refused(
    options: dict[str, Any], complaint: str, run: RunFolder, inputs: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        decompose_files(run, inputs, tmp_path / "out", **{"engine": "ray", "quiet": True, **options})


@pytest.mark.parametrize("missing", ["ray", "pyarrow", "pandas"])
def test_a_missing_package_is_one_sentence(
    missing: str, run: RunFolder, inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(cluster_module, "find_spec", lambda name: None if name == missing else real(name))
    with pytest.raises(PcdnetError, match=rf"the engine ray needs {missing}, .*; run: pip install 'pcdnet\[scale\]'"):
        decompose_files(run, inputs, tmp_path / "out", engine="ray", quiet=True)
    assert not (tmp_path / "out").exists()


def test_an_address_that_does_not_answer_is_one_sentence_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE", 1)
    with pytest.raises(PcdnetError, match=r"address='x' is no address; give HOST:PORT of a Ray cluster, or auto"):
        cluster_module._check_answer("x")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        complaint = rf"no Ray cluster answers at {address} .*; start one there, or leave out"
        with pytest.raises(PcdnetError, match=complaint):
            cluster_module._check_answer(address)  # nobody listens
        silent.listen()
        with pytest.raises(PcdnetError, match=complaint):
            cluster_module._check_answer(address)  # somebody does who is no Ray


def test_the_address_of_a_cluster_that_is_there_passes() -> None:
    ray = importlib.import_module("ray")
    cluster_module._check_answer(ray.get_runtime_context().gcs_address)
