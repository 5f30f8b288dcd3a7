"""NPZ: scenes in NumPy's own container, read with care.

Files come from strangers: nothing is unpickled, every header is checked before memory is taken, and only the scenes
that were asked for are unpacked.
"""

from __future__ import annotations

import zipfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from jaxtyping import Integer, Shaped, UInt8

from pcdnet.data import box_arrays
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

MOST_BYTES = 8 * 2**30
"""Unpacked arrays larger than this together are refused: a few kilobytes of zip can claim any size."""

_LABELS = ("labels", "mask")
_PIECE = 16 * 2**20
_LONGEST_HEADER = 10_000  # characters; NumPy's own limit for headers that are parsed


@dataclass(frozen=True, slots=True)
class Member:
    """An array in the file whose header is read and whose values are not."""

    label: str
    """What messages call it."""
    stream: zipfile.ZipExtFile
    """The file, at the first value."""
    shape: tuple[int, ...]
    """As the header claims; the values may end before."""
    dtype: np.dtype[np.generic]
    """The type of its values."""

    @property
    def bytes(self) -> int:
        """How much memory its values take."""
        return prod(self.shape) * self.dtype.itemsize

    def first(self, count: int) -> Member:
        """The same array, as if it had no more entries than these along its first axis."""
        return Member(self.label, self.stream, (min(count, self.shape[0]), *self.shape[1:]), self.dtype)


def read(path: str | Path, limit: int | None = None) -> Scenes:
    """Return the scenes of an .npz file, at most `limit` of them.

    `image` is (N H W C) or (N H W), uint8. The truth, if there is any, is `labels` (N H W), 0 for background, or
    `mask` (N K H W), the background first; `labels` counts where both are there. True boxes are in the arrays of
    `box_arrays`.
    """
    if limit is not None and limit < 1:
        raise PcdnetError(f"the limit is {limit} scenes; give at least 1, or none to read the whole file")
    path = Path(path)
    try:
        with ExitStack() as stack:
            file = stack.enter_context(zipfile.ZipFile(path))
            names = [name.removesuffix(".npy") for name in file.namelist()]
            wanted = ["image", *[name for name in _LABELS if name in names][:1], *box_arrays.wanted(names)]
            if "image" not in names:
                there = ", ".join(names) or "nothing"
                raise PcdnetError(f"{path} has no array 'image' (it holds {there}); save the images under that name")
            members = {name: open_member(file, name, path, stack) for name in wanted}
            check_sizes(members)
            count = members["image"].shape[0]
            if limit is not None:
                members |= {name: members[name].first(limit) for name in wanted if name not in box_arrays.ARRAYS}
            total = sum(member.bytes for member in members.values())
            if total > MOST_BYTES:
                raise PcdnetError(
                    f"{path} unpacks to {total / 2**30:.1f} GiB, more than the limit of {MOST_BYTES / 2**30:.0f} GiB; "
                    f"split it into smaller files"
                )
            arrays = {name: _values(member) for name, member in members.items()}
    except FileNotFoundError:
        raise PcdnetError(f"{path} does not exist; give the path of an .npz file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise PcdnetError(f"{path} is no sound .npz file ({error}); save it again with numpy.savez") from None
    except OSError as error:
        raise PcdnetError(f"{path} cannot be read ({error.strerror or error}); give a readable file") from None
    images: UInt8[np.ndarray, "N H W C"] = arrays["image"]
    boxes, kinds, scored = box_arrays.by_scene(arrays, count, path) if "boxes" in arrays else (None, (), ())
    return Scenes(
        images=images if images.ndim == 4 else images[..., None],
        labels=_truth(arrays, path),
        boxes=None if boxes is None else boxes[: len(images)],
        kinds=kinds,
        scored=scored,
        name=path.stem,
    )


def open_member(file: zipfile.ZipFile, name: str, path: Path, stack: ExitStack) -> Member:
    """An array of an .npz file with its header read; it stays open as long as `stack`."""
    label = f"{name!r} of {path}"
    member = f"{name}.npy" if f"{name}.npy" in file.namelist() else name
    stream = stack.enter_context(file.open(member))
    assert isinstance(stream, zipfile.ZipExtFile)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise PcdnetError(f"{label} has format version {version}; save it again with numpy.savez")
        parse = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = parse(stream, max_header_size=_LONGEST_HEADER)
    except ValueError:
        raise PcdnetError(f"{label} has no readable header; save it again with numpy.savez") from None
    if fortran and len(shape) > 1:
        raise PcdnetError(f"{label} is stored column by column; save numpy.ascontiguousarray of it")
    if any(side < 0 for side in shape):
        raise PcdnetError(f"{label} claims the shape {shape}; save it again with numpy.savez")
    return Member(label, stream, shape, dtype)


def check_sizes(members: dict[str, Member]) -> None:
    """Refuse what cannot be images and their truth, before anything is unpacked."""
    image = members["image"]
    if image.dtype != np.uint8:
        raise PcdnetError(f"{image.label} is of type {image.dtype}; save uint8 values of 0 to 255")
    if len(image.shape) not in (3, 4) or (len(image.shape) == 4 and image.shape[3] not in (1, 3)):
        raise PcdnetError(
            f"{image.label} has shape {image.shape}; save images x height x width x channels with 1 or 3 channels, "
            f"or images x height x width of grey images"
        )
    if 0 in image.shape:
        raise PcdnetError(f"{image.label} has shape {image.shape}, so no pixel; save at least one image")
    N, H, W = image.shape[:3]
    for name, member in members.items():
        if name in box_arrays.ARRAYS:
            boxes = members["boxes"].shape[:1]
            box_arrays.check_header(name, member.label, member.shape, member.dtype, boxes[0] if boxes else 0)
        if name not in _LABELS:
            continue
        if member.dtype.kind not in "biu":
            raise PcdnetError(f"{member.label} is of type {member.dtype}; save integers")
        shape = (
            member.shape[:-1] if name == "mask" and len(member.shape) == 5 and member.shape[4] == 1 else member.shape
        )
        fits = shape == (N, H, W) if name == "labels" else len(shape) == 4 and (shape[0], *shape[2:]) == (N, H, W)
        if not fits or 0 in shape:
            form = "images x height x width" if name == "labels" else "images x entities x height x width"
            raise PcdnetError(
                f"{member.label} has shape {member.shape}, which does not fit {N} images of {H}x{W}; save {form}"
            )


def _values(member: Member) -> Shaped[np.ndarray, "*any"]:
    """Unpack an array piece by piece; what the file claims beyond its end is no longer believed."""
    values = np.empty(member.shape, member.dtype)
    room = values.reshape(-1).view(np.uint8)
    filled = 0
    while filled < room.size:
        piece = member.stream.read(min(_PIECE, room.size - filled))
        if not piece:
            raise PcdnetError(f"{member.label} is cut off ({filled} of {room.size} bytes are there); save it again")
        room[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
        filled += len(piece)
    member.stream.read(1)  # at the end of the array the container's checksum is checked
    return values


def _truth(arrays: dict[str, Shaped[np.ndarray, "*any"]], path: Path) -> Integer[np.ndarray, "N H W"] | None:
    if "labels" in arrays:
        labels = arrays["labels"]
        if labels.dtype.kind == "b":
            labels = labels.astype(np.uint8)
        if labels.min() < 0:
            raise PcdnetError(
                f"'labels' of {path} goes down to {labels.min()}; save 0 for background and 1, 2, ... for objects"
            )
        native: Integer[np.ndarray, "N H W"] = labels.astype(labels.dtype.newbyteorder("="), copy=False)
        return native
    if "mask" in arrays:
        mask = arrays["mask"]
        # A pixel that no entity claims is background: the first of equals wins.
        first: Integer[np.ndarray, "N H W"] = (mask[..., 0] if mask.ndim == 5 else mask).argmax(axis=1).astype(np.int32)
        return first
    return None
