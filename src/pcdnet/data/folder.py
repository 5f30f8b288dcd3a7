"""Folder: a folder of images as Scenes, with their true boxes where COCO annotations lie in it or beside it.

Files come from strangers: all headers are read first, so that sizes and memory are settled before anything is decoded.
A few damaged images are skipped and reported; many are a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Num
from PIL.Image import Image

from pcdnet.data import coco
from pcdnet.data.decoding import Opener, header_of, pixels_of
from pcdnet.data.gathering import gather
from pcdnet.data.intake import Header
from pcdnet.data.notes import readable, some, to_stderr
from pcdnet.data.pictures import is_picture, page_names, pages
from pcdnet.data.sources import PARTS, PICTURES
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError
from pcdnet.scene import Boxes, Scenes

T = TypeVar("T")

MOST_DAMAGED = 0.1
"""The share of images that may be damaged; they are skipped."""
ANNOTATIONS = "annotations.json"
"""The file of true boxes in COCO form, in the folder of images or in the one above."""


def read(folder: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the images of a folder in the order of their names, `a2` before `a10`; at most `limit` of them.

    A folder without images of its own gives those of the folders in it, one level deep; every page of a TIFF stack is
    an image. Images have three channels if any of them has colours. They must be of one size unless they are resized or
    cropped to one, or cut into tiles.
    """
    everything = every_page(folder)
    chosen = everything[view.chosen(limit)]
    damaged: dict[str, str] = {}
    found = dict(_sound(folder, chosen, header_of, damaged))
    _check_damage(folder, damaged, len(chosen))
    gathered = gather(lambda: _sound(folder, chosen, pixels_of, damaged), found, view, folder)
    for name in found.keys() - gathered.sizes.keys():  # of what was decoded before, only the names are known
        damaged.setdefault(name, "it cannot be decoded")
    _check_damage(folder, damaged, len(chosen))
    if damaged:
        to_stderr(f"skipped {len(damaged)} of {len(chosen)} images of {folder} that cannot be read: {some([*damaged])}")
    boxes, kinds = _ground_truth(folder, gathered.sizes, [page.label for page in everything], view)
    return gathered.scenes(str(folder), boxes, kinds)


def images(folder: Path, *, stride: int = 1) -> Iterator[tuple[int, Num[np.ndarray, "H W C"]]]:
    """Yield every `stride`-th image with its number; those that cannot be read are skipped."""
    every = every_page(folder)
    numbers = {page.label: number for number, page in enumerate(every)}
    for label, pixels in _sound(folder, every[::stride], pixels_of, {}):
        yield numbers[label], pixels


def headers(folder: Path) -> dict[int, Header]:
    """What every sound image says of itself, by number."""
    every = every_page(folder)
    numbers = {page.label: number for number, page in enumerate(every)}
    return {numbers[label]: header for label, header in _sound(folder, every, header_of, {})}


def one(folder: Path, page: Page, read: Callable[[Image, Opener], T]) -> T:
    """What is read of one of the images; one that cannot be read is refused."""
    for number, found in pages(folder / page.file, read, wanted={page.number}):
        if number == page.number or isinstance(found, PcdnetError):
            if isinstance(found, PcdnetError):
                raise found
            return found
    raise PcdnetError(f"{folder / page.file} has no page {page.number}; it has changed meanwhile")


def count(folder: Path) -> int:
    """How many images the folder holds."""
    return len(every_page(folder))


def names(folder: str | Path) -> list[str]:
    """The images of a folder in natural order, or of the folders in it if it has none itself."""
    folder = Path(folder)
    with readable(folder, "a folder of images"):
        own = [path for path in folder.iterdir() if is_picture(path) and path.is_file()]
        if not own:
            inner = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
            own = [path for each in inner for path in each.iterdir() if is_picture(path) and path.is_file()]
    return sorted((path.relative_to(folder).as_posix() for path in own), key=natural_order)


def parts(folder: str | Path) -> dict[str, Path]:
    """The folders `train`, `val` and `test` of a folder that has no images itself, as far as they are there."""
    if any(is_picture(path) for path in Path(folder).glob("*")):
        return {}
    places = {name: Path(folder) / name for name in PARTS}
    return {name: place for name, place in places.items() if place.is_dir()}


def natural_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """A key to sort names by, in which numbers, however long, count as numbers: `a2` comes before `a10`."""
    parts = re.split(r"([0-9]+)", name.lower())
    numbers = [part.lstrip("0") for part in parts]  # of two numbers the one with more digits is larger
    return [(len(numbers[n]), numbers[n]) if n % 2 else (0, part) for n, part in enumerate(parts)], name


class Page(NamedTuple):
    """An image of a folder."""

    file: str
    """Its file, as the folder has it."""
    number: int
    """Its number in the file, 0 but in TIFF stacks."""
    label: str
    """What it is called."""


def every_page(folder: Path) -> list[Page]:
    """The images of a folder; one without any is refused."""
    files = names(folder)
    if not files:
        suffixes = ", ".join(suffix[1:] for suffix in PICTURES)
        raise PcdnetError(f"{folder} holds no images; give a folder of {suffixes} files")
    return [Page(file, *page) for file in files for page in page_names(folder / file, file).items()]


def _sound(
    folder: Path, wanted: Iterable[Page], read: Callable[[Image, Opener], T], damaged: dict[str, str]
) -> Iterator[tuple[str, T]]:
    """What is read of each image that can be read; the others are put down as damaged, with the reason."""
    for file, group in groupby(wanted, key=lambda page: page.file):
        labels = {page.number: page.label for page in group}
        for number, found in pages(folder / file, read, wanted=labels):
            if not isinstance(found, PcdnetError):
                yield labels[number], found
            elif number in labels:
                damaged[labels[number]] = str(found)


def _check_damage(folder: Path, damaged: dict[str, str], count: int) -> None:
    if len(damaged) > MOST_DAMAGED * count:
        reason = f"{some([*damaged])}: {next(iter(damaged.values())).partition('; ')[0]}"
        raise PcdnetError(f"{len(damaged)} of {count} images of {folder} cannot be read ({reason}); fix or remove them")


def _ground_truth(
    folder: Path, sizes: dict[str, tuple[int, int]], everything: Sequence[str], view: View
) -> tuple[list[Boxes] | None, tuple[str, ...]]:
    """The boxes of every image as they will be seen, and the names of their kinds."""
    places = (folder, folder.resolve().parent)
    path = next((place / ANNOTATIONS for place in places if (place / ANNOTATIONS).is_file()), None)
    if path is None:
        return None, ()
    annotations, beside = coco.read(path), path.parent != folder
    entries = annotations.matched(everything, folder.resolve().name if beside else None)
    if not entries:
        if beside:  # it may be about the folder's neighbours
            to_stderr(f"{path} names no image of {folder}, so their ground truth is not known")
            return None, ()
        first = annotations.entries[0].name if annotations.entries else "none"
        cure = "write the files' names under 'file_name', or take it out of the folder"
        raise PcdnetError(f"{path} names no image of {folder} (its first is {first}); {cure}")
    there = {entry.name for entry in entries.values()}
    lost = [] if beside else [entry.name for entry in annotations.entries if entry.name not in there]
    bare = [name for name in sizes if name not in entries]
    if lost:
        to_stderr(f"{path} names {len(lost)} images that are not there: {some(lost)}")
    if annotations.strays:
        to_stderr(f"{path} has {annotations.strays} annotations of images that it does not list")
    if bare:
        to_stderr(f"{path} lacks {len(bare)} of the images, which count as empty: {some(bare)}")
    return [_boxes(path, entries.get(name), size, view) for name, size in sizes.items()], annotations.kinds


def _boxes(path: Path, entry: coco.Entry | None, size: tuple[int, int], view: View) -> Boxes:
    if entry is None:
        return Boxes.from_rows([])
    if entry.size is not None and entry.size != size:
        claimed, found = ("x".join(map(str, sides)) for sides in (entry.size, size))
        raise PcdnetError(f"{path} says that {entry.name} is {claimed}, but it is {found}; annotate images as they are")
    return view.boxes(entry.boxes, size)
