"""Laws of strangers' pictures: what is none is refused with its number, and what is one has the model's channels."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from pcdnet.errors import PcdnetError
from pcdnet.model.network import PCDNet
from pcdnet.run import load
from pcdnet.serve import pictures
from pcdnet.serve.limits import MOST_PIXELS, QUICK_BYTES
from pcdnet.serve.pictures import checked, decoded, fitted, png, size_of
from pcdnet.serve.refusal import Refusal
from pcdnet.serve.workbench import Workbench
from tests.runs import grey_run

COLOURS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
LUMA = COLOURS @ np.array([0.299, 0.587, 0.114])


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> PCDNet:
    """A grey model with a background of 20x30 and prototypes of 5x5."""
    return load(grey_run(tmp_path_factory.mktemp("runs") / "grey").path)


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "gif", "webp", "jpeg"])
def test_files_of_every_known_kind_are_read_in_grey_or_colours(kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(COLOURS).save(buffer, format=kind)
    assert decoded(buffer.getvalue(), 3).shape == (6, 9, 3)
    assert decoded(buffer.getvalue(), 1).shape == (6, 9, 1)


def test_a_picture_survives_its_file_and_grey_is_its_luma() -> None:
    np.testing.assert_array_equal(decoded(png(COLOURS), 3), COLOURS)
    assert np.abs(decoded(png(COLOURS), 1)[..., 0] - LUMA).max() <= 1
    grey = COLOURS[..., :1]
    np.testing.assert_array_equal(decoded(png(grey.repeat(3, axis=2)), 1), grey)


def test_bytes_that_are_no_picture_and_pictures_that_are_too_large_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for content in (b"", b"<svg></svg>", b"%PDF"):
        with pytest.raises(Refusal, match="no picture of a known kind") as refused:
            decoded(content, 3)
        assert refused.value.status == 415
    monkeypatch.setattr(pictures, "MOST_DECODED", 6 * 9 - 1)
    with pytest.raises(Refusal, match="the picture has 6x9 pixels, more than 53") as refused:
        decoded(png(COLOURS), 3)
    assert refused.value.status == 413


def saved(kind: str, **options: bool) -> bytes:
    """The colours as a file."""
    Image.fromarray(COLOURS).save(buffer := io.BytesIO(), format=kind, **options)
    return buffer.getvalue()


def test_a_file_of_millions_of_parts_is_not_read_to_its_end() -> None:
    file, empty = saved("png"), bytes(4) + b"vpAg" + zlib.crc32(b"vpAg").to_bytes(4, "big")
    at = file.index(b"IDAT") - 4
    decoded(file[:at] + 100 * empty + file[at:], 3)
    jpeg = saved("jpeg")
    for content in (file[:at] + 20_000 * empty + file[at:], jpeg[:2] + 20_000 * b"\xff\xfe\x00\x02" + jpeg[2:]):
        with pytest.raises(PcdnetError, match="too many parts; save it again"):
            size_of(content)


def test_a_file_whose_pixels_are_passed_over_again_and_again_is_refused() -> None:
    file = saved("jpeg", progressive=True)
    assert decoded(file, 3).shape == COLOURS.shape
    again = file[file.rindex(b"\xff\xda") : -2]
    with pytest.raises(Refusal, match="more than 100 scans; save it again"):
        size_of(file[:-2] + 100 * again + file[-2:])


@pytest.mark.parametrize(("start", "order", "tag"), [(b"II*\0", "<", "HHII"), (b"MM\0+", ">", "HHQQ")])
def test_a_file_of_millions_of_tagged_numbers_is_refused_unread(start: bytes, order: str, tag: str) -> None:
    offset, count = ("I", "H") if tag == "HHII" else ("Q", "Q")
    first = 8 if offset == "I" else 16
    head = start + (b"" if offset == "I" else struct.pack(">HH", 8, 0)) + struct.pack(order + offset, first)
    rows = struct.pack(order + tag, 273, 4, 40_000, 100)
    with pytest.raises(Refusal, match="more than 32,768 numbers in its tags; save it again"):
        size_of(head + struct.pack(order + count, 1) + rows)
    text = struct.pack(order + tag, 270, 2, 40_000, 100)
    with pytest.raises(PcdnetError, match="cannot be read as a picture|no picture of a known kind"):
        size_of(head + struct.pack(order + count, 1) + text)


def test_of_deep_pictures_fewer_pixels_are_read() -> None:
    side = 2048
    head = struct.pack(">IIBBBBB", side, side + 1, 16, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", b""), (b"IEND", b"")]
    file = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    with pytest.raises(Refusal, match="has 2049x2048 pixels, more than 4,194,304; send a smaller picture"):
        size_of(b"\x89PNG\r\n\x1a\n" + file)


def test_tags_beyond_every_file_are_no_picture() -> None:
    with pytest.raises(PcdnetError, match="cannot be read as a picture|no picture of a known kind"):
        size_of(b"II+\0" + struct.pack("<HHQ", 8, 0, 2**64 - 1) + bytes(32))


def test_a_large_file_of_a_small_picture_is_read_among_the_large(workbench: Workbench) -> None:
    small = png(COLOURS)
    assert not workbench.is_large_file(small)
    assert workbench.is_large_file(small + bytes(QUICK_BYTES))
    assert workbench.is_large_file(bytes(QUICK_BYTES + 1))  # which is no picture, as will be seen


def test_numbers_are_a_picture_if_they_have_its_shape_and_type() -> None:
    np.testing.assert_array_equal(checked(COLOURS, 3), COLOURS)
    assert checked(COLOURS[..., 0], 3).shape == (6, 9, 3)
    assert np.abs(checked(COLOURS, 1)[..., 0] - LUMA).max() <= 1
    for other in (COLOURS[None], COLOURS[..., :2], COLOURS[:0], COLOURS.astype(np.float32), np.zeros(3, np.uint8)):
        with pytest.raises(PcdnetError, match="send height x width x 1 or 3 of uint8"):
            checked(other, 3)


@pytest.mark.parametrize("size", [(6, 9), (40, 60), (1000, 1000)])
def test_a_background_takes_its_own_size_and_others_only_resized(size: tuple[int, int], fixed: PCDNet) -> None:
    own, other = np.zeros((20, 30, 1), np.uint8), np.zeros((*size, 1), np.uint8)
    np.testing.assert_array_equal(fitted(own, fixed, fixed.image_size, fit=False), own)
    with pytest.raises(Refusal, match="20x30") as refused:
        fitted(other, fixed, fixed.image_size, fit=False)
    assert refused.value.fit
    assert fitted(other, fixed, fixed.image_size, fit=True).shape == own.shape


def test_without_a_background_sizes_are_limited_by_prototypes_and_pixels(workbench: Workbench) -> None:
    model = workbench.model
    for height, width in ((25, 25), (31, 77), (512, MOST_PIXELS // 512)):
        picture = np.zeros((height, width, 3), np.uint8)
        assert fitted(picture, model, None, fit=True) is picture
        assert fitted(picture, model, (35, 35), fit=False) is picture
        assert fitted(picture, model, (35, 35), fit=True).shape == (35, 35, 3)
    for height, width in ((24, 99), (99, 24), (513, MOST_PIXELS // 512)):
        picture = np.zeros((height, width, 3), np.uint8)
        with pytest.raises(Refusal, match="send one of another size") as refused:
            fitted(picture, model, None, fit=True)
        assert not refused.value.fit
        with pytest.raises(Refusal, match=r"let it be resized to 35x35 \(fit\), or crop it") as refused:
            fitted(picture, model, (35, 35), fit=False)
        assert refused.value.fit


def test_deep_pictures_are_seen_in_the_values_of_the_model() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.array([[200, 650, 1100, 5000]], np.uint16)).save(buffer, format="tiff")
    assert decoded(buffer.getvalue(), 1, (200, 1100))[..., 0].tolist() == [[0, 128, 255, 255]]
    assert decoded(buffer.getvalue(), 1)[..., 0].tolist() == [[1, 3, 4, 19]]
