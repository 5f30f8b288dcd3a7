"""Laws of WebDataset shards: samples come in order, nothing is trusted, and damage never makes a shorter set."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pcdnet.data.inputs import find_inputs
from pcdnet.data.opening import open_data, training_data, training_view
from pcdnet.data.sources import source_of
from pcdnet.data.view import View
from pcdnet.data.webdataset import count, headers, images, read
from pcdnet.errors import Incomplete, PcdnetError
from pcdnet.pixels import PixelStore

COLOURS = np.random.default_rng(0).integers(0, 256, (40, 8, 12, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is kept in the cache of whoever runs the tests."""
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def png(image: np.ndarray, form: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.fromarray(image.squeeze()).save(content, form)
    return content.getvalue()


def archive(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def shards(folder: Path, count: int = 40, each: int = 15) -> Path:
    for first in range(0, count, each):
        samples = range(first, min(first + each, count))
        files = [
            (f"s/{n:05}.{end}", png(COLOURS[n]) if end == "png" else b"3") for n in samples for end in ("cls", "png")
        ]
        archive(folder / f"set-{first // each:03}.tar", files)
    return folder


@pytest.mark.parametrize("place", ["", "set-*.tar", "set-{000..002}.tar"])
def test_a_folder_and_patterns_of_shards_give_their_pictures_in_order(place: str, tmp_path: Path) -> None:
    where = str(shards(tmp_path / "d") / place)
    source = source_of(where)
    assert source is not None
    assert source.name == "webdataset"
    np.testing.assert_array_equal(open_data(where, count=100, seed=0).images, COLOURS)
    view = View(crop=(0, 2, 8, 8), stride=3, grey=True)
    seen = np.stack([view.image(image) for image in COLOURS[::3]])
    np.testing.assert_array_equal(open_data(where, count=100, seed=0, view=view).images, seen)
    np.testing.assert_array_equal(read(where, limit=20).images, COLOURS[:20])
    assert count(where) == 40
    assert [number for number, _ in images(where, stride=7)] == [*range(0, 40, 7)]


def test_pictures_that_would_fill_the_memory_are_the_same_from_a_file_that_is_used_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    place = shards(tmp_path / "d")
    for attempt in range(2):
        train, valid = training_data(place, seed=0, view=training_view(place, View(tiles=0)))
        assert isinstance(train.images, PixelStore)
        np.testing.assert_array_equal(np.asarray(train.images), COLOURS[:36])
        np.testing.assert_array_equal(np.asarray(valid.images), COLOURS[36:])
        assert ("is decoded once" in capsys.readouterr().err) == (attempt == 0)
    (kept,) = cache.rglob("*.pixels")
    content = bytearray(kept.read_bytes())
    content[5000] ^= 4
    kept.write_bytes(content)
    np.testing.assert_array_equal(np.asarray(read(place, view=View(tiles=0)).images), COLOURS)
    assert "is damaged (it is not as it was written" in capsys.readouterr().err


def test_colours_that_come_late_make_all_pictures_colourful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grey = [png(image) for image in COLOURS[:3, ..., :1]]
    path = archive(tmp_path / "a.tar", [(f"{n}.png", each) for n, each in enumerate([*grey, png(COLOURS[3])])])
    for memory in ("0", "1"):
        monkeypatch.setenv("PCDNET_MAX_MEMORY", memory)
        found = np.asarray(read(path).images)
        np.testing.assert_array_equal(found, [*COLOURS[:3, ..., :1].repeat(3, axis=3), COLOURS[3]])


def test_damaged_pictures_are_skipped_and_reported_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [(f"{n}.png", png(COLOURS[n]) if n != 7 else b"no picture\x1b[2J") for n in range(20)]
    path = archive(tmp_path / "a.tar", files)
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "0")
    for _ in range(2):
        assert len(read(path)) == 19
        assert f"skipped 1 of 20 pictures of {path} that cannot be read: 7.png of" in capsys.readouterr().err
    bad = archive(tmp_path / "b.tar", [*files[:10], ("x.png", b""), ("y.png", b"")])
    with pytest.raises(PcdnetError, match="3 of 12 pictures of .*b.tar cannot be read .*; fix or remove them"):
        read(bad)
    assert sorted(headers(path)) == [n for n in range(20) if n != 7]
    found = images(path)
    assert [next(found)[0] for _ in range(19)] == sorted(headers(path))
    with pytest.raises(Incomplete, match=r"1 pictures of .*a.tar cannot be read \(7.png of .*\); fix or remove them"):
        next(found)


def test_an_archive_that_is_cut_or_damaged_is_refused_and_never_a_shorter_one(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", [(f"{n}.png", png(COLOURS[n])) for n in range(12)])
    whole = path.read_bytes()
    header = whole.index(b"5.png")
    damages = {
        "in a picture": whole[: header + 700],
        "in a header": whole[: header + 100],
        "a header": whole[: header + 20] + b"\xff" * 60 + whole[header + 80 :],
        "between two members": whole[:header],
        "with a hole": whole[:header] + bytes(1024) + whole[header + 1024 :],
        "put together": whole + whole,
        "gz": gzip.compress(whole),
        "all": b"",
        "no archive": b"\x89PNG" * 1000,
    }
    for name, content in damages.items():
        path.write_bytes(content)
        with pytest.raises(PcdnetError, match=r"a.tar (is no sound .tar file|is \w+ \w+ |goes on behind)[^;]*; \w"):
            pytest.fail(f"{name}: {len(read(path))}")


ENDS = {  # how much more than the two blocks of zeros that every archive ends with, and whether that is usual
    "two blocks": (0, True),
    "a record": (None, True),
    "a record, and two blocks that did not fit into the one before": (10240, False),
    "another block": (512, False),
    "a hundred records": (100 * 10240, False),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_archives_do_not_have_is_reported(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more, usual = ENDS[end]
    path = archive(tmp_path / "a.tar", [(f"{n}.png", png(COLOURS[n])) for n in range(12)])
    whole = path.read_bytes()
    if more is not None:
        path.write_bytes(whole.rstrip(b"\0").ljust(-(-len(whole.rstrip(b"\0")) // 512) * 512 + 1024 + more, b"\0"))
    for reading in (read, lambda path: list(images(path))):
        reading(path)
        said = capsys.readouterr().err
        assert said.count("as if its last pictures were lost; compare its size with that of the original") == (
            not usual
        )


def test_pictures_lost_between_two_members_of_an_archive_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "a.tar", [(f"{n}.png", png(COLOURS[n])) for n in range(40)])
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"12.png")].ljust(len(whole), b"\0"))
    assert len(read(path)) == 12
    assert "bytes of zeros, as if its last pictures were lost" in capsys.readouterr().err


def test_names_are_never_paths_and_links_are_no_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        for name in ("../../evil.png", "/etc/evil.png", "CON.PNG"):
            member = tarfile.TarInfo(name)
            member.size = len(png(COLOURS[0]))
            file.addfile(member, io.BytesIO(png(COLOURS[0])))
        for name, kind in (("a.png", tarfile.SYMTYPE), ("b.png", tarfile.LNKTYPE), ("c.png", tarfile.CHRTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            file.addfile(member)
    before = set(tmp_path.rglob("*"))
    np.testing.assert_array_equal(read(path).images, COLOURS[[0, 0, 0]])
    assert set(tmp_path.rglob("*")) == before


def test_where_a_sample_has_several_pictures_one_must_be_named(tmp_path: Path) -> None:
    files = [
        (f"{n}.{end}", png(COLOURS[n] if end == "jpg.png" else 255 - COLOURS[n]))
        for n in range(3)
        for end in ("jpg.png", "mask.png")
    ]
    path = archive(tmp_path / "a.tar", files)
    with pytest.raises(
        PcdnetError, match=r"several pictures of './0' \(jpg.png, mask.png\); add .* as in .*a.tar#mask.png"
    ):
        read(path)
    np.testing.assert_array_equal(open_data(f"{path}#jpg.png", count=9, seed=0).images, COLOURS[:3])
    (found,) = find_inputs([f"{path}#mask.png"])
    np.testing.assert_array_equal(np.stack([image for _, image in found.images()]), 255 - COLOURS[:3])


def test_decompose_takes_a_folder_of_shards_shard_by_shard(tmp_path: Path) -> None:
    found = find_inputs([str(shards(tmp_path / "d"))])
    assert [one.title for one in found] == ["set-000", "set-001", "set-002"]
    assert [one.count() for one in found] == [15, 15, 10]
    np.testing.assert_array_equal(np.stack([image for one in found for _, image in one.images()]), COLOURS)
    assert found[1].image_name(3) == f"{tmp_path}/d/set-001.tar#3"


def test_pictures_of_several_sizes_are_refused_or_cut_into_tiles(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = [(96, 96), (128, 100), (96, 140)] * 8
    path = archive(
        tmp_path / "a.tar",
        [(f"{n}.png", png(rng.integers(0, 256, (*size, 3), np.uint8))) for n, size in enumerate(sizes)],
    )
    with pytest.raises(PcdnetError, match="not of one size: the first is 96x96, another 128x100; use resize"):
        read(path)
    view = training_view(path)
    assert view.tiles == 96
    assert read(path, view=view).images.shape[1:] == (96, 96, 3)


def test_a_sign_of_columns_in_a_path_is_part_of_the_path(tmp_path: Path) -> None:
    files = [(f"{n}.{end}", png(COLOURS[n])) for n in range(12) for end in ("a.png", "b.png")]
    archive(tmp_path / "run#1" / "x.tar", files)
    for place in ("run#1/x.tar#a.png", "run#1/*.tar#b.png"):
        (found,) = find_inputs([str(tmp_path / place)])
        np.testing.assert_array_equal(np.stack([image for _, image in found.images()]), COLOURS[:12])
        np.testing.assert_array_equal(open_data(str(tmp_path / place), count=99, seed=0).images, COLOURS[:12])
    np.testing.assert_array_equal(open_data(shards(tmp_path / "set#2"), count=99, seed=0).images, COLOURS)


def test_an_archive_without_a_picture_is_named(tmp_path: Path) -> None:
    (found,) = find_inputs([str(archive(tmp_path / "a.tar", [("a.json", b"{}")]))])
    with pytest.raises(PcdnetError, match=r"a.tar holds no image that can be read; give one that does"):
        list(found.images())
