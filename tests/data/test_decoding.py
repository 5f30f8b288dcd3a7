"""Laws of decoding: values of more than 8 bits are those of the file, in whatever order its bytes are."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest

from pcdnet.data.intake import Header
from pcdnet.data.pictures import read_header, read_picture

DEEP = np.random.default_rng(0).integers(200, 1101, (6, 9, 3)).astype(np.uint16)


def png(values: np.ndarray) -> io.BytesIO:
    """A PNG file with colours of 16 bits, which Pillow cannot write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    height, width = values.shape[:2]
    head = width.to_bytes(4) + height.to_bytes(4) + bytes([16, 2, 0, 0, 0])
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return io.BytesIO(b"\x89PNG\r\n\x1a\n" + chunks)


def tiff(values: np.ndarray, **options: Any) -> io.BytesIO:
    """A TIFF file, with options that Pillow does not have."""
    file = io.BytesIO()
    pytest.importorskip("tifffile").imwrite(file, values, **options)
    return file


def test_colours_of_sixteen_bits_keep_all_of_them() -> None:
    ways = [{"byteorder": order, "compression": how} for order in "<>" for how in (None, "zlib")]
    for file in [png(DEEP), *(tiff(DEEP, photometric="rgb", **way) for way in ways)]:
        found = read_picture(file)
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found, DEEP)
        assert read_header(file) == Header(size=(6, 9), channels=3, deep=True)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.float32])
def test_grey_values_are_as_in_the_file_in_any_order_of_bytes(order: str, dtype: Any) -> None:
    values = DEEP[..., 0].astype(dtype)
    found = read_picture(tiff(values, byteorder=order))
    np.testing.assert_array_equal(found[..., 0], values)
    assert found.dtype.isnative


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_tiff_in_which_white_is_zero_is_not_inverted(dtype: Any) -> None:
    found = read_picture(tiff(np.zeros((6, 9), dtype), photometric="miniswhite"))
    assert (found == np.iinfo(dtype).max).all()


def test_colours_of_sixteen_bits_are_turned_as_exif_says() -> None:
    found = read_picture(tiff(DEEP, photometric="rgb", extratags=[(274, "H", 1, 6, True)]))
    np.testing.assert_array_equal(found, np.rot90(DEEP, -1))
