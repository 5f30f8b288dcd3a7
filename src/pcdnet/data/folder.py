"""Folder: a folder of images as Scenes, with their true boxes where COCO annotations lie in it or beside it.

Files come from strangers: all headers are read first, so that sizes and memory are settled before anything is decoded.
A few damaged images are skipped and reported; many are a mistake.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import UInt8

from pcdnet.data import coco
from pcdnet.data.intake import check_memory
from pcdnet.data.notes import readable, some, to_stderr
from pcdnet.data.pictures import is_picture, read_picture, read_shape
from pcdnet.data.sources import PICTURES
from pcdnet.data.view import UNCHANGED, View
from pcdnet.errors import PcdnetError, Setting
from pcdnet.scene import Boxes, Scenes

T = TypeVar("T")

MOST_DAMAGED = 0.1
"""The share of images that may be damaged; they are skipped."""
ANNOTATIONS = "annotations.json"
"""The file of true boxes in COCO form, in the folder of images or in the one above."""
PARTS = ("train", "val", "test")
"""The folders that a folder may have instead of images, as many data sets do."""


def read(folder: Path, *, limit: int | None = None, view: View = UNCHANGED) -> Scenes:
    """Return the images of a folder in the order of their names, `a2` before `a10`; at most `limit` of them.

    A folder without images of its own gives those of the folders in it, one level deep. Images have three channels if
    any of them has colours. They must be of one size unless they are resized or cropped to one.
    """
    everything = names(folder)
    if not everything:
        suffixes = ", ".join(suffix[1:] for suffix in PICTURES)
        raise PcdnetError(f"{folder} holds no images; give a folder of {suffixes} files")
    chosen = everything[view.chosen(limit)]
    damaged: dict[str, str] = {}
    shapes = dict(_sound(folder, chosen, read_shape, damaged))
    _check_damage(folder, damaged, len(chosen))
    images, sizes = _images(folder, shapes, view, damaged)
    _check_damage(folder, damaged, len(chosen))
    if damaged:
        to_stderr(f"skipped {len(damaged)} of {len(chosen)} images of {folder} that cannot be read: {some([*damaged])}")
    boxes, kinds = _ground_truth(folder, sizes, everything, view)
    return Scenes(images=images, boxes=boxes, kinds=kinds, names=tuple(sizes), name=str(folder))


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
    """A key to sort names by, in which numbers count as numbers: `a2` comes before `a10`."""
    parts = re.split(r"([0-9]+)", name.lower())
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)], name


def _sound(
    folder: Path, names: Iterable[str], read: Callable[[Path], T], damaged: dict[str, str]
) -> Iterator[tuple[str, T]]:
    """What is read of each file that can be read; the others are put down as damaged, with the reason."""
    for name in names:
        try:
            yield name, read(folder / name)
        except PcdnetError as error:
            damaged[name] = str(error)


def _check_damage(folder: Path, damaged: dict[str, str], count: int) -> None:
    if len(damaged) > MOST_DAMAGED * count:
        reason = f"{some([*damaged])}: {next(iter(damaged.values())).partition('; ')[0]}"
        raise PcdnetError(f"{len(damaged)} of {count} images of {folder} cannot be read ({reason}); fix or remove them")


def _images(
    folder: Path, shapes: dict[str, tuple[int, int, int]], view: View, damaged: dict[str, str]
) -> tuple[UInt8[np.ndarray, "N H W C"], dict[str, tuple[int, int]]]:
    """Decode the images whose headers are read; with the size that each has in its file, by name."""
    claimed = {name: (height, width) for name, (height, width, _) in shapes.items()}
    channels = 1 if view.grey else max(channels for _, _, channels in shapes.values())
    shape = (len(shapes), *_one_size(folder, claimed, view), channels)
    check_memory(prod(shape), f"the {len(shapes)} images of {folder}")
    images = np.empty(shape, np.uint8)
    sizes: dict[str, tuple[int, int]] = {}
    for name, picture in _sound(folder, shapes, read_picture, damaged):
        found = picture.shape[:2]
        if found != claimed[name]:  # EXIF data behind the pixels turn it
            _one_size(folder, {**claimed, name: found}, view)
        images[len(sizes)] = view.image(picture)
        sizes[name] = found
    return images[: len(sizes)], sizes


def _one_size(folder: Path, sizes: dict[str, tuple[int, int]], view: View) -> tuple[int, int]:
    """The size that all images have, seen as they will be."""
    seen = {name: view.size(size, str(folder / name)) for name, size in sizes.items()}
    usual = Counter(seen.values()).most_common(1)[0][0]
    others = [f"{name} ({size[0]}x{size[1]})" for name, size in seen.items() if size != usual]
    if others:
        raise PcdnetError(
            f"the images of {folder} are not of one size: most are {usual[0]}x{usual[1]}, but not {some(others)}; use ",
            *(Setting("resize", usual), ", or ", Setting("crop"), " for a part that all of them have"),
        )
    return usual


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
