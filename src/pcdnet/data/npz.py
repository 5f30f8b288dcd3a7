"""NPZ: images with their ground truth in NumPy's own container, read all at once or one by one.

Files come from strangers: nothing is unpickled, every header is checked before memory is taken, and only the scenes
that were asked for are unpacked.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from pathlib import Path
from tokenize import TokenError

import numpy as np
from jaxtyping import Integer, Num, Shaped

from pcdnet.data import box_arrays
from pcdnet.data.intake import Header, all_in_eight_bits, check_memory, check_pixels, check_stack, check_type
from pcdnet.data.keeping import Keep, most_in_memory, stamp
from pcdnet.data.notes import readable, some, to_stderr
from pcdnet.data.streaming import streamed
from pcdnet.data.tiles import tile_boxes
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Scenes

_LABELS = ("labels", "mask")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_NO_HEADER = (
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    MemoryError,
    RecursionError,
    TokenError,
)  # of Python's parser
_PIECE = 16 * 2**20
_PARSERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_LONGEST_HEADER = 10_000  # characters; NumPy's own limit for headers that are parsed
_EXPANDED = 1032  # bytes that deflate makes of one at most


@dataclass(frozen=True, slots=True)
class _Member:
    """An array in the file whose header is read and whose values are not."""

    label: str  # what messages call it
    stream: zipfile.ZipExtFile  # the file, at the first value
    shape: tuple[int, ...]  # as the header claims; the values may end before
    dtype: np.dtype[np.generic]

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return prod(self.shape) * self.dtype.itemsize

    def first(self, count: int | None) -> _Member:
        """The same array, as if it had no more entries than these along its first axis."""
        return replace(self, shape=(len(range(self.shape[0])[:count]), *self.shape[1:]))


def read(path: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the scenes of an .npz file, at most `limit` of them.

    `image` is (N H W C) or (N H W), of uint8, uint16 or floats. The ground truth, if there is any, is `labels` (N H W),
    0 for background, or `mask` (N K H W), the background first; `labels` counts where both are there. True boxes are in
    the arrays of `box_arrays`.
    """
    stop = view.chosen(limit).stop
    with _opened(path, ground_truth=True) as members:
        count = members["image"].shape[0]
        kept = {name: one if name in box_arrays.ARRAYS else one.first(stop) for name, one in members.items()}
        if kept["image"].size > most_in_memory():
            return _streamed(kept, path, count, view)
        arrays = _unpacked(kept, path)
    images = all_in_eight_bits(arrays["image"], view.values, f"'image' of {path}")
    boxes, kinds, scored = box_arrays.by_scene(arrays, count, path) if "boxes" in arrays else (None, (), ())
    scenes = Scenes(
        images=images.reshape(*images.shape[:3], -1),
        labels=_labels(arrays, path),
        boxes=boxes and boxes[: len(images)],
        kinds=kinds,
        scored=scored,
        name=path.name,
    )
    return view.scenes(scenes)


def _streamed(members: dict[str, _Member], path: Path, claimed: int, view: View) -> Scenes:
    """The same scenes where the images would fill the memory; of the ground truth only what would not."""
    shape, room = members["image"].shape, most_in_memory()
    lost = [name for name in _LABELS if name in members and members[name].size > room]
    if lost:
        to_stderr(f"{lost[0]!r} of {path} would fill the memory, and is left out; use a smaller file for scores")
    truth = _unpacked({name: one for name, one in members.items() if name not in ("image", *lost)}, path)
    boxes, kinds, scored = box_arrays.by_scene(truth, claimed, path) if "boxes" in truth else (None, (), ())
    labels = _labels(truth, path)
    chosen, size = slice(0, shape[0], view.stride), (shape[1], shape[2])
    seen_boxes = None if boxes is None else [view.boxes(one, size) for one in boxes[chosen]]
    seen_labels = None if labels is None else view.labels(labels[chosen])
    count = len(range(shape[0])[chosen])

    def stream() -> Iterator[tuple[str, Num[np.ndarray, "H W C"]]]:
        for number, image in islice(images(path, stride=view.stride), count):
            yield f"image {number} of {path}", image

    keep = Keep(name=str(path), key=(str(path.absolute()), stamp(path), shape, repr(view)))
    C = 1 if view.grey or len(shape) == 3 else shape[3]
    found = streamed(stream, view, keep, count * prod(view.size(size)) * C)
    if found.places is not None:
        side = found.images.shape[1]
        seen_boxes = None if seen_boxes is None else tile_boxes(seen_boxes, found.places, side)
        if seen_labels is not None:
            places = found.places.tolist()
            seen_labels = np.stack([seen_labels[n, top : top + side, left : left + side] for n, top, left in places])
    return Scenes(
        images=found.images,
        labels=seen_labels,
        boxes=seen_boxes,
        kinds=kinds,
        scored=scored,
        name=path.name,
        places=found.places,
    )


def images(path: Path, *, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th image with its number; what the file claims beyond its end is reported when reached."""
    with _opened(path) as members:
        member = members["image"]
        N, H, W = member.shape[:3]
        check_pixels((H, W), f"an image of {member.label}")
        size = prod(member.shape[1:]) * member.dtype.itemsize
        for number in range(N):
            content = member.stream.read(size)
            if len(content) < size:
                raise PcdnetError(f"{member.label} is cut off after {number} of {N} images; save it again")
            if number % stride == 0:
                yield number, np.frombuffer(content, member.dtype).reshape(H, W, -1)
        member.stream.read(1)  # at the end of the array the container's checksum is checked


def headers(path: Path) -> dict[int, Header]:
    """What the file says of every image, by number."""
    with _opened(path) as members:
        (N, H, W, *C), deep = members["image"].shape, members["image"].dtype != np.uint8
        return dict.fromkeys(range(N), Header(size=(H, W), channels=C[0] if C else 1, deep=deep))


def count(path: Path) -> int:
    """How many images the file claims to hold."""
    with _opened(path) as members:
        return members["image"].shape[0]


@contextmanager
def _opened(path: Path, *, ground_truth: bool = False) -> Iterator[dict[str, _Member]]:
    """The images, and all that is known of them, with headers read; what goes wrong is reported as one sentence."""
    with readable(path, "an .npz file", _DAMAGE, "save it again with numpy.savez"), ExitStack() as stack:
        file = stack.enter_context(zipfile.ZipFile(path))
        names = [name.removesuffix(".npy") for name in file.namelist()]
        if "image" not in names:
            there = some(names, 5) or "nothing"
            raise PcdnetError(f"{path} has no array 'image' (it holds {there}); save it under that name")
        wanted = ["image"]
        if ground_truth:
            wanted += [name for name in _LABELS if name in names][:1]
            wanted += [name for name in box_arrays.ARRAYS if name in names and "boxes" in names]
        members = {name: _member(file, name, path, stack) for name in wanted}
        _check_headers(members)
        yield members


def _member(file: zipfile.ZipFile, name: str, path: Path, stack: ExitStack) -> _Member:
    label = f"{name!r} of {path}"
    stream = stack.enter_context(file.open(f"{name}.npy" if f"{name}.npy" in file.namelist() else name))
    assert isinstance(stream, zipfile.ZipExtFile)
    try:
        shape, fortran, dtype = _PARSERS[np.lib.format.read_magic(stream)](stream, max_header_size=_LONGEST_HEADER)
    except _NO_HEADER:
        raise PcdnetError(f"{label} has no readable header; save it again with numpy.savez") from None
    if fortran and len(shape) > 1:
        raise PcdnetError(f"{label} is stored column by column; save numpy.ascontiguousarray of it")
    if any(isinstance(side, bool) or side < 0 for side in shape):
        raise PcdnetError(f"{label} claims the shape {shape}; save it again with numpy.savez")
    member = _Member(label, stream, shape, dtype)
    if member.size > _EXPANDED * (there := path.stat().st_size):
        problem = f"{label} claims {member.size} bytes, more than the {there} of the file can hold"
        raise PcdnetError(f"{problem}; save it again with numpy.savez")
    return member


def _check_headers(members: dict[str, _Member]) -> None:
    """Refuse what cannot be images and their ground truth, before anything is unpacked."""
    image = members["image"]
    check_type(image.dtype, image.label)
    check_stack(image.shape, image.label)
    for name, member in members.items():
        if name in box_arrays.ARRAYS:
            boxes = members["boxes"].shape[:1]
            box_arrays.check_header(name, member.label, member.shape, member.dtype, boxes[0] if boxes else 0)
        elif name in _LABELS:
            _check_labels(name, member, image.shape)


def _check_labels(name: str, member: _Member, images: tuple[int, ...]) -> None:
    if member.dtype.kind not in "biu":
        raise PcdnetError(f"{member.label} is of type {member.dtype}; save integers")
    N, H, W = images[:3]
    shape, form = member.shape, "images x height x width"
    if name == "mask":
        shape, form = (*shape[:1], *shape[2:4], *shape[5:]), "images x entities x height x width"
    if shape != (N, H, W) or 0 in member.shape or member.shape[4:] not in ((), (1,)):
        problem = f"has shape {member.shape}, which does not fit {N} images of {H}x{W}"
        raise PcdnetError(f"{member.label} {problem}; save {form}")


def _unpacked(members: dict[str, _Member], path: Path) -> dict[str, Shaped[np.ndarray, "*any"]]:
    total = sum(member.size for member in members.values())
    check_memory(total, f"the arrays of {path}", ("split it into smaller files",))
    try:
        return {name: _values(member) for name, member in members.items()}
    except MemoryError:
        raise PcdnetError(f"there is not enough memory for the arrays of {path}; split it into smaller files") from None


def _values(member: _Member) -> Shaped[np.ndarray, "*any"]:
    """Unpack an array piece by piece; what the file claims beyond its end is no longer believed."""
    values = np.empty(member.shape, member.dtype)
    room = values.reshape(-1).view(np.uint8).data
    filled = 0
    while filled < len(room):
        size = member.stream.readinto(room[filled : filled + _PIECE])
        if not size:
            raise PcdnetError(f"{member.label} is cut off ({filled} of {len(room)} bytes are there); save it again")
        filled += size
    member.stream.read(1)  # at the end of the array the container's checksum is checked
    return values


def _labels(arrays: dict[str, Shaped[np.ndarray, "*any"]], path: Path) -> Integer[np.ndarray, "N H W"] | None:
    """The true instances of every pixel, where they are known."""
    if "mask" in arrays:
        mask = arrays["mask"]
        # A pixel that no entity claims is background: the first of equals wins.
        return np.asarray((mask[..., 0] if mask.ndim == 5 else mask).argmax(axis=1), np.int32)
    if "labels" not in arrays:
        return None
    labels = arrays["labels"]
    if labels.min() < 0:
        lowest = f"'labels' of {path} goes down to {labels.min()}"
        raise PcdnetError(f"{lowest}; save 0 for background and 1, 2, ... for objects")
    return labels.astype(np.uint8 if labels.dtype == bool else labels.dtype.newbyteorder("="), copy=False)
