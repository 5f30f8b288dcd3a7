"""Laws of pictures: every mode becomes 8-bit grey or RGB, and no file can crash, flood or deceive the reader."""

from __future__ import annotations

import io
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pcdnet.data.pictures import count, images, is_picture, read, read_picture, read_shape
from pcdnet.data.sources import PICTURES
from pcdnet.errors import PcdnetError

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


@pytest.mark.parametrize("suffix", PICTURES)
def test_every_suffix_can_be_read_from_paths_and_from_bytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    Image.new("RGB", (9, 6), (200, 100, 50)).save(path)
    found = read_picture(str(path))
    assert np.abs(found.astype(int) - (200, 100, 50)).max() < 6
    np.testing.assert_array_equal(read_picture(io.BytesIO(path.read_bytes())), found)
    assert read_shape(path) == (6, 9, 3)


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
    assert read_picture(file).tolist() == np.full((6, 9, channels), 255).tolist()
    assert read_shape(file) == (6, 9, channels)


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


@given(value=st.integers(0, 65535))
@settings(max_examples=60)
def test_sixteen_bits_are_rounded_to_eight(value: int) -> None:
    found = read_picture(encoded(Image.fromarray(np.full((1, 2), value, np.uint16))))
    assert found[0, 0, 0] == round(value / 257)


def test_grey_values_that_are_no_brightness_are_refused() -> None:
    for values in (np.full((2, 2), -1, np.int32), np.full((2, 2), 70000, np.int32)):
        with pytest.raises(PcdnetError, match="values from .*; give 8 bits, or values of 0 to 65535"):
            read_picture(encoded(Image.fromarray(values), "TIFF"))
    for value in (np.nan, 1.5, -0.1, np.inf):
        with pytest.raises(PcdnetError, match="give 8 bits, or values of 0 to 1$"):
            read_picture(encoded(Image.fromarray(np.full((2, 2), value, np.float32)), "TIFF"))


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
    assert read_shape(file) == found.shape


def test_broken_exif_does_not_spoil_a_picture() -> None:
    file = encoded(Image.fromarray(RGB), exif=b"Exif\0\0MM\0*\xff\xff\xff\xff nonsense")
    np.testing.assert_array_equal(read_picture(file), RGB)
    assert read_shape(file) == (6, 9, 3)


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
            assert found.dtype == np.uint8
            assert found.shape[2] in (1, 3)
        except PcdnetError as error:
            assert "; " in str(error)  # noqa: PT017


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims a size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    head = width.to_bytes(4) + height.to_bytes(4) + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 99)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000, 2**31 - 1])
def test_a_few_bytes_cannot_claim_all_memory(side: int) -> None:
    for attempt in (read_picture, read_shape):
        with pytest.raises(PcdnetError, match="more .*than the limit of 67,108,864; give a smaller picture"):
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
