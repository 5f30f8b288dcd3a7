"""Laws of videos: the frames come in order, few at a time, and damaged files give what is there."""

from __future__ import annotations

import random
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from pcdnet.data import intake, video
from pcdnet.data.sources import VIDEOS
from pcdnet.data.video import count, images, read
from pcdnet.data.view import View
from pcdnet.errors import Incomplete, PcdnetError

av = pytest.importorskip("av", reason="videos need the extra video")

CODECS = {".webm": ("vp8", "yuv420p"), ".gif": ("gif", "rgb8")}
MANY = 20


def levels(number: int) -> int:
    """How bright a frame is."""
    return 10 * number + 20


def made(path: Path, number: int = MANY, pixels: str | None = None, codec: str | None = None, **options: str) -> Path:
    """A video whose frames become brighter, with a red corner."""
    usual = CODECS.get(path.suffix, ("mpeg4", "yuv420p"))
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec or usual[0], rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 64, 48, pixels or usual[1], 2_000_000
        for index in range(number):
            image = np.full((48, 64, 3), levels(index), np.uint8)
            image[:24, :32] = (250, 20, 20)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return path


def brightness(images: np.ndarray) -> list[float]:
    """How bright each frame has become."""
    return [float(image[36:, 40:].mean()) for image in images]


@pytest.mark.parametrize("suffix", VIDEOS)
def test_every_kind_of_video_gives_its_frames_in_order(suffix: str, tmp_path: Path) -> None:
    path = made(tmp_path / f"a{suffix}")
    scenes = read(path)
    assert scenes.images.shape == (MANY, 48, 64, 3)
    tolerance = 40 if suffix == ".gif" else 4  # a gif has few colours
    np.testing.assert_allclose(brightness(scenes.images), [levels(n) for n in range(MANY)], atol=tolerance)
    assert scenes.images[:, 4:20, 4:28].mean(axis=(0, 1, 2)) == pytest.approx((250, 20, 20), abs=15)
    assert scenes.names[:2] == ("a-000000", "a-000001")
    assert scenes.name == f"a{suffix}"
    assert count(path) in ((0, MANY) if suffix == ".gif" else (MANY,))


@pytest.mark.parametrize(("limit", "stride"), [(None, 1), (3, 1), (None, 7), (2, 4), (99, 99)])
def test_fewer_frames_are_the_first_of_every_so_many(limit: int | None, stride: int, tmp_path: Path) -> None:
    path = made(tmp_path / "a.mkv")
    scenes = read(path, limit=limit, view=View(stride=stride))
    every = list(range(0, MANY, stride))[:limit]
    np.testing.assert_allclose(brightness(scenes.images), [levels(n) for n in every], atol=4)
    assert scenes.names == tuple(f"a-{n:06}" for n in every)
    assert [number for number, _ in islice(images(path, stride=stride), limit)] == every


def test_frames_are_cropped_resized_and_made_grey(tmp_path: Path) -> None:
    path = made(tmp_path / "a.mp4")
    scenes = read(path, view=View(crop=(0, 0, 24, 64), resize=(12, 32), grey=True))
    assert scenes.images.shape == (MANY, 12, 32, 1)
    np.testing.assert_allclose(scenes.images[:, 2:10, 20:30].mean(axis=(1, 2, 3)), [*map(levels, range(MANY))], atol=5)
    with pytest.raises(PcdnetError, match="leaves frames of .*a.mp4 of 48x64; give top, left"):
        read(path, view=View(crop=(0, 0, 60, 64)))


def test_a_grey_video_has_one_channel(tmp_path: Path) -> None:
    assert read(made(tmp_path / "a.mkv", pixels="gray", codec="ffv1")).images.shape == (MANY, 48, 64, 1)


def test_telephones_turn_videos(tmp_path: Path) -> None:
    content = made(tmp_path / "a.mp4", 3).read_bytes()
    plain, turned = (np.array(rows, ">i4") for rows in ([65536, 0, 0, 0, 65536], [0, 65536, 0, -65536, 0]))
    at = content.index(plain.tobytes(), content.index(b"tkhd"))
    (tmp_path / "b.mp4").write_bytes(content[:at] + turned.tobytes() + content[at + 20 :])
    images = read(tmp_path / "b.mp4").images
    assert images.shape == (3, 64, 48, 3)
    assert images[0, 4:28, 28:44].astype(int).mean(axis=(0, 1)) == pytest.approx((250, 20, 20), abs=8)


def test_a_video_that_is_cut_off_gives_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (made(tmp_path / "a.mkv"), made(tmp_path / "b.mp4", movflags="faststart"), made(tmp_path / "c.webm")):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) * 6 // 10])
        scenes = read(path)
        assert 1 <= len(scenes) < MANY
        np.testing.assert_allclose(brightness(scenes.images), [levels(n) for n in range(len(scenes))], atol=4)
        (note,) = capsys.readouterr().err.splitlines()
        lost = f"{path} is damaged or cut off: {len(scenes)} of its {MANY} frames can be decoded; give the whole film"
        assert note == f"note: {lost}"
        with pytest.raises(Incomplete, match=f"^{lost}$"):
            list(images(path))


def test_damaged_videos_never_crash_the_reader(tmp_path: Path) -> None:
    chance = random.Random(0)
    for suffix in (".mp4", ".avi", ".mkv", ".gif"):
        content = made(tmp_path / f"a{suffix}", 6).read_bytes()
        path = tmp_path / f"damaged{suffix}"
        for _ in range(25):
            damaged = bytearray(content)
            for _ in range(chance.choice([1, 5, 50])):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            path.write_bytes(damaged)
            try:
                assert len(read(path, view=View(resize=(48, 64)))) >= 1
                count(path)
            except PcdnetError as error:
                assert str(path) in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty; give a sound video"),
        (b"no video", "is no video of a known kind; give one of .mp4"),
        (b"#EXTM3U\n#EXTINF:1,\n/etc/hostname\n", "is no video of a known kind"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "is no sound video .*; give a sound"),
        (b"\x1aE\xdf\xa3" + bytes(500), "a.mp4 (is no sound video|has no)"),
    ],
)
def test_what_is_no_video_is_reported_by_name(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    for attempt in (read, count, lambda path: list(images(path))):
        with pytest.raises(PcdnetError, match=complaint):
            attempt(path)


def test_what_is_no_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="missing.mp4 does not exist; give"):
        read(tmp_path / "missing.mp4")
    with pytest.raises(PcdnetError, match="cannot be read .*; give"):
        read(tmp_path)
    with pytest.raises(PcdnetError, match="the limit is 0 scenes; give"):
        read(tmp_path / "a.mp4", limit=0)
    with pytest.raises(PcdnetError, match="the stride is 0; give"):
        list(images(tmp_path / "a.mp4", stride=0))


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "a.mkv")
    with monkeypatch.context() as patch:
        patch.setattr(video, "MOST_PIXELS", 3000)
        with pytest.raises(PcdnetError, match="48x64 pixels, more than the limit of 3,000; give a smaller"):
            list(images(path))
    monkeypatch.setattr(intake, "MOST_BYTES", 5 * 48 * 64 * 3)
    assert len(read(path, limit=5)) == 5
    with pytest.raises(PcdnetError, match="more than the limit .*; use resize, crop or stride"):
        read(path)
    assert len(read(path, view=View(resize=(12, 16)))) == MANY


def test_without_the_extra_the_cure_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "a.mkv", 1)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(PcdnetError, match=r"pip install 'pcdnet\[video\]'"):
        read(path)
