"""Gathering: pictures read one by one as the images of Scenes, whole if they are of one size, else in tiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from jaxtyping import Int32, Num, UInt8

from pcdnet.data.intake import Header
from pcdnet.data.keeping import Keep, most_in_memory, stamp
from pcdnet.data.notes import printable, some, to_stderr
from pcdnet.data.tiles import chosen_side, cut, tile_boxes, tile_names
from pcdnet.data.view import View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.pixels import Images
from pcdnet.progress import counting
from pcdnet.scene import Boxes, Scenes

Pictures = Callable[[], Iterable[tuple[str, Num[np.ndarray, "_ _ _"]]]]
"""Goes through the pictures, with the name of each, in the same way each time."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gathered:
    """The pictures that could be read, as they are seen."""

    images: UInt8[Images, "N H W C"]
    """All of them, or their tiles."""
    sizes: dict[str, tuple[int, int]]
    """The size that each has in its file, by name, in their order."""
    places: Int32[np.ndarray, "N 3"] | None
    """Where tiles are cut from; see `Scenes`."""

    def scenes(self, name: str, boxes: Sequence[Boxes] | None = None, kinds: tuple[str, ...] = ()) -> Scenes:
        """The Scenes, with the boxes of every picture if they are known."""
        names = tuple(self.sizes)
        if self.places is None:
            return Scenes(images=self.images, boxes=boxes, kinds=kinds, names=names, name=name)
        side = self.images.shape[1]
        return Scenes(
            images=self.images,
            boxes=None if boxes is None else tile_boxes(boxes, self.places, side),
            kinds=kinds,
            names=tile_names(names, self.places),
            name=f"{name}, in tiles of {side}x{side}",
            places=self.places,
        )


def gather(pictures: Pictures, headers: Mapping[str, Header], view: View, folder: Path) -> Gathered:
    """Read the pictures whose headers are read, as they are to be seen; `folder` is for messages.

    Memory is settled before anything is decoded. Of pictures that are cut into tiles one is held at a time, and those
    that are smaller than a tile are skipped and reported.
    """
    sizes: dict[str, tuple[int, int]] = {}
    reading = printable(f"reading {folder}")
    channels = 1 if view.grey else max(header.channels for header in headers.values())
    claimed = {name: view.size(header.size, str(folder / name)) for name, header in headers.items()}

    def seen() -> Iterator[UInt8[np.ndarray, "_ _ _"]]:
        for name, pixels in counting(pictures(), len(headers), reading):
            sizes[name] = pixels.shape[:2]
            yield view.image(pixels, str(folder / name))

    if view.tiles and view.cuts(claimed.values()):
        small = [name for name, size in claimed.items() if min(size) < view.tiles]
        if small:
            tile = f"smaller than tiles of {view.tiles}x{view.tiles}"
            to_stderr(f"skipped {len(small)} of {len(claimed)} images of {folder} that are {tile}: {some(small)}")
        images, places = cut(seen, list(claimed.values()), channels, view.tiles, view.ignore)
        return Gathered(images=images, sizes=sizes, places=places)
    shape = (len(headers), *_one_size(folder, claimed), channels)
    if prod(shape) > most_in_memory():
        return _kept(pictures, headers, view, folder, shape)
    images = np.empty(shape, np.uint8)
    for index, image in enumerate(seen()):
        if image.shape[:2] != shape[1:3]:  # EXIF data behind the pixels turn it
            _one_size(folder, {**claimed, [*sizes][-1]: image.shape[:2]})
        images[index] = image
    return Gathered(images=images[: len(sizes)], sizes=sizes, places=None)


def _kept(
    pictures: Pictures, headers: Mapping[str, Header], view: View, folder: Path, shape: tuple[int, ...]
) -> Gathered:
    """The same pictures in a file, as they would fill the memory."""
    stamps = {name: _stamp(folder, name) for name in headers}
    keep = Keep(name=str(folder), key=(str(folder.absolute()), stamps, repr(view), shape))
    images = keep.kept()
    if images is None:
        there: list[str] = []

        def seen() -> Iterator[UInt8[np.ndarray, "_ _ _"]]:
            for name, pixels in counting(pictures(), len(headers), printable(f"decoding {folder}")):
                image = view.image(pixels, str(folder / name))
                if image.shape[:2] != shape[1:3]:
                    _one_size(folder, {**dict.fromkeys(headers, (shape[1], shape[2])), name: image.shape[:2]})
                there.append(name)
                yield image if image.shape[2] == shape[3] else image.repeat(3, axis=2)
            keep.words["skipped"] = sorted(headers.keys() - set(there))

        images = keep.collect(seen(), prod(shape))
    skipped = set(keep.words["skipped"])
    sizes = {name: header.size for name, header in headers.items() if name not in skipped}
    return Gathered(images=images, sizes=sizes, places=None)


def _stamp(folder: Path, name: str) -> tuple[int, int] | None:
    """What changes when the file of a picture, or of a page, does."""
    for file in (name, name.rpartition("#")[0]):
        with suppress(OSError):
            return stamp(folder / file)
    return None


def _one_size(folder: Path, seen: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """The size that all images are seen in."""
    usual = Counter(seen.values()).most_common(1)[0][0]
    others = [f"{name} ({size[0]}x{size[1]})" for name, size in seen.items() if size != usual]
    if others:
        side = chosen_side(list(seen.values()))
        raise PcdnetError(
            f"the images of {folder} are not of one size: most are {usual[0]}x{usual[1]}, but not {some(others)}; use ",
            *(Setting("resize", usual), ", or ", Setting("crop"), " for a part that all of them have"),
            *(() if side is None else (", or ", Setting("tiles", side), " to cut them")),
        )
    return usual
