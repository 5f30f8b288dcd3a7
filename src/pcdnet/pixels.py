"""Pixels: the images of Scenes, in memory or in a file that is read as they are wanted.

A `PixelStore` is one file: a head of fixed size, all pixels as uint8, and words about them in JSON. It is read with
`pread` and never mapped, so that the memory of a process is what it asked for; what is read again comes from the
system's cache of files, which gives way to whoever needs memory.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from jaxtyping import UInt8
from numpy.typing import DTypeLike, NDArray

from pcdnet.errors import PcdnetError
from pcdnet.files import CHANGED, Checksum, sealed_json, unsealed_json

MAGIC = b"pcdnet pixels 1\n"
"""What a store begins with; the number changes with its form."""
HEAD = 4096
"""Bytes before the first pixel: MAGIC, where the words begin, and how many bytes they have."""
PIECE = 16 * 2**20
"""Bytes that are read at a time where all are gone through."""


class PixelStore:
    """Images in a file, `N H W C` of uint8, that are indexed like an array.

    A number gives an image, and an array of numbers gives those images, as arrays. A slice or a boolean mask gives a
    part of the store, which holds nothing in memory; `numpy.asarray` reads it.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(self, file: _File, chosen: range | NDArray[np.int64]) -> None:
        self._file, self._chosen = file, chosen
        self.shape: tuple[int, ...] = (len(chosen), *file.image)

    def __len__(self) -> int:
        return len(self._chosen)

    def __repr__(self) -> str:
        return f"PixelStore({'x'.join(map(str, self.shape))} in {self._file.path})"

    @property
    def words(self) -> dict[str, Any]:
        """What whoever wrote the file said of its images."""
        words: dict[str, Any] = self._file.words
        return words

    @property
    def nbytes(self) -> int:
        """Bytes of all pixels."""
        return prod(self.shape)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, int | np.integer):
            number = range(len(self))[which]  # raises IndexError, by which loops know the end
            return self._file.read(np.array([self._chosen[number]], np.int64))[0]
        if isinstance(which, slice):
            return PixelStore(self._file, self._chosen[which])
        which = np.asarray(which)
        if which.dtype == bool:
            if which.shape != (len(self),):
                raise IndexError(f"a mask of shape {which.shape} for {len(self)} images")
            return PixelStore(self._file, self._numbers()[which])
        return self._file.read(self._numbers(which))

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        for piece in self.pieces():
            yield from piece

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the pixels lie in a file, so they cannot be had without a copy")
        return self._file.read(self._numbers()).astype(dtype or np.uint8, copy=False)

    def pieces(self) -> Iterator[UInt8[np.ndarray, "n H W C"]]:
        """All images in their order, some at a time."""
        count = max(1, PIECE // max(1, prod(self.shape[1:])))
        for start in range(0, len(self), count):
            yield np.asarray(self[start : start + count])

    def expect(self, which: NDArray[np.integer[Any]]) -> None:
        """Have the system fetch images that will be asked for soon, while something else is computed."""
        self._file.expect(self._numbers(which))

    def _numbers(self, which: Any = ...) -> NDArray[np.int64]:
        """The places in the file of the images with these numbers."""
        if isinstance(self._chosen, range):
            if which is ...:
                return np.arange(self._chosen.start, self._chosen.stop, self._chosen.step, dtype=np.int64)
            which = np.asarray(which, np.int64)
            if which.size and not (-len(self) <= which.min() and which.max() < len(self)):
                raise IndexError(f"images {which.min()} to {which.max()} of {len(self)}")
            return np.asarray(self._chosen.start + self._chosen.step * np.where(which < 0, which + len(self), which))
        return np.asarray(self._chosen[which])


Pixels = np.ndarray | PixelStore
"""Where many images are: in memory or in a file."""
if TYPE_CHECKING:
    Images = np.ndarray
else:
    Images = Pixels
"""The images of Scenes. Most are in memory, and used as arrays are; where they may not be, `spread` helps."""


def spread(images: UInt8[Pixels, "N H W C"], step: int, most: int | None = None) -> UInt8[np.ndarray, "n H W C"]:
    """Every `step`-th image, at most so many, in memory.

    Whatever must look at many images at once takes them from here, so that it sees the same of a store as of an array.
    """
    return np.asarray(images[::step][:most])


def pieces(images: UInt8[Pixels, "N H W C"]) -> Iterator[UInt8[np.ndarray, "n H W C"]]:
    """All images in their order, some at a time; those in memory in one piece."""
    if isinstance(images, PixelStore):
        yield from images.pieces()
    else:
        yield images


def write_store(file: BinaryIO, images: Iterator[UInt8[np.ndarray, "H W C"]], words: dict[str, Any]) -> int:
    """Write images into a file that is open and empty; how many there were.

    `words` are asked for when all images are written, so they may be filled in meanwhile.
    """
    file.write(MAGIC.ljust(HEAD, b"\0"))
    seal, count, shape = Checksum(), 0, tuple[int, ...]()
    for count, image in enumerate(images, start=1):  # noqa: B007
        assert shape in ((), image.shape), "images of one size"
        shape, content = image.shape, np.ascontiguousarray(image).data.cast("B")
        seal.add(bytes(content))
        file.write(content)
    known = {"shape": [count, *shape], "pixels": str(seal), "words": words}
    text, place = sealed_json(json.dumps(known)).encode(), file.tell()
    file.write(text)
    file.seek(0)
    file.write(MAGIC + place.to_bytes(8, "little") + len(text).to_bytes(8, "little"))
    return count


def open_store(path: Path) -> PixelStore:
    """Open a store, every byte of which is checked; one that is not as it was written is a ValueError."""
    file = _File(path)
    seal = Checksum()
    for start in range(HEAD, HEAD + file.count * file.size, PIECE):
        seal.add(file.bytes(start, min(PIECE, HEAD + file.count * file.size - start)))
    if str(seal) != file.seal:
        raise ValueError(CHANGED)
    return PixelStore(file, range(file.count))


class _File:
    """The file of a store, open for reading for as long as anybody knows it."""

    def __init__(self, path: Path) -> None:
        self.path, self._number = path, os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._number)
        whole, head = os.fstat(self._number).st_size, os.pread(self._number, len(MAGIC) + 16, 0)
        place, length = (int.from_bytes(head[len(MAGIC) :][at : at + 8], "little") for at in (0, 8))
        if head[: len(MAGIC)] != MAGIC or place < HEAD or place + length != whole:
            raise ValueError("it is no store of pixels, or is cut off")
        text = os.pread(self._number, length, place).decode()
        if (unsealed := unsealed_json(text)) == text:
            raise ValueError(CHANGED)
        known = json.loads(unsealed)
        self.count, *image = known["shape"]
        self.image, self.seal, self.words = tuple(image), known["pixels"], known["words"]
        self.size = prod(self.image)
        if HEAD + self.count * self.size != place or len(self.image) != 3:
            raise ValueError("its size is not that of its images")

    def bytes(self, start: int, length: int) -> bytes:
        """Some bytes of the file."""
        content = os.pread(self._number, length, start)
        if len(content) < length:
            raise self._lost()
        return content

    def read(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The images at these places, in the order asked for; neighbours are read together, and the disk in order."""
        images = np.empty((len(places), *self.image), np.uint8)
        if len(places) and (np.diff(places) == 1).all():
            self._fill(images, int(places[0]))
            return images
        for slot in np.argsort(places, kind="stable"):
            self._fill(images[slot], int(places[slot]))
        return images

    def expect(self, places: NDArray[np.int64]) -> None:
        """Have the system fetch images ahead of time, where it can be asked to."""
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):
                for place in places.tolist():
                    os.posix_fadvise(self._number, HEAD + place * self.size, self.size, os.POSIX_FADV_WILLNEED)

    def _fill(self, room: NDArray[np.uint8], place: int) -> None:
        view, start = room.data.cast("B"), HEAD + place * self.size
        while view:
            try:
                done = os.preadv(self._number, [view[: 2**30]], start)
            except OSError:
                raise self._lost() from None
            if not done:
                raise self._lost()
            view, start = view[done:], start + done

    def _lost(self) -> PcdnetError:
        return PcdnetError(f"{self.path} was changed while it was read; start again, and it is made anew")
