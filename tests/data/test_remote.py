"""Laws of remote data: the same images as here, whole or not at all, and never a word of credentials."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.data import remote
from pcdnet.data.inputs import find_inputs
from pcdnet.data.opening import open_data, training_data, training_view
from pcdnet.data.sources import source_of
from pcdnet.errors import PcdnetError
from tests.data.test_folder import filled
from tests.data.test_webdataset import COLOURS, shards

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remote, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(remote, "PIECE", 3000)
    yield tmp_path / "cache"
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def put(folder: Path, url: str) -> None:
    fs, place = fsspec.core.url_to_fs(url)
    for path in folder.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"{place}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def same(url: str) -> bool:
    return bool(np.array_equal(np.asarray(open_data(url, count=99, seed=0).images), COLOURS))


@pytest.mark.parametrize("place", ["", "/*.tar", "/set-{000..002}.tar"])
def test_shards_far_away_are_read_one_at_a_time(place: str, tmp_path: Path, cache: Path) -> None:
    put(shards(tmp_path / "d"), "memory://bucket/d")
    assert getattr(source_of(f"memory://bucket/d{place}"), "name", None) == "webdataset"
    assert same(f"memory://bucket/d{place}")
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_training_from_far_away_is_the_same_each_time_and_decodes_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    put(shards(tmp_path / "d"), "memory://bucket/d")
    for attempt in range(2):
        train, valid = training_data("memory://bucket/d", seed=0, view=training_view("memory://bucket/d"))
        assert np.array_equal(np.concatenate([train.images, valid.images]), COLOURS)
        assert ("is decoded once" in capsys.readouterr().err) == (attempt == 0)
    put(shards(tmp_path / "e", count=20), "memory://bucket/d")
    assert len(open_data("memory://bucket/d", count=99, seed=0)) == 30  # of one shard, 5 of 15 are left


def test_files_and_folders_are_fetched_once_and_anew_when_they_change(tmp_path: Path, cache: Path) -> None:
    put(filled(tmp_path / "d", 5), "memory://bucket/photos")
    np.savez(tmp_path / "a.npz", image=COLOURS)
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/bucket/a.npz", (tmp_path / "a.npz").read_bytes())
    for _ in range(2):
        assert same("memory://bucket/a.npz")
        assert np.array_equal(open_data("memory://bucket/photos", count=99, seed=0).images, COLOURS[:5])
    times = {path: path.stat().st_mtime_ns for path in cache.rglob("*.png")}
    assert len(times) == 5
    fs.rm("/bucket/photos/a4.png")
    fs.pipe_file("/bucket/photos/a0.png", (tmp_path / "d" / "a1.png").read_bytes())
    assert np.array_equal(open_data("memory://bucket/photos", count=99, seed=0).images, COLOURS[[1, 1, 2, 3]])
    assert {path: path.stat().st_mtime_ns == time for path, time in times.items() if path.exists()} == {
        path: path.name != "a0.png" for path in times if path.name != "a4.png"
    }


def test_decompose_takes_addresses(tmp_path: Path) -> None:
    put(shards(tmp_path / "d"), "memory://bucket/d")
    found = find_inputs(["memory://bucket/d/*.tar"])
    assert found[1].image_name(2).endswith("bucket/d/set-001.tar#2")
    assert [one.stamp for one in found] == [one.stamp for one in find_inputs(["memory://bucket/d"])]
    assert np.array_equal(np.stack([image for one in found for _, image in one.images()]), COLOURS)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://bucket/none.npz", "none.npz does not exist; give the address"),
        ("memory://bucket/none-*.tar", "names no file that ends with .tar"),
        ("s3://key:secret@bucket/a.tar", r"an address s3://... holds a user, a key or a query"),
        ("https://host/a.tar?X-Signature=secret", r"an address https://... holds a user, a key or a query"),
        ("nowhere://bucket/a.tar", "is no address known here; give one of s3://"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence_without_a_secret(url: str, message: str) -> None:
    with pytest.raises(PcdnetError, match=message) as caught:
        open_data(url, count=9, seed=0)
    assert "secret" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(PcdnetError, match="gs:// needs the package gcsfs, which is missing; pip install gcsfs"):
        open_data("gs://bucket/a.tar", count=9, seed=0)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(PcdnetError, match=r"fsspec, which is missing; pip install 'pcdnet\[remote\]'"):
        open_data("memory://bucket/a.tar", count=9, seed=0)


@pytest.mark.parametrize("failures", [2, 99])
@pytest.mark.parametrize("error", [OSError("secret"), ConnectionResetError(), TimeoutError(), RuntimeError("secret")])
def test_a_network_that_fails_is_tried_again_and_then_reported(
    error: Exception, failures: int, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shards(tmp_path / "d"), "memory://bucket/d")
    fs, left = fsspec.filesystem("memory"), [failures]

    def cut(read: Any, *args: Any, **kwargs: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise error
        return read(*args, **kwargs)

    monkeypatch.setattr(fs, "cat_file", partial(cut, fs.cat_file))
    if failures == 2:
        assert same("memory://bucket/d/*.tar")
    else:
        with pytest.raises(
            PcdnetError, match=rf"set-000.tar cannot be reached \({type(error).__name__}, 3 att"
        ) as caught:
            same("memory://bucket/d/*.tar")
        assert "secret" not in str(caught.value)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_file_that_changes_while_it_is_fetched_is_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shards(tmp_path / "d"), "memory://bucket/d")
    fs = fsspec.filesystem("memory")
    read, other = fs.cat_file, (tmp_path / "d" / "set-000.tar").read_bytes()

    def changing(path: str, **kwargs: Any) -> Any:
        found = read(path, **kwargs)
        fs.pipe_file(path, other[:-1] + b"\1")
        return found

    monkeypatch.setattr(fs, "cat_file", changing)
    with pytest.raises(PcdnetError, match="set-000.tar was changed while it was fetched; start again"):
        same("memory://bucket/d/set-000.tar")


def test_an_object_store_gives_the_same_and_its_refusals_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto", reason="needs moto, which serves S3 here")
    pytest.importorskip("s3fs", reason="needs s3fs")
    from benchmarks.drilling.network import BUCKET, KEYS, environment, object_store, upload

    shards(tmp_path / "d")
    filled(tmp_path / "p", 5)
    with object_store():
        upload(tmp_path / "d", "shards")
        upload(tmp_path / "p", "photos")
        assert same(f"s3://{BUCKET}/shards/*.tar")
        assert same(f"s3://{BUCKET}/shards")
        assert np.array_equal(open_data(f"s3://{BUCKET}/photos", count=9, seed=0).images, COLOURS[:5])
        for place in ("nothing/a.tar", f"{BUCKET}/none.tar"):
            with pytest.raises(PcdnetError, match=r"a?n?o?n?e?.tar does not exist"):
                same(f"s3://{place}")
        with environment(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1"):
            with pytest.raises(PcdnetError, match=r"cannot be reached \(\w+, 3 attempts\)") as caught:
                same(f"s3://{BUCKET}/shards/set-000.tar")
            assert not any(secret in str(caught.value) for secret in KEYS.values())
