"""Laws of pictures: every mode becomes 8-bit grey or RGB, and no file can crash, flood or deceive the reader."""

from __future__ import annotations

import io
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pcdnet.data.intake import Header, in_eight_bits
from pcdnet.data.pictures import count, headers, images, is_picture, page_names, pages, read, read_header, read_picture
from pcdnet.data.sources import PICTURES
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from tests.data.stacks import break_page, write_stack

RGB = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
GREY = RGB[..., 0]
LOSSLESS: dict[str, Any] = {".png": {}, ".tif": {}, ".tiff": {}, ".bmp": {}, ".webp": {"lossless": True}}


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> io.BytesIO:
    """The bytes of a picture file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file


@pytest.mark.parametrize("suffix", LOSSLESS)
def test_lossless_files_give_the_saved_pixels(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix.upper()}"
    Image.fromarray(RGB).save(path, **LOSSLESS[suffix])
    found = read_picture(path)
    np.testing.assert_array_equal(found, RGB)
    assert found.flags.writeable  # torch warns of arrays that are not
    assert is_picture(path)


def test_a_picture_is_read_and_streamed_as_one_image(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(RGB).save(path)
    scenes = read(path)
    np.testing.assert_array_equal(scenes.images, RGB[None])
    assert (scenes.name, scenes.names) == ("a.png", ("a.png",))
    for stride in (1, 3):
        ((number, image),) = images(path, stride=stride)
        assert number == 0
        np.testing.assert_array_equal(image, RGB)
    assert count(path) == 1


PAGES = [np.random.default_rng(n).integers(200, 1101, (30, 40)).astype(np.uint16) for n in range(5)]


def test_the_pages_of_a_stack_are_images(tmp_path: Path) -> None:
    path = write_stack(tmp_path / "a.tif", PAGES)
    assert count(path) == 5
    assert page_names(path, "a.tif") == {n: f"a.tif#{n}" for n in range(5)}
    for stride in (1, 2):
        numbers, found = zip(*images(path, stride=stride), strict=True)
        assert numbers == tuple(range(0, 5, stride))
        np.testing.assert_array_equal(np.stack(found)[..., 0], PAGES[::stride])
    assert headers(path) == dict.fromkeys(range(5), Header(size=(30, 40), channels=1, deep=True))
    np.testing.assert_array_equal(read_picture(path)[..., 0], PAGES[0])
    scenes = read(path, limit=2, view=View(stride=2, values=(200, 1100)))
    assert (scenes.names, scenes.name, scenes.images.shape) == (("a.tif#0", "a.tif#2"), "a.tif", (2, 30, 40, 1))


@pytest.mark.parametrize("broken", [0, 2, 4])
def test_a_broken_page_is_skipped_and_reported(broken: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = break_page(write_stack(tmp_path / "a.tif", PAGES), broken)
    sound = [n for n in range(5) if n != broken]
    assert [number for number, _ in images(path)] == sound
    scenes = read(path, view=View(values=(0, 65535)))
    assert scenes.names == tuple(f"a.tif#{n}" for n in sound)
    np.testing.assert_array_equal(scenes.images[..., 0], in_eight_bits(np.stack([PAGES[n] for n in sound])))
    assert f"note: skipped pages of {path} that cannot be read: {broken}\n" in capfd.readouterr().err
    if broken == 0:
        with pytest.raises(PcdnetError, match="the first 1 pages of .*a.tif cannot be read; save it again"):
            read(path, limit=1)


def test_a_stack_that_is_cut_off_gives_the_pages_that_are_there(tmp_path: Path) -> None:
    path = write_stack(tmp_path / "a.tif", PAGES)
    content = path.read_bytes()
    for size in range(100, len(content), 97):
        path.write_bytes(content[:size])
        try:
            numbers = [number for number, _ in images(path)]
            assert numbers == sorted(set(numbers))
            assert numbers[-1] < 5
        except PcdnetError as error:
            assert "; " in str(error)  # noqa: PT017


def test_a_stack_of_broken_pages_is_refused(tmp_path: Path) -> None:
    path = write_stack(tmp_path / "a.tif", PAGES[:2])
    for number in (0, 1):
        break_page(path, number)
    for attempt in (read, lambda path: list(images(path))):
        with pytest.raises(PcdnetError, match="a.tif cannot be read"):
            attempt(path)


def test_pages_of_several_sizes_are_cut_into_tiles(tmp_path: Path) -> None:
    path = write_stack(tmp_path / "a.tif", [np.tile(PAGES[0], (10, 9)), np.tile(PAGES[1], (8, 12))])
    scenes = read(path, view=View(tiles=96))
    assert scenes.images.shape[1:] == (96, 96, 1)
    assert {name.partition("@")[0] for name in scenes.names} == {"a.tif#0", "a.tif#1"}


def test_a_smaller_version_of_a_page_is_no_page(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
        writer.write(PAGES[0])
        writer.write(PAGES[0][::2, ::2], subfiletype=1)
    assert count(tmp_path / "a.tif") == 1
    assert read(tmp_path / "a.tif").names == ("a.tif",)


def test_pictures_can_be_read_while_the_pages_of_another_are_gone_through(tmp_path: Path) -> None:
    path = write_stack(tmp_path / "a.tif", PAGES)
    for number, image in images(path):
        assert read_picture(path).shape == image.shape
        if number == 2:
            break
    assert read_picture(path).shape == (30, 40, 1)


@pytest.mark.parametrize("suffix", PICTURES)
def test_every_suffix_can_be_read_from_paths_and_from_bytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (9, 6), (200, 100, 50)).save(path)
    found = read_picture(str(path))
    assert np.abs(found.astype(int) - (200, 100, 50)).max() < 6
    np.testing.assert_array_equal(read_picture(io.BytesIO(path.read_bytes())), found)
    assert read_header(path) == Header(size=(6, 9), channels=3, deep=False)


@pytest.mark.parametrize(
    ("mode", "channels"),
    [
        ("1", 1),
        ("L", 1),
        ("LA", 1),
        ("P", 3),
        ("RGB", 3),
        ("RGBA", 3),
        ("CMYK", 3),
        ("YCbCr", 3),
        ("I;16", 1),
        ("F", 1),
    ],
)
def test_every_mode_of_a_white_picture_is_white(mode: str, channels: int) -> None:
    kind = "PNG" if mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16") else "TIFF"
    if mode == "I;16":
        image = Image.fromarray(np.full((6, 9), 65535, np.uint16))
    elif mode == "F":
        image = Image.fromarray(np.ones((6, 9), np.float32))
    else:
        image = Image.new("RGB", (9, 6), "white").convert(mode)
    file = encoded(image, kind)
    assert in_eight_bits(read_picture(file)).tolist() == np.full((6, 9, channels), 255).tolist()
    assert read_header(file) == Header(size=(6, 9), channels=channels, deep=mode in ("I;16", "F"))


def test_a_cmyk_jpeg_is_not_inverted() -> None:
    found = read_picture(encoded(Image.new("RGB", (16, 16), (240, 20, 20)).convert("CMYK"), "JPEG"))
    assert found[..., 0].min() > 200
    assert found[..., 1:].max() < 60


def test_what_is_transparent_becomes_black() -> None:
    alpha = np.full((6, 9), 255, np.uint8)
    alpha[:3], alpha[3] = 0, 51
    found = read_picture(encoded(Image.fromarray(np.dstack([RGB, alpha]))))
    assert not found[:3].any()
    np.testing.assert_array_equal(found[3], np.rint(RGB[3] / 5).astype(np.uint8))
    np.testing.assert_array_equal(found[4:], RGB[4:])


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_a_transparent_colour_becomes_black(mode: str) -> None:
    image = Image.new("RGB", (2, 2), "white").convert(mode)
    key = {"1": 1, "L": 255, "P": image.getpixel((0, 0)), "RGB": (255, 255, 255)}[mode]
    assert not read_picture(encoded(image, transparency=key)).any()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_values_of_more_than_eight_bits_are_as_in_the_file(kind: str) -> None:
    values = np.array([[0, 1, 200], [1100, 40_000, 65_535]], np.uint16)
    found = read_picture(encoded(Image.fromarray(values), kind))
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found[..., 0], values)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_signed_values_and_floats_are_as_in_the_file(dtype: type) -> None:
    values: np.ndarray = np.array([[-5, 0, 70_000]], dtype)
    found = read_picture(encoded(Image.fromarray(values), "TIFF"))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[..., 0], values)


@pytest.mark.parametrize(("orientation", "turns"), [(1, 0), (3, 2), (6, 3), (8, 1)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_exif_rotation_is_applied(orientation: int, turns: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    marked = np.zeros((16, 32), np.uint8)
    marked[:8, :16] = 255
    file = encoded(Image.fromarray(np.dstack([marked] * 3)), kind, exif=exif)
    found = read_picture(file)
    assert (np.abs(found[..., 0].astype(int) - np.rot90(marked, turns)) < 40).all()
    assert read_header(file).size == found.shape[:2]


def test_broken_exif_does_not_spoil_a_picture() -> None:
    file = encoded(Image.fromarray(RGB), exif=b"Exif\0\0MM\0*\xff\xff\xff\xff nonsense")
    np.testing.assert_array_equal(read_picture(file), RGB)
    assert read_header(file).size == (6, 9)


def test_exif_behind_the_pixels_turns_a_png_too() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(Image.fromarray(RGB), "PNG", exif=exif).getvalue()
    start = content.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(content[start : start + 4])
    moved = content[:start] + content[end:-12] + content[start:end] + content[-12:]
    assert read_header(io.BytesIO(moved)).size == (9, 6)
    np.testing.assert_array_equal(read_picture(io.BytesIO(moved)), np.rot90(RGB, 3))


def test_of_two_exif_parts_of_a_png_header_and_picture_believe_the_same() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(Image.fromarray(RGB), "PNG", exif=exif).getvalue()
    empty = content[:-12] + bytes(4) + b"eXIf" + zlib.crc32(b"eXIf").to_bytes(4) + content[-12:]
    assert read_header(io.BytesIO(empty)).size == read_picture(io.BytesIO(empty)).shape[:2]


def test_of_a_moving_picture_the_first_frame_is_read() -> None:
    frames = [Image.new("L", (9, 6), value) for value in (40, 80)]
    file = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert (read_picture(file) == 40).all()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"])
def test_every_truncation_is_reported_or_harmless(kind: str) -> None:
    content = encoded(Image.fromarray(RGB), kind).getvalue()
    whole = read_picture(io.BytesIO(content))
    for size in range(len(content)):
        try:
            assert read_picture(io.BytesIO(content[:size]), name="a.x").shape == whole.shape
        except PcdnetError as error:
            assert str(error).startswith("a.x ")  # noqa: PT017
    large = encoded(Image.fromarray(np.tile(RGB, (8, 8, 1))), kind).getvalue()
    with pytest.raises(PcdnetError, match="a.x cannot be read as a picture .*; save it again"):
        read_picture(io.BytesIO(large[: len(large) * 3 // 4]), name="a.x")


@given(data=st.data())
@settings(max_examples=150)
def test_damaged_bytes_never_crash_the_reader(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"]))
    content = bytearray(encoded(Image.fromarray(RGB), kind).getvalue())
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=6)):
        content[at] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = read_picture(io.BytesIO(content), most_pixels=10**6)
            assert found.dtype == np.uint8 or read_header(io.BytesIO(content)).deep
            assert found.shape[2] in (1, 3)
        except PcdnetError as error:
            assert "; " in str(error)  # noqa: PT017


def test_a_picture_that_takes_long_holds_up_no_other_thread() -> None:
    content = encoded(Image.fromarray(RGB), "PNG").getvalue()
    inside, done = threading.Event(), threading.Event()

    def slowly(image: Image.Image, _: object) -> bool:
        inside.set()
        return done.wait(10)

    limit = Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(lambda: list(pages(io.BytesIO(content), slowly)))
        assert inside.wait(10)
        np.testing.assert_array_equal(read_picture(io.BytesIO(content)), RGB)
        assert Image.MAX_IMAGE_PIXELS is None  # for the slow one
        done.set()
        assert slow.result() == [(0, True)]
    assert limit == Image.MAX_IMAGE_PIXELS


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims a size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    head = width.to_bytes(4) + height.to_bytes(4) + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [9_000, 12_000, 50_000, 2**31 - 1])
def test_a_few_bytes_cannot_claim_all_memory(side: int) -> None:
    for attempt in (read_picture, read_header):
        limit = f"the picture has {side}x{side} pixels, more than the limit of 67,108,864; give a smaller picture, or"
        with pytest.raises(PcdnetError, match=f"{limit} set the environment variable PCDNET_MAX_PIXELS to {side**2}$"):
            attempt(io.BytesIO(bomb(side, side)))
    with pytest.raises(PcdnetError, match="6x9 pixels, more than the limit of 53"):
        read_picture(encoded(Image.fromarray(RGB)), most_pixels=53)
    assert read_picture(encoded(Image.fromarray(RGB)), most_pixels=54).shape == (6, 9, 3)


def test_what_is_no_picture_is_reported_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("no picture")
    Image.fromarray(RGB).save(tmp_path / "other.ppm")
    for name, complaint in [
        ("empty.png", "is empty; save"),
        ("text.png", "is no picture of a known kind; give one of png"),
        ("other.ppm", "is no picture of a known kind"),
        ("missing.png", "does not exist; give"),
        ("", "cannot be read as a picture"),
    ]:
        with pytest.raises(PcdnetError, match=complaint) as caught:
            read_picture(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
    assert not is_picture("._a.png")
    assert not is_picture("a.txt")
