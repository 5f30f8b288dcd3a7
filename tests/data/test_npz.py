"""Laws of .npz files: what was saved is read, and what cannot be images is refused before memory is taken."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcdnet.data import intake, npz
from pcdnet.data.intake import Header
from pcdnet.data.npz import count, headers, images, read
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError
from pcdnet.pixels import PixelStore

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)
LABELS = np.random.default_rng(1).integers(0, 3, (5, 4, 6), dtype=np.int32)


def saved(folder: Path, **arrays: np.ndarray) -> Path:
    """A file of these arrays."""
    path = folder / "scenes.npz"
    np.savez_compressed(path, allow_pickle=True, **arrays)
    return path


def claimed(folder: Path, header: bytes, content: bytes = b"") -> Path:
    """A file whose array `image` has a header of one's own."""
    path = folder / "claimed.npz"
    with zipfile.ZipFile(path, "w") as file:
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        file.writestr("image.npy", start + content)
    return path


def test_images_and_labels_come_back_as_they_were_saved(tmp_path: Path) -> None:
    scenes = read(saved(tmp_path, image=IMAGES, labels=LABELS, other=np.zeros(3)))
    np.testing.assert_array_equal(scenes.images, IMAGES)
    np.testing.assert_array_equal(scenes.labels, LABELS)
    assert scenes.images.flags.writeable  # torch warns of arrays that are not
    assert scenes.name == "scenes.npz"


@pytest.mark.parametrize("dtype", ["uint8", "<i8", ">i4", "bool"])
def test_labels_of_any_integer_type_are_the_same_labels(dtype: str, tmp_path: Path) -> None:
    labels = LABELS.astype(dtype)
    found = read(saved(tmp_path, image=IMAGES, labels=labels)).labels
    assert found is not None
    assert found.dtype.isnative
    assert found.dtype.kind in "iu"
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize("trailing", [False, True])
@pytest.mark.parametrize("opaque", [1, 255])
def test_masks_are_labels_with_the_background_first(opaque: int, trailing: bool, tmp_path: Path) -> None:
    mask = (LABELS[:, None] == np.arange(3)[:, None, None]).astype(np.uint8) * np.uint8(opaque)
    scenes = read(saved(tmp_path, image=IMAGES, mask=mask[..., None] if trailing else mask))
    np.testing.assert_array_equal(scenes.labels, LABELS)


def test_a_pixel_that_no_mask_claims_is_background(tmp_path: Path) -> None:
    scenes = read(saved(tmp_path, image=IMAGES, mask=np.zeros((5, 3, 4, 6), np.uint8)))
    assert scenes.labels is not None
    assert not scenes.labels.any()


def test_grey_images_need_no_channel_axis_and_ground_truth_is_optional(tmp_path: Path) -> None:
    scenes = read(saved(tmp_path, image=IMAGES[..., 0]))
    np.testing.assert_array_equal(scenes.images, IMAGES[..., :1])
    assert scenes.labels is None


@pytest.mark.parametrize("limit", [1, 3, 5, 9])
def test_fewer_scenes_are_the_first(limit: int, tmp_path: Path) -> None:
    scenes = read(saved(tmp_path, image=IMAGES, labels=LABELS), limit=limit)
    np.testing.assert_array_equal(scenes.images, IMAGES[:limit])
    np.testing.assert_array_equal(scenes.labels, LABELS[:limit])


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"images": IMAGES}, "no array 'image' .it holds images."),
        ({"image": IMAGES.astype(np.int64)}, "is of type int64; give uint8 of 0 to 255, uint16, or floats"),
        ({"image": IMAGES.astype(np.float32)}, "'image' of .* has values from .*; give 8 bits, values of 0 to 1, or"),
        ({"image": IMAGES[0, 0]}, "has shape .6, 3.; give at least one image, as images x height"),
        ({"image": np.zeros((2, 4, 6, 4), np.uint8)}, "with 1 or 3 channels"),
        ({"image": IMAGES[:0]}, "has shape .0, 4, 6, 3.; give at least one image"),
        ({"image": np.asfortranarray(IMAGES)}, "column by column; save numpy.ascontiguousarray"),
        ({"image": np.array([None, "x"], object)}, "type object; give uint8"),
        ({"image": IMAGES, "labels": LABELS[:4]}, "does not fit 5 images of 4x6; save images x height x width"),
        ({"image": IMAGES, "labels": LABELS / 2}, "is of type float64; save integers"),
        ({"image": IMAGES, "labels": LABELS - 1}, "goes down to -1; save 0 for background"),
        ({"image": IMAGES, "mask": LABELS}, "does not fit 5 images of 4x6; save images x entities x height x width"),
        ({"image": IMAGES, "mask": np.zeros((5, 0, 4, 6), np.uint8)}, "does not fit 5 images"),
    ],
)
def test_arrays_that_are_no_scenes_are_refused(arrays: dict[str, np.ndarray], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        read(saved(tmp_path, **arrays))


def test_a_few_bytes_cannot_claim_all_memory(tmp_path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999, 4096, 4096, 3), }\n"
    complaint = r"'image' of .* claims 5033164749668352 bytes, more than the \d+ of the file can hold; save it again"
    for reading in (read, headers, lambda path: list(images(path))):
        with pytest.raises(PcdnetError, match=complaint):
            reading(claimed(tmp_path, header))


def test_a_limit_makes_a_huge_file_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, image=IMAGES)
    monkeypatch.setattr(intake, "MOST_BYTES", 3 * IMAGES[0].size)
    with pytest.raises(PcdnetError, match="split it"):
        read(path)
    assert len(read(path, limit=3)) == 3


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (
            b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4, 4, 3), }\n",
            "is cut off .7 of 96 bytes",
        ),
        (b"{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 4, 4, 3), }\n", "claims the shape"),
        (b"{'descr': '|u1', 'fortran_order': False, 'shape': (True, 4, 4, 3), }\n", "claims the shape"),
        (b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", "type object"),
        (b"__import__('os').abort()\n", "no readable header"),
        (b"(" * 400, "no readable header"),
        (b"-" * 9000, "no readable header"),
        (b"{'descr': ',8', 'fortran_order': False, 'shape': (2, 4, 5, 3), }", "no readable header"),
    ],
)
def test_a_header_is_not_believed(header: bytes, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match=complaint):
        read(claimed(tmp_path, header, b"1234567"))


def test_arrays_that_the_memory_does_not_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    np.savez(tmp_path / "scenes.npz", image=IMAGES)
    monkeypatch.setattr("pcdnet.data.npz.np.empty", full)
    with pytest.raises(PcdnetError, match="not enough memory for the arrays of .*; split it into smaller files"):
        read(tmp_path / "scenes.npz")


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "scenes.npz"
    np.savez(path, image=IMAGES)
    whole = path.read_bytes()
    at = whole.index(IMAGES[2].tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(PcdnetError, match="no sound .npz file .Bad CRC"):
        read(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PcdnetError, match="no sound .npz file"):
        read(path)


def test_what_is_no_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PcdnetError, match="does not exist; give the path of an .npz file"):
        read(tmp_path / "missing.npz")
    with pytest.raises(PcdnetError, match="cannot be read"):
        read(tmp_path)
    single = io.BytesIO()
    np.save(single, IMAGES)
    (tmp_path / "single.npz").write_bytes(single.getvalue())
    with pytest.raises(PcdnetError, match="save it again with numpy.savez"):
        read(tmp_path / "single.npz")
    with pytest.raises(PcdnetError, match="the limit is 0 scenes"):
        read(tmp_path / "single.npz", limit=0)


@pytest.mark.parametrize("images", [IMAGES, IMAGES[..., :1], IMAGES[..., 0]])
def test_images_are_streamed_as_they_were_saved(images: np.ndarray, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", allow_pickle=True, image=images, labels=np.zeros((5, 4, 6)))
    assert count(tmp_path / "a.npz") == 5
    for stride in (1, 2):
        numbers, found = zip(*npz.images(tmp_path / "a.npz", stride=stride), strict=True)
        assert numbers == tuple(range(0, 5, stride))
        np.testing.assert_array_equal(np.stack(found), images.reshape(5, 4, 6, -1)[::stride])


def test_damage_is_noticed_while_streaming(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", allow_pickle=True, images=IMAGES)
    np.savez(tmp_path / "signed.npz", allow_pickle=True, image=IMAGES.astype(np.int8))
    np.savez(tmp_path / "cut.npz", allow_pickle=True, image=IMAGES)
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:300])
    at = whole.index(IMAGES[2].tobytes())
    (tmp_path / "bad.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for name, complaint in {
        "other": "no array 'image' .it holds images.",
        "signed": "is of type int8",
        "cut": "no sound .npz file",
        "bad": "no sound .npz file .Bad CRC",
        "missing": "does not exist",
    }.items():
        with pytest.raises(PcdnetError, match=complaint):
            list(npz.images(tmp_path / f"{name}.npz"))


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_arrays_of_more_than_eight_bits_are_scaled_by_their_values(dtype: Any, tmp_path: Path) -> None:
    deep = (IMAGES.astype(float) * 3 + 200).astype(dtype)
    path = saved(tmp_path, image=deep)
    np.testing.assert_array_equal(read(path, view=View(values=(200, 965))).images, IMAGES)
    found = np.stack([image for _, image in npz.images(path)])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, deep)
    assert npz.headers(path) == dict.fromkeys(range(5), Header(size=(4, 6), channels=3, deep=True))


@pytest.mark.parametrize("view", [View(), View(crop=(0, 1, 3, 4), resize=(6, 8), stride=2, grey=True)])
def test_scenes_that_would_fill_the_memory_are_the_same_from_a_file(
    view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boxes = {"boxes": np.array([[0, 1, 2, 3]], np.float32), "box_scene": np.array([2])}
    path = saved(
        tmp_path, image=np.tile(IMAGES, (500, 60, 1, 1)), labels=np.tile(LABELS, (500, 60, 1)).astype("uint8"), **boxes
    )
    expected = read(path, limit=800, view=view)
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "1")
    for word in ("labels.* would fill the memory, and is left out.*\n.*is decoded once", "left out"):
        found = read(path, limit=800, view=view)
        assert isinstance(found.images, PixelStore) == (not view.grey)
        assert np.array_equal(np.asarray(found.images), np.asarray(expected.images))
        assert found.labels is None
        assert [len(each) for each in found.boxes or ()] == [len(each) for each in expected.boxes or ()]
        assert re.search(word, capsys.readouterr().err) or view.grey
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "4")
    labelled = read(path, limit=800, view=view)
    np.testing.assert_array_equal(labelled.labels, expected.labels)


def test_a_large_file_that_is_cut_off_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (900, 40, 40, 3), }\n"
    path = claimed(tmp_path, header, bytes(700 * 4800))
    monkeypatch.setenv("PCDNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PCDNET_MAX_MEMORY", "1")
    with pytest.raises(PcdnetError, match="cut off after 700 of 900 images"):
        read(path)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
